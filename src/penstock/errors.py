"""Every exception of Penstock, its facts as attributes and its sentence saying what to do.

PenstockError
├── QueueNotFoundError        there is no queue in this folder
├── QueueBusyError            others have it open, and company was refused
├── QueueClosedError          this handle was closed
├── ReadOnlyError             this handle only reads
├── MetadataError             metadata.json cannot be read
├── ControlLostError          the shared page was deleted or replaced while others use it
├── FormatVersionError        written by a version this one does not know
├── SequenceGoneError         retention dropped the message
├── SequenceUnknownError      no message has had this sequence yet
├── PayloadTooLargeError      the payload is beyond the limit
├── AttributesTooLargeError   key and headers together are beyond the limit
├── CorruptionError           durable bytes changed
├── WriterStalledError        a living process holds the lock and does not go on
├── DiskFullError             no room for another message; nothing was written
├── SegmentIOError            the system refused a call on a file of the queue
├── FlushError                forcing to the disk failed; the log is poisoned
└── LogPoisonedError          refused, because a write or a flush failed before
"""

from __future__ import annotations

import os
from pathlib import Path


class PenstockError(Exception):
    """What every error of Penstock is."""


class QueueNotFoundError(PenstockError):
    """There is no queue in this folder, and a read-only open makes none."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"there is no queue in {self.path}: open it for writing once, or correct the path"


class QueueBusyError(PenstockError):
    """Company was refused: by `exclusive=True`, or by who already had it open that way."""

    def __init__(self, path: Path, pids: tuple[int, ...]) -> None:
        super().__init__(path, pids)
        self.path = path
        self.pids = pids

    def __str__(self) -> str:
        by = f" by process {', '.join(map(str, self.pids))}" if self.pids else ""
        return (
            f"{self.path} is open{by}, and one side asked to be alone: "
            "close it there, or open without exclusive=True on both sides"
        )


class QueueClosedError(PenstockError):
    """The handle was closed; nothing was appended or read."""

    def __str__(self) -> str:
        return "this queue was closed: open it again"


class ReadOnlyError(PenstockError):
    """The handle was opened with `read_only=True`; nothing was appended."""

    def __str__(self) -> str:
        return "this queue was opened with read_only=True: open it without to append"


class MetadataError(PenstockError):
    """`metadata.json` cannot be read, and nothing else in the folder tells what it said."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.path} cannot be used ({self.reason}): bring it back from a backup"


class ControlLostError(PenstockError):
    """A file that living processes share was deleted or replaced, so they cannot be joined."""

    def __init__(self, path: Path, pids: tuple[int, ...]) -> None:
        super().__init__(path, pids)
        self.path = path
        self.pids = pids

    def __str__(self) -> str:
        by = f" (process {', '.join(map(str, self.pids))})" if self.pids else ""
        return (
            f"{self.path} was deleted or replaced while others{by} have the queue open: "
            "close it there first, then open it here; no message is lost"
        )


class FormatVersionError(PenstockError):
    """The file, or a part of it, was written by a version that this one does not know."""

    def __init__(self, path: Path, got: int | str, known: int) -> None:
        super().__init__(path, got, known)
        self.path = path
        self.got = got
        self.known = known

    def __str__(self) -> str:
        return (
            f"{self.path} says format {self.got}, and this Penstock knows {self.known}: "
            "install a Penstock that knows it"
        )


class SequenceGoneError(PenstockError):
    """The message was dropped by retention; the tailer stays where it was."""

    def __init__(self, sequence: int, first_sequence: int) -> None:
        super().__init__(sequence, first_sequence)
        self.sequence = sequence
        self.first_sequence = first_sequence

    def __str__(self) -> str:
        return (
            f"message {self.sequence} was dropped, the first there is now is "
            f"{self.first_sequence}: seek there, or read with on_gone='first'"
        )


