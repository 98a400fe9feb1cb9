"""Opening when nobody was there: what a crash left is found, judged and put in order.

Each state has a letter, told in full in docs/durability.md, and a test of its own. What is found
is never overwritten: the log goes on in a new segment, whose header says where the old one ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from penstock.kernel import LAYOUT, Control, Segment
from penstock.log import directory
from penstock.log.metadata import Metadata
from penstock.log.roll import Bank
from penstock.log.scan import HEADER_BYTES, ZEROS, Place, Scan, place_of, scan, torn_at
from penstock.log.segments import Segments
from penstock.log.spare import Chain, read_header

_logger = logging.getLogger("penstock.recover")

_BOOT_ID = LAYOUT["SEGMENT_BOOT_ID_AT"]
_DURABLE = LAYOUT["SEGMENT_DURABLE_SEQUENCE_AT"]
_PREVIOUS_END = LAYOUT["SEGMENT_PREVIOUS_END_SEQUENCE_AT"]
_BEGUN_PART = slice(LAYOUT["SEGMENT_NUMBER_AT"], LAYOUT["SEGMENT_BEGUN_CHECK_AT"] + 8)
_CONTROL_DURABLE = LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"]
_FRAME_BYTES_MIN = LAYOUT["FRAME_BYTES_MIN"]
# A power cut may take the newest segments whole: this many may be without a durable name.
UNNAMED_MAX = 4


class Beginning(NamedTuple):
    """How the log goes on: the next segment's number, first sequence and chain."""

    number: int
    base_sequence: int
    timestamp: int
    chain: Chain
    durable_sequence: int


@dataclass(frozen=True)
class Evidence:
    """What else than the segments tells how far the log went."""

    durable_sequence: int = 0
    """Every message below was durable at some time."""
    number: int = 0
    """The newest segment that is known to have been there."""
    next_sequence: int = 0
    """Every message below was handed out at some time."""
    clean: tuple[int, int, int] | None = None
    """Number, position and next sequence that the last handle left when it closed."""


def evidence_of(control: Control | None, metadata: Metadata, *, is_of_now: bool) -> Evidence:
    """Read what a control page still says, if it is this queue's."""
    identity = None if control is None else control.identity()
    if control is None or identity is None or identity[0] != metadata.queue_id:
        return Evidence()
    clean = control.clean()
    if clean is not None:
        return Evidence(clean[2], clean[0], clean[2], clean)
    if is_of_now:
        bank = Bank(*control.bank())
        durable = min(control.load(_CONTROL_DURABLE), bank.next_sequence)
        return Evidence(durable, bank.number, bank.next_sequence)
    # No check covers the words of an earlier boot, and the frames carry the durable mark as well.
    return Evidence()


def recover(root: Path, metadata: Metadata, segments: Segments, evidence: Evidence) -> Beginning:
    """Judge what is there, set aside what is behind the end, and say how the log goes on."""
    remove_leftovers(root)
    highest = max(segments.numbers(), default=0)
    half_made = _set_half_made_aside(segments)
    evidence = _plausible(evidence, segments, metadata)
    numbers = segments.numbers()
    if not numbers:
        is_new = highest == 0 and evidence.number == 0
        base = 0 if is_new else _beyond(evidence.next_sequence, metadata.settings.segment_bytes)
        chain = Chain(LAYOUT["REASON_FIRST"], 0, 0, 0, 0)
        number = max(highest + 1, evidence.number + 1, metadata.first_number)
        return Beginning(number, base, 0, chain, 0)
    judged = _judge(segments, evidence)
    if half_made and evidence.clean is None:
        judged = judged._replace(is_whole=False)
    known = max([evidence.next_sequence, *_bases_from(segments, judged.number)])
    _set_lost_aside(judged, segments)
    return _go_on(judged, max(highest, evidence.number), metadata, segments, known)


def remove_leftovers(root: Path) -> None:
    """Delete what was being made when the last process died; none of it was in use."""
    for pattern in (f"*{directory.MAKING}", f"[0-9]*/*/*/*{directory.MAKING}", directory.SPARE):
        for path in root.glob(pattern):
            path.unlink(missing_ok=True)


def _set_half_made_aside(segments: Segments) -> bool:
    """Take segments away that had their name, but whose beginning never reached the disk."""
    found = False
    for number in reversed(segments.numbers()):
        path = segments.path(number)
        if path is None or not _is_half_made(read_header(path)):
            break
        _logger.warning("setting aside %s: its header never reached the disk", path)
        directory.set_aside(path, directory.TORN)
        segments.forget(number)
        found = True
    return found


def _is_half_made(header: bytes) -> bool:
    return len(header) < HEADER_BYTES or not any(header[:8]) or not any(header[_BEGUN_PART])


def _plausible(evidence: Evidence, segments: Segments, metadata: Metadata) -> Evidence:
    """Believe of a page only what the segments allow: a flipped bit in it must not lead far away."""
    newest, capacity, number = 0, metadata.settings.segment_bytes, 0
    for number in reversed(segments.numbers()):
        segment = segments.readable(number)
        if segment is not None:
            newest, capacity = segment.base_sequence, max(capacity, segment.capacity)
            break
    most = _beyond(newest, capacity)
    if (
        max(evidence.durable_sequence, evidence.next_sequence) <= most
        and evidence.number <= number + UNNAMED_MAX
    ):
        return evidence
    _logger.warning("the control page speaks of sequences that cannot be: not believed")
    return Evidence()


