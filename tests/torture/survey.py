"""The process that opens a log when all others are gone, and tells everything there is in it."""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import Queue, Tailer
from penstock.errors import QueueNotFoundError
from penstock.kernel import LAYOUT
from tests.torture.history import Found
from tests.torture.payloads import identity_of
from tests.torture.producer import Part, settle
from tests.torture.reports import pack_found

READERS = ("as left", "one by one", "several")
AFTER = b"after"


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
    """Read the log as it was left, open it, read it twice more and append to it."""
    settle(part)
    with contextlib.ExitStack() as stack:
        early: Tailer | None = None
        # Nobody may have lived long enough to make the queue.
        with contextlib.suppress(QueueNotFoundError):
            early = stack.enter_context(part.open(read_only=True)).tailer()
            as_left = read(early, part, "as left")
        all_kept = replace(part, keep=None)
        queue, other = (stack.enter_context(all_kept.open()) for _ in range(2))
        faults = [str(fault) for fault in queue.verify().faults]
        found = read(queue.tailer(), part, "one by one")
        read(queue.tailer(), part, "several")
        facts: dict[str, Any] = {
            "faults": faults,
            "gaps": gaps_of(queue),
            "takeovers": queue.stats().takeovers,
            "segments": queue.stats().segments,
            "next": queue.next_sequence,
            "first": queue.first_sequence,
        }
        facts["appended"] = [each.append(AFTER) for each in (other, queue, queue, other)]
        facts["read"] = [m.payload == AFTER for m in queue.read_from(facts["next"]).messages]
        if early is not None:
            # Who read before the log was opened reads on as if nothing had happened.
            heard = as_left + read(early, part, "after")
            facts["missed"] = found + len(facts["appended"]) - heard
    with all_kept.open(verify=True, exclusive=True) as queue:
        facts["reopened"] = queue.next_sequence
    part.facts_path().write_text(json.dumps(facts), encoding="ascii")


def read(tailer: Tailer, part: Surveying, reader: str) -> int:
    """Tell every message, read in one way or another, and how many there are."""
    count = 0
    with part.found_path(reader).open("wb") as file:
        while batch := tailer.read_many(1 if reader == "one by one" else 97):
            found = [
                Found(m.sequence, *identity_of(part.seed, m.payload), m.timestamp_ns) for m in batch
            ]
            file.write(pack_found(found))
            count += len(batch)
    return count


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