class SequenceUnknownError(PenstockError):
    """No message has had this sequence yet."""

    def __init__(self, sequence: int, next_sequence: int) -> None:
        super().__init__(sequence, next_sequence)
        self.sequence = sequence
        self.next_sequence = next_sequence

    def __str__(self) -> str:
        return (
            f"message {self.sequence} does not exist yet, the next append gets "
            f"{self.next_sequence}: start at 'end' to wait for new ones"
        )


class PayloadTooLargeError(PenstockError):
    """The payload is larger than a frame may hold; nothing was appended."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"a payload of {self.size_bytes} bytes is beyond the limit of {self.limit_bytes}: "
            "split it, or keep it in a file and append its name; nothing was appended"
        )


class AttributesTooLargeError(PenstockError):
    """Key and headers together are larger than a frame may hold; nothing was appended."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"key and headers take {self.size_bytes} bytes, beyond the limit of "
            f"{self.limit_bytes}: put the large ones into the payload; nothing was appended"
        )


class CorruptionError(PenstockError):
    """Durable bytes are not what was written; reading goes on at `next_sequence` if asked again."""

    def __init__(
        self,
        path: Path,
        position: int,
        sequence: int | None,
        reason: str,
        next_sequence: int | None = None,
    ) -> None:
        super().__init__(path, position, sequence, reason, next_sequence)
        self.path = path
        self.position = position
        self.sequence = sequence
        self.reason = reason
        self.next_sequence = next_sequence

    def __str__(self) -> str:
        which = "a header" if self.sequence is None else f"message {self.sequence}"
        onward = (
            "" if self.next_sequence is None else f", the next good one is {self.next_sequence}"
        )
        return (
            f"{which} is damaged at byte {self.position} of {self.path} ({self.reason}){onward}: "
            "read again to go on behind it, or read with on_corrupt='skip'"
        )


class WriterStalledError(PenstockError):
    """A living process holds the lock and does not go on; nothing was appended."""

    def __init__(self, pid: int, waited_seconds: float) -> None:
        super().__init__(pid, waited_seconds)
        self.pid = pid
        self.waited_seconds = waited_seconds

    def __str__(self) -> str:
        return (
            f"process {self.pid} has held the queue's lock for {self.waited_seconds:.1f} s and is "
            "alive: let it go on (SIGCONT) or end it, then append again; nothing was appended"
        )


class DiskFullError(PenstockError):
    """There is no room on the disk; nothing was written, and reading goes on."""

    def __init__(self, path: Path, needed_bytes: int) -> None:
        super().__init__(path, needed_bytes)
        self.path = path
        self.needed_bytes = needed_bytes

    def __str__(self) -> str:
        return (
            f"no room for {self.needed_bytes} more bytes at {self.path}: free some space, then "
            "append again; nothing was appended"
        )


class SegmentIOError(PenstockError):
    """The system refused a call on a file of the queue."""

    def __init__(self, path: Path, errno: int) -> None:
        super().__init__(path, errno)
        self.path = path
        self.errno = errno

    def __str__(self) -> str:
        return (
            f"{self.path}: {os.strerror(self.errno)} (errno {self.errno}): see to the file and the "
            "disk it is on, then try again"
        )


class FlushError(PenstockError):
    """Forcing to the disk failed: what was appended since the last flush may not be durable."""

    def __init__(self, path: Path, errno: int) -> None:
        super().__init__(path, errno)
        self.path = path
        self.errno = errno

    def __str__(self) -> str:
        return (
            f"flushing {self.path} failed: {os.strerror(self.errno)} (errno {self.errno}); the log "
            "takes no more appends: close it everywhere, see to the disk, and open it again"
        )


class LogPoisonedError(PenstockError):
    """A write or a flush failed before, in some process; nothing was appended."""

    def __init__(self, errno: int, cause: str) -> None:
        super().__init__(errno, cause)
        self.errno = errno
        self.cause = cause

    def __str__(self) -> str:
        return (
            f"the log takes no more appends since this happened: {self.cause}; close it "
            "everywhere, see to the disk, and open it again; nothing was appended"
        )
