"""What a message carries beside its payload: priority, and times as Python says them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from enum import IntEnum

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Priority(IntEnum):
    """Who is received first among the messages that wait.

    >>> Priority.HIGH > Priority.LOW
    True
    """

    LOW = 0
    MEDIUM = 1
    HIGH = 2


def datetime_of(ns: int) -> datetime:
    """Turn nanoseconds since 1970 into an aware datetime, cut to microseconds.

    >>> datetime_of(1_500_000_000)
    datetime.datetime(1970, 1, 1, 0, 0, 1, 500000, tzinfo=datetime.timezone.utc)
    """
    try:
        return _EPOCH + timedelta(microseconds=ns // 1000)
    except OverflowError:
        # A time to live of centuries ends behind the last day Python knows.
        return datetime.max.replace(tzinfo=timezone.utc)


def ns_of(when: object) -> int:
    """Turn an aware datetime into nanoseconds since 1970."""
    if not isinstance(when, datetime):
        raise TypeError(f"a time is an aware datetime, not {when!r}")
    if when.tzinfo is None:
        raise ValueError(
            f"{when!r} has no time zone: pass an aware datetime, as in now(timezone.utc)"
        )
    return (when - _EPOCH) // timedelta(microseconds=1) * 1000


def duration_ns(name: str, duration: timedelta) -> int:
    """Turn a duration into nanoseconds; it must not be negative."""
    if not isinstance(duration, timedelta):
        raise TypeError(f"{name} is a datetime.timedelta, not {duration!r}")
    if duration < timedelta(0):
        raise ValueError(f"{name} must not be negative, and {duration!r} is")
    return duration // timedelta(microseconds=1) * 1000
