"""The lock file: who has the queue open, and who alone may open it now."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Iterator
from pathlib import Path

from penstock.kernel import LAYOUT, lock_byte
from penstock.log.directory import CONTROL, FILE_MODE, LOCK

_GATE = LAYOUT["LOCK_GATE_AT"]
_COMPANY = LAYOUT["LOCK_COMPANY_AT"]
_SLOTS = range(LAYOUT["LOCK_SLOTS_AT"], LAYOUT["LOCK_SLOTS_AT"] + LAYOUT["CONTROL_SLOTS"])
_ALIVE = LAYOUT["CONTROL_ALIVE_AT"]
_LOOK_AGAIN_SECONDS = 0.0005

# Every open file that may carry a lock: the child of a fork must let go of them all at once, or
# nobody would see the parent die.
_carriers: weakref.WeakSet[LockCarrier] = weakref.WeakSet()


class LockCarrier:
    """An open file whose byte locks belong to this handle and go with it, however it ends."""

    def __init__(self, path: Path, flags: int) -> None:
        self.path = path
        self.fd = -1
        _carriers.add(self)
        self.fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)

    @property
    def inode(self) -> int:
        """Which file this is: one that was replaced locks nobody out."""
        return os.fstat(self.fd).st_ino

    def close(self) -> None:
        """Give up every lock of this handle."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


class LockFile(LockCarrier):
    """An open `.lock`."""

    def __init__(self, root: Path, *, read_only: bool) -> None:
        # A reader on a read-only disk can hold shared locks, if there is a file to hold them on.
        super().__init__(root / LOCK, os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT)

    @contextlib.contextmanager
    def gate(self) -> Iterator[None]:
        """Let one handle at a time open or close the queue; freed by death."""
        try:
            # Within the try, so that an interrupt right after the lock gives it back.
            while not lock_byte(self.fd, _GATE, "exclusive"):
                time.sleep(_LOOK_AGAIN_SECONDS)
            yield
        finally:
            lock_byte(self.fd, _GATE, "none")

    def join(self, *, exclusive: bool) -> bool:
        """Take a place among those who have the queue open; False when they do not allow it."""
        return lock_byte(self.fd, _COMPANY, "exclusive" if exclusive else "shared")

    def somebody_appends(self) -> bool:
        """Whether any handle holds its slot; asked only when the control page does not tell."""
        held = [at for at in _SLOTS if not lock_byte(self.fd, at, "exclusive")]
        for at in _SLOTS:
            lock_byte(self.fd, at, "none")
        return bool(held)


class AliveFile(LockCarrier):
    """An open `.control`, on which each appending handle says that it lives."""

    def __init__(self, root: Path, name: str = CONTROL, flags: int = 0) -> None:
        super().__init__(root / name, os.O_RDWR | flags)

    def is_alone(self) -> bool:
        """Take the place of the only one alive; False when others are."""
        return lock_byte(self.fd, _ALIVE, "exclusive")

    def join(self) -> None:
        """Say that this handle lives."""
        lock_byte(self.fd, _ALIVE, "shared")


def let_go_in_child() -> None:
    """Close every carrier, in the child of a fork: the parent still holds them."""
    for carrier in list(_carriers):
        carrier.close()
