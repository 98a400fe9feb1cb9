"""After a failed flush: bringing to the disk what memory still holds, while it holds it."""

from __future__ import annotations

import contextlib
import logging
import os
from pathlib import Path

from penstock.kernel import allocate
from penstock.log import directory
from penstock.log.segments import Segments
from penstock.log.spare import disk_errors

_logger = logging.getLogger("penstock.rescue")

_STRIDE_BYTES = 4 << 20


def rescue(root: Path, segments: Segments, durable_sequence: int) -> None:
    """Put a new file, truly on the disk, in the place of each segment that may not be.

    The system tells of pages it could not write only once, and then takes them for written. Their
    bytes are still in memory, so each file is copied, flushed and renamed over the old one: before
    and after each step the bytes are the same, and a crash in between loses nothing more.
    """
    start = segments.holding(durable_sequence) or 0
    for number in segments.numbers():
        path = segments.path(number)
        if number >= start and path is not None:
            segments.forget(number)
            _renew(path)
            _logger.warning("rescued %s after a failed flush", path)
    segments.refresh()
    directory.flush_folder(root)


def _renew(path: Path) -> None:
    made = path.with_name(path.name + directory.MAKING)
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, source)
        size = os.fstat(source).st_size
        with disk_errors(path, size):
            flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            target = os.open(made, flags, directory.FILE_MODE)
            stack.callback(os.close, target)
            allocate(target, 0, max(size, 1))
            os.ftruncate(target, size)
            for position in range(0, size, _STRIDE_BYTES):
                content = os.pread(source, _STRIDE_BYTES, position)
                directory.write_all(target, content, position)
            os.fsync(target)
            made.replace(path)
            directory.flush_folder(path.parent)
