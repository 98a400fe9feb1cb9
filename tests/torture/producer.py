"""The processes that append, to be killed at any moment: each reports every call of its own."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import penstock
from penstock import FlushMode, Queue, RetentionPolicy, RollStrategy, clock
from penstock.errors import (
    QueueClosedError,
    QueueNotFoundError,
    SequenceGoneError,
    WriterStalledError,
)
from tests.torture.payloads import payload_of
from tests.torture.reports import Report

FLUSHES = (
    FlushMode.ASYNC,
    FlushMode.SYNC,
    FlushMode.batch(bytes=1 << 16, interval=timedelta(milliseconds=5)),
)
# These promise that nothing was appended, and the history holds them to it.
HARMLESS = (WriterStalledError, QueueClosedError)
MANY_MAX = 12
_AGAIN_SECONDS = 0.001


@dataclass(frozen=True)
class Part:
    """What one process of a round is to do, and under which numbers."""

    path: Path
    """The folder of the queue."""
    folder: Path
    """Where the reports go."""
    seed: int
    numbers: range
    """The producers in this process: one for each of its threads."""
    boot_id: bytes
    """The boot that it shall believe in."""
    segment_bytes: int
    roll_count: int
    keep: int | None
    """How many segments retention leaves; all of them, if None."""
    stall_ms: int = 10_000
    name: str = ""

    def open(self, **options: Any) -> Queue:
        """Open the queue as every process of the round does."""
        return penstock.open(
            self.path,
            segment_bytes=self.segment_bytes,
            roll=RollStrategy.by_count(self.roll_count),
            index_every=4,
            retention=None if self.keep is None else RetentionPolicy(segments=self.keep),
            stall=timedelta(milliseconds=self.stall_ms),
            **options,
        )

    def open_patiently(self, over: threading.Event, **options: Any) -> Queue:
        """Open the queue, waiting until it is there and while a stopped process is in the way."""
        while not over.wait(_AGAIN_SECONDS):
            with contextlib.suppress(WriterStalledError, QueueNotFoundError):
                return self.open(**options)
        sys.exit()

    def log_path(self) -> Path:
        """Where its errors go."""
        return self.folder / f"{self.name}.errors"

    def errors(self) -> str:
        """Read what it had to complain of."""
        path = self.log_path()
        return path.read_text(errors="replace") if path.exists() else ""

    def report_path(self, producer: int) -> Path:
        """Where one of its producers reports."""
        return report_path(self.folder, producer)


def report_path(folder: Path, producer: int) -> Path:
    """Name the report of a producer."""
    return folder / f"producer-{producer}"


def settle(part: Part) -> threading.Event:
    """Make this process one of a round; the event says when it is asked to end."""
    fd = os.open(part.log_path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(fd, 2)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    clock.boot_id = lambda: part.boot_id
    return over


def append_on(part: Part) -> None:
    """Append until told to end, in one or several threads."""
    over = settle(part)
    rng = random.Random(part.seed * 1_000_003 + part.numbers.start)
    with part.open_patiently(over, flush=rng.choice(FLUSHES)) as queue:
        producers = [Producer(queue, part, number) for number in part.numbers]
        others = [threading.Thread(target=each.run, args=(over,)) for each in producers[1:]]
        for other in others:
            other.start()
        producers[0].run(over)
        for other in others:
            other.join()


def open_and_close(part: Part) -> None:
    """Open, append a little and close, again and again: a death may come within each of these."""
    over = settle(part)
    producers = dict[int, Producer]()
    while not over.is_set():
        with part.open_patiently(over) as queue:
            for number in part.numbers:
                producer = producers.setdefault(number, Producer(queue, part, number))
                producer.queue = queue
                producer.step()


class Producer:
    """One thread's appends."""

    def __init__(self, queue: Queue, part: Part, number: int) -> None:
        self.queue = queue
        self._part = part
        self._producer = number
        self._report = Report(part.report_path(number))
        self._rng = random.Random(part.seed * 7_368_787 + number)
        self._next = 0
        self._kinds: tuple[tuple[float, Callable[[], object]], ...] = (
            (0.55, self.append),
            (0.80, self.append_many),
            (0.92, self.transaction),
            (0.95, self.flush),
            (0.98, self.read_own),
            (1.00, lambda: time.sleep(self._rng.random() / 500)),
        )

    def run(self, over: threading.Event) -> None:
        """Do one thing after another; an error that nobody expects ends the process."""
        try:
            while not over.is_set():
                self.step()
        except BaseException:  # noqa: BLE001 - a thread's error must not pass for an orderly end.
            sys.excepthook(*sys.exc_info())
            os._exit(3)

    def step(self) -> None:
        """Do one thing."""
        dice = self._rng.random()
        next(work for share, work in self._kinds if dice < share)()

    def _payloads(self, count: int) -> Iterator[bytes]:
        for number in range(self._next, self._next + count):
            yield payload_of(self._part.seed, self._producer, number)

    def _told(self, count: int, append: Callable[[], int]) -> int | None:
        """Report an append before and after; tell its sequence, or None if it was refused."""
        sequence = None
        self._report.call(self._next, count)
        self._next += count
        try:
            sequence = append()
        except HARMLESS as error:
            self._report.failed(error)
        else:
            self._report.ok(sequence)
        return sequence

    def append(self) -> int | None:
        (payload,) = self._payloads(1)
        key = self._rng.choice([None, None, b"key"])
        return self._told(1, lambda: self.queue.append(payload, key=key))

    def append_many(self) -> int | None:
        payloads = list(self._payloads(self._rng.randint(1, MANY_MAX)))
        return self._told(len(payloads), lambda: self.queue.append_many(payloads).start)

    def transaction(self) -> int | None:
        payloads = list(self._payloads(self._rng.randint(1, MANY_MAX)))

        def commit() -> int:
            with self.queue.transaction() as together:
                for payload in payloads:
                    together.append(payload, headers={"of": str(self._producer)})
            assert together.sequences is not None
            return together.sequences.start

        return self._told(len(payloads), commit)

    def flush(self) -> None:
        try:
            before = self.queue.next_sequence
            self.queue.flush()
        except HARMLESS:
            return
        if self.queue.durable_sequence < before:
            raise AssertionError(f"flushed, but {before} is not durable")

    def read_own(self) -> None:
        """What was appended can be read at once."""
        (payload,) = self._payloads(1)
        sequence = self.append()
        if sequence is None:
            return
        with contextlib.suppress(*([] if self._part.keep is None else [SequenceGoneError])):
            read = self.queue.read_from(sequence, 1).messages
            if [payload] != [message.payload for message in read]:
                raise AssertionError(f"message {sequence} is not what was appended: {read}")
