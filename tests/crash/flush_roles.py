"""What processes do in which flushing fails, each role a function.

`python -m tests.crash.flush_roles ROLE FOLDER` plays one, under the library of failing_flush.py.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from penstock import FlushMode, Queue
from penstock.errors import FlushError, LogPoisonedError, PenstockError
from penstock.kernel import LAYOUT
from tests.crash.failing_flush import NOTES, SWITCH
from tests.crash.processes import die, in_child, killed
from tests.crash.states import append, opened, payload, roll

EIO = 5
# The thread in the background may be the first to meet the failure.
FAILED = (FlushError, LogPoisonedError)
SOON = timedelta(milliseconds=1)


@contextlib.contextmanager
def failing() -> Iterator[None]:
    """Let every flush fail."""
    switch = Path(os.environ[SWITCH])
    switch.touch()
    yield
    switch.unlink()


def flushes() -> list[list[str]]:
    """List the flushes asked for until now: the call, how it ended, and the file."""
    return [line.split(maxsplit=2) for line in Path(os.environ[NOTES]).read_text().splitlines()]


def read(queue: Queue) -> list[int]:
    """List the sequences that are there; their payloads are theirs."""
    messages = list(queue.tailer())
    assert all(message.payload == payload(message.sequence) for message in messages)
    return [message.sequence for message in messages]


def refuses(queue: Queue, cause: str) -> None:
    """Find the log poisoned, for everything that would make it durable."""
    for attempt in (lambda: queue.append(b""), lambda: queue.append_many([b"", b""]), queue.flush):
        with pytest.raises(LogPoisonedError, match=cause) as told:
            attempt()
        assert told.value.errno == EIO
    assert queue.stats().poisoned is not None


def a_sync_append(root: Path) -> None:
    """The append raises, and everything after it is refused with the first cause."""
    queue = opened(root, flush=FlushMode.SYNC)
    append(queue, 3)
    with failing(), pytest.raises(FlushError) as told:
        queue.append(payload(3))
    assert told.value.errno == EIO
    assert told.value.path.suffix == ".data"
    refuses(queue, "flushing .* failed")
    assert queue.durable_sequence == 3
    assert read(queue) == [0, 1, 2, 3]


def an_explicit_flush(root: Path) -> None:
    """Messages were published before, and can still be read."""
    queue = opened(root)
    append(queue, 3)
    with failing(), pytest.raises(FAILED):
        queue.flush()
    refuses(queue, "flushing .* failed")
    assert (queue.durable_sequence, read(queue)) == (0, [0, 1, 2])


def a_flush_of_a_name(root: Path) -> None:
    """A header and a folder that cannot be forced to the disk are no better than messages."""
    queue = opened(root)
    append(queue, 2)
    with failing():
        # The thread in the background may have seen to it already.
        queue._log.control.store(LAYOUT["CONTROL_NAMED_NUMBER_AT"], 0)
        with pytest.raises(FAILED):
            queue.flush()
    failed = [path for _, how, path in flushes() if how == "failed"]
    assert len(failed) == 1
    refuses(queue, "failed")


def a_flush_in_the_background(root: Path) -> None:
    """Nobody waits for it, so the next append tells of it."""
    queue = opened(root, flush=FlushMode.batch(bytes=1, interval=SOON))
    append(queue, 1)
    queue.flush()
    with failing():
        append(queue, 1)
        wait_until(lambda: queue.stats().poisoned is not None)
    refuses(queue, "failed")
    assert read(queue) == [0, 1]


def wait_until(is_true: Callable[[], bool]) -> None:
    """Look until it is true."""
    until = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.001)


def a_flush_that_many_wait_for(root: Path) -> None:
    """Each of the appenders that share one flush hears that it failed."""
    queue = opened(root, flush=FlushMode.SYNC)
    append(queue, 1)
    heard: list[type] = []

    def appends() -> None:
        try:
            queue.append(b"")
        except PenstockError as error:
            heard.append(type(error))

    threads = [threading.Thread(target=appends) for _ in range(16)]
    with failing():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(heard) == len(threads)
    assert {FlushError, LogPoisonedError} >= set(heard)
    assert 1 >= heard.count(FlushError)
    assert queue.durable_sequence == 1


def another_process(root: Path) -> None:
    """Who has the queue open elsewhere is refused with the same cause."""
    queue = opened(root, flush=FlushMode.SYNC)
    append(queue, 1)

    def other() -> None:
        with opened(root, flush=FlushMode.SYNC) as theirs, failing(), pytest.raises(FlushError):
            theirs.append(payload(1))

    assert 0 == in_child(other)
    refuses(queue, "flushing .* failed")
    assert read(queue) == [0, 1]


def a_newcomer(root: Path) -> None:
    """While somebody has the poisoned log open, who opens it is refused appends too."""
    queue = opened(root)
    append(queue, 2)
    with failing(), pytest.raises(FAILED):
        queue.flush()

    def newcomer() -> None:
        with opened(root) as theirs:
            refuses(theirs, "flushing .* failed")
            assert read(theirs) == [0, 1]

    assert 0 == in_child(newcomer)


def no_second_try(root: Path) -> None:
    """The system reports a lost page once; asking again would be told a lie."""
    queue = opened(root, flush=FlushMode.SYNC)
    append(queue, 2)
    with failing(), pytest.raises(FlushError):
        queue.append(payload(2))
    before = len(flushes())
    for _ in range(3):
        refuses(queue, "failed")
    with contextlib.suppress(PenstockError):
        queue.compact()
    queue.close()
    segments = [path for _, _, path in flushes()[before:] if path.endswith(".data")]
    assert segments == []


def a_rescue(root: Path) -> None:
    """Everything memory held is there after a reopen, and is truly on the disk."""
    with opened(root) as queue:
        append(queue, 5)
        queue.flush()
        append(queue, 5)
        roll(queue)
        append(queue, 5)
        with failing(), pytest.raises(FAILED):
            queue.flush()
        refuses(queue, "failed")
    before = len(flushes())
    with opened(root, flush=FlushMode.SYNC) as queue:
        assert read(queue) == list(range(15))
        assert queue.append(payload(15)) == 15
        assert queue.durable_sequence == 16
        assert queue.stats().poisoned is None
        assert queue.verify().ok
    forced = [path for _, how, path in flushes()[before:] if how == "done"]
    # The first segment may have been durable before; the second was not.
    assert any(path.endswith("0002.data.tmp") for path in forced)


def a_rescue_after_a_kill(root: Path) -> None:
    """It needs no orderly end of those who met the failure."""

    def victim() -> None:
        queue = opened(root, flush=FlushMode.SYNC)
        append(queue, 5)
        with failing(), pytest.raises(FlushError):
            queue.append(payload(5))
        die()

    killed(victim)
    with opened(root) as queue:
        assert read(queue) == list(range(6))
        assert queue.append(payload(6)) == 6
        assert queue.verify().ok


def a_rescue_that_fails(root: Path) -> None:
    """Opening raises as long as the disk refuses, and loses nothing by trying."""
    with opened(root) as queue:
        append(queue, 5)
        with failing(), pytest.raises(FAILED):
            queue.flush()
    for _ in range(3):
        with failing(), pytest.raises(PenstockError):
            opened(root)
    with opened(root) as queue:
        assert read(queue) == list(range(5))
        assert queue.append(payload(5)) == 5
        assert queue.verify().ok


def a_close(root: Path) -> None:
    """Closing tells what it could not do, and what memory held is rescued by the next."""
    with opened(root) as queue, failing():
        append(queue, 5)
        queue.close()
    with opened(root) as queue:
        assert read(queue) == list(range(5))
        assert queue.append(payload(5)) == 5
        assert queue.verify().ok


def a_new_queue(root: Path) -> None:
    """It is not made while the disk refuses, and is made afterwards."""
    with failing(), pytest.raises(PenstockError):
        opened(root)
    with opened(root) as queue:
        assert queue.append(payload(0)) == 0


def a_roll(root: Path) -> None:
    """A segment that cannot be forced to the disk when it is made is not begun."""
    queue = opened(root)
    append(queue, 3)
    with failing(), pytest.raises(PenstockError):
        roll_on(queue)
    following = queue.next_sequence
    queue.close()
    with opened(root) as queue:
        assert read(queue) == list(range(following))
        assert queue.append(payload(following)) == following
        assert queue.verify().ok


def roll_on(queue: Queue) -> None:
    """Roll so often that no spare which was there before is left."""
    for _ in range(5):
        roll(queue)
        append(queue, 1)


ROLES = [
    a_sync_append,
    an_explicit_flush,
    a_flush_of_a_name,
    a_flush_in_the_background,
    a_flush_that_many_wait_for,
    another_process,
    a_newcomer,
    no_second_try,
    a_rescue,
    a_rescue_after_a_kill,
    a_rescue_that_fails,
    a_close,
    a_new_queue,
    a_roll,
]

if __name__ == "__main__":
    # What is logged is not looked at here.
    logging.disable(logging.CRITICAL)
    played = {role.__name__: role for role in ROLES}[sys.argv[1]]
    played(Path(sys.argv[2]))
