"""Opening when nobody was there: what a crash left is found, judged and put in order.

Each state has a letter, told in full in docs/durability.md, and a test of its own. What is found
is never overwritten: the log goes on in a new segment, whose header says where the old one ends.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from penstock.kernel import LAYOUT, Segment
from penstock.log import directory
from penstock.log.evidence import Evidence, beyond
from penstock.log.metadata import Metadata
from penstock.log.scan import (
    HEADER_BYTES,
    Place,
    Scan,
    place_of,
    scan,
    torn_at,
    unfinished_at,
)
from penstock.log.segments import Segments
from penstock.log.spare import Beginning, Chain, read_header

_logger = logging.getLogger("penstock.recover")

_BOOT_ID = LAYOUT["SEGMENT_BOOT_ID_AT"]
_DURABLE = LAYOUT["SEGMENT_DURABLE_SEQUENCE_AT"]
_PREVIOUS_NUMBER = LAYOUT["SEGMENT_PREVIOUS_NUMBER_AT"]
_PREVIOUS_END = LAYOUT["SEGMENT_PREVIOUS_END_SEQUENCE_AT"]
_BEGUN_PART = slice(LAYOUT["SEGMENT_NUMBER_AT"], LAYOUT["SEGMENT_BEGUN_CHECK_AT"] + 8)
_FRAME_BYTES_MIN = LAYOUT["FRAME_BYTES_MIN"]


def recover(root: Path, metadata: Metadata, segments: Segments, evidence: Evidence) -> Beginning:
    """Judge what is there, set aside what is behind the end, and say how the log goes on."""
    remove_leftovers(root)
    highest = max([evidence.number, *segments.numbers()])
    half_made = _set_half_made_aside(segments)
    if not segments.numbers():
        return _begin_again(metadata, evidence, highest)
    judged = _judge(segments, evidence)
    if half_made and not evidence.is_clean:
        judged = judged._replace(is_whole=False)
    known = max([evidence.next_sequence, *_bases_from(segments, judged.number)])
    _set_lost_aside(judged, segments)
    return _go_on(judged, highest, metadata, segments, known)


def _begin_again(metadata: Metadata, evidence: Evidence, highest: int) -> Beginning:
    """There is no segment: the queue is new, or all of it is gone, and then that is told."""
    number = max(highest + 1, metadata.first_number)
    if highest == 0 and not evidence.is_known:
        return Beginning(number, 0, 0, Chain(LAYOUT["REASON_FIRST"], 0, 0, 0, 0), 0)
    base = beyond(evidence.next_sequence, metadata.settings.segment_bytes)
    _tell_loss(0, evidence.durable_sequence, base)
    # A segment that is known to have held messages is named, so that readers hear of it.
    lost = evidence.number or (1 if evidence.durable_sequence else 0)
    chain = Chain(LAYOUT["REASON_RECOVERY"], lost, 0, evidence.next_sequence, 0)
    return Beginning(max(lost + 1, number), base, 0, chain, 0)


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
    if not scans:
        return _Judged(None, numbers[-1], Place(), durable, is_whole=False)
    segment, found = scans[-1]
    is_readable = segment.number == numbers[-1]
    if is_readable and evidence.end is not None:
        place = evidence.end.place(segment, found)
        if place is not None:
            return _Judged(segment, segment.number, place, durable, is_whole=True)
    durable = max([durable, *(found.marked_sequence for _, found in scans)])
    memory_is_whole = segment.header_bytes(_BOOT_ID, 16) == clock.boot_id()
    if not memory_is_whole and not evidence.is_clean:
        torn = _first_tear(segments, scans, durable)
        if torn is not None:
            return torn
    if not is_readable:
        return _Judged(None, numbers[-1], Place(), durable, is_whole=False)
    if memory_is_whole:
        return _judge_memory(segment, found, durable, evidence)
    return _Judged(segment, segment.number, found.end, durable, is_whole=False)


def _first_tear(
    segments: Segments, scans: list[tuple[Segment, Scan]], durable: int
) -> _Judged | None:
    """Where a power cut ended the log: at damage, at lost pages, or at a segment that is lost."""
    for at, (segment, found) in enumerate(scans):
        following = scans[at + 1][0] if at + 1 < len(scans) else None
        torn = torn_at(segment, found, durable) or _cut_short(segment, found, following, durable)
        number = segments.after(segment.number)
        is_followed = number is None or (
            following is not None
            and following.number == number
            and segments.is_successor(following, segment.number)
        )
        if torn is None and not is_followed:
            end = segment.base_sequence + found.end.ordinal
            torn = found.end if end >= durable else None
        if torn is not None:
            return _Judged(segment, segment.number, torn, durable, is_whole=False)
    return None


def _scan_judged(segments: Segments, segment: Segment, durable: int) -> Scan:
    """What is behind an end that the next segment already declares was judged before."""
    declared = segments.declared_end(segment.number, segment.base_sequence)
    limit = segment.capacity if declared is None else declared.position
    return scan(segment, limit, place_of(segment, durable, limit))


def _judge_memory(segment: Segment, found: Scan, durable: int, evidence: Evidence) -> _Judged:
    """The machine did not stop: all that was published is there, and only damage can hide it."""
    unfinished = unfinished_at(segment, found, durable)
    if unfinished is not None:
        return _Judged(segment, segment.number, unfinished, durable, is_whole=False)
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
    if (
        following is None
        or following.header_word(_PREVIOUS_NUMBER) != segment.number
        or max(end, durable) >= following.header_word(_PREVIOUS_END)
    ):
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
        base = beyond(max(base, durable, known_sequence), capacity)
        if judged.segment is not None:
            # What was durable and is not there any more is damage, and told to whoever reads.
            end = max(end, durable)
        _tell_loss(judged.end, durable, base)
    reason = LAYOUT["REASON_RECOVERY"]
    place = judged.place
    chain = Chain(reason, judged.number, place.position, end, place.check)
    if judged.segment is None:
        chain = Chain(reason, judged.number, 0, 0, 0)
    return Beginning(highest + 1, base, place.timestamp, chain, min(durable, base))


def _tell_loss(end: int, durable: int, base: int) -> None:
    _logger.warning(
        "the log was not closed and may have lost its end: what was appended from message %d on "
        "is gone; every message below %d was durable; the next append gets %d",
        end,
        durable,
        base,
        extra={"first_lost": end, "durable_sequence": durable},
    )
