"""Walking over every frame of a segment, past damage, and telling what was found."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import CorruptionError
from penstock.kernel import LAYOUT, Segment

HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]


class Place(NamedTuple):
    """A border between two frames, and what the last one before it said."""

    position: int = HEADER_BYTES
    count: int = 0
    timestamp: int = 0
    check: int = 0


class Fault(NamedTuple):
    """Where damage begins, why, and the count of the next true frame if there is one."""

    place: Place
    reason: str
    next_count: int | None


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
        position, count, timestamp, check, mark, is_sealed, reason, *stop = segment.walk(
            place.position, place.count, limit
        )
        if count > place.count:
            place = Place(position, count, timestamp, check)
        marked = max(marked, mark)
        # Behind an atomic append that was never finished there is nothing, behind damage there is.
        found = None if is_sealed else segment.resync(*stop, limit)
        if found is None:
            if reason is not None:
                faults.append(Fault(place, reason, None))
            return Scan(place, marked, is_sealed, faults)
        reason = reason or "there are zeros where a message should be"
        faults.append(Fault(place, reason, found[1]))
        place = Place(*found, place.timestamp, place.check)


def corruption(segment: Segment, fault: Fault) -> CorruptionError:
    """Tell a fault as an error."""
    base = segment.base_sequence
    following = None if fault.next_count is None else base + fault.next_count
    sequence = base + fault.place.count
    return CorruptionError(segment.path, fault.place.position, sequence, fault.reason, following)


def place_of(segment: Segment, sequence: int, limit: int) -> Place:
    """Find a true frame at or before a sequence, to scan from."""
    count = max(0, sequence - segment.base_sequence)
    return Place(*segment.indexed_before(count, min(limit, segment.file_bytes())))
