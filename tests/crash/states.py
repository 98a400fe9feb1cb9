"""Logs in the states that a crash can leave, in words: `log_with(path, sealed(10), active(5))`.

Queues are opened in processes of their own: no thread of theirs is left in the test's process, and
one that crashes is seen as a failure.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import penstock
from penstock.errors import CorruptionError, PenstockError
from penstock.kernel import LAYOUT
from penstock.log.durable import Durability
from tests.crash.processes import die, in_child, killed

SEGMENT_BYTES = 64 << 10
# No log here comes near as many messages, and no test goes on reading for ever.
READS_MAX = 5000
# What a segment, and four more without a durable name, can have held of the least messages.
LOST_MAX = 5 * (SEGMENT_BYTES // LAYOUT["FRAME_BYTES_MIN"])


class Part(NamedTuple):
    """A segment of a log in the making."""

    messages: int
    is_sealed: bool


def sealed(count: int) -> Part:
    """Ask for a segment with so many messages that others follow."""
    return Part(count, is_sealed=True)


def active(count: int) -> Part:
    """Ask for the segment that is appended to."""
    return Part(count, is_sealed=False)


def payload(sequence: int) -> bytes:
    """Tell the one payload that the message of this sequence has in any of these logs."""
    return b"message %d " % sequence * (1 + sequence % 7)


def log_with(
    root: Path,
    *parts: Part,
    closed: bool = False,
    flushed: bool = False,
    then: Callable[[penstock.Queue], object] | None = None,
    **options: Any,
) -> None:
    """Append what the parts say, behind what is there; then the process is killed.

    It may close or flush the queue before, or do something else with it. Nothing is flushed that
    was not asked for: the thread in the background would have to be lucky.
    """

    def work() -> None:
        Durability.flush_sealed = flush_nothing  # type: ignore[method-assign, assignment]
        queue = opened(root, **options)
        for part in parts:
            append(queue, part.messages)
            if part.is_sealed:
                roll(queue)
        if flushed:
            queue.flush()
        if then is not None:
            then(queue)
        if closed:
            queue.close()
        # Here and not by the caller: a queue that goes out of scope is closed.
        die()

    killed(work)


def flush_nothing(_durability: Durability) -> None:
    """Do what a thread in the background does that never gets to run."""


def opened(root: Path, **options: Any) -> penstock.Queue:
    """Open a queue whose segments hold some hundred messages."""
    return penstock.open(root, **{"segment_bytes": SEGMENT_BYTES, **options})


def append(queue: penstock.Queue, count: int) -> None:
    """Append the payloads that belong to the next sequences."""
    for _ in range(count):
        sequence = queue.next_sequence
        assert queue.append(payload(sequence)) == sequence


def append_together(queue: penstock.Queue, count: int) -> None:
    """Append payloads that belong to the next sequences as one atomic append."""
    first = queue.next_sequence
    queue.append_many([payload(first + index) for index in range(count)])


def roll(queue: penstock.Queue) -> None:
    """Seal the active segment and begin the next one, without a message in it."""
    log = queue._log
    log.control.set_bank_word(LAYOUT["BANK_ROLL_SEQUENCE"], queue.next_sequence)
    log.host.make_room(LAYOUT["FRAME_BYTES_MIN"], 1)


def poison(queue: penstock.Queue) -> None:
    """Do what a failed flush does."""
    queue._log.control.poison(5, "a flush failed")


class Found(NamedTuple):
    """What is there when a log is opened again."""

    error: str | None = None
    """The class and sentence of what opening raised."""
    sequences: list[int] = []  # noqa: RUF012
    """What a tailer that skips damage reads."""
    wrong: list[int] = []  # noqa: RUF012
    """Those of them whose payload is not theirs."""
    told: list[list[int | None]] = []  # noqa: RUF012
    """For each damage that a tailer raised: the sequence lost, and the next that is there."""
    first_sequence: int = 0
    next_sequence: int = 0
    durable_sequence: int = 0
    appended: int | None = None
    """The sequence of one more message."""
    faults: list[str] = []  # noqa: RUF012
    """What verifying told."""
    warnings: list[str] = []  # noqa: RUF012
    """What opening and reading logged."""


def goes_on_beyond(found: Found, sequence: int) -> bool:
    """Tell whether the next sequence is one that nothing before this can have had."""
    return found.appended is not None and found.appended >= sequence + LOST_MAX


def found_in(root: Path, *, accident: Callable[[], object] | None = None, **options: Any) -> Found:
    """Open a log, read all of it, append one message, and verify it.

    An accident happens while this handle has the queue open already.
    """
    receiver, sender = os.pipe()

    def work() -> None:
        os.close(receiver)
        with warnings_of_penstock() as warnings:
            try:
                queue = opened(root, **options)
            except PenstockError as error:
                found = Found(error=f"{type(error).__name__}: {error}")
            else:
                with queue:
                    found = looked_at(queue, accident, is_writable=not options.get("read_only"))
        with os.fdopen(sender, "w") as file:
            json.dump(found._replace(warnings=warnings), file)

    # What is told fits into the pipe, or else the child would wait for the parent.
    ended = in_child(work)
    os.close(sender)
    with os.fdopen(receiver) as file:
        text = file.read()
    assert ended == 0, f"the process that opened the log ended with {ended}"
    return Found(*json.loads(text))


def looked_at(
    queue: penstock.Queue, accident: Callable[[], object] | None, *, is_writable: bool
) -> Found:
    """Read everything in both ways, append, and verify."""
    early = None
    if accident is not None:
        accident()
        # What the dead had published is counted by the first append after it.
        early = queue.append(b"whose sequence is not known before")
    skipping = queue.tailer(on_corrupt="skip")
    messages = [message for message, _ in zip(skipping, range(READS_MAX), strict=False)]
    messages = [message for message in messages if message.sequence != early]
    told = told_by(queue)
    first, following, durable = queue.first_sequence, queue.next_sequence, queue.durable_sequence
    appended = early
    if early is None and is_writable:
        appended = queue.append(payload(following))
    return Found(
        None,
        [message.sequence for message in messages],
        [m.sequence for m in messages if m.payload != payload(m.sequence)],
        told,
        first,
        following,
        durable,
        appended,
        [str(fault) for fault in queue.verify().faults],
    )


def told_by(queue: penstock.Queue) -> list[list[int | None]]:
    """Read on behind each damage, and list what was told."""
    told: list[list[int | None]] = []
    tailer = None
    for _ in range(READS_MAX):
        try:
            tailer = tailer or queue.tailer()
            if tailer.read() is None:
                return told
        except CorruptionError as error:  # noqa: PERF203
            told.append([error.sequence, error.next_sequence])
    raise AssertionError(f"reading did not come to an end, but told {told[:3]} … {told[-3:]}")


@contextlib.contextmanager
def warnings_of_penstock() -> Iterator[list[str]]:
    """Gather what is logged as a warning."""
    gathered: list[str] = []

    class Gatherer(logging.Handler):
        """Keeps the sentences."""

        def emit(self, record: logging.LogRecord) -> None:
            """Keep one."""
            gathered.append(record.getMessage())

    handler = Gatherer(logging.WARNING)
    logger = logging.getLogger("penstock")
    logger.addHandler(handler)
    propagates, logger.propagate = logger.propagate, False
    try:
        yield gathered
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagates
