"""Making segment files ahead of their use, and beginning one as the active segment."""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from penstock.errors import DiskFullError, PenstockError, SegmentIOError
from penstock.kernel import (
    LAYOUT,
    Segment,
    allocate,
    begun_header,
    index_header,
    prepared_capacity,
    prepared_header,
)
from penstock.log import directory
from penstock.log.metadata import CHECKSUMS

HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
_BOOT_ID_AT = LAYOUT["SEGMENT_BOOT_ID_AT"]
_QUEUE_ID_AT = LAYOUT["SEGMENT_QUEUE_ID_AT"]
_SALT_AT = LAYOUT["SEGMENT_SALT_AT"]
_BEGUN_AT = LAYOUT["SEGMENT_NUMBER_AT"]
# An empty queue takes little disk; the blocks behind these are allocated ahead of the appenders.
FIRST_BYTES = 1 << 20
# The spare of a busy queue has blocks and pages for the time until the keeper is ahead again.
_READY_BYTES_MAX = 32 << 20
_MADV_POPULATE_WRITE = 23
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Chain(NamedTuple):
    """What a segment's header says of the segment before it, and why it was begun."""

    reason: int
    previous_number: int
    previous_end_position: int
    previous_end_sequence: int
    previous_check: int


class Beginning(NamedTuple):
    """How the log goes on: the next segment's number, first sequence, time and chain."""

    number: int
    base_sequence: int
    timestamp: int
    """When it is begun; of no message before it is the timestamp later."""
    chain: Chain
    durable_sequence: int


@contextlib.contextmanager
def disk_errors(path: Path, needed_bytes: int) -> Iterator[None]:
    """Tell a full disk, or any other refusal of the system, in our own words."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DiskFullError(path, needed_bytes) from error
        raise SegmentIOError(path, error.errno or errno.EIO) from error


class SpareMaker:
    """Makes the segment files of one queue."""

    def __init__(self, root: Path, queue_id: bytes, checksum: str, index_every: int) -> None:
        self.root = root
        self._queue_id = queue_id
        self._checksum = CHECKSUMS[checksum]
        self._index_every = index_every
        self._path = root / directory.SPARE

    def keep_ready(self, capacity: int, like_bytes: int) -> None:
        """Have a spare at hand, with blocks as the active segment has them.

        One of another capacity stays: another handle of other settings made it, and may roll next.
        """
        if self._usable(self._path):
            return
        first_bytes = min(max(like_bytes, FIRST_BYTES), _READY_BYTES_MAX)
        made = self._make(capacity, directory.SPARE + directory.MAKING, first_bytes)
        _touch(made)
        made.replace(self._path)

    def take(self, capacity: int) -> Path:
        """Hand out a file to begin a segment in: the spare if it fits, else one made now."""
        # Two names, so that a spare just being made is never taken for one that is.
        taken = self.root / (directory.SPARE + ".taken" + directory.MAKING)
        with contextlib.suppress(FileNotFoundError):
            self._path.replace(taken)
            if self._usable(taken, capacity):
                return taken
        return self._make(capacity, taken.name)

    def put_back(self, made: Path) -> None:
        """Keep a file that was taken and not used after all."""
        made.replace(self._path)

    def remove(self) -> None:
        """Delete the spare."""
        self._path.unlink(missing_ok=True)

    def _usable(self, path: Path, capacity: int | None = None) -> bool:
        """A spare of another boot, or of another capacity if one is asked for, is of no use."""
        try:
            header = read_header(path)
            return (
                prepared_capacity(path, header) == (capacity or prepared_capacity(path, header))
                and header[_BOOT_ID_AT : _BOOT_ID_AT + 16] == clock.boot_id()
                and header[_QUEUE_ID_AT : _QUEUE_ID_AT + 16] == self._queue_id
            )
        except (OSError, PenstockError):
            return False

    def _make(self, capacity: int, name: str, first_bytes: int = FIRST_BYTES) -> Path:
        path = self.root / name
        path.unlink(missing_ok=True)
        header = prepared_header(
            self._checksum,
            self._queue_id,
            int.from_bytes(os.urandom(8), "little"),
            capacity,
            self._index_every,
            clock.now_ns(),
            clock.boot_id(),
        )
        first_bytes = min(capacity, first_bytes)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with disk_errors(self.root, first_bytes):
            fd = os.open(path, flags, directory.FILE_MODE)
            try:
                allocate(fd, 0, first_bytes)
                directory.write_all(fd, header, 0)
                os.fsync(fd)
            except OSError:
                path.unlink()
                raise
            finally:
                os.close(fd)
        return path

    def begin(self, made: Path, beginning: Beginning) -> tuple[Segment, int]:
        """Turn a made file into a segment under its own name; tells how far it has blocks, too."""
        number, base_sequence, begun_at, chain, durable = beginning
        path = directory.segment_path(self.root, number, begun_at)
        part = begun_header(self._checksum, number, base_sequence, begun_at, *chain, durable)
        with disk_errors(self.root, HEADER_BYTES):
            directory.make_folder(path.parent)
            fd = os.open(made, os.O_RDWR | os.O_CLOEXEC)
            try:
                directory.write_all(fd, part, _BEGUN_AT)
                allocated = os.fstat(fd).st_size
                salt = int.from_bytes(os.pread(fd, 8, _SALT_AT), "little")
                made.rename(path)
            except OSError:
                os.close(fd)
                raise
        index = self._begin_index(path, number, base_sequence, salt)
        return Segment(path, fd, index, writable=True), allocated

    def _begin_index(self, data: Path, number: int, base_sequence: int, salt: int) -> int:
        """Make the index file; without one only seeking is slower, so a failure stops nothing."""
        header = index_header(
            self._checksum, self._queue_id, number, base_sequence, salt, self._index_every
        )
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        try:
            fd = os.open(directory.index_path(data), flags, directory.FILE_MODE)
        except OSError:
            return -1
        with contextlib.suppress(OSError):
            directory.write_all(fd, header, 0)
        return fd


def _touch(path: Path) -> None:
    """Bring the pages of a file into memory, so that the first appends after a roll find them."""
    # Advice that this system does not know changes nothing.
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as pages,
        contextlib.suppress(OSError),
    ):
        pages.madvise(_MADV_POPULATE_WRITE)


def read_header(path: Path) -> bytes:
    """Read a segment file's header, or as much of one as there is."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return os.pread(fd, HEADER_BYTES, 0)
    finally:
        os.close(fd)
