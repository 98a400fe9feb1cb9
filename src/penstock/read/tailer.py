"""A reader with a place of its own in a log, which it keeps in memory."""

from __future__ import annotations

import asyncio
import logging
import operator
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal, cast

from penstock import kernel
from penstock.errors import CorruptionError, SequenceGoneError, SequenceUnknownError
from penstock.kernel import LAYOUT, Message, Segment
from penstock.log.log import Log
from penstock.log.roll import NEVER
from penstock.message import duration_ns, ns_of
from penstock.read.waiting import in_thread

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

_logger = logging.getLogger("penstock.tailer")

Start = int | datetime | Literal["start", "end"]
NARROW_COLUMNS = ("partition", "sequence", "timestamp", "payload")

_HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
_PREVIOUS_NUMBER = LAYOUT["SEGMENT_PREVIOUS_NUMBER_AT"]
_BEGUN_AT = LAYOUT["SEGMENT_BEGUN_AT"]
# Between two waits a reader looks whether the queue was closed, or its control page replaced.
_WAIT_SLICE_NS = 50_000_000


class Tailer(kernel.Tailer):
    """Reads messages in order; make one with `queue.tailer()`, and one for each thread.

    Iterating ends at what is there now; `follow` waits for more. A message that is damaged raises
    CorruptionError once, and the next read goes on behind it.
    """

    def __new__(cls, log: Log, _owner: object, *, skip: bool, jump: bool) -> Self:  # noqa: ARG004
        """Make the kernel's part."""
        return super().__new__(cls, log.shared_control, skip)

    def __init__(self, log: Log, owner: object, *, skip: bool, jump: bool) -> None:
        self._log = log
        # The queue is not closed for want of references while it is read.
        self._owner = owner
        self._skip = skip
        self._jump = jump
        self._told: int | None = None
        self._waiting: Future[None] | None = None

    def seek(self, *, sequence: int | None = None, time: datetime | None = None) -> None:
        """Move to a sequence, or to the first message at a time or after.

        >>> tailer.seek(sequence=1)
        >>> tailer.read()
        <Message 1: b'world' (5 bytes)>
        """
        if (sequence is None) == (time is None):
            raise TypeError("seek takes either sequence= or time=")
        self._log.check_open()
        if sequence is not None:
            self._to_sequence(operator.index(sequence))
        elif time is not None:
            self._to_time(ns_of(time))

    def start_at(self, start: object) -> None:
        """Move to a sequence, a time, the first message there is, or behind the last."""
        if start == "start":
            self._to_first()
        elif start == "end":
            self._to_end()
        elif isinstance(start, datetime):
            self._to_time(ns_of(start))
        elif isinstance(start, int) and not isinstance(start, bool):
            self._to_sequence(start)
        else:
            raise TypeError(
                f"start is a sequence, an aware datetime, 'start' or 'end', not {start!r}"
            )

    def follow(self, timeout: timedelta | None = None) -> Iterator[Message]:
        """Read what is there and wait for more; end when nothing came for `timeout`.

        >>> [message.payload for message in tailer.follow(timeout=timedelta(0))]
        [b'hello', b'world']
        """
        timeout_ns = NEVER if timeout is None else duration_ns("timeout", timeout)
        until = time.monotonic_ns() + timeout_ns
        while True:
            before = self.next_sequence
            yield from self
            now = time.monotonic_ns()
            if self.next_sequence != before:
                until = now + timeout_ns
            if now >= until:
                return
            self._wait(min(until - now, _WAIT_SLICE_NS))

    def __aiter__(self) -> Tailer:
        return self

    async def __anext__(self) -> Message:
        while True:
            if self._waiting is not None:
                # One wait at a time: an earlier one goes on when its task was cancelled.
                await asyncio.shield(asyncio.wrap_future(self._waiting))
                self._waiting = None
            message = self.read()
            if message is not None:
                return message
            self._waiting = in_thread(self._wait, _WAIT_SLICE_NS)

    def read_arrow(
        self, bytes_max: int = 8 << 20, columns: Sequence[str] = NARROW_COLUMNS
    ) -> pa.RecordBatch | None:
        """Gather messages into one Arrow batch of about `bytes_max` payload bytes, or None.

        The columns are partition, sequence, timestamp, key, headers, priority and payload.

        >>> tailer.read_arrow(columns=["sequence", "payload"]).num_rows
        2
        """
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError("read_arrow needs pyarrow: pip install 'penstock[arrow]'") from error
        batch = self._read_columns(bytes_max, list(columns), 0)
        if batch is None:
            return None
        return cast("pa.RecordBatch", pa.record_batch(batch))

    def _advance(self) -> bool:
        """Tell whether there is more to read, at the end of what the kernel knows."""
        self._log.check_open()
        if self._log.writer is None:
            self._log.follow_page()
            self._watch(self._log.shared_control)
        place = self._place
        if place is None:
            return self._enter_first()
        number, position, count = place
        segment = self._log.segments.readable(number)
        bank = self._log.bank()
        if not self._is_final or (bank is not None and bank.number == number):
            return self._look_again(segment, number, position, count)
        return self._go_on(segment, number, count)

    def _look_again(self, segment: Segment | None, number: int, position: int, count: int) -> bool:
        """The segment was the active one when it was last looked at."""
        bank = self._log.bank()
        if bank is not None:
            if bank.number == number:
                self._extend(bank.position, None)
                return position < bank.position
        elif segment is not None and self._log.segments.after(number) is None:
            walked = segment.walk(position, count, segment.file_bytes())
            self._extend(walked[0], None)
            return walked[0] > position
        if segment is not None:
            end = self._log.segments.end(segment)
        else:
            # Retention dropped it; it is still mapped here, and the next one says its end.
            dropped = self._log.segments.declared_end(number, self.next_sequence - count)
            if dropped is None:
                return self._enter_after(number, self.next_sequence, is_read=False)
            end = dropped
        self._extend(end.position, end.messages)
        return True

    def _go_on(self, segment: Segment | None, number: int, count: int) -> bool:
        """The segment is read to its end: the next one follows, unless something is missing."""
        expected = self.next_sequence
        if segment is not None:
            end = self._log.segments.end(segment)
            if count < end.messages:
                lost_until = segment.base_sequence + end.messages
                place = min(end.position, segment.file_bytes())
                self._use(segment, place, end.messages, place, end.messages)
                reason = "the file is shorter than it was"
                self._tell(CorruptionError(segment.path, place, expected, reason, lost_until))
                return True
        return self._enter_after(number, expected, is_read=True)

    def _enter_after(self, number: int, expected: int, *, is_read: bool) -> bool:
        """Stand in the next segment that can be read, and tell what is missing before it."""
        later, damage = self._next_readable(number)
        if later is None:
            if damage is not None and self._told != number:
                self._told = number
                path, position, reason = damage.path, damage.position, damage.reason
                self._tell(CorruptionError(path, position, expected, reason))
            return False
        base = later.base_sequence
        is_next = is_read and self._log.segments.is_successor(later, number)
        is_gone = damage is None and not is_next and number < self._log.first_number()
        if is_gone and base != expected and not self._jump:
            # The place stays as it is, so that reading on without a choice tells it again.
            raise SequenceGoneError(expected, base)
        self._use_at(later, _HEADER_BYTES, 0)
        if damage is not None:
            self._tell(CorruptionError(damage.path, damage.position, expected, damage.reason, base))
        elif not is_next and not is_gone and base != expected:
            reason = f"segment {number + 1} is missing"
            self._tell(CorruptionError(later.path, 0, expected, reason, base))
        return True

    def _next_readable(self, number: int) -> tuple[Segment | None, CorruptionError | None]:
        """The next segment whose header is whole, and what is wrong with the first that is not."""
        segments, damage, later = self._log.segments, None, None
        following = segments.after(number)
        while following is not None and later is None:
            try:
                later = segments.open(following)
            except CorruptionError as error:
                damage = damage or error
            if later is None:
                following = segments.after(following)
        return later, damage

    def _tell(self, error: CorruptionError) -> None:
        """Raise what is wrong, or count it if the reader chose to skip."""
        if not self._skip:
            raise error
        if error.sequence is not None and error.next_sequence is not None:
            self.skipped += error.next_sequence - error.sequence
        self._damaged(error)

    def _damaged(self, error: CorruptionError) -> None:
        """Called for each damage that is skipped."""
        _logger.warning("skipped: %s", error, extra={"sequence": error.sequence})

    def _use_at(self, segment: Segment, position: int, count: int) -> None:
        self._use(segment, position, count, *self._limit(segment))

    def _limit(self, segment: Segment) -> tuple[int, int | None]:
        """How far a segment may be read, and the count there if that is final."""
        log = self._log
        bank = log.bank()
        if bank is not None and bank.number == segment.number:
            return bank.position, None
        # In this order: one that is sealed in between is merely looked at again.
        is_last = bank is None and log.segments.after(segment.number) is None
        end = log.segments.end(segment)
        if is_last:
            return end.position, end.messages if end.is_told else None
        return min(end.position, segment.file_bytes()), end.messages

    def _to_first(self) -> None:
        """Stand at the first message there is; damage before it is told by the first read."""
        self._log.segments.refresh()
        first, problem = self._first()
        if first is None or problem is not None:
            self._leave()
        else:
            self._use_at(first, _HEADER_BYTES, 0)

    def _enter_first(self) -> bool:
        """Stand at the first message there is, and tell what is damaged or missing before it."""
        first, problem = self._first()
        if first is not None:
            self._use_at(first, _HEADER_BYTES, 0)
        elif self._told == 0:
            return False
        self._told = 0
        if problem is not None:
            self._tell(problem)
        return first is not None

    def _first(self) -> tuple[Segment | None, CorruptionError | None]:
        """The first segment that can be read, and what is wrong with those that should be there."""
        number = self._log.first_number()
        first, damage = self._next_readable(number - 1)
        if first is None:
            return None, damage
        sequence, base = 0 if number == 1 else None, first.base_sequence
        if damage is not None:
            path, position, reason = damage.path, damage.position, damage.reason
            return first, CorruptionError(path, position, sequence, reason, base)
        if first.number > number and first.header_word(_PREVIOUS_NUMBER) >= number:
            reason = f"segment {number} is missing"
            return first, CorruptionError(first.path, 0, sequence, reason, base)
        return first, None

    def _to_end(self) -> None:
        segments = self._log.segments
        bank = self._log.bank()
        number = max(segments.numbers(), default=0) if bank is None else bank.number
        segment = segments.open(number)
        if segment is None:
            self._leave()
        elif bank is not None:
            self._use_at(segment, bank.position, bank.messages)
        else:
            end = segments.end(segment)
            self._use_at(segment, end.position, end.messages)

    def _to_sequence(self, sequence: int) -> None:
        if sequence < 0:
            raise ValueError(f"a sequence is 0 or more, not {sequence}")
        if self._seek_within(sequence):
            return
        following = self._log.next_sequence()
        if sequence > following:
            raise SequenceUnknownError(sequence, following)
        if not self._to_place(
            lambda segment: segment.base_sequence <= sequence,
            lambda segment, limit, _count: segment.locate(sequence, limit),
        ):
            _, problem = self._first()
            if problem is not None:
                raise problem
            first = self._log.first_sequence()
            if sequence < first and not self._jump:
                raise SequenceGoneError(sequence, first)
            self._to_first()

    def _to_time(self, time_ns: int) -> None:
        if not self._to_place(
            lambda segment: segment.header_word(_BEGUN_AT) < time_ns,
            lambda segment, limit, count: segment.locate_time(time_ns, limit, count),
        ):
            self._to_first()

    def _to_place(
        self,
        holds: Callable[[Segment], bool],
        locate: Callable[[Segment, int, int], tuple[int, int]],
    ) -> bool:
        """Stand at a place in the last segment of which `holds` is true; False if there is none."""
        bank = self._log.bank()
        if bank is None or bank.number not in self._log.segments.numbers():
            self._log.segments.refresh()
        number = self._log.segments.last_where(holds, NEVER if bank is None else bank.number)
        segment = None if number is None else self._log.segments.open(number)
        if segment is None:
            return False
        limit, count = self._limit(segment)
        if count is None:
            bank = self._log.bank()
            count = self._log.segments.end(segment).messages if bank is None else bank.messages
        self._use(segment, *locate(segment, limit, count), *self._limit(segment))
        return True