class _Judged(NamedTuple):
    """Where the log ends: the last segment that counts, and the last frame in it."""

    segment: Segment | None
    """None when the header of the last segment is damaged, so that nothing in it can be read."""
    number: int
    place: Place
    durable_sequence: int
    is_whole: bool
    """Whether nothing behind the end can have been appended."""

    @property
    def end(self) -> int:
        """The sequence behind the last message; 0 when no header tells."""
        return 0 if self.segment is None else self.segment.base_sequence + self.place.ordinal


def _judge(segments: Segments, evidence: Evidence) -> _Judged:
    """Walk from the durable mark on to the first damage that no flush had covered."""
    durable = max([evidence.durable_sequence, *_mark_in_headers(segments)])
    numbers = segments.numbers()
    start = segments.holding(durable) or numbers[0]
    scans = [
        (segment, _scan_judged(segments, segment, durable))
        for number in numbers
        if number >= start and (segment := segments.readable(number)) is not None
    ]
    if not scans or scans[-1][0].number != numbers[-1]:
        return _Judged(None, numbers[-1], Place(), durable, is_whole=False)
    durable = max([durable, *(found.marked_sequence for _, found in scans)])
    memory_is_whole = scans[-1][0].header_bytes(_BOOT_ID, 16) == clock.boot_id()
    if memory_is_whole:
        return _judge_memory(*scans[-1], durable, evidence)
    for at, (segment, found) in enumerate(scans):
        following = scans[at + 1][0] if at + 1 < len(scans) else None
        torn = torn_at(segment, found, durable) or _cut_short(segment, found, following, durable)
        if torn is not None:
            return _Judged(segment, segment.number, torn, durable, is_whole=False)
    segment, found = scans[-1]
    clean = (segment.number, found.end.position, segment.base_sequence + found.end.ordinal)
    is_whole = evidence.clean == clean
    return _Judged(segment, segment.number, found.end, durable, is_whole)


def _scan_judged(segments: Segments, segment: Segment, durable: int) -> Scan:
    """What is behind an end that the next segment already declares was judged before."""
    declared = segments.declared_end(segment.number, segment.base_sequence)
    limit = segment.capacity if declared is None else declared.position
    return scan(segment, limit, place_of(segment, durable, limit))


def _judge_memory(segment: Segment, found: Scan, durable: int, evidence: Evidence) -> _Judged:
    """The machine did not stop: all that was published is there, and only damage can hide it."""
    for fault in found.faults:
        # Zeros are what an append leaves that never published its first frame.
        if fault.reason == ZEROS and segment.base_sequence + fault.place.ordinal >= durable:
            return _Judged(segment, segment.number, fault.place, durable, is_whole=False)
    end = segment.base_sequence + found.end.ordinal
    is_whole = end >= max(durable, evidence.next_sequence) and segment.number >= evidence.number
    return _Judged(segment, segment.number, found.end, durable, is_whole)


def _mark_in_headers(segments: Segments) -> Iterator[int]:
    """The newest readable header carries the durable mark of the time it was begun."""
    for number in reversed(segments.numbers()):
        segment = segments.readable(number)
        if segment is not None:
            yield segment.header_word(_DURABLE)
            return


def _cut_short(
    segment: Segment, found: Scan, following: Segment | None, durable: int
) -> Place | None:
    """A sealed segment that ends before the next one says it did has lost its last pages."""
    end = segment.base_sequence + found.end.ordinal
    if following is None or max(end, durable) >= following.header_word(_PREVIOUS_END):
        return None
    return found.end


def _bases_from(segments: Segments, number: int) -> Iterator[int]:
    """Every sequence below the base of a segment was handed out, even if that one is set aside."""
    for later in segments.numbers():
        segment = segments.readable(later)
        if later >= number and segment is not None:
            yield segment.base_sequence


def _set_lost_aside(judged: _Judged, segments: Segments) -> None:
    for number in segments.numbers():
        path = segments.path(number)
        if number > judged.number and path is not None:
            _logger.warning("setting aside %s: what was before it was lost", path)
            directory.set_aside(path, directory.TORN)
            segments.forget(number)


def _go_on(
    judged: _Judged, highest: int, metadata: Metadata, segments: Segments, known_sequence: int
) -> Beginning:
    """Begin where no sequence can be used again, and tell what is lost."""
    base, durable, end = judged.end, judged.durable_sequence, judged.end
    if not judged.is_whole:
        capacity = metadata.settings.segment_bytes
        if judged.segment is not None:
            capacity = max(capacity, judged.segment.capacity)
        elif (before := segments.readable(judged.number - 1)) is not None:
            base = before.base_sequence + before.capacity // _FRAME_BYTES_MIN
            capacity = max(capacity, before.capacity)
        base = _beyond(max(base, durable, known_sequence), capacity)
        if judged.segment is not None:
            # What was durable and is not there any more is damage, and told to whoever reads.
            end = max(end, durable)
        _tell_loss(judged, base)
    reason = LAYOUT["REASON_RECOVERY"]
    place = judged.place
    chain = Chain(reason, judged.number, place.position, end, place.check)
    if judged.segment is None:
        chain = Chain(reason, judged.number, 0, 0, 0)
    return Beginning(highest + 1, base, place.timestamp, chain, min(durable, base))


def _beyond(sequence: int, capacity: int) -> int:
    """A sequence that nothing can have had, however full the lost segments were."""
    return sequence + (UNNAMED_MAX + 1) * (capacity // _FRAME_BYTES_MIN)


def _tell_loss(judged: _Judged, base: int) -> None:
    _logger.warning(
        "the log was not closed and may have lost its end: what was appended from message %d on "
        "is gone; every message below %d was durable; the next append gets %d",
        judged.end,
        judged.durable_sequence,
        base,
        extra={"first_lost": judged.end, "durable_sequence": judged.durable_sequence},
    )
