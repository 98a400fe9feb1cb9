"""What one opens: a log with its appenders and tailers."""

from __future__ import annotations

import contextlib
import operator
import os
import weakref
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from penstock import kernel
from penstock.kernel import Appender, Writer
from penstock.log.attach import attach_reader, attach_writer
from penstock.log.directory import disk_bytes
from penstock.log.log import Log
from penstock.log.metadata import DEFAULTS, Settings
from penstock.log.transaction import Transaction
from penstock.log.verify import verify as verify_log
from penstock.message import duration_ns
from penstock.options import FlushMode, RetentionPolicy, RollStrategy
from penstock.read import ReadBatch, Start, Tailer
from penstock.stats import CompactResult, QueueStats, VerifyReport

if TYPE_CHECKING:
    from typing_extensions import Self


def open(
    path: str | os.PathLike[str],
    *,
    segment_bytes: int | None = None,
    roll: RollStrategy | None = None,
    flush: FlushMode = FlushMode.ASYNC,
    index_every: int | None = None,
    checksum: Literal["xxh3", "crc64-nvme"] | None = None,
    verify: bool = False,
    exclusive: bool = False,
    read_only: bool = False,
    retention: RetentionPolicy | None = None,
    compression: None = None,
    stall: timedelta = timedelta(seconds=10),
) -> Queue:
    """Open the queue in a folder, and make it if it is not there.

    What is left out of the first three and `checksum` is as the queue was created (1 GiB, by size,
    1024, "xxh3"). `verify` checks every message and raises the first CorruptionError. `exclusive`
    refuses company. `read_only` never writes a byte. An append that waits longer than `stall` for
    a stopped process raises WriterStalledError.

    >>> with open("orders") as queue:
    ...     queue.append(b"hello")
    0
    """
    _check_options(flush, retention, compression, read_only=read_only, exclusive=exclusive)
    given = (segment_bytes, index_every, roll, checksum)
    settings_of = partial(_settings, given)
    settings_of(None)
    root = Path(path).absolute()
    if read_only:
        attached = attach_reader(root, settings_of)
    else:
        stall_ns = duration_ns("stall", stall)
        attached = attach_writer(root, settings_of, exclusive=exclusive, stall_ns=stall_ns)
    with contextlib.ExitStack() as undo:
        undo.callback(attached.close)
        settings = settings_of(attached.metadata.settings)
        log = Log(attached, settings, flush, retention, exclusive=exclusive)
        undo.callback(log.close)
        queue = Queue(log)
        if verify and (faults := queue.verify().faults):
            raise faults[0]
        undo.pop_all()
        return queue


def _settings(given: tuple[Any, ...], created: Settings | None) -> Settings:
    """What an open says of the settings, over what the queue was created with."""
    names = ("segment_bytes", "index_every", "roll", "checksum")
    said = {name: value for name, value in zip(names, given, strict=True) if value is not None}
    return replace(created or DEFAULTS, **said)


def _check_options(
    flush: FlushMode,
    retention: RetentionPolicy | None,
    compression: None,
    *,
    read_only: bool,
    exclusive: bool,
) -> None:
    """Refuse what makes no sense before anything is made."""
    if not isinstance(flush, FlushMode):
        raise TypeError(f"flush is a FlushMode, as FlushMode.SYNC, not {flush!r}")
    if retention is not None and not isinstance(retention, RetentionPolicy):
        raise TypeError(f"retention is a RetentionPolicy, not {retention!r}")
    if compression is not None:
        raise ValueError("this version keeps payloads as they are: leave compression=None")
    if read_only and exclusive:
        raise ValueError("a read-only handle disturbs nobody: leave exclusive=False")


class _Hold:
    """Closes a log when nothing that uses it is left: the queue, its tailers, its appenders."""

    def __init__(self, log: Log) -> None:
        self.finalizer = weakref.finalize(self, log.abandon)
        # At the end of the program the log itself is closed, in order.
        self.finalizer.atexit = False


class _OpenAppender(Appender):
    """An appender that keeps its queue open."""

    def __init__(self, _writer: Writer, hold: _Hold) -> None:
        self._hold = hold


