"""Deaths and interrupts at each line of Python in an open, an append, a roll, a flush, a close.

The others who have the queue open, or who opens it next, must make good what was left half done.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import penstock
from penstock import FlushMode, clock
from tests.torture.crew import Crew, context, folder_in_memory
from tests.torture.outcome import Figures, judge
from tests.torture.producer import Part, Producer, settle

# Where the lines are at which something happens.
WATCHED = str(Path(penstock.__file__).parent) + os.sep
# The log is small and rolls at nearly every append.
SIZES = (8_192, 2, None)
# What is there when the next one comes: somebody who had it open all the time and appends, or just
# closes it; all as it was left; another boot's memory; or no control page.
AFTERWARDS = ("survivor", "closed", "reopened", "other boot", "page lost")
RECOVERED = ("other boot", "page lost")
_MOMENTS = "moments"
# After so many it is clear that something is wrong.
FAULTS_MAX = 20


class InterruptError(BaseException):
    """What a signal handler raised, as KeyboardInterrupt is."""


def is_watched(frame: FrameType) -> bool:
    """Tell whether something is run in the library."""
    return frame.f_code.co_filename.startswith(WATCHED)


class Countdown:
    """Counts the moments of a kind in the library, and acts at one of them."""

    def __init__(self, at: int, act: Callable[[], None]) -> None:
        self.moments = 0
        self._at = at
        self._act = act

    def pass_by(self, frame: FrameType) -> None:
        """Count a moment, if it is one of the library."""
        if is_watched(frame):
            self.moments += 1
            if self.moments == self._at:
                self._act()


@contextlib.contextmanager
def at_line(at: int, act: Callable[[], None]) -> Iterator[Countdown]:
    """Act at a line that is run: a process may die before any of them."""
    countdown = Countdown(at, act)

    def traced(frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            countdown.pass_by(frame)
        return traced if is_watched(frame) else None

    sys.settrace(traced)
    try:
        yield countdown
    finally:
        sys.settrace(None)


@contextlib.contextmanager
def at_call(at: int, act: Callable[[], None]) -> Iterator[Countdown]:
    """Act at the begin of a function or the end of a call into C: there Python runs handlers."""
    countdown = Countdown(at, act)

    def profiled(frame: FrameType, event: str, _argument: Any) -> None:
        if event in ("call", "c_return"):
            countdown.pass_by(frame)

    sys.setprofile(profiled)
    try:
        yield countdown
    finally:
        sys.setprofile(None)


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
    with at_line(at, lambda: os.kill(os.getpid(), signal.SIGKILL)) as countdown:
        for number in part.numbers:
            with part.open(flush=mode) as queue:
                producer = Producer(queue, part, number)
                do_some(producer)
                producer.flush()
    (part.folder / _MOMENTS).write_text(str(countdown.moments))


def survive(part: Part, is_open: Any, is_over: Any, appends: bool) -> None:
    """Have the queue open meanwhile; append when the other is dead, or just close."""
    settle(part)
    with part.open() as queue:
        producers = [Producer(queue, part, number) for number in part.numbers]
        do_some(producers[0])
        is_open.set()
        is_over.wait()
        if appends:
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
    with at_call(at, interrupt) as countdown:
        try:
            do_some(producers[0])
            producers[0].flush()
            opened.append(part.open())
            do_some(Producer(opened[0], part, last))
            opened[0].close()
        except InterruptError:
            sys.setprofile(None)
            traceback.print_exc()
    (part.folder / _MOMENTS).write_text(str(countdown.moments))
    for producer in (producers[1], producers[0], producers[1]):
        do_some(producer)
    for queue in (*opened, *queues):
        queue.close()
    del producers, queues, opened, queue, producer
    gc.collect()
    part.open(exclusive=True).close()


def read_on_after_interrupt(part: Part, at: int) -> None:
    """Have a tailer interrupted at this moment; it reads on, and hears each message once."""
    settle(part)
    with part.open() as queue:
        for number in part.numbers:
            do_some(Producer(queue, part, number))
        expected = [message.sequence for message in queue.tailer()]
        heard, tailer = list[int](), queue.tailer()
        with at_call(at, interrupt) as countdown:
            for count in (*[1] * (len(expected) // 2), 4, 4, 100, 100):
                with contextlib.suppress(InterruptError):
                    heard += [message.sequence for message in tailer.read_many(count)]
    (part.folder / _MOMENTS).write_text(str(countdown.moments))
    assert expected == heard, f"there is {expected}, and the reader heard {heard}"


class Trial:
    """One queue in which something happens at one moment."""

    def __init__(self, seed: int, what: str, *, recovered: bool) -> None:
        self._folder = folder_in_memory(f"penstock-moment-{seed}-")
        self._path = self._folder / "queue"
        self._crew = Crew(self._path, self._folder, seed, clock.boot_id())
        self._crew.sizes = SIZES
        self._what = f"seed {seed}, {what}, left in {self._folder}"
        self._recovered = recovered

    def die(self, at: int, afterwards: str) -> None:
        """Kill a process at this line."""
        is_open, is_over = context.Event(), context.Event()
        survivor = None
        if afterwards in ("survivor", "closed"):
            other = self._crew.part("other", 2)
            appends = afterwards == "survivor"
            survivor = self._crew.begin(survive, other, is_open, is_over, appends)
            is_open.wait(20)
        self._crew.play(die_at_line, self._crew.part("victim", 2), at)
        if survivor is not None:
            is_over.set()
            self._crew.finish(survivor)
        if afterwards == "other boot":
            self._crew.boot_id = bytes(range(16))
        elif afterwards == "page lost":
            (self._path / ".control").unlink(missing_ok=True)

    def interrupt(self, work: Callable[[Part, int], None], at: int) -> None:
        """Raise an exception at this moment of some work."""
        self._crew.play(work, self._crew.part("interrupted", 3), at)

    def moments(self) -> int:
        """Tell how many moments the whole work has, if it came to its end."""
        path = self._folder / _MOMENTS
        return int(path.read_text()) if path.exists() else 0

    def judged(self) -> Figures:
        """Hold what is there against what was told; what is wrong is left for a look."""
        figures = judge(self._crew, self._crew.survey(), recovered=self._recovered)
        if figures.faults:
            figures.faults.insert(0, self._what)
        else:
            shutil.rmtree(self._folder)
        return figures


def deaths(seed: int, trials: int, at: int | None = None) -> Figures:
    """Kill at so many lines, or at each one if there are no more."""
    total = Figures()
    for afterwards in AFTERWARDS:
        recovered = afterwards in RECOVERED

        def trial(line: int, afterwards: str = afterwards, recovered: bool = recovered) -> Trial:
            trial = Trial(seed, f"death at line {line}, {afterwards}", recovered=recovered)
            trial.die(line, afterwards)
            return trial

        total.add(sweep(trial, seed, trials // len(AFTERWARDS), at))
    return total


def interrupts(seed: int, trials: int, at: int | None = None) -> Figures:
    """Raise an exception at so many moments, or at each one if there are no more."""
    total = Figures()
    for work, share in ((go_on_after_interrupt, 0.75), (read_on_after_interrupt, 0.25)):

        def trial(moment: int, work: Callable[[Part, int], None] = work) -> Trial:
            what = f"{work.__name__}, interrupt at moment {moment}"
            trial = Trial(seed, what, recovered=False)
            trial.interrupt(work, moment)
            return trial

        total.add(sweep(trial, seed, int(trials * share), at))
    return total


def sweep(run: Callable[[int], Trial], seed: int, trials: int, at: int | None) -> Figures:
    """Let the work be done as a whole, to count its moments, and then have it cut short at some."""
    whole = run(0)
    moments = whole.moments()
    total = whole.judged()
    some = random.Random(seed).sample(range(1, moments + 1), min(moments, trials))
    for moment in sorted(some) if at is None else [at]:
        total.add(run(moment).judged())
        total.counts["trials"] += 1
        if len(total.faults) > FAULTS_MAX:
            break
    total.counts["moments"] += moments
    return total
