"""Makes up the disk that a loss of power leaves, from what was forced to it and what was not."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PAGE = 4096
SECTOR = 512
FOLDER = "PENSTOCK_FORCED"
# How likely what was not forced is there all the same: names, sizes and pages.
CHANCES = (0.0, 0.1, 0.5, 0.9, 1.0)


class Chances(NamedTuple):
    """How likely each kind of thing survives that was not forced."""

    name: float
    size: float
    page: float


class Forced:
    """What the library of forced.c keeps of one boot."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    def begin(self, root: Path) -> None:
        """What is there when a boot begins is on the disk; from here on the library notes."""
        for folder, names, files in os.walk(root):
            path = Path(folder)
            lines = [f"{(path / name).stat().st_ino} {name}\n" for name in [*names, *files]]
            (self._folder / f"{path.stat().st_ino}.names").write_text("".join(lines))
            for name in files:
                inode = (path / name).stat().st_ino
                (self._folder / f"{inode}.bytes").write_bytes((path / name).read_bytes())
                (self._folder / f"{inode}.live").hardlink_to(path / name)
        os.environ[FOLDER] = str(self._folder)

    def end(self) -> None:
        """Power is gone: nothing is forced any more."""
        del os.environ[FOLDER]

    def names(self, inode: int) -> dict[str, int]:
        """Tell which names a folder had when it was last forced."""
        path = self._folder / f"{inode}.names"
        lines = path.read_text().splitlines() if path.exists() else []
        pairs = (line.split(" ", 1) for line in lines)
        return {name: int(number) for number, name in pairs}

    def content(self, inode: int) -> bytes | None:
        """Tell which bytes a file had when it was last forced; None if it never was."""
        path = self._folder / f"{inode}.bytes"
        return path.read_bytes() if path.exists() else None

    def live(self, inode: int) -> bytes | None:
        """Tell which bytes a file had in memory, even if it has no name any more."""
        path = self._folder / f"{inode}.live"
        return path.read_bytes() if path.exists() else None


def after_power_loss(root: Path, forced: Forced, image: Path, rng: random.Random) -> Chances:
    """Make up a disk; tell how much of what was not forced it holds."""
    chances = Chances(rng.choice(CHANCES), rng.choice(CHANCES), rng.choice(CHANCES))
    image.mkdir()
    if root.exists():
        _Disk(root, forced, chances, rng).write(root, image)
    return chances


class _Disk:
    def __init__(self, root: Path, forced: Forced, chances: Chances, rng: random.Random) -> None:
        self._forced = forced
        self._chances = chances
        self._rng = rng
        self._live = {path.stat().st_ino: path for path in root.rglob("*")}
        self._folders = {root.stat().st_ino: root}
        self._folders |= {inode: path for inode, path in self._live.items() if path.is_dir()}
        self._chosen = self._choose_names()

    def _choose_names(self) -> dict[int, dict[str, int]]:
        """For each folder the inode behind each name: as it was forced, or as it is."""
        chosen: dict[int, dict[str, int]] = {}
        before: list[tuple[int, str, int]] = []
        for folder, path in self._folders.items():
            old = self._forced.names(folder)
            new = {entry.name: entry.inode() for entry in os.scandir(path)}
            chosen[folder] = {}
            for name in sorted(old | new):
                survives = self._rng.random() < self._chances.name
                inode = (new if survives else old).get(name)
                if inode is not None:
                    chosen[folder][name] = inode
                if name in old:
                    before.append((folder, name, old[name]))
        # A rename is one step: no file loses its old name without having its new one.
        there = {inode for names in chosen.values() for inode in names.values()}
        for folder, name, inode in before:
            if inode in self._live and inode not in there:
                chosen[folder].setdefault(name, inode)
        return chosen

    def write(self, folder: Path, image: Path) -> None:
        """Write what is chosen below one folder."""
        for name, inode in self._chosen[folder.stat().st_ino].items():
            if inode in self._folders:
                (image / name).mkdir(exist_ok=True)
                self.write(self._folders[inode], image / name)
            else:
                content = self._content(inode)
                if content is not None:
                    (image / name).write_bytes(content)

    def _content(self, inode: int) -> bytes | None:
        old = self._forced.content(inode)
        path = self._live.get(inode)
        new = self._forced.live(inode) if path is None else path.read_bytes()
        if new is None:
            return old
        base = b"" if old is None else old
        size = len(new) if self._rng.random() < self._chances.size else len(base)
        # What was never forced has blocks that may hold anything.
        if old is None and size and self._rng.random() < 0.1:
            base = self._rng.randbytes(size)
        return b"".join(self._pages(base, new, size))

    def _pages(self, old: bytes, new: bytes, size: int) -> Iterator[bytes]:
        for at in range(0, size, PAGE):
            end = min(at + PAGE, size)
            before = old[at:end].ljust(end - at, b"\0")
            after = new[at:end].ljust(end - at, b"\0")
            if before == after:
                yield before
            elif self._rng.random() < 0.2:
                for sector in range(0, end - at, SECTOR):
                    survives = self._rng.random() < self._chances.page
                    yield (after if survives else before)[sector : sector + SECTOR]
            else:
                yield after if self._rng.random() < self._chances.page else before
