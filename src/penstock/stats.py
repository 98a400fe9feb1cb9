"""What a queue tells about itself."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PenstockError


@dataclass(frozen=True)
class QueueStats:
    """A queue at one moment; reading it costs the appenders nothing."""

    first_sequence: int
    """The oldest message that is still there."""
    next_sequence: int
    """The sequence that the next append gets."""
    durable_sequence: int
    """Every message below it survives the loss of power."""
    segments: int
    """How many segments the log has, the active one included."""
    disk_bytes: int
    """What the queue's files take on the disk."""
    takeovers: int
    """How often a lock was taken over from a process that died holding it."""
    pids: tuple[int, ...]
    """The processes that have the queue open for appending, one entry a handle."""
    poisoned: str | None
    """Why the log takes no more appends, or None."""

    @property
    def durability_lag(self) -> int:
        """How many sequences a loss of power now could take."""
        return self.next_sequence - self.durable_sequence


@dataclass(frozen=True)
class CompactResult:
    """What `queue.compact()` did."""

    segments_removed: int
    bytes_freed: int


@dataclass(frozen=True)
class VerifyReport:
    """What `queue.verify()` found."""

    segments: int
    messages: int
    bytes: int
    faults: tuple[PenstockError, ...]
    """A CorruptionError or FormatVersionError for each thing that is not as it was written."""
    unindexed: int = 0
    """Segments whose index is missing or wrong: seeking in them is slower, nothing is lost."""

    @property
    def ok(self) -> bool:
        """Whether everything is as it was written."""
        return not self.faults
