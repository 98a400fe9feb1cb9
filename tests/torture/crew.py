"""The processes of a round: started, killed, stopped and let go on, and watched for hanging."""

from __future__ import annotations

import enum
import os
import random
import signal
import time
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import NamedTuple

from tests.torture.follower import Following, follow_on
from tests.torture.producer import Part, append_on, open_and_close
from tests.torture.survey import Surveying, survey

# Whoever makes no progress for so long, while nobody is stopped, never will.
HANG_SECONDS = 20.0
THREADS_MAX = 2
# How long an appender waits for a stopped process; sometimes shorter than one stands still.
STALLS_MS = (10_000, 10_000, 10_000, 150)
_LOOK_SECONDS = 0.25

# Each process is forked by one that has only imported what is needed, so that a start is cheap.
context = get_context("forkserver")
context.set_forkserver_preload(["tests.torture.survey", "tests.torture.follower"])


class Kind(enum.Enum):
    """What a process does until its death."""

    APPENDER = "appender"
    OPENER = "opener"
    FOLLOWER = "follower"


class Member(NamedTuple):
    """One process of a round that lives."""

    kind: Kind
    process: ForkServerProcess
    part: Part

    @property
    def pid(self) -> int:
        """Which process it is."""
        assert self.process.pid is not None
        return self.process.pid


class Crew:
    """The living, and what is to be known of the dead."""

    def __init__(self, path: Path, folder: Path, seed: int, boot_id: bytes) -> None:
        self.members: list[Member] = []
        self.parts: list[Part] = []
        self.stops: list[tuple[int, int]] = []
        """When somebody stood still, in nanoseconds."""
        self.faults: list[str] = []
        self.boot_id = boot_id
        self._path = path
        self._folder = folder
        self._seed = seed
        self._rng = random.Random(seed + 1)
        self._next_producer = 1
        self._stopped: dict[int, tuple[int, float]] = {}
        self._progress: dict[int, tuple[int, float]] = {}
        self._look_at = 0.0

    def start(self, kind: Kind) -> None:
        """Start one more process."""
        threads = self._rng.randint(1, THREADS_MAX) if kind == Kind.APPENDER else 1
        numbers = range(self._next_producer, self._next_producer + threads)
        self._next_producer += threads
        name = f"{kind.value}-{numbers.start}"
        part = Part(
            self._path,
            self._folder,
            self._seed,
            numbers,
            self.boot_id,
            stall_ms=self._rng.choice(STALLS_MS),
            name=name,
        )
        if kind == Kind.FOLLOWER:
            part = Following(**vars(part), read_only=self._rng.random() < 0.5)
            process = context.Process(target=follow_on, args=(part,))
        else:
            work = append_on if kind == Kind.APPENDER else open_and_close
            process = context.Process(target=work, args=(part,))
        process.start()
        self.parts.append(part)
        self.members.append(Member(kind, process, part))

    def kill(self, member: Member) -> None:
        """End a process as nothing can be survived."""
        self.members.remove(member)
        member.process.kill()
        member.process.join(HANG_SECONDS)
        self._noted_as_going(member.pid)

    def stop(self, member: Member, seconds: float) -> None:
        """Let a process stand still for a while."""
        if member.pid not in self._stopped:
            os.kill(member.pid, signal.SIGSTOP)
            self._stopped[member.pid] = (time.monotonic_ns(), time.monotonic() + seconds)

    def rest(self, seconds: float) -> None:
        """Let time pass, in which stopped processes go on when it is theirs."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            due = min([when for _, when in self._stopped.values()], default=until)
            time.sleep(max(0.0, min(left, due - time.monotonic(), _LOOK_SECONDS)))
            self._let_go_on(time.monotonic())
            if time.monotonic() > self._look_at:
                self._look_at = time.monotonic() + _LOOK_SECONDS
                self._look_for_hanging()
        self._look_for_ended()

    def _let_go_on(self, now: float) -> None:
        for pid in [pid for pid, (_, due) in self._stopped.items() if due <= now]:
            os.kill(pid, signal.SIGCONT)
            self._noted_as_going(pid)

    def _noted_as_going(self, pid: int) -> None:
        began, _ = self._stopped.pop(pid, (0, 0.0))
        if began:
            self.stops.append((began, time.monotonic_ns()))

    def _look_for_ended(self) -> None:
        """A process that nobody killed must not end."""
        for member in [each for each in self.members if each.process.exitcode is not None]:
            self.members.remove(member)
            self._noted_as_going(member.pid)
            self._blame(member, f"ended by itself, {member.process.exitcode}")

    def _look_for_hanging(self) -> None:
        now = time.monotonic()
        for member in [each for each in self.members if each.kind != Kind.FOLLOWER]:
            paths = [member.part.report_path(number) for number in member.part.numbers]
            size = sum(path.stat().st_size for path in paths if path.exists())
            known, since = self._progress.get(member.pid, (-1, now))
            if size != known or self._stopped:
                self._progress[member.pid] = (size, now)
            elif now - since > HANG_SECONDS:
                os.kill(member.pid, signal.SIGUSR1)
                time.sleep(_LOOK_SECONDS)
                self._blame(member, f"hangs for {HANG_SECONDS} s")
                self.kill(member)

    def _blame(self, member: Member, what: str) -> None:
        errors = member.part.log_path().read_text(errors="replace")
        self.faults.append(f"{member.part.name} (pid {member.pid}) {what}:\n{errors[-3000:]}")

    def end_in_order(self) -> None:
        """Ask every process to end, and wait until it has."""
        self._let_go_on(float("inf"))
        for member in self.members:
            os.kill(member.pid, signal.SIGTERM)
        deadline = time.monotonic() + HANG_SECONDS
        for member in self.members:
            member.process.join(max(0.0, deadline - time.monotonic()))
            if member.process.exitcode is None:
                os.kill(member.pid, signal.SIGUSR1)
                time.sleep(_LOOK_SECONDS)
                self._blame(member, "does not end")
            elif member.process.exitcode != 0:
                self._blame(member, f"ended with {member.process.exitcode}")
        self.kill_all()

    def kill_all(self) -> None:
        """Leave nobody alive."""
        for member in list(self.members):
            self.kill(member)

    def survey(self) -> Surveying:
        """Have a process read all there is, now that nobody else is left."""
        numbers = range(self._next_producer, self._next_producer)
        part = Surveying(
            self._path, self._folder, self._seed, numbers, self.boot_id, name="survey"
        )
        process = context.Process(target=survey, args=(part,))
        process.start()
        process.join(HANG_SECONDS * 3)
        self.members.append(Member(Kind.FOLLOWER, process, part))
        if process.exitcode != 0:
            self._blame(self.members[-1], f"ended with {process.exitcode}")
        self.kill_all()
        return part
