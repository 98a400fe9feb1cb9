"""Who a queue is: read from metadata.json, made for a new queue, or found again in its segments."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from penstock.errors import CorruptionError, FormatVersionError, MetadataError
from penstock.kernel import LAYOUT, Segment, prepared_capacity
from penstock.log import directory
from penstock.log import metadata as metadata_file
from penstock.log.metadata import CHECKSUMS, QUEUE_ID_BYTES, Metadata, Settings
from penstock.log.spare import read_header

_ID_AT = LAYOUT["SEGMENT_QUEUE_ID_AT"]
_ID_IN_PAGE_AT = LAYOUT["CONTROL_QUEUE_ID_AT"]
_QUEUE_ID = slice(_ID_AT, _ID_AT + QUEUE_ID_BYTES)

_logger = logging.getLogger("penstock.identity")


def identify(root: Path, settings_of: Callable[[Settings | None], Settings]) -> Metadata:
    """Read the queue's identity, make it for a new one, or mend a broken metadata.json."""
    try:
        metadata = metadata_file.read(root)
        if metadata is not None:
            _check_owner(root, metadata)
            return metadata
        error = MetadataError(root / directory.METADATA, "it is missing")
    except MetadataError as broken:
        error = broken
        _keep_broken(root / directory.METADATA)
    if directory.list_segments(root):
        metadata = find_again(root, settings_of, error)
        _logger.warning("%s; it was made again from the segments", error)
    else:
        metadata = metadata_file.create(settings_of(None))
    metadata_file.write(root, metadata)
    directory.flush_folder(root.parent)
    return metadata


def _check_owner(root: Path, metadata: Metadata) -> None:
    """Hold the identity against the segments and the page: a wrong one would hide all of the log.

    One witness is enough to believe it, for a single file may have been replaced by a foreign one.
    """
    others = 0
    for path in reversed(directory.list_segments(root).values()):
        with contextlib.suppress(OSError, CorruptionError, FormatVersionError):
            header = read_header(path)
            prepared_capacity(path, header)
            if header[_QUEUE_ID] == metadata.queue_id:
                return
            others += 1
    if others and _id_in_page(root) != metadata.queue_id:
        raise MetadataError(root / directory.METADATA, "its queue_id is of another queue")


def _id_in_page(root: Path) -> bytes | None:
    with contextlib.suppress(OSError), (root / directory.CONTROL).open("rb") as file:
        return file.read(_ID_IN_PAGE_AT + QUEUE_ID_BYTES)[_ID_IN_PAGE_AT:]
    return None


def _keep_broken(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.rename(path.with_name(path.name + directory.BROKEN))


def find_again(
    root: Path, settings_of: Callable[[Settings | None], Settings], error: MetadataError
) -> Metadata:
    """Take the identity from the newest segment whose header is whole, or raise the error."""
    listed = directory.list_segments(root)
    for path in reversed(listed.values()):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            Segment(path, fd, -1, writable=False)
        except (OSError, CorruptionError, FormatVersionError):
            continue
        metadata = metadata_file.create(_settings_in(read_header(path), settings_of(None)))
        queue_id = read_header(path)[_QUEUE_ID]
        return replace(metadata, queue_id=queue_id, first_number=min(listed))
    raise error


def _settings_in(header: bytes, others: Settings) -> Settings:
    """What a segment was made with; the roll strategy stands in no segment."""

    def number(name: str, size: int) -> int:
        at = LAYOUT[name]
        return int.from_bytes(header[at : at + size], "little")

    kind = number("SEGMENT_CHECKSUM_AT", 4)
    return replace(
        others,
        segment_bytes=number("SEGMENT_CAPACITY_AT", 8),
        index_every=number("SEGMENT_INDEX_EVERY_AT", 8),
        checksum=next(name for name, known in CHECKSUMS.items() if known == kind),
    )
