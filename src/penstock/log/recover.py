"""Opening when nobody was there: what a crash left is found, judged and put in order.

Each state has a letter, told in full in docs/durability.md, and a test of its own. What is found
is never overwritten: the log goes on in a new segment, whose header says where the old one ends.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from penstock.errors import CorruptionError
from penstock.kernel import LAYOUT, Control, Segment
from penstock.log import directory
from penstock.log.metadata import Metadata
from penstock.log.scan import HEADER_BYTES, Place, Scan, place_of, scan
from penstock.log.segments import Segments
from penstock.log.spare import Chain, SpareMaker, read_header

_log = logging.getLogger("penstock.recover")

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
    clean: tuple[int, int, int] | None = None
    """Number, position and next sequence that the last handle left when it closed."""


def evidence_of(control: Control | None, queue_id: bytes) -> Evidence:
    """Read what an earlier boot's control page still says, if it is this queue's."""
    identity = None if control is None else control.identity()
    if control is None or identity is None or identity[0] != queue_id:
        return Evidence()
    return Evidence(control.load(_CONTROL_DURABLE), control.clean())


def recover(root: Path, metadata: Metadata, segments: Segments, evidence: Evidence) -> Beginning:
    """Judge what is there, set aside what is behind the end, and say how the log goes on."""
    remove_leftovers(root)
    highest = max(segments.numbers(), default=0)
    _set_half_made_aside(segments)
    numbers = segments.numbers()
    if not numbers:
        base = 0 if highest == 0 else _beyond(0, metadata.settings.segment_bytes)
        chain = Chain(LAYOUT["REASON_FIRST"], 0, 0, 0, 0)
        return Beginning(max(highest + 1, metadata.first_number), base, 0, chain, 0)
    return _continue(_judge(segments, evidence), highest, metadata, segments, evidence)


def remove_leftovers(root: Path) -> None:
    """Delete what was being made when the last process died; none of it was in use."""
    for path in (*root.glob(f"*{directory.MAKING}"), root / directory.SPARE):
        path.unlink(missing_ok=True)


def _set_half_made_aside(segments: Segments) -> None:
    """Take segments away that had their name, but whose beginning never reached the disk."""
    for number in reversed(segments.numbers()):
        path = segments.path(number)
        if path is None or not _is_half_made(read_header(path)):
            return
        _log.warning("setting aside %s: its header never reached the disk", path)
        directory.set_aside(path, directory.TORN)
        segments.forget(number)


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


def _judge(segments: Segments, evidence: Evidence) -> _Judged:
    """Walk from the durable mark on to the first damage that no flush had covered."""
    durable = max([evidence.durable_sequence, *_marks_in_headers(segments)])
    numbers = segments.numbers()
    start = segments.holding(durable)
    if start is None:
        start = numbers[0]
    scans = [
        (segment, _scan_from(segment, durable))
        for number in numbers
        if number >= start and (segment := segments.readable(number)) is not None
    ]
    last = numbers[-1]
    if not scans or scans[-1][0].number != last:
        return _Judged(None, last, Place(), durable, is_whole=False)
    durable = max([durable, *(found.marked_sequence for _, found in scans)])
    memory_is_whole = scans[-1][0].header_bytes(_BOOT_ID, 16) == clock.boot_id()
    if not memory_is_whole:
        for at, (segment, found) in enumerate(scans):
            following = scans[at + 1][0] if at + 1 < len(scans) else None
            torn = _torn_at(segment, found, following, durable)
            if torn is not None:
                return _Judged(segment, segment.number, torn, durable, is_whole=False)
    segment, found = scans[-1]
    clean = (segment.number, found.end.position, segment.base_sequence + found.end.count)
    is_whole = memory_is_whole or found.is_sealed or evidence.clean == clean
    return _Judged(segment, segment.number, found.end, durable, is_whole)


def _marks_in_headers(segments: Segments) -> Iterator[int]:
    """The newest readable header carries the durable mark of the time it was begun."""
    for number in reversed(segments.numbers()):
        segment = segments.readable(number)
        if segment is not None:
            yield segment.header_word(_DURABLE)
            return


def _scan_from(segment: Segment, durable: int) -> Scan:
    return scan(segment, segment.capacity, place_of(segment, durable, segment.capacity))


def _torn_at(
    segment: Segment, found: Scan, following: Segment | None, durable: int
) -> Place | None:
    """The first damage at or behind the durable mark is where a power cut tore the log."""
    for fault in found.faults:
        if segment.base_sequence + fault.place.count >= durable:
            return fault.place
    if following is not None:
        declared = following.header_word(_PREVIOUS_END)
        end = segment.base_sequence + found.end.count
        if max(end, durable) < declared:
            return found.end
    return None


def _continue(
    judged: _Judged, highest: int, metadata: Metadata, segments: Segments, evidence: Evidence
) -> Beginning:
    """Set aside what is behind the end, and go on where no sequence can be used again."""
    bases = [judged.durable_sequence, evidence.clean[2] if evidence.clean else 0]
    capacity = metadata.settings.segment_bytes
    for number in segments.numbers():
        segment = segments.readable(number)
        if segment is not None and number >= judged.number - 1:
            bases.append(segment.base_sequence)
            capacity = max(capacity, segment.capacity)
    for number in [number for number in segments.numbers() if number > judged.number]:
        path = segments.path(number)
        assert path is not None
        _log.warning("setting aside %s: what was before it was lost", path)
        directory.set_aside(path, directory.TORN)
        segments.forget(number)
    end = 0 if judged.segment is None else judged.segment.base_sequence + judged.place.count
    base = end if judged.is_whole else _beyond(max(*bases, end), capacity)
    reason = LAYOUT["REASON_ROLL" if judged.is_whole else "REASON_RECOVERY"]
    if not judged.is_whole:
        _tell_loss(judged, end, base)
    chain = Chain(reason, judged.number, judged.place.position, end, judged.place.check)
    if judged.segment is None:
        chain = Chain(reason, judged.number, 0, 0, 0)
    timestamp = judged.place.timestamp
    return Beginning(highest + 1, base, timestamp, chain, judged.durable_sequence)


def _beyond(sequence: int, capacity: int) -> int:
    """A sequence that nothing can have had, however full the lost segments were."""
    return sequence + (UNNAMED_MAX + 1) * (capacity // _FRAME_BYTES_MIN)


def _tell_loss(judged: _Judged, end: int, base: int) -> None:
    _log.warning(
        "the machine stopped before everything was flushed: messages from %d on, if there were "
        "any, are lost; every message below %d was durable; the next append gets %d",
        end,
        judged.durable_sequence,
        base,
        extra={"first_lost": end, "durable_sequence": judged.durable_sequence, "next": base},
    )


def rescue(segments: Segments, spares: SpareMaker, control: Control, begin_at: int) -> Beginning:
    """After a failed flush: copy what memory still holds of the undurable part into new files."""
    durable = control.load(_CONTROL_DURABLE)
    numbers = segments.numbers()
    start = segments.holding(durable) or numbers[0]
    number, chain, base, timestamp = begin_at, None, durable, 0
    for source_number in [n for n in numbers if n >= start]:
        source = segments.open(source_number)
        if source is None:
            raise CorruptionError(Path(str(source_number)), 0, durable, "a segment is missing")
        position, ordinal = source.locate(max(durable, source.base_sequence), source.capacity)
        if chain is None:
            found = Place(position, ordinal)
            chain = Chain(
                LAYOUT["REASON_RESCUE"], source_number, position, source.base_sequence + ordinal, 0
            )
            base = source.base_sequence + ordinal
        made = spares.take(source.capacity)
        target = spares.begin(made, number, base, clock.now_ns(), chain, durable)
        end = scan(source, source.capacity, Place(position, ordinal)).end
        target.allocate(0, min(source.capacity, end.position + 4096))
        copied = target.copy_from(source, position, ordinal, end.position)
        target.flush()
        segments.add(target)
        position, count, timestamp, check = copied
        chain = Chain(LAYOUT["REASON_RESCUE"], number, position, base + count, check)
        number, base = number + 1, base + count
    assert chain is not None
    for stale in [n for n in numbers if n > start]:
        path = segments.path(stale)
        if path is not None:
            with contextlib.suppress(FileNotFoundError):
                directory.set_aside(path, directory.TORN)
            segments.forget(stale)
    return Beginning(number, base, timestamp, chain, durable)
