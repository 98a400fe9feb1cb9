"""What Penstock has set itself, as rows that are judged from the figures: no I/O here."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from peers import PYTHON_PEERS
from plan import CHRONICLE, MACHINE, PENSTOCK, Key

# To speak of durations in one unit.
NANOSECONDS = {"us": 1e3, "ms": 1e6}
BEST_PEER = "best peer"


class Spread(NamedTuple):
    """The middle of all rounds, and how far they lie apart."""

    median: float
    least: float
    most: float


class Figures:
    """All that was measured, by key: one mapping of figures for each round."""

    def __init__(self, rounds: Mapping[Key, list[dict[str, float]]]) -> None:
        self._rounds = rounds

    def spread(self, key: Key, figure: str) -> Spread | None:
        """A figure over all rounds, durations in nanoseconds."""
        factor = NANOSECONDS.get(figure, 1.0)
        values = [one[figure] * factor for one in self._rounds.get(key, ()) if figure in one]
        if not values:
            return None
        return Spread(statistics.median(values), min(values), max(values))

    def tried(self, row: Row) -> bool:
        """Tell whether anybody's figures of this row were asked for."""
        return any(key[:2] == (row.workload, row.size) for key in self._rounds)

    def best_peer(self, row: Row) -> tuple[str, Spread] | None:
        """The peer in Python that comes first in this row."""
        found = [
            (peer, spread)
            for peer in PYTHON_PEERS
            if (spread := self.spread(Key(row.workload, row.size, peer), row.figure)) is not None
        ]
        if not found:
            return None
        return (max if row.higher else min)(found, key=lambda pair: pair[1].median)


class Claim(NamedTuple):
    """One thing a row promises: in words, and how to judge it."""

    text: str
    judge: Callable[[Figures, Row], tuple[str, bool | None]]


@dataclass(frozen=True)
class Row:
    """One line of the report: one figure of one workload at one size."""

    title: str
    workload: str
    size: str
    figure: str
    claims: tuple[Claim, ...] = ()

    @property
    def higher(self) -> bool:
        """Tell whether more is better: a rate, not a duration."""
        return self.figure == "rate"

    def key(self, participant: str = PENSTOCK) -> Key:
        return Key(self.workload, self.size, participant)

    def ours(self, figures: Figures) -> Spread | None:
        return figures.spread(self.key(), self.figure)

    def advantage(self, figures: Figures, other: Spread | None) -> float | None:
        """How many times better Penstock is."""
        ours = self.ours(figures)
        if ours is None or other is None:
            return None
        if self.higher:
            return ours.median / other.median
        return other.median / ours.median


def at_most(limit: float, text: str) -> Claim:
    """Hold the figure below a limit."""

    def judge(figures: Figures, row: Row) -> tuple[str, bool | None]:
        ours = row.ours(figures)
        return ("", None) if ours is None else ("", ours.median <= limit)

    return Claim(f"≤ {text}", judge)


def at_least(limit: float, text: str) -> Claim:
    """Hold the figure above a limit."""

    def judge(figures: Figures, row: Row) -> tuple[str, bool | None]:
        ours = row.ours(figures)
        return ("", None) if ours is None else ("", ours.median >= limit)

    return Claim(f"≥ {text}", judge)


def times(factor: float, participant: str, text: str) -> Claim:
    """Hold Penstock this many times better than another, or than the best of the peers."""

    def judge(figures: Figures, row: Row) -> tuple[str, bool | None]:
        if participant == BEST_PEER:
            best = figures.best_peer(row)
            other = None if best is None else best[1]
        else:
            other = figures.spread(row.key(participant), row.figure)
        return _judged(row.advantage(figures, other), factor)

    return Claim(text, judge)


def compared(factor: float, workload: str, size: str, text: str) -> Claim:
    """Hold Penstock's figure against its own in another row."""

    def judge(figures: Figures, row: Row) -> tuple[str, bool | None]:
        other = figures.spread(Key(workload, size, PENSTOCK), row.figure)
        return _judged(row.advantage(figures, other), factor)

    return Claim(text, judge)


def _judged(advantage: float | None, factor: float) -> tuple[str, bool | None]:
    if advantage is None:
        return "", None
    return f"{advantage:.2f} x" if advantage < 10 else f"{advantage:.0f} x", advantage >= factor


