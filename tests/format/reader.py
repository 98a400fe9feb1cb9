"""A second reader of a queue's folder: plain Python, from docs/format.md alone."""

import itertools
import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.format.caches import published_end
from tests.format.frames import MORE, SEAL, Message, Segment, durable_of, message_of, require

DAYS = "[0-9]*/[0-9]*/[0-9]*/*.data"
NAME = re.compile(r"\d{8}-\d{4,}\.data", re.ASCII)


class Placed(NamedTuple):
    """A message and where its frame begins."""

    path: Path
    position: int
    message: Message


def walk(segment: Segment, end: int | None, after: Segment | None) -> Iterator[Placed]:
    """Read each message up to where the segment ends, and hold its end against what follows."""
    at, ordinal, check = 4096, 0, 0
    together: list[Placed] = []
    times: list[int] = []
    while at != end:
        frame = segment.frame(at)
        if frame is None or frame.ordinal != ordinal or frame.kind == SEAL:
            require(end is None, segment.path, "no message at", at)
            break
        together.append(Placed(segment.path, at, message_of(segment.base + ordinal, frame)))
        times.append(frame.timestamp)
        at, ordinal = frame.end, ordinal + 1
        if not frame.flags & MORE:
            yield from together
            together, check = [], frame.check
    require(times == sorted(times), segment.path, "the time goes back")
    seal = segment.frame(at)
    if seal and seal.kind == SEAL and seal.ordinal == ordinal and not together:
        last = (segment.base + ordinal - 1) % (1 << 64)
        ends = (times[0], times[-1]) if times else (0, segment.begun_at)
        content = struct.pack("<QQqq", ordinal, last, *ends)
        require(seal.payload == content, segment.path, "what its seal says")
    elif end is None:
        marks = [durable_of(frame) for frame in segment.behind(at, ordinal)]
        require(max(marks, default=0) <= segment.base + ordinal, segment.path, "damage at", at)
    if after:
        _, _, sequence, last_check = after.previous
        require(not together and last_check in (0, check), after.path, "its previous check")
        require(segment.base + ordinal == sequence <= after.base, after.path, "its base sequence")


def was_begun(path: Path) -> bool:
    """Tell whether the beginning of a segment reached the disk before power was lost."""
    content = path.read_bytes()[:4096]
    return len(content) == 4096 and any(content[:8]) and any(content[512:1024])


def read_places(folder: Path) -> Iterator[Placed]:
    """Read every message of a queue in order, with its place."""
    facts = json.loads((folder / "metadata.json").read_bytes())
    require(facts["format_version"] == 1, folder, "it is of another version")
    queue_id, first_number = bytes.fromhex(facts["queue_id"]), facts["first_number"]
    active, published = published_end(folder, queue_id)
    listed = [(int(path.stem[9:]), path) for path in folder.glob(DAYS) if NAME.fullmatch(path.name)]
    paths = [path for _, path in sorted(listed)]
    while paths and not was_begun(paths[-1]):
        paths.pop()
    segments = [Segment(path, queue_id) for path in paths]
    for segment in segments[:1]:
        require(segment.previous[0] < first_number, segment.path, "an older segment is missing")
    for segment, after in itertools.zip_longest(segments, segments[1:]):
        end = published if segment.number == active else None
        if after:
            number, end, _, _ = after.previous
            require(number == segment.number, after.path, "the segment before is missing")
        yield from walk(segment, end, after)


def read_queue(folder: Path) -> list[Message]:
    """Read every message of a queue in order."""
    return [placed.message for placed in read_places(folder)]
