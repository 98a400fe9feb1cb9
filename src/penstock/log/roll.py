"""When a segment is full or due to be sealed; decides only."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from penstock.options import RollStrategy

NEVER = (1 << 63) - 1


class Limits(NamedTuple):
    """Where the kernel stops appending to a segment and asks."""

    position: int
    sequence: int
    time_ns: int


class Bank(NamedTuple):
    """What is true of the active segment, as the control page says it."""

    number: int
    base_sequence: int
    position: int
    next_sequence: int
    last_timestamp: int
    intent_end: int
    last_check: int
    marked_sequence: int
    allocated: int
    capacity: int
    roll_position: int
    roll_sequence: int
    roll_time: int
    index_every: int
    first_timestamp: int

    @property
    def messages(self) -> int:
        """How many messages the active segment holds."""
        return self.next_sequence - self.base_sequence


def limits(strategy: RollStrategy, capacity: int, base_sequence: int, begun_at_ns: int) -> Limits:
    """Say where a new segment of this capacity ends at the latest."""
    time_ns = NEVER
    if strategy.interval is not None:
        time_ns = min(NEVER, begun_at_ns + strategy.interval // timedelta(microseconds=1) * 1000)
    return Limits(
        capacity if strategy.bytes_max is None else min(capacity, strategy.bytes_max),
        NEVER if strategy.count_max is None else base_sequence + strategy.count_max,
        time_ns,
    )


def is_due(bank: Bank, end: int, count: int, now_ns: int) -> bool:
    """Tell whether an append that would end here, seal included, belongs into the next segment."""
    if end > bank.capacity:
        return True
    if bank.messages == 0:
        # The first append of a segment finds its place there, whatever the strategy says.
        return False
    return (
        end > bank.roll_position
        or bank.next_sequence + count > bank.roll_sequence
        or now_ns >= bank.roll_time
    )
