"""The sparse index of a segment: a cache, made again whenever it is not as it should be."""

from __future__ import annotations

from penstock.kernel import LAYOUT, Segment, index_header
from penstock.log import directory
from penstock.log.segments import End

_CHECKSUM = LAYOUT["SEGMENT_CHECKSUM_AT"]
_QUEUE_ID = LAYOUT["SEGMENT_QUEUE_ID_AT"]
_SALT = LAYOUT["SEGMENT_SALT_AT"]


def rebuild_if_wrong(segment: Segment, end: End) -> bool:
    """Make the index of a sealed segment again, unless every entry is there and true."""
    if segment.index_is_whole(end.messages, end.position):
        return False
    path = directory.index_path(segment.path)
    made = path.with_name(path.name + directory.MAKING)
    made.touch(directory.FILE_MODE)
    made.write_bytes(header_of(segment) + segment.index_entries(end.position))
    made.replace(path)
    return True


def header_of(segment: Segment) -> bytes:
    """The header of the index file that belongs to a segment."""
    return index_header(
        int.from_bytes(segment.header_bytes(_CHECKSUM, 4), "little"),
        segment.header_bytes(_QUEUE_ID, 16),
        segment.number,
        segment.base_sequence,
        segment.header_word(_SALT),
        segment.index_every,
    )
