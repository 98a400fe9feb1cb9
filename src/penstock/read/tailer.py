"""A reader with a place of its own in a log, which it keeps in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, cast

from penstock import kernel
from penstock.errors import CorruptionError, SequenceGoneError, SequenceUnknownError
from penstock.kernel import LAYOUT, Message, Segment
from penstock.log.log import Log
from penstock.log.roll import NEVER
from penstock.message import duration_ns, ns_of

if TYPE_CHECKING:
    import pyarrow

_logger = logging.getLogger("penstock.tailer")

Start = int | datetime | Literal["start", "end"]
NARROW_COLUMNS = ("partition", "sequence", "timestamp", "payload")

_HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
_BEGUN_AT = LAYOUT["SEGMENT_BEGUN_AT"]
# A cancelled task must not leave a thread waiting for long.
_ASYNC_SLICE_NS = 100_000_000


class Tailer(kernel.Tailer):
    """Reads messages in order; make one with `queue.tailer()`, and one for each thread.

    Iterating ends at what is there now; `follow` waits for more. A message that is damaged raises
    CorruptionError once, and the next read goes on behind it.
    """

    def __new__(cls, log: Log, skip: bool, jump: bool) -> Tailer:  # noqa: ARG004, D102, FBT001
        return super().__new__(cls, log.shared_control, skip)

    def __init__(self, log: Log, skip: bool, jump: bool) -> None:  # noqa: ARG002, FBT001
        self._log = log
        self._skip = skip
        self._jump = jump
        self._following: asyncio.Future[bool] | None = None

    def seek(self, *, sequence: int | None = None, time: datetime | None = None) -> None:
        """Move to a sequence, or to the first message at a time or after.

        >>> tailer.seek(sequence=500)  # doctest: +SKIP
        """
        if (sequence is None) == (time is None):
            raise TypeError("seek takes either sequence= or time=")
        if sequence is not None:
            self._to_sequence(sequence)
        elif time is not None:
            self._to_time(ns_of(time))

    def start_at(self, start: Start) -> None:
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
        """Read what is there and wait for more; end when nothing came for `timeout`."""
        timeout_ns = None if timeout is None else duration_ns("timeout", timeout)
        while True:
            yield from self
            if not self._wait(timeout_ns):
                # Something may have come between the last look and the end of the wait.
                yield from self
                return

    def __aiter__(self) -> Tailer:
        return self

    async def __anext__(self) -> Message:
        while True:
            if self._following is not None:
                # One wait at a time: an earlier one goes on when its task was cancelled.
                await asyncio.shield(self._following)
                self._following = None
            message = self.read()
            if message is not None:
                return message
            loop = asyncio.get_running_loop()
            self._following = loop.run_in_executor(None, self._wait, _ASYNC_SLICE_NS)

    def read_arrow(
        self, bytes_max: int = 8 << 20, columns: Sequence[str] = NARROW_COLUMNS
    ) -> pyarrow.RecordBatch | None:
        """Gather messages into one Arrow batch of about `bytes_max` payload bytes, or None.

        The columns are partition, sequence, timestamp, key, headers, priority and payload.
        """
        batch = self._read_columns(bytes_max, list(columns), 0)
        if batch is None:
            return None
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("read_arrow needs pyarrow: pip install 'penstock[arrow]'") from error
        return cast("pyarrow.RecordBatch", pyarrow.record_batch(batch))

    # What follows moves the kernel's tailer from segment to segment.

    def _advance(self) -> bool:
        """Called at the end of what the kernel knows: is there more to read?"""
        self._log.check_open()
        place = self._place
        if place is None:
            self._to_first()
            return self._place is not None
        number, position, count = place
        segment = self._log.segments.readable(number)
        if not self._is_final:
            return self._look_again(segment, number, position, count)
        return self._go_on(segment, number, count)

    def _look_again(self, segment: Segment | None, number: int, position: int, count: int) -> bool:
        """The segment was the active one when it was last looked at."""
        bank = self._log.bank()
        if bank is not None:
            if bank.number == number:
                return False
        elif segment is not None and self._log.segments.after(number) is None:
            walked = segment.walk(position, count, segment.file_bytes())
            self._extend(walked[0], None)
            return walked[0] > position
        if segment is None:
            # Retention dropped it meanwhile, and where it ended can no longer be known.
            return self._enter_after(number, self.next_sequence)
        self._extend(*self._log.segments.end(segment))
        return True

    def _go_on(self, segment: Segment | None, number: int, count: int) -> bool:
        """The segment is read to its end: the next one follows, unless something is missing."""
        expected = self.next_sequence
        if segment is not None:
            end = self._log.segments.end(segment)
            if count < end.count:
                lost_until = segment.base_sequence + end.count
                place = min(end.position, segment.file_bytes())
                self._use(segment, place, end.count, place, end.count)
                reason = "the file is shorter than it was"
                self._tell(CorruptionError(segment.path, place, expected, reason, lost_until))
                return True
        return self._enter_after(number, expected)

    def _enter_after(self, number: int, expected: int) -> bool:
        """Stand in the next segment that can be read, and tell what is missing before it."""
        segments, damage, later = self._log.segments, None, None
        following = segments.after(number)
        while following is not None and later is None:
            try:
                later = segments.open(following)
            except CorruptionError as error:
                damage = damage or error
            if later is None:
                following = segments.after(following)
        if later is None:
            if damage is not None:
                self._tell(damage)
            return False
        self._use_at(later, _HEADER_BYTES, 0)
        base = later.base_sequence
        if damage is not None:
            self._tell(CorruptionError(damage.path, damage.position, expected, damage.reason, base))
        elif not segments.is_successor(later, number) and base != expected:
            self._tell_missing(number + 1, later, expected)
        return True

    def _tell_missing(self, number: int, later: Segment, expected: int) -> None:
        base = later.base_sequence
        if number >= self._log.first_number():
            reason = f"segment {number} is missing"
            self._tell(CorruptionError(later.path, 0, expected, reason, base))
        elif not self._jump:
            raise SequenceGoneError(expected, base)

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
        end = log.segments.end(segment)
        if bank is None and log.segments.after(segment.number) is None:
            return end.position, None
        return min(end.position, segment.file_bytes()), end.count

    def _to_first(self) -> None:
        segments = self._log.segments
        segments.refresh()
        for number in segments.numbers():
            segment = segments.readable(number)
            if segment is not None:
                self._use_at(segment, _HEADER_BYTES, 0)
                return
        self._leave()

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
            self._use_at(segment, *segments.end(segment))

    def _to_sequence(self, sequence: int) -> None:
        first, following = self._log.first_sequence(), self._log.next_sequence()
        if sequence < 0:
            raise ValueError(f"a sequence is 0 or more, not {sequence}")
        if sequence > following:
            raise SequenceUnknownError(sequence, following)
        if sequence < first:
            if not self._jump:
                raise SequenceGoneError(sequence, first)
            self._to_first()
            return
        self._to_place(
            lambda segment: segment.base_sequence <= sequence,
            lambda segment, limit, _count: segment.locate(sequence, limit),
        )

    def _to_time(self, time_ns: int) -> None:
        self._to_place(
            lambda segment: segment.header_word(_BEGUN_AT) <= time_ns,
            lambda segment, limit, count: segment.locate_time(time_ns, limit, count),
        )

    def _to_place(
        self,
        holds: Callable[[Segment], bool],
        locate: Callable[[Segment, int, int], tuple[int, int]],
    ) -> None:
        """Find the last segment of which `holds` is true, and the place in it."""
        bank = self._log.bank()
        number = self._log.segments.last_where(holds, NEVER if bank is None else bank.number)
        segment = None if number is None else self._log.segments.open(number)
        if segment is None:
            self._to_first()
            return
        limit, count = self._limit(segment)
        if count is None:
            bank = self._log.bank()
            count = self._log.segments.end(segment).count if bank is None else bank.messages
        self._use(segment, *locate(segment, limit, count), *self._limit(segment))
