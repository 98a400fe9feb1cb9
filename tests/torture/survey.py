"""The process that opens a log when all others are gone, and tells everything there is in it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock import Queue
from penstock.errors import QueueNotFoundError
from penstock.kernel import LAYOUT
from tests.torture.history import Found
from tests.torture.payloads import identity_of
from tests.torture.producer import Part, settle
from tests.torture.reports import pack_found

READERS = ("as left", "one by one", "several")
_AFTER = 2


@dataclass(frozen=True)
class Surveying(Part):
    """Where the survey of a round goes."""

    def found_path(self, reader: str) -> Path:
        """Where one of its readers says what it found."""
        return self.folder / f"found {reader}"

    def facts_path(self) -> Path:
        """Where the facts beyond the messages stand."""
        return self.folder / "facts"


def survey(part: Surveying) -> None:
    """Read the log as it was left, open it, append to it and read it twice more."""
    settle(part)
    # Nobody may have lived long enough to make the queue.
    with contextlib.suppress(QueueNotFoundError), part.open(read_only=True) as queue:
        read(queue, part, "as left")
    with part.open() as queue:
        faults = [str(fault) for fault in queue.verify().faults]
        read(queue, part, "one by one")
        read(queue, part, "several")
        facts = {
            "faults": faults,
            "gaps": gaps_of(queue),
            "takeovers": queue.stats().takeovers,
            "segments": queue.stats().segments,
            "next": queue.next_sequence,
            "appended": [queue.append(b"after") for _ in range(_AFTER)],
            "read": [
                m.payload == b"after"
                for m in queue.read_from(queue.next_sequence - _AFTER).messages
            ],
        }
    with part.open(verify=True, exclusive=True) as queue:
        facts["reopened"] = queue.next_sequence
    part.facts_path().write_text(json.dumps(facts), encoding="ascii")


def read(queue: Queue, part: Surveying, reader: str) -> None:
    """Tell every message, read in one way or another."""
    tailer = queue.tailer()
    with part.found_path(reader).open("wb") as file:
        while True:
            batch = tailer.read_many(1 if reader == "one by one" else 97)
            if not batch:
                return
            found = [
                Found(m.sequence, *identity_of(part.seed, m.payload), m.timestamp_ns) for m in batch
            ]
            file.write(pack_found(found))


def gaps_of(queue: Queue) -> list[list[int]]:
    """The sequences that headers declare as never used, and the reason each one gives."""
    gaps: list[list[int]] = []
    segments: Any = queue._log.segments
    for number in segments.numbers():
        segment = segments.open(number)
        ended = segment.header_word(LAYOUT["SEGMENT_PREVIOUS_END_SEQUENCE_AT"])
        reason = segment.header_word(LAYOUT["SEGMENT_REASON_AT"])
        if ended != segment.base_sequence and reason != LAYOUT["REASON_FIRST"]:
            gaps.append([ended, segment.base_sequence, reason])
    return gaps
