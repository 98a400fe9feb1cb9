"""A process dies, or an exception comes out of a signal, at each line of Python in an open, a roll,
a flush or a close; the others, or who opens next, must make it good.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import penstock
from penstock import FlushMode, clock
from tests.torture.crew import Crew, context
from tests.torture.outcome import Figures, judge
from tests.torture.producer import Part, Producer, settle

# Where the lines are at which something happens.
WATCHED = str(Path(penstock.__file__).parent) + os.sep
# The log is small and rolls at nearly every append.
SIZES = (8_192, 2)
# What is there when the next one comes: somebody who had it open all the time, all as it was left,
# another boot's memory, or no control page.
AFTERWARDS = ("survivor", "reopened", "other boot", "page lost")
_LINES = "lines"
_MEMORY = Path("/dev/shm")


class InterruptError(BaseException):
    """What a signal handler raised, as KeyboardInterrupt is."""


class Countdown:
    """Counts the lines that are run in the library, and acts at one of them."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.lines = 0
        self._at = at
        self._act = act

    def __enter__(self) -> Countdown:
        sys.settrace(self._entered)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _entered(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        return self._passed if frame.f_code.co_filename.startswith(WATCHED) else None

    def _passed(self, _frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                self._act()
        return self._passed


def do_some(producer: Producer) -> None:
    """Append in each way, over several rolls."""
    producer.append()
    producer.append_many()
    producer.append()
    producer.transaction()
    producer.append()


def die_at_line(part: Part, at: int) -> None:
    """Open, append, flush and close, twice; be killed at this line."""
    settle(part)
    mode = FlushMode.SYNC if part.seed % 2 else FlushMode.ASYNC
    with Countdown(at, lambda: os.kill(os.getpid(), signal.SIGKILL)) as countdown:
        for number in part.numbers:
            with part.open(flush=mode) as queue:
                producer = Producer(queue, part, number)
                do_some(producer)
                producer.flush()
    (part.folder / _LINES).write_text(str(countdown.lines))


def survive(part: Part, is_open: Any, is_over: Any) -> None:
    """Have the queue open meanwhile; append when the other is dead."""
    settle(part)
    with part.open() as queue:
        producers = [Producer(queue, part, number) for number in part.numbers]
        do_some(producers[0])
        is_open.set()
        is_over.wait()
        do_some(producers[1])


def interrupt() -> None:
    """Do what the handler of a signal may do."""
    raise InterruptError


def go_on_after_interrupt(part: Part, at: int) -> None:
    """Have one handle interrupted at this line while two others are open; all of them go on."""
    settle(part)
    first, other, last = part.numbers
    queues = [part.open(), part.open()]
    producers = [Producer(queues[0], part, first), Producer(queues[1], part, other)]
    do_some(producers[1])
    opened = list[penstock.Queue]()
    with Countdown(at, interrupt) as countdown:
        try:
            do_some(producers[0])
            producers[0].flush()
            opened.append(part.open())
            do_some(Producer(opened[0], part, last))
            opened[0].close()
        except InterruptError:
            pass
    (part.folder / _LINES).write_text(str(countdown.lines))
    for producer in (producers[1], producers[0], producers[1]):
        do_some(producer)
    for queue in (*opened, *queues):
        queue.close()
    del producers, queues, opened, queue, producer
    gc.collect()
    part.open(exclusive=True).close()


class Trial:
    """One queue in which something happens at one line."""

    def __init__(self, seed: int) -> None:
        where = str(_MEMORY) if _MEMORY.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix=f"penstock-lines-{seed}-", dir=where))
        self.path = self.folder / "queue"
        self.crew = Crew(self.path, self.folder, seed, clock.boot_id())
        self.crew.sizes = SIZES

    def die(self, at: int, afterwards: str) -> None:
        """Kill a process at this line."""
        is_open, is_over = context.Event(), context.Event()
        survivor = None
        if afterwards == "survivor":
            survivor = self.crew.begin(survive, self.crew.part("survivor", 2), is_open, is_over)
            is_open.wait(20)
        self.crew.play(die_at_line, self.crew.part("victim", 2), at)
        if survivor is not None:
            is_over.set()
            self.crew.finish(survivor)
        if afterwards == "other boot":
            self.crew.boot_id = bytes(range(16))
        elif afterwards == "page lost":
            (self.path / ".control").unlink(missing_ok=True)

    def interrupt(self, at: int) -> None:
        """Raise an exception at this line."""
        self.crew.play(go_on_after_interrupt, self.crew.part("interrupted", 3), at)

    def lines(self) -> int:
        """Tell how many lines the whole work has, if it came to its end."""
        path = self.folder / _LINES
        return int(path.read_text()) if path.exists() else 0

    def judged(self, *, recovered: bool, what: str) -> Figures:
        """Hold what is there against what was told; what is wrong is left for a look."""
        figures = judge(self.crew, self.crew.survey(), recovered=recovered)
        if figures.faults:
            figures.faults.insert(0, f"{what}, left in {self.folder}")
        else:
            shutil.rmtree(self.folder)
        return figures


def deaths(seed: int, trials: int) -> Figures:
    """Kill at so many lines, or at each one if there are no more."""
    total = Figures()
    rng = random.Random(seed)
    for afterwards in AFTERWARDS:
        whole = Trial(seed)
        whole.die(0, afterwards)
        lines = whole.lines()
        total.add(whole.judged(recovered=True, what="no death at all"))
        for at in some_of(lines, trials // len(AFTERWARDS), rng):
            trial = Trial(seed)
            trial.die(at, afterwards)
            what = f"seed {seed}, death at line {at} of {lines}, {afterwards}"
            figures = trial.judged(recovered=afterwards in AFTERWARDS[2:], what=what)
            figures.counts["deaths"] = 1
            total.add(figures)
        total.counts["lines"] += lines
    return total


def interrupts(seed: int, trials: int) -> Figures:
    """Raise an exception at so many lines, or at each one if there are no more."""
    total = Figures()
    rng = random.Random(seed)
    whole = Trial(seed)
    whole.interrupt(0)
    lines = whole.lines()
    total.add(whole.judged(recovered=False, what="no interrupt at all"))
    for at in some_of(lines, trials, rng):
        trial = Trial(seed)
        trial.interrupt(at)
        what = f"seed {seed}, interrupt at line {at} of {lines}"
        figures = trial.judged(recovered=False, what=what)
        figures.counts["interrupts"] = 1
        total.add(figures)
    total.counts["lines"] = lines
    return total


def some_of(lines: int, trials: int, rng: random.Random) -> list[int]:
    """Choose lines; all of them in their order, if that many are wanted."""
    return sorted(rng.sample(range(1, lines + 1), min(lines, trials)))
