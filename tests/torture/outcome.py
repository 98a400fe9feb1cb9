"""What came of a round: its files are read, and held against every promise."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.kernel import LAYOUT
from tests.torture.crew import Crew
from tests.torture.follower import Following
from tests.torture.history import (
    Call,
    Found,
    History,
    longest_ms,
    told_by_readers,
    violations,
)
from tests.torture.reports import read_found, read_report
from tests.torture.survey import READERS, Surveying

_KEEPER = "penstock.keeper: "
# What a keeper may meet while a process is stopped.
_EXPECTED_OF_KEEPERS = ("WriterStalledError", "QueueClosedError")
_DECLARE_GAPS = (LAYOUT["REASON_RECOVERY"],)


@dataclass
class Figures:
    """The numbers of one or several rounds, and what broke a promise."""

    counts: Counter[str] = field(default_factory=Counter)
    stall_ms: float = 0.0
    faults: list[str] = field(default_factory=list)

    def add(self, other: Figures) -> None:
        """Take in the figures of another round."""
        self.counts += other.counts
        self.stall_ms = max(self.stall_ms, other.stall_ms)
        self.faults += other.faults

    def __str__(self) -> str:
        counts = " ".join(f"{name}={count}" for name, count in self.counts.items())
        stall = f" max_stall_ms={self.stall_ms:.0f}" if self.stall_ms else ""
        return f"{counts}{stall} violations={len(self.faults)}"


def judge(crew: Crew, part: Surveying, *, recovered: bool) -> Figures:
    """Read what all processes said, and say what is wrong."""
    figures = Figures(faults=list(crew.faults))
    calls = list[Call]()
    for each in crew.parts:
        for producer in each.numbers if not isinstance(each, Following) else ():
            told = read_report(producer, each.report_path(producer))
            calls += told.calls
            figures.counts.update(told.errors)
        figures.faults += faults_of_keeper(each.errors())
    readings = {reader: read_found(part.found_path(reader)) for reader in READERS}
    found = readings["one by one"]
    facts = facts_of(part)
    gaps = [range(start, stop) for start, stop, reason in facts["gaps"] if reason in _DECLARE_GAPS]
    history = History(calls, found, gaps, facts["first"])
    figures.faults += violations(history)
    figures.faults += faults_of_readings(readings)
    figures.faults += told_by_readers(history, heard_by(crew))
    figures.faults += faults_of_facts(facts, found, recovered=recovered)
    figures.stall_ms = longest_ms(calls, crew.stops)
    figures.counts.update(
        calls=len(calls),
        messages=len(found),
        unknown=sum(call.outcome == "unknown" for call in calls),
        takeovers=facts["takeovers"],
        segments=facts["segments"],
        stops=len(crew.stops),
    )
    return figures


def facts_of(part: Surveying) -> dict[str, Any]:
    """What the survey says beyond the messages; nothing when it failed."""
    if not part.facts_path().exists():
        return {"gaps": [], "takeovers": 0, "segments": 0, "first": 0}
    facts: dict[str, Any] = json.loads(part.facts_path().read_text(encoding="ascii"))
    return facts


def faults_of_keeper(errors: str) -> list[str]:
    """What a background thread logged that it should not have met."""
    return [
        line
        for line in errors.splitlines()
        if line.startswith(_KEEPER) and not any(each in line for each in _EXPECTED_OF_KEEPERS)
    ]


def heard_by(crew: Crew) -> dict[str, list[Found]]:
    """What each reader heard while others appended."""
    return {
        part.name: read_found(part.heard_path())
        for part in crew.parts
        if isinstance(part, Following)
    }


def faults_of_readings(readings: dict[str, list[Found]]) -> list[str]:
    """All readers read the same at the end, before the log was opened and after."""
    found, left = readings["one by one"], readings["as left"]
    faults = list[str]()
    if readings["several"] != found:
        faults.append("two tailers read different messages")
    if left != found[: len(left)]:
        faults.append("what was read before the log was opened is not there after")
    return faults


def faults_of_facts(facts: dict[str, Any], found: Sequence[Found], *, recovered: bool) -> list[str]:
    """The log is whole, goes on behind its last message, and opens again."""
    if "next" not in facts:
        return ["the log could not be surveyed"]
    faults = [f"verify: {fault}" for fault in facts["faults"]]
    following = facts["next"]
    if facts["gaps"] and not recovered:
        faults.append(f"gaps without a recovery: {facts['gaps']}")
    if found and following < found[-1].sequence + 1:
        faults.append(f"next_sequence is {following}, and there is {found[-1].sequence}")
    if facts["appended"] != list(range(following, following + len(facts["appended"]))):
        faults.append(f"appended as {facts['appended']} where {following} was to follow")
    if not all(facts["read"]) or len(facts["read"]) != len(facts["appended"]):
        faults.append("what was appended after the end was not read")
    if facts.get("missed"):
        faults.append(f"who had opened the log before missed {facts['missed']} messages")
    if facts["reopened"] != following + len(facts["appended"]):
        faults.append(f"opened again, it goes on at {facts['reopened']}")
    return faults
