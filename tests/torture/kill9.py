"""Processes that append, read, open and close are killed and stopped at random, again and again.

A round has one queue that is in use all the time: who dies is replaced, and the others do not open
anew. In the end the log is read and held against what each producer had been told.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path

from penstock import clock
from tests.torture.crew import Crew, Kind, Member
from tests.torture.outcome import Figures, judge

KILLS_A_ROUND = 50
# Mean time between two deaths in a round, and how long a stopped process stands still.
BETWEEN_SECONDS = (0.01, 0.04, 0.12)
STOPPED_SECONDS = (0.001, 0.01, 0.1, 0.4)
STOPPED_SHARE = 0.25
# How often all of them close the queue before it is dark, and what is there after that.
ORDERLY_SHARE = 0.4


class Round:
    """One queue and the processes around it."""

    def __init__(self, folder: Path, seed: int, processes: int) -> None:
        self._path = folder / "queue"
        self._rng = random.Random(seed)
        self._processes = processes
        self._recovered = False
        self._crew = Crew(self._path, folder, seed, clock.boot_id())

    def run(self, kills: int) -> Figures:
        """Kill so many processes; tell what came of it."""
        between = self._rng.choice(BETWEEN_SECONDS)
        blackouts = sorted(self._rng.choices(range(kills), k=1 + kills // KILLS_A_ROUND))
        killed = 0
        try:
            self._fill()
            while killed < kills and not self._crew.faults:
                self._crew.rest(self._rng.expovariate(1 / between))
                if blackouts and killed >= blackouts[0]:
                    blackouts.pop(0)
                    killed += self._black_out()
                else:
                    killed += self._strike()
                self._fill()
            self._crew.rest(0.1)
            if self._rng.random() < 0.5:
                self._crew.end_in_order()
        finally:
            self._crew.kill_all()
        figures = judge(self._crew, self._crew.survey(), recovered=self._recovered)
        figures.counts["kills"] = killed
        return figures

    def _fill(self) -> None:
        """Have as many processes as there should be: appenders, an opener, readers."""
        wanted = [Kind.APPENDER] * (self._processes - 1) + [Kind.OPENER]
        wanted += [Kind.FOLLOWER] * max(1, self._processes // 2)
        for member in self._crew.members:
            wanted.remove(member.kind)
        self._rng.shuffle(wanted)
        for kind in wanted:
            self._crew.start(kind)

    def _strike(self) -> int:
        """Stop or kill somebody; tell how many died."""
        member: Member = self._rng.choice(self._crew.members)
        if self._rng.random() < STOPPED_SHARE:
            self._crew.stop(member, self._rng.choice(STOPPED_SECONDS))
            return 0
        self._crew.kill(member)
        return 1

    def _black_out(self) -> int:
        """Leave nobody; sometimes the next ones believe in another boot, or find no page."""
        killed = 0
        if self._rng.random() < ORDERLY_SHARE:
            self._crew.end_in_order()
        else:
            killed = len(self._crew.members)
            self._crew.kill_all()
        dice = self._rng.random()
        if dice < 0.5:
            self._crew.boot_id = self._rng.randbytes(16)
        elif dice < 0.7:
            (self._path / ".control").unlink(missing_ok=True)
        self._recovered |= dice < 0.7
        return killed


def torture(seed: int, kills: int, processes: int) -> Figures:
    """Kill so many processes in rounds, each with a queue and a seed of its own."""
    total = Figures()
    while kills > 0 and not total.faults:
        folder = Path(tempfile.mkdtemp(prefix=f"penstock-torture-{seed}-"))
        figures = Round(folder, seed, processes).run(min(kills, KILLS_A_ROUND))
        kills -= figures.counts["kills"]
        if figures.faults:
            figures.faults.insert(0, f"seed {seed}, left in {folder}")
        else:
            shutil.rmtree(folder)
        total.add(figures)
        seed += 1
    return total
