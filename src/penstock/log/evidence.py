"""What a control page still tells of how far the log went, and how much of it is believed."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import NamedTuple

from penstock.kernel import LAYOUT, Control, Segment
from penstock.log.metadata import Metadata
from penstock.log.roll import Bank
from penstock.log.scan import Place, Scan
from penstock.log.segments import Segments

_logger = logging.getLogger("penstock.recover")

_DURABLE = LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"]
_DURABLE_COPY = LAYOUT["CONTROL_DURABLE_COPY_AT"]
_ALL_BITS = (1 << 64) - 1
_CHECK_BYTES = LAYOUT["FRAME_CHECK_BYTES"]
_FRAME_BYTES_MIN = LAYOUT["FRAME_BYTES_MIN"]
_ALIGNMENT = LAYOUT["FRAME_ALIGNMENT"]
# A power cut may take the newest segments whole: this many may be without a durable name.
UNNAMED_MAX = 4


class KnownEnd(NamedTuple):
    """Where the log ended, told by more than the frames: damage before it is no torn end."""

    number: int
    position: int
    next_sequence: int

    def place(self, segment: Segment, found: Scan) -> Place | None:
        """The end as a place in this segment, if that agrees with the frames that were found."""
        messages = self.next_sequence - segment.base_sequence
        more, more_bytes = messages - found.end.ordinal, self.position - found.end.position
        if self.number != segment.number or more_bytes % _ALIGNMENT:
            return None
        if more_bytes == 0:
            return found.end if more == 0 else None
        if self.position > segment.capacity or not 0 < more * _FRAME_BYTES_MIN <= more_bytes:
            return None
        check = segment.word_at(self.position - _CHECK_BYTES)
        return Place(self.position, messages, found.end.timestamp, check)


@dataclass(frozen=True)
class Evidence:
    """What else than the segments tells how far the log went."""

    durable_sequence: int = 0
    """Every message below it was durable at some time."""
    number: int = 0
    """The newest segment that is known to have been there."""
    next_sequence: int = 0
    """Every message below it was handed out at some time."""
    end: KnownEnd | None = None
    is_known: bool = False
    """Whether there is a page of this queue at all: then the queue is not a new one."""
    is_clean: bool = False
    """Whether the last handle closed in order, with everything flushed."""


def evidence_of(
    control: Control | None, metadata: Metadata, segments: Segments, *, is_of_now: bool
) -> Evidence:
    """Read what a page still says, if it is this queue's."""
    identity = None if control is None else control.identity()
    if control is None or identity is None or identity[0] != metadata.queue_id:
        return Evidence()
    clean = control.clean()
    if clean is not None:
        # These words have a check of their own.
        end = KnownEnd(*clean)
        return Evidence(
            end.next_sequence, end.number, end.next_sequence, end, is_known=True, is_clean=True
        )
    bank = Bank(*control.bank())
    most = _most(segments, metadata)
    if bank.next_sequence > most or bank.number > max(segments.numbers(), default=0) + UNNAMED_MAX:
        _logger.warning("the control page speaks of sequences that cannot be: not believed")
        return Evidence(is_known=True)
    durable = control.load(_DURABLE)
    if not is_of_now:
        # The words of an earlier boot have no check, but for the durable mark and its copy.
        is_proven = durable == control.load(_DURABLE_COPY) ^ _ALL_BITS and durable <= most
        following = 0 if segments.numbers() else bank.next_sequence
        return Evidence(durable if is_proven else 0, 0, following, is_known=True)
    durable = min(durable, bank.next_sequence)
    # The check before its end must be the one the page remembers, or one of them is damaged.
    segment = segments.readable(bank.number)
    end = KnownEnd(bank.number, bank.position, bank.next_sequence)
    is_checked = (
        segment is not None
        and bank.position % _ALIGNMENT == 0
        and segment.word_at(bank.position - _CHECK_BYTES) == bank.last_check
    )
    known = end if is_checked else None
    return Evidence(durable, bank.number, bank.next_sequence, known, is_known=True)


def _most(segments: Segments, metadata: Metadata) -> int:
    """No sequence can be beyond this: a flipped bit in the page must not lead far away."""
    newest, capacity = 0, metadata.settings.segment_bytes
    for number in reversed(segments.numbers()):
        segment = segments.readable(number)
        if segment is not None:
            newest, capacity = segment.base_sequence, max(capacity, segment.capacity)
            break
    # A gap that an earlier recovery declared may stand between, so this is beyond what is beyond.
    return beyond(beyond(newest, capacity), capacity)


def beyond(sequence: int, capacity: int) -> int:
    """A sequence that nothing can have had, however full the lost segments were."""
    return sequence + (UNNAMED_MAX + 1) * (capacity // _FRAME_BYTES_MIN)
