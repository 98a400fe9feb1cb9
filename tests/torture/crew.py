"""The processes of a round: started, killed, stopped and let go on, and watched for hanging."""

from __future__ import annotations

import contextlib
import enum
import os
import random
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

from tests.torture.follower import Following, follow_on
from tests.torture.producer import Part, append_on, open_and_close
from tests.torture.survey import Surveying, survey

# Whoever makes no progress for so long, while nobody is stopped, never will.
HANG_SECONDS = 20.0
# A work that has an end of its own takes longer than this only if it hangs.
WORK_SECONDS = 60.0
THREADS_MAX = 2
# Small, so that the log rolls all the time, by count and by size.
SEGMENT_BYTES = (8_192, 32_768, 65_536)
COUNTS = (3, 20, 150)
# How many segments retention leaves.
KEEPS = (None, None, None, None, 5)
# How long an appender waits for a stopped process; sometimes shorter than one stands still.
STALLS_MS = (10_000, 10_000, 10_000, 150)
_LOOK_SECONDS = 0.25
# Killed, or asked to end before it could say how it wants to be asked.
_ORDERLY = (0, -signal.SIGKILL, -signal.SIGTERM)

# Each process is forked by one that has only imported what is needed, so that a start is cheap.
context = get_context("forkserver")
context.set_forkserver_preload(["tests.torture.survey", "tests.torture.follower"])


def folder_in_memory(prefix: str) -> Path:
    """Make a folder, on a disk of memory if there is one: there flushing costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder in it has a name of its own
    return Path(mkdtemp(prefix=prefix, dir=memory if memory.is_dir() else None))


class Kind(enum.Enum):
    """What a process does until its death."""

    APPENDER = "appender"
    OPENER = "opener"
    FOLLOWER = "follower"
    OTHER = "other"


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
        self.sizes: tuple[int, int, int | None] = (
            self._rng.choice(SEGMENT_BYTES),
            self._rng.choice(COUNTS),
            self._rng.choice(KEEPS),
        )
        self._next_producer = 1
        self._stopped: dict[int, tuple[int, float]] = {}
        self._progress: dict[int, tuple[int, float]] = {}
        self._look_at = 0.0

    def start(self, kind: Kind) -> None:
        """Start one more process."""
        threads = self._rng.randint(1, THREADS_MAX) if kind == Kind.APPENDER else 1
        part = self.part(kind.value, threads, stall_ms=self._rng.choice(STALLS_MS))
        if kind == Kind.FOLLOWER:
            part = Following(**vars(part), read_only=self._rng.random() < 0.5)
            process = context.Process(target=follow_on, args=(part,))
        else:
            work = append_on if kind == Kind.APPENDER else open_and_close
            process = context.Process(target=work, args=(part,))
        process.start()
        self.parts[-1] = part
        self.members.append(Member(kind, process, part))

    def part(self, name: str, producers: int, **options: Any) -> Part:
        """Describe a process of this round, which has so many producers."""
        numbers = range(self._next_producer, self._next_producer + producers)
        self._next_producer += producers
        name = f"{name}-{numbers.start}"
        common = (self._path, self._folder, self._seed, numbers, self.boot_id, *self.sizes)
        self.parts.append(Part(*common, name=name, **options))
        return self.parts[-1]

    def play(self, work: Callable[..., None], part: Part, *arguments: Any) -> int:
        """Have a process do its work to the end; tell how it ended, -9 if it was killed."""
        return self.finish(self.begin(work, part, *arguments), seconds=WORK_SECONDS)

    def begin(self, work: Callable[..., None], part: Part, *arguments: Any) -> Member:
        """Have a process begin its work, which it will end by itself."""
        process = context.Process(target=work, args=(part, *arguments))
        process.start()
        self.members.append(Member(Kind.OTHER, process, part))
        return self.members[-1]

    def finish(self, member: Member, *, seconds: float = HANG_SECONDS) -> int:
        """Wait until a process has ended, and tell how."""
        member.process.join(seconds)
        ended = member.process.exitcode
        if ended is None:
            self._dump(member)
            self._blame(member, "does not end")
        elif ended not in _ORDERLY:
            self._blame(member, f"ended with {ended}")
        self.kill(member)
        return 1 if ended is None else ended

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
                self._dump(member)
                self._blame(member, f"hangs for {HANG_SECONDS} s")
                self.kill(member)

    def _dump(self, member: Member) -> None:
        """Have a process that hangs say where."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGUSR1)
        time.sleep(_LOOK_SECONDS)

    def _blame(self, member: Member, what: str) -> None:
        errors = member.part.errors()[-3000:]
        self.faults.append(f"{member.part.name} (pid {member.pid}) {what}:\n{errors}")

    def end_in_order(self) -> None:
        """Ask every process to end, and wait until it has."""
        self._let_go_on(float("inf"))
        for member in self.members:
            os.kill(member.pid, signal.SIGTERM)
        for member in list(self.members):
            self.finish(member)

    def kill_all(self) -> None:
        """Leave nobody alive."""
        for member in list(self.members):
            self.kill(member)

    def survey(self) -> Surveying:
        """Have a process read all there is, now that nobody else is left."""
        part = Surveying(**vars(self.part("survey", 0)))
        self.play(survey, part)
        return part
