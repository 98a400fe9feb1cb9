"""Reading and changing the bytes of a queue's files, by the constants of the kernel's layout."""

import os
import random
from collections.abc import Iterable
from pathlib import Path

from penstock.kernel import LAYOUT

HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
CHECK_BYTES = LAYOUT["FRAME_CHECK_BYTES"]


def segments(root: Path) -> list[Path]:
    """List the segment files, the oldest first."""
    return sorted(root.glob("*/*/*/*.data"))


def numbers(root: Path) -> list[int]:
    """List the numbers in the names of the segment files."""
    return [int(path.stem.partition("-")[2]) for path in segments(root)]


def set_aside(root: Path) -> list[str]:
    """List the names of what recovery took out of the log, without the day."""
    return sorted(path.name.partition("-")[2] for path in root.glob("*/*/*/*.torn"))


def load(path: Path, at: int, size: int = 8) -> int:
    """Read a number of so many bytes."""
    with path.open("rb") as file:
        file.seek(at)
        return int.from_bytes(file.read(size), "little")


def store(path: Path, at: int, value: int, size: int = 8) -> None:
    """Write a number of so many bytes."""
    write(path, at, value.to_bytes(size, "little"))


def write(path: Path, at: int, content: bytes) -> None:
    """Put bytes at a position, in the file that is there."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(fd, content, at)
    finally:
        os.close(fd)


def zero(path: Path, begin: int, end: int | None = None) -> None:
    """Put zeros in place of some bytes, up to the end of the file unless told where."""
    end = path.stat().st_size if end is None else end
    write(path, begin, bytes(max(0, end - begin)))


def flip(path: Path, at: int, bit: int = 0) -> None:
    """Turn one bit over."""
    store(path, at, load(path, at, 1) ^ 1 << bit, 1)


def positions(path: Path) -> list[int]:
    """List where each message of a segment begins, and where the last one ends."""
    content = path.read_bytes()
    found = [HEADER_BYTES]
    while True:
        at = found[-1]
        length = int.from_bytes(content[at : at + 4], "little")
        if not length or content[at + LAYOUT["FRAME_KIND_AT"]] != LAYOUT["KIND_MESSAGE"]:
            return found
        found.append(at + (length + 7) // 8 * 8 + CHECK_BYTES)


def torn_at(path: Path, ordinal: int) -> None:
    """Leave the segment as if nothing from the middle of this message on had reached the disk."""
    begin, end = positions(path)[ordinal : ordinal + 2]
    zero(path, begin + (end - begin) // 16 * 8)


def hole_at(path: Path, ordinal: int, count: int = 1) -> None:
    """Leave zeros in place of some messages, and what is behind them whole."""
    found = positions(path)
    zero(path, found[ordinal], found[ordinal + count])


def damage(path: Path, ordinal: int) -> None:
    """Turn a bit in the payload of a message over."""
    begin, end = positions(path)[ordinal : ordinal + 2]
    flip(path, (begin + end) // 2)


def fill_with_garbage(path: Path, seed: int = 1) -> None:
    """Put random bytes in place of the whole file."""
    write(path, 0, random.Random(seed).randbytes(path.stat().st_size))


class Page:
    """The words of a control page, by their names in the layout."""

    def __init__(self, root: Path) -> None:
        self.path = root / ".control"

    def load(self, name: str, size: int = 8) -> int:
        """Read a word."""
        return load(self.path, LAYOUT[name], size)

    def store(self, name: str, value: int, size: int = 8) -> None:
        """Write a word."""
        store(self.path, LAYOUT[name], value, size)

    def at(self, name: str) -> int:
        """Tell where a word of the active bank is."""
        index = self.load("CONTROL_BANK_AT", 4) & 1
        return LAYOUT["CONTROL_BANKS_AT"] + index * LAYOUT["CONTROL_BANK_BYTES"] + LAYOUT[name]

    def bank(self, name: str) -> int:
        """Read a word of the active bank."""
        return load(self.path, self.at(name))

    def set_bank(self, name: str, value: int) -> None:
        """Write a word of the active bank."""
        store(self.path, self.at(name), value)

    def banked(self, names: Iterable[str]) -> dict[str, int]:
        """Read some words of the active bank."""
        return {name: self.bank(name) for name in names}
