"""What the kernel calls back when an append cannot go on alone: room, the next segment, a flush."""

from __future__ import annotations

import os
from collections.abc import Callable

from penstock import clock
from penstock.kernel import LAYOUT, Control, Segment, Writer, segment_bytes_for
from penstock.log import directory
from penstock.log.attach import bank_of
from penstock.log.durable import Durability
from penstock.log.evidence import UNNAMED_MAX
from penstock.log.metadata import Settings
from penstock.log.roll import Bank, is_due
from penstock.log.segments import Segments
from penstock.log.spare import Beginning, Chain, SpareMaker, disk_errors

_APPEND_LOCK = LAYOUT["CONTROL_APPEND_LOCK_AT"]
_NAMED = LAYOUT["CONTROL_NAMED_NUMBER_AT"]
_DURABLE = LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"]
_ALLOCATED = LAYOUT["BANK_ALLOCATED"]
_SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
_HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
_REASON_ROLL = LAYOUT["REASON_ROLL"]
_PAGE_BYTES = 4096
# Blocks are allocated in steps that double up to this.
_STEP_BYTES_MAX = 64 << 20


class SegmentHost:
    """Keeps the active segment of one handle: attaches to it, grows it, and rolls to the next.

    All methods may be called from any thread; what changes the log does so under the append lock.
    """

    def __init__(
        self,
        control: Control,
        segments: Segments,
        spares: SpareMaker,
        durability: Durability,
        settings: Settings,
    ) -> None:
        self._control = control
        self._segments = segments
        self._spares = spares
        self._durability = durability
        self._settings = settings
        # A segment larger than any that recovery expects must have a durable name at once.
        self.named_bytes_max = settings.segment_bytes
        self.active: Segment | None = None
        self._writer: Writer | None = None

    def serve(self, writer: Writer) -> None:
        """Take the appender's side of this handle under care."""
        self._writer = writer
        self.attach_active()

    def bank(self) -> Bank:
        """Read what is true of the active segment."""
        return Bank(*self._control.bank())

    def attach_active(self) -> None:
        """Map the segment that is the active one now, and mend what a dead writer left in it."""
        self._locked(lambda mend: self._attach_locked(mend=mend))

    def make_room(self, frames_bytes: int, count: int) -> None:
        """Let frames of so many bytes find their place: more blocks, or the next segment."""
        self._locked(lambda mend: self._make_room_locked(frames_bytes, count, mend=mend))

    def cut_unused(self) -> None:
        """Give back the blocks behind the last message, and note that all ends here."""
        self._locked(lambda mend: self._cut_unused_locked(mend=mend))

    def _cut_unused_locked(self, *, mend: bool) -> None:
        segment = self._attach_locked(mend=mend)
        bank = self.bank()
        whole = -(-bank.position // _PAGE_BYTES) * _PAGE_BYTES
        if segment.word_at(bank.position) == 0 and whole < bank.allocated:
            self._control.set_bank_word(_ALLOCATED, whole)
            os.truncate(segment.path, whole)
        self._control.set_clean(bank.number, bank.position, bank.next_sequence, bank.last_timestamp)

    def _locked(self, work: Callable[[bool], object]) -> None:
        self._control.locked(_APPEND_LOCK, work)

    def _attach_locked(self, *, mend: bool) -> Segment:
        number = self.bank().number
        assert self._writer is not None
        if self.active is None or self.active.number != number:
            # One opened before the page turned to it may be a file that is gone since.
            self._segments.reopen(number)
            segment = self._segments.open(number)
            assert segment is not None, "retention never drops the active segment"
            self._use_locked(segment)
        if mend:
            self._writer.mend()
        assert self.active is not None
        return self.active

    def _use_locked(self, segment: Segment) -> None:
        assert self._writer is not None
        self._writer.use_segment(segment)
        self.active = segment

    def _make_room_locked(self, frames_bytes: int, count: int, *, mend: bool) -> None:
        segment = self._attach_locked(mend=mend)
        bank = self.bank()
        end = bank.position + frames_bytes + _SEAL_BYTES
        now_ns = max(clock.now_ns(), bank.last_timestamp)
        is_free = segment.word_at(bank.position) == 0
        if not is_free or is_due(bank, end, count, now_ns):
            self._roll_locked(segment, bank, frames_bytes, now_ns, is_free=is_free)
        elif end > bank.allocated:
            self._grow_locked(segment, bank, end)

    def _grow_locked(self, segment: Segment, bank: Bank, end: int) -> None:
        """Allocate a whole step, or what is needed if the disk has no more."""
        step = min(max(bank.allocated, 1 << 20), _STEP_BYTES_MAX)
        needed = min(-(-end // _PAGE_BYTES) * _PAGE_BYTES, bank.capacity)
        wanted = min(max(needed, bank.allocated + step), bank.capacity)
        with disk_errors(segment.path, needed - bank.allocated):
            try:
                segment.allocate(bank.allocated, wanted)
            except OSError:
                segment.allocate(bank.allocated, needed)
                wanted = needed
        self._control.set_bank_word(_ALLOCATED, wanted)

    def _roll_locked(
        self, segment: Segment, bank: Bank, frames_bytes: int, now_ns: int, *, is_free: bool
    ) -> None:
        """Seal the active segment and begin the next; who is stopped within, another ends it."""
        capacity = max(self._settings.segment_bytes, segment_bytes_for(frames_bytes))
        self._name_in_time(bank.number)
        made = self._spares.take(capacity)
        if is_free:
            self._seal_locked(segment, bank)
        number = bank.number + 1
        self._remove_unused(number)
        chain = Chain(_REASON_ROLL, bank.number, bank.position, bank.next_sequence, bank.last_check)
        durable = self._control.load(_DURABLE)
        beginning = Beginning(number, bank.next_sequence, now_ns, chain, durable)
        begun, allocated = self._spares.begin(made, beginning)
        words = bank_of(begun, self._settings, now_ns, allocated, durable)
        self._control.begin_bank(list(words))
        self._segments.add(begun)
        self._use_locked(begun)
        self._control.wake()
        if capacity > self.named_bytes_max:
            self._durability.name_all()

    def _name_in_time(self, active: int) -> None:
        """Recovery counts on only so many segments without a durable name."""
        if active - self._control.load(_NAMED) >= UNNAMED_MAX:
            self._durability.name_all()

    def _seal_locked(self, segment: Segment, bank: Bank) -> None:
        end = bank.position + _SEAL_BYTES
        if end > bank.allocated:
            # The last handle that closed had given the blocks for the seal back.
            self._grow_locked(segment, bank, end)
        count = bank.next_sequence - bank.base_sequence
        segment.seal(bank.position, count, bank.first_timestamp, bank.last_timestamp)

    def _remove_unused(self, number: int) -> None:
        """A roll that was stopped half-way may have left a segment nobody ever appended to."""
        path = directory.find_segment(self._spares.root, number)
        if path is None:
            return
        self._segments.forget(number)
        segment = self._segments.readable(number)
        is_unused = segment is None or segment.word_at(_HEADER_BYTES) == 0
        self._segments.forget(number)
        if is_unused:
            directory.remove_segment(path)
        else:
            directory.set_aside(path, directory.TORN)
