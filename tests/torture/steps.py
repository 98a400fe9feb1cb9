"""A writer is halted after each machine instruction of an append, as if it had died there.

What its files hold then is opened: as those who had them open find it, and without the page.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

import penstock
from penstock import Queue, RollStrategy, clock
from penstock.errors import PenstockError
from penstock.kernel import LAYOUT, Control
from tests.torture.crew import Crew, folder_in_memory
from tests.torture.outcome import Figures
from tests.torture.producer import Part, settle

_TRACEME, _SINGLESTEP, _WALL = 0, 9, 0x40000000
# The page without its slots: what it says of the log, and the lock words.
_PAGE_BYTES = LAYOUT["CONTROL_SLOTS_AT"]
SEGMENT_BYTES = 16_384
BEFORE = [b"first", b"second"]
MANY = [b"one", b"two" * 50, b"", b"four"]
STEPS_MAX = 3_000_000
SKIPPED = "skipped: this system allows no ptrace"
_NOT_ALLOWED = 9


class Append(NamedTuple):
    """A way to append, and what it appends."""

    name: str
    work: Callable[[Queue], object]
    payloads: list[bytes]
    roll_count: int = 1000


APPENDS = (
    Append("append", lambda queue: queue.append(b"payload", key=b"key"), [b"payload"]),
    Append("append_many", lambda queue: queue.append_many(MANY), MANY),
    Append("roll", lambda queue: queue.append(b"payload"), [b"payload"], len(BEFORE)),
)


def ptrace(request: int, pid: int) -> bool:
    """Ask the system to trace; False when it does not allow that."""
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    call.restype = ctypes.c_long
    return bool(call(request, pid, None, None) == 0)


def be_stepped(path: Path, append: Append) -> NoReturn:
    """Append, after and before a halt at which the tracer takes over."""
    try:
        roll = RollStrategy.by_count(append.roll_count)
        queue = penstock.open(path, segment_bytes=SEGMENT_BYTES, roll=roll, index_every=2)
        for payload in BEFORE:
            queue.append(payload)
        if not ptrace(_TRACEME, 0):
            os._exit(_NOT_ALLOWED)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
        append.work(queue)
        signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
    finally:
        os._exit(1)


def stepped(pid: int) -> Iterator[int]:
    """Let a process that stands at its first halt go on by one instruction each, to its second."""
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for number in range(STEPS_MAX):
        call(_SINGLESTEP, pid, None, None)
        _, status = os.waitpid(pid, _WALL)
        assert os.WIFSTOPPED(status), f"the process ended while it was stepped: {status}"
        yield number
        if os.WSTOPSIG(status) == signal.SIGSTOP:
            return


def states_of(append: Append, folder: Path) -> tuple[int, list[Path]] | None:
    """Copy the queue's folder at each moment of an append at which its files hold something new."""
    path = folder / "queue"
    pid = os.fork()
    if pid == 0:
        be_stepped(path, append)
    _, status = os.waitpid(pid, _WALL)
    if os.WIFEXITED(status):
        assert os.WEXITSTATUS(status) == _NOT_ALLOWED, status
        return None
    copies, steps = list[Path](), 0
    try:
        page = os.open(path / ".control", os.O_RDONLY)
        data = os.open(next(path.rglob("*.data")), os.O_RDONLY)
        last = b""
        for _ in stepped(pid):
            steps += 1
            # Small files of a disk in memory: this is a copy of a few pages.
            now = os.pread(page, _PAGE_BYTES, 0) + os.pread(data, SEGMENT_BYTES, 0)
            if now != last:
                last = now
                copies.append(folder / f"state-{len(copies)}")
                shutil.copytree(path, copies[-1])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, _WALL)
    return steps, copies


def adopt(path: Path) -> None:
    """Make a copied page one of this very folder, so that it is joined and not made anew."""
    fd = os.open(path / ".control", os.O_RDWR)
    lock_inode = (path / ".lock").stat().st_ino
    control = Control(fd, True, -1, 0)
    identity = control.identity()
    assert identity is not None
    control.initialise(identity[0], clock.boot_id(), os.fstat(fd).st_ino, lock_inode)
    os.close(fd)


def read(path: Path, *, read_only: bool) -> list[bytes]:
    """Read all there is; a damage is as bad as a loss."""
    with penstock.open(path, read_only=read_only) as queue:
        return [message.payload for message in queue.tailer()]


def faults_of(copy: Path, append: Append) -> Iterator[str]:
    """Open a state in each way: the append is there whole or not at all, and the log goes on."""
    with_page, without = copy.with_suffix(".joined"), copy.with_suffix(".recovered")
    shutil.copytree(copy, with_page)
    shutil.copytree(copy, without)
    adopt(with_page)
    yield from faults_when_opened(with_page, append, is_recovered=False)
    yield from faults_when_opened(without, append, is_recovered=True)


def faults_when_opened(path: Path, append: Append, *, is_recovered: bool) -> Iterator[str]:
    """Read, append and read again; any error is a fault."""
    try:
        yield from faults_of_contents(path, append, is_recovered=is_recovered)
    except PenstockError as error:
        where = traceback.extract_tb(error.__traceback__)[1]
        yield f"{path}: {error!r} at {where.line}"


def faults_of_contents(path: Path, append: Append, *, is_recovered: bool) -> Iterator[str]:
    """Hold what is there against what was appended."""
    looked = read(path, read_only=True)
    if looked not in (BEFORE, BEFORE + append.payloads):
        yield f"{path}: a reader finds {looked}"
    with penstock.open(path) as queue:
        found = [message.payload for message in queue.tailer()]
        sequence = queue.append(b"after")
        faults = queue.verify().faults
    after = read(path, read_only=False)
    if found not in (looked, BEFORE + append.payloads):
        yield f"{path}: a reader finds {looked}, and then there is {found}"
    # Without the page nobody knows what was read already, so sequences may be left out.
    follows = sequence == len(found) or (is_recovered and sequence > len(found))
    if after != [*found, b"after"] or faults or not follows:
        yield f"{path}: appended {sequence} to {found}, and read {after}, {faults}"


def step_through(part: Part, which: int) -> None:
    """Step through one kind of append, and tell what came of it, a line each."""
    settle(part)
    append = APPENDS[which]
    found = states_of(append, part.folder)
    if found is None:
        part.report_path(0).write_text(f"{SKIPPED}\n")
        return
    steps, copies = found
    faults = [fault for copy in copies for fault in faults_of(copy, append)]
    if read(copies[-1], read_only=False) != BEFORE + append.payloads:
        faults.append(f"{copies[-1]}: the append was over, and is not there")
    told = [f"{steps} {len(copies)}", *faults]
    part.report_path(0).write_text("\n".join(told) + "\n")


def torture(seed: int, appends: Sequence[Append] = APPENDS) -> Figures:
    """Step through every kind of append."""
    total = Figures()
    for append in appends:
        folder = folder_in_memory(f"penstock-steps-{append.name}-")
        crew = Crew(folder / "queue", folder, seed, clock.boot_id())
        part = crew.part("stepper", 0)
        crew.play(step_through, part, APPENDS.index(append))
        lines = part.report_path(0).read_text().splitlines() if not crew.faults else ["0 0"]
        if lines[0] == SKIPPED:
            total.counts[SKIPPED] += 1
        else:
            steps, states = map(int, lines[0].split())
            total.counts.update(instructions=steps, states=states)
        total.faults += [*crew.faults, *lines[1:]]
        if not total.faults:
            shutil.rmtree(folder)
    return total