class Queue(Appender):
    """One log with its appenders and tailers; safe to share among threads. Made by `open`.

    >>> with penstock.open("orders") as queue:
    ...     queue.append(b"hello", key=b"k", headers={"a": "b"})
    ...     [message.payload for message in queue.tailer()]
    0
    [b'hello']
    """

    def __new__(cls, log: Log) -> Self:
        """Make the kernel's part."""
        return super().__new__(cls, log.writer)

    def __init__(self, log: Log) -> None:
        self._log = log
        self._hold = _Hold(log)

    @property
    def path(self) -> Path:
        """The folder of the queue."""
        return self._log.root

    @property
    def first_sequence(self) -> int:
        """The oldest message that is still there; `next_sequence` when there is none."""
        self._log.check_open()
        return self._log.first_sequence()

    @property
    def next_sequence(self) -> int:
        """The sequence that the next append gets."""
        self._log.check_open()
        return self._log.next_sequence()

    @property
    def durable_sequence(self) -> int:
        """Every message below it survives the loss of power."""
        self._log.check_open()
        return self._log.durable_sequence()

    def appender(self) -> Appender:
        """Make an object that can only append; share it among threads.

        >>> queue.appender().append(b"again")
        2
        """
        return _OpenAppender(self._log.check_writable(), self._hold)

    def transaction(self) -> Transaction:
        """Collect several appends and make them one: after any crash all are there or none.

        >>> with queue.transaction() as together:
        ...     together.append(b"1")
        ...     together.append(b"2", headers={"x": "y"})
        >>> together.sequences
        range(0, 2)
        """
        return Transaction(self._log.check_writable(), self._hold)

    def tailer(
        self,
        start: Start = "start",
        *,
        on_corrupt: Literal["raise", "skip"] = "raise",
        on_gone: Literal["raise", "first"] = "raise",
    ) -> Tailer:
        """Make a reader that starts at a sequence, an aware datetime, "start" or "end".

        `on_corrupt="skip"` counts damaged messages in `tailer.skipped` and goes on. When retention
        drops what a slow reader has yet to read, `on_gone="first"` goes on at the first there is.

        >>> [message.payload for message in queue.tailer(start=1)]
        [b'world']
        """
        _one_of("on_corrupt", on_corrupt, ("raise", "skip"))
        _one_of("on_gone", on_gone, ("raise", "first"))
        self._log.check_open()
        skip, jump = on_corrupt == "skip", on_gone == "first"
        tailer = Tailer(self._log, self._hold, skip=skip, jump=jump)
        tailer.start_at(start)
        return tailer

    def read_from(self, sequence: int, bytes_max: int = 1 << 20) -> ReadBatch:
        """Read messages from a sequence on: about `bytes_max` payload bytes, but at least one.

        Behind the end there is nothing yet: no messages, and the same sequence to ask for again.

        >>> batch = queue.read_from(0)
        >>> len(batch.messages), batch.next_sequence
        (2, 2)
        """
        if operator.index(sequence) >= self.next_sequence:
            return ReadBatch([], sequence)
        messages = self.tailer(sequence).read_many(1 << 30, bytes_max=bytes_max)
        return ReadBatch(messages, messages[-1].sequence + 1 if messages else sequence)

    def flush(self) -> None:
        """Return when everything appended before the call, by any process, is durable.

        >>> queue.flush()
        >>> queue.durable_sequence
        2
        """
        self._log.flush()

    def compact(self, retention: RetentionPolicy | None = None) -> CompactResult:
        """Drop the sealed segments that a policy, or else the queue's own, lets go.

        >>> queue.compact(RetentionPolicy(segments=10))
        CompactResult(segments_removed=0, bytes_freed=0)
        """
        return self._log.compact(retention)

    def verify(self, progress: Callable[[int, int], None] | None = None) -> VerifyReport:
        """Read everything and tell what is not as it was written; changes nothing.

        `progress` is called with how many segments are done, and how many there are.

        >>> queue.verify().ok
        True
        """
        self._log.check_open()
        return verify_log(self._log, progress)

    def stats(self) -> QueueStats:
        """Tell how the queue is now.

        >>> queue.stats().next_sequence
        2
        """
        log = self._log
        log.check_open()
        control = log.shared_control
        poison = None if control is None else control.poisoned()
        return QueueStats(
            first_sequence=log.first_sequence(),
            next_sequence=log.next_sequence(),
            durable_sequence=log.durable_sequence(),
            segments=len(log.segments.numbers()),
            disk_bytes=disk_bytes(log.root),
            takeovers=0 if control is None else control.load(kernel.LAYOUT["CONTROL_TAKEOVERS_AT"]),
            pids=() if control is None else tuple(control.pids()),
            poisoned=None if poison is None else poison[1],
        )

    def close(self) -> None:
        """Let go of the queue; the last handle to do so flushes it and gives back unused disk."""
        self._log.close()
        self._hold.finalizer.detach()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._log.is_closed else f"next is {self._log.next_sequence()}"
        return f"<Queue {self.path}: {state}>"


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} is one of {', '.join(map(repr, allowed))}, not {value!r}")
