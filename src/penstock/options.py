"""What a queue can be told: when to roll, when to flush, what to keep."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar


@dataclass(frozen=True)
class RollStrategy:
    """When to seal the active segment and open the next: whatever is reached first.

    >>> RollStrategy.any_of(RollStrategy.by_size(1 << 20), RollStrategy.by_count(1000))
    RollStrategy(bytes_max=1048576, interval=None, count_max=1000)
    """

    bytes_max: int | None = None
    interval: timedelta | None = None
    count_max: int | None = None

    def __post_init__(self) -> None:
        _positive("the size of a segment", self.bytes_max)
        _positive("the count of a segment's messages", self.count_max)
        _lasting("the time of a segment", self.interval)

    @classmethod
    def by_size(cls, bytes: int) -> RollStrategy:
        """Roll before a segment would grow beyond so many bytes."""
        return cls(bytes_max=bytes)

    @classmethod
    def by_time(cls, interval: timedelta) -> RollStrategy:
        """Roll at the first append this long after the segment was begun."""
        return cls(interval=interval)

    @classmethod
    def by_count(cls, count: int) -> RollStrategy:
        """Roll once a segment holds so many messages."""
        return cls(count_max=count)

    @classmethod
    def any_of(cls, *strategies: RollStrategy) -> RollStrategy:
        """Roll when any of these would."""
        return cls(
            min((s.bytes_max for s in strategies if s.bytes_max is not None), default=None),
            min((s.interval for s in strategies if s.interval is not None), default=None),
            min((s.count_max for s in strategies if s.count_max is not None), default=None),
        )


@dataclass(frozen=True)
class FlushMode:
    """When appended messages are forced to the disk by themselves.

    `ASYNC`: never; the system writes back, or `queue.flush()` does. `SYNC`: before `append`
    returns. `batch`: after so many bytes or so long, whichever comes first.

    >>> FlushMode.batch(bytes=64 << 10, interval=timedelta(milliseconds=100)).bytes
    65536
    """

    bytes: int | None = None
    interval: timedelta | None = None
    each: bool = False

    def __post_init__(self) -> None:
        if (self.bytes is None) != (self.interval is None):
            raise ValueError("a batch has bytes and an interval: use FlushMode.batch()")

    ASYNC: ClassVar[FlushMode]
    SYNC: ClassVar[FlushMode]

    @classmethod
    def batch(
        cls, bytes: int = 64 << 10, interval: timedelta = timedelta(milliseconds=100)
    ) -> FlushMode:
        """Flush after so many bytes or so long, whichever comes first."""
        _positive("the bytes of a flush", bytes)
        _lasting("the interval of a flush", interval)
        return cls(bytes=bytes, interval=interval)


FlushMode.ASYNC = FlushMode()
FlushMode.SYNC = FlushMode(each=True)


@dataclass(frozen=True)
class RetentionPolicy:
    """Which sealed segments may go: the oldest, while any limit is passed.

    A segment goes when its last message is older than `age`, or while all segments together
    take more than `bytes` or are more than `segments`. The newest `segments_min` always stay, and
    so does the active one.

    >>> RetentionPolicy(age=timedelta(days=7), bytes=10 << 30).segments_min
    1
    """

    age: timedelta | None = None
    bytes: int | None = None
    segments: int | None = None
    segments_min: int = 1

    def __post_init__(self) -> None:
        _lasting("the age of retention", self.age)
        _positive("the bytes of retention", self.bytes)
        _positive("the segments of retention", self.segments)
        _positive("segments_min", self.segments_min)


def _positive(what: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is an int, not {value!r}")
    if value < 1:
        raise ValueError(f"{what} is at least 1, not {value}")


def _lasting(what: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, timedelta):
        raise TypeError(f"{what} is a datetime.timedelta, not {value!r}")
    if value <= timedelta(0):
        raise ValueError(f"{what} is longer than zero, not {value!r}")
