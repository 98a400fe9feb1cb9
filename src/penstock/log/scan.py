"""Walking over every frame of a segment, past damage, and telling what was found."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import CorruptionError
from penstock.kernel import LAYOUT, Segment

HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
ZEROS = "there are zeros where a message should be"


class Place(NamedTuple):
    """A border between two frames, and what the last one before it said."""

    position: int = HEADER_BYTES
    ordinal: int = 0
    timestamp: int = 0
    check: int = 0


class Fault(NamedTuple):
    """Where damage begins, why, and the ordinal of the next true frame if there is one."""

    place: Place
    reason: str
    next_ordinal: int | None


class Scan(NamedTuple):
    """A whole segment: where its true frames end, and each damage on the way."""

    end: Place
    marked_sequence: int
    """The highest durable mark that stands in a frame."""
    is_sealed: bool
    faults: list[Fault]


def scan(segment: Segment, limit: int, start: Place | None = None) -> Scan:
    """Check frame after frame; damage is passed, and what is behind it counts."""
    place = start or Place()
    limit = min(limit, segment.file_bytes())
    marked, faults = 0, list[Fault]()
    while True:
        position, ordinal, timestamp, check, mark, is_sealed, reason, *stop = segment.walk(
            place.position, place.ordinal, limit
        )
        if ordinal > place.ordinal:
            place = Place(position, ordinal, timestamp, check)
        marked = max(marked, mark)
        # Behind an atomic append that was never finished there is nothing, behind damage there is.
        found = None if is_sealed else segment.resync(stop[0], stop[1], limit)
        if found is None:
            if reason is not None:
                faults.append(Fault(place, reason, None))
            return Scan(place, marked, is_sealed, faults)
        reason = reason or ZEROS
        faults.append(Fault(place, reason, found[1]))
        place = Place(*found, place.timestamp, place.check)


def torn_at(segment: Segment, found: Scan, durable_sequence: int) -> Place | None:
    """The first damage at or behind the durable mark is where a power cut tore the log."""
    for fault in found.faults:
        if segment.base_sequence + fault.place.ordinal >= durable_sequence:
            return fault.place
    return None


def unfinished_at(segment: Segment, found: Scan, durable_sequence: int) -> Place | None:
    """Zeros before true frames are what an append leaves that never published its first frame."""
    for fault in found.faults:
        sequence = segment.base_sequence + fault.place.ordinal
        if fault.reason == ZEROS and sequence >= durable_sequence:
            return fault.place
    return None


def corruption(segment: Segment, fault: Fault) -> CorruptionError:
    """Tell a fault as an error."""
    base = segment.base_sequence
    following = None if fault.next_ordinal is None else base + fault.next_ordinal
    sequence = base + fault.place.ordinal
    return CorruptionError(segment.path, fault.place.position, sequence, fault.reason, following)


def place_of(segment: Segment, sequence: int, limit: int) -> Place:
    """Find the indexed frame before a sequence, to scan from and meet at least one on the way."""
    ordinal = max(0, sequence - segment.base_sequence - 1)
    return Place(*segment.indexed_before(ordinal, min(limit, segment.file_bytes())))
