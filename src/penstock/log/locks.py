"""The lock file: who has the queue open, and who alone may open it now."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from penstock.kernel import LAYOUT, lock_byte
from penstock.log.directory import FILE_MODE, LOCK

_GATE = LAYOUT["LOCK_GATE_AT"]
_COMPANY = LAYOUT["LOCK_COMPANY_AT"]
_LOOK_AGAIN_SECONDS = 0.0005


class LockFile:
    """An open `.lock`: its byte locks belong to this handle and go with it, however it ends."""

    def __init__(self, root: Path, *, read_only: bool) -> None:
        self.path = root / LOCK
        # A reader on a read-only disk can hold shared locks, if there is a file to hold them on.
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        self.fd = os.open(self.path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)

    @property
    def inode(self) -> int:
        """Which file this is: a lock file that was replaced locks nobody out."""
        return os.fstat(self.fd).st_ino

    @contextlib.contextmanager
    def gate(self) -> Iterator[None]:
        """Let one handle at a time open or close the queue; freed by death."""
        while not lock_byte(self.fd, _GATE, "exclusive"):
            time.sleep(_LOOK_AGAIN_SECONDS)
        try:
            yield
        finally:
            lock_byte(self.fd, _GATE, "none")

    def join(self, *, exclusive: bool) -> bool:
        """Take a place among those who have the queue open; False when they do not allow it."""
        return lock_byte(self.fd, _COMPANY, "exclusive" if exclusive else "shared")

    def close(self) -> None:
        """Give up every lock of this handle."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
