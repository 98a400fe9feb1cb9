"""The names of a queue's files, and the few ways they are made, listed and replaced."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

FILE_MODE = 0o600
FOLDER_MODE = 0o700

LOCK = ".lock"
CONTROL = ".control"
METADATA = "metadata.json"
SPARE = ".spare"
MAKING = ".tmp"
TORN = ".torn"
BROKEN = ".broken"
INDEX = ".index"

_SEGMENT = re.compile(r"\d{8}-(\d{4,})\.data", re.ASCII)
_FOLDERS = (re.compile(r"\d{4}", re.ASCII), *[re.compile(r"\d{2}", re.ASCII)] * 2)


def segment_path(root: Path, number: int, begun_at_ns: int) -> Path:
    """Name the file of a segment, by the UTC day it was begun on."""
    day = datetime.fromtimestamp(begun_at_ns // 1_000_000_000, tz=timezone.utc)
    return root / f"{day:%Y}" / f"{day:%m}" / f"{day:%d}" / f"{day:%Y%m%d}-{number:04}.data"


def index_path(data: Path) -> Path:
    """Name the index file that belongs to a segment."""
    return data.with_suffix(INDEX)


def list_segments(root: Path) -> dict[int, Path]:
    """Find every segment by its number, in order."""
    found: dict[int, Path] = {}
    for folder in _day_folders(root):
        found.update(_segments_in(folder))
    return dict(sorted(found.items()))


def find_segment(root: Path, number: int) -> Path | None:
    """Find one segment without listing them all: numbers grow with the days."""
    for folder in _day_folders(root):
        here = _segments_in(folder)
        if number in here:
            return here[number]
        if here and min(here) < number:
            return None
    return None


def _names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _segments_in(folder: Path) -> dict[int, Path]:
    names = ((_SEGMENT.fullmatch(name), name) for name in _names_in(folder))
    return {int(match[1]): folder / name for match, name in names if match}


def _day_folders(root: Path, depth: int = 0) -> Iterator[Path]:
    """List the folders of days, the newest first."""
    try:
        names = sorted(filter(_FOLDERS[depth].fullmatch, _names_in(root)), reverse=True)
    except FileNotFoundError:
        return
    for name in names:
        if depth == len(_FOLDERS) - 1:
            yield root / name
        else:
            yield from _day_folders(root / name, depth + 1)


def make_folder(path: Path) -> None:
    """Make a folder and those above it; it is the caller's to flush them when it matters."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=FOLDER_MODE, exist_ok=True)


def flush_folder(path: Path) -> None:
    """Force the names in a folder to the disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace(path: Path, content: bytes) -> None:
    """Put a whole file in place: after any crash there is the old content or the new one."""
    made = path.with_name(path.name + MAKING)
    fd = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        write_all(fd, content, 0)
        os.fsync(fd)
    finally:
        os.close(fd)
    made.replace(path)
    flush_folder(path.parent)


def write_all(fd: int, content: bytes, position: int) -> None:
    """Write every byte at a position of a file."""
    while content:
        written = os.pwrite(fd, content, position)
        content, position = content[written:], position + written


def set_aside(path: Path, suffix: str) -> Path:
    """Keep a file under a name that nothing reads."""
    aside = path.with_name(path.name + suffix)
    path.rename(aside)
    index_path(path).unlink(missing_ok=True)
    return aside


def remove_segment(data: Path) -> int:
    """Delete a segment with its index and the folders empty then; tells the bytes freed."""
    freed = 0
    for path in (data, index_path(data)):
        with contextlib.suppress(FileNotFoundError):
            freed += path.stat().st_blocks * 512
            path.unlink()
    with contextlib.suppress(OSError):
        flush_folder(data.parent)
        for folder in list(data.parents)[:3]:
            folder.rmdir()
    return freed


def disk_bytes(root: Path) -> int:
    """Sum up what all files below a folder take on the disk."""
    total = 0
    for folder, _, names in os.walk(root):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += Path(folder, name).lstat().st_blocks * 512
    return total