AHEAD = times(1, CHRONICLE, "ahead of Chronicle")
_ONE_MS = 1e6

ROWS = (
    Row(
        "append, one thread, ≥ 2 GiB",
        "append",
        "100 B",
        "rate",
        (AHEAD, times(8, BEST_PEER, "≥ 8 x the best Python peer")),
    ),
    Row("append, one thread, ≥ 2 GiB", "append", "1 KiB", "rate", (AHEAD,)),
    Row(
        "append_many of 100",
        "append_many",
        "100 B",
        "rate",
        (at_least(25e6, "25 M/s"), times(10, "lmdb", "≥ 10 x lmdb")),
    ),
    Row("append_many of 100", "append_many", "1 KiB", "rate"),
    *(
        Row(title, workload, size, "rate", (compared(0.7, "append", size, "≥ 0.7 of one thread"),))
        for workload, title in (
            ("append_threads", "append, 8 threads"),
            ("append_processes", "append, 2 processes"),
        )
        for size in ("100 B", "1 KiB")
    ),
    Row(
        "SYNC, one thread",
        "sync_one",
        "100 B",
        "rate",
        # The rate of a disk is never twice the same: within a tenth of it is as good as it.
        (times(0.9, MACHINE, "the disk's own fdatasync rate (≥ 0.9)"),),
    ),
    Row(
        "SYNC, 8 threads",
        "sync_threads",
        "100 B",
        "rate",
        (compared(4, "sync_one", "100 B", "≥ 4 x one thread"),),
    ),
    Row("iterate, Messages", "iterate", "100 B", "ns", (at_most(80, "80 ns"),)),
    Row("iterate, Messages", "iterate", "1 KiB", "ns"),
    Row("iterate, each payload taken", "iterate", "100 B", "payload_ns"),
    Row("iterate, each payload taken", "iterate", "1 KiB", "payload_ns"),
    Row("read_many of 1000", "read_many", "100 B", "ns"),
    Row("read_many of 1000", "read_many", "1 KiB", "ns"),
    Row(
        "read_arrow, batches of 1 MiB",
        "read_arrow",
        "100 B",
        "ns",
        (at_most(25, "25 ns"), times(0.4, MACHINE, "≥ 0.4 of memcpy")),
    ),
    Row(
        "read_arrow, batches of 1 MiB",
        "read_arrow",
        "1 KiB",
        "ns",
        (times(0.6, MACHINE, "≥ 0.6 of memcpy"),),
    ),
    Row("append, p50", "append_latency", "100 B", "p50"),
    Row("append, p99.9", "append_latency", "100 B", "p999", (at_most(2e3, "2 us"),)),
    Row("append, p99.99", "append_latency", "100 B", "p9999", (at_most(50e3, "50 us"),)),
    Row(
        "append, the worst at a roll",
        "append_latency",
        "100 B",
        "roll_max",
        (at_most(_ONE_MS, "1 ms"),),
    ),
    Row("append, p99.9", "append_latency", "1 KiB", "p999"),
    Row("append, p99.99", "append_latency", "1 KiB", "p9999"),
    Row("append, the worst at a roll", "append_latency", "1 KiB", "roll_max"),
    Row("to a reader that spins, p50", "spinning", "100 B", "p50", (at_most(2e3, "2 us"),)),
    Row("to a reader asleep, p50", "asleep", "100 B", "p50", (at_most(30e3, "30 us"),)),
    Row("open after kill -9", "open_after_kill", "64 MiB", "ms", (at_most(10e6, "10 ms"),)),
    Row(
        "open after kill -9",
        "open_after_kill",
        "1 GiB",
        "ms",
        # A few milliseconds vary; what grew with the log would be sixteen times as long.
        (at_most(10e6, "10 ms"), compared(0.5, "open_after_kill", "64 MiB", "as 64 MiB (≤ 2 x)")),
    ),
    Row("random seek and read", "seek_read", "100 B", "us", (at_most(4e3, "4 us"),)),
    Row("random seek and read", "seek_read", "1 KiB", "us"),
    Row("the same, segments of 64 MiB", "seek_rolled", "100 B", "us", (at_most(4e3, "4 us"),)),
    Row("the same, segments of 64 MiB", "seek_rolled", "1 KiB", "us"),
)
