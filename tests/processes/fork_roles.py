"""What the processes of the tests of `os.fork` do: each forks children that inherit a queue."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import penstock
from penstock import FlushMode, Queue
from penstock.log import log as log_module
from tests.processes.children import until
from tests.processes.roles import LOCKS, hear, tell, tell_json

BIG = 1 << 17


def fork(work: Callable[[], None]) -> int:
    """Fork a child that does its work and ends at once; it says so when the work fails."""
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        work()
        status = 0
    except BaseException as error:
        tell(f"the forked child failed: {error!r}")
        raise
    finally:
        os._exit(status)


def status_of(pid: int) -> int:
    """Wait for a forked child; 0 when its work was done."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def payloads(queue: Queue) -> list[str]:
    """Read all there is."""
    return [message.payload.decode() for message in queue.tailer()]


def fork_and_use(path: str) -> None:
    """The child appends and reads with what it inherited; a tailer goes on where it was."""
    with penstock.open(path) as queue:
        queue.append(b"before")
        tailer = queue.tailer()
        tailer.read()

        def work() -> None:
            queue.append(b"child")
            read = tailer.read()
            assert read is not None
            tell_json([read.payload.decode(), payloads(queue)])

        status = status_of(fork(work))
        queue.append(b"parent")
        tell_json([status, [message.payload.decode() for message in tailer]])


def fork_and_flush(path: str) -> None:
    """The child flushes what it appends, by itself, on demand and in the background."""
    modes = {"sync": FlushMode.SYNC, "batch": FlushMode.batch(interval=timedelta(milliseconds=1))}
    for name, mode in modes.items():
        with penstock.open(path, flush=mode) as queue:

            def work(queue: Queue = queue) -> None:
                sequence = queue.append(b"child")
                until(lambda: queue.durable_sequence > sequence, "the flush of a forked child")

            tell_json([name, status_of(fork(work))])


def fork_and_die(path: str, lock: str) -> None:
    """The parent dies holding a lock word while its forked child lives on."""
    with penstock.open(path) as queue:

        def work() -> None:
            tell("child lives")
            hear()

        fork(work)
        queue._log.control.locked(LOCKS[lock], lambda _mend: stand_still())


def stand_still() -> None:
    """Stop, so that the test may kill this process here."""
    os.kill(os.getpid(), signal.SIGSTOP)


def fork_and_end(path: str, how: str) -> None:
    """The child ends in some way; the parent's handle must not notice."""
    with penstock.open(path) as queue:
        queue.append(b"before")
        before = queue.stats().pids

        def work() -> None:
            if how in ("close after use", "exit after use"):
                queue.append(b"child")
            if how.startswith("close"):
                queue.close()

        status = fork_and_exit(work) if how.startswith("exit") else status_of(fork(work))
        queue.append(b"after")
        tell_json([status, before == queue.stats().pids == (os.getpid(),), payloads(queue)])


def fork_and_exit(work: Callable[[], None]) -> int:
    """Fork a child that ends as a Python program does, with all that runs at exit."""
    pid = os.fork()
    if pid:
        return status_of(pid)
    work()
    sys.exit(0)


def fork_and_close_in_child(path: str) -> None:
    """A handle that was closed in the child is closed there only."""
    with penstock.open(path) as queue:

        def work() -> None:
            queue.close()
            try:
                queue.append(b"closed")
            except penstock.errors.QueueClosedError:
                tell("closed in the child")

        status = status_of(fork(work))
        queue.append(b"parent")
        tell_json([status, payloads(queue)])


def append_some(queue: Queue, name: str, count: int) -> None:
    """Append for a process made by multiprocessing."""
    for number in range(count):
        queue.append(f"{name} {number}".encode())


def fork_by_multiprocessing(path: str, count: str) -> None:
    """Processes of the fork context take a queue as an argument."""
    context = multiprocessing.get_context("fork")
    with penstock.open(path) as queue:
        workers = [
            context.Process(target=append_some, args=(queue, f"worker {number}", int(count)))
            for number in range(4)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(20)
        tell_json([worker.exitcode for worker in workers])


def fork_while_appending(path: str, forks: str, count: str) -> None:
    """Children are forked while other threads append, small messages and large ones."""
    appended = [0, 0]
    over = threading.Event()

    def append_on(queue: Queue, which: int, payload: bytes) -> None:
        while not over.is_set():
            queue.append(payload)
            appended[which] += 1

    with penstock.open(path) as queue:
        threads = [
            threading.Thread(target=append_on, args=(queue, 0, b"small")),
            threading.Thread(target=append_on, args=(queue, 1, b"x" * BIG)),
        ]
        for thread in threads:
            thread.start()
        statuses = []
        for number in range(int(forks)):
            work = partial(append_some, queue, f"child {number}", int(count))
            statuses.append(status_of(fork(work)))
        over.set()
        for thread in threads:
            thread.join()
    tell_json([statuses, appended])


def fork_during_open(path: str) -> None:
    """Another thread forks in the middle of an open; then the parent dies holding the lock."""
    begin_to_write = log_module.Log._begin_to_write

    def work() -> None:
        tell("child lives")
        hear()

    def fork_first(log: Any) -> None:
        fork(work)
        begin_to_write(log)

    log_module.Log._begin_to_write = fork_first  # type: ignore[method-assign, assignment]
    queue = penstock.open(path)
    queue._log.control.locked(LOCKS["append"], lambda _mend: stand_still())


def fork_and_use_later(path: str) -> None:
    """The child uses what it inherited when nobody else has the queue open any more."""

    def work() -> None:
        tell(str(os.getpid()))
        hear()
        tell_json([queue.append(b"child"), payloads(queue)])
        hear()

    queue = penstock.open(path)
    queue.append(b"before")
    pid = fork(work)
    queue.close()
    status_of(pid)
