"""Flushing: which messages are durable, and when."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from penstock import FlushMode, RollStrategy
from penstock.errors import QueueClosedError, ReadOnlyError

NEVER = timedelta(days=1)
SOON = timedelta(milliseconds=5)
BOUNDLESS = 1 << 40


def test_nothing_is_durable_by_itself(open_queue):
    """ASYNC leaves it to the system and to flush."""
    queue = open_queue(flush=FlushMode.ASYNC)
    queue.append_many([b"x"] * 3)

    assert (3, 0, 3) == (
        queue.next_sequence,
        queue.durable_sequence,
        queue.stats().durability_lag,
    )


def test_everything_is_durable_after_a_flush(queue):
    """The mark stands at what the next append gets."""
    queue.append_many([b"x"] * 3)
    queue.flush()

    assert (3, 0) == (queue.durable_sequence, queue.stats().durability_lag)


def test_a_flush_of_nothing_new_is_nothing(queue):
    """It may be called again and again, on an empty queue too."""
    queue.flush()
    queue.append(b"x")
    queue.flush()
    queue.flush()

    assert 1 == queue.durable_sequence


def test_a_flush_covers_every_segment(open_queue):
    """Those that were sealed since the last one come first."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    for _ in range(9):
        queue.append(b"x")
    queue.flush()

    assert (9, 5) == (queue.durable_sequence, queue.stats().segments)


def test_a_flush_covers_what_other_handles_appended(open_queue):
    """Durable is said of the log, not of a handle."""
    one, other = open_queue(), open_queue()
    one.append(b"x")
    other.flush()

    assert (1, 1) == (one.durable_sequence, other.durable_sequence)


@pytest.mark.parametrize("roll", [RollStrategy(), RollStrategy.by_count(2)], ids=["one", "many"])
def test_sync_appends_are_durable_when_they_return(open_queue, roll):
    """Each is, over every roll."""
    queue = open_queue(flush=FlushMode.SYNC, roll=roll)
    marks = []
    for _ in range(7):
        sequence = queue.append(b"x")
        marks.append(queue.durable_sequence > sequence)
    together_appended = queue.append_many([b"x"] * 5)
    marks.append(queue.durable_sequence == together_appended.stop)
    with queue.transaction() as together:
        together.append(b"x")

    assert ([True] * 8, 13) == (marks, queue.durable_sequence)


def test_threads_may_share_a_sync_flush(open_queue):
    """Whoever returns is durable, whether or not it flushed itself."""
    queue = open_queue(flush=FlushMode.SYNC, roll=RollStrategy.by_count(10))

    def work(_: int) -> list[bool]:
        marks = []
        for _ in range(10):
            sequence = queue.append(b"x")
            marks.append(queue.durable_sequence > sequence)
        return marks

    with ThreadPoolExecutor(4) as pool:
        marks = [mark for part in pool.map(work, range(4)) for mark in part]

    assert [True] * 40 == marks


def test_a_batch_is_flushed_after_its_interval(open_queue, eventually):
    """Nobody has to ask for it."""
    queue = open_queue(flush=FlushMode.batch(bytes=BOUNDLESS, interval=SOON))
    queue.append(b"x")

    assert 1 == eventually(lambda: queue.durable_sequence)


def test_a_batch_is_flushed_again_after_its_interval(open_queue, eventually):
    """The first flush is not the last."""
    queue = open_queue(flush=FlushMode.batch(bytes=BOUNDLESS, interval=SOON))
    for expected in range(1, 6):
        queue.append(b"x")
        eventually(lambda expected=expected: queue.durable_sequence == expected)

    assert 5 == queue.durable_sequence


def test_a_batch_is_flushed_after_its_bytes(open_queue, eventually):
    """The interval is not waited for."""
    queue = open_queue(flush=FlushMode.batch(bytes=10_000, interval=NEVER))
    queue.append(b"x" * 10_000)

    assert 1 == eventually(lambda: queue.durable_sequence)


def test_a_batch_is_not_flushed_before_either(open_queue, eventually):
    """What comes next reaches the bytes, and takes the first along."""
    queue = open_queue(flush=FlushMode.batch(bytes=10_000, interval=NEVER))
    queue.append(b"x" * 5_000)
    before = queue.durable_sequence
    queue.append(b"x" * 5_000)

    assert (0, 2) == (before, eventually(lambda: queue.durable_sequence))


@pytest.mark.parametrize(
    "mode",
    [FlushMode.batch(BOUNDLESS, SOON), FlushMode.batch(1, NEVER)],
    ids=["interval", "bytes"],
)
def test_a_batch_is_flushed_over_rolls(open_queue, eventually, mode):
    """Segments that were sealed meanwhile are flushed first."""
    queue = open_queue(flush=mode, roll=RollStrategy.by_count(2))
    for _ in range(9):
        queue.append(b"x")

    assert eventually(lambda: queue.durable_sequence == 9)


@pytest.mark.parametrize("mode", [FlushMode.ASYNC, FlushMode.batch(BOUNDLESS, NEVER)])
def test_the_last_close_makes_everything_durable(open_queue, mode):
    """What was promised for later is done at once."""
    with open_queue(flush=mode) as queue:
        queue.append_many([b"x"] * 3)

    assert 3 == open_queue().durable_sequence


def test_a_batch_that_closes_keeps_its_promise(open_queue):
    """Others may have the queue open and never flush."""
    staying = open_queue(flush=FlushMode.ASYNC)
    with open_queue(flush=FlushMode.batch(BOUNDLESS, NEVER)) as leaving:
        leaving.append(b"x")

    assert 1 == staying.durable_sequence


def test_the_mark_never_goes_back(open_queue):
    """Not by an append, a roll or a second handle."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    marks = []
    for step in range(12):
        queue.append(b"x")
        if step % 3 == 0:
            queue.flush()
        marks.append(queue.durable_sequence)
    marks.append(open_queue().durable_sequence)

    assert sorted(marks) == marks


def test_flushing_and_appending_go_on_together(open_queue):
    """A flush returns though others never stop appending."""
    queue = open_queue(roll=RollStrategy.by_count(50))
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            queue.append(b"x")

    thread = threading.Thread(target=work)
    thread.start()
    marks = []
    for _ in range(5):
        next_sequence = queue.next_sequence
        queue.flush()
        marks.append(queue.durable_sequence >= next_sequence)
    is_over.set()
    thread.join()

    assert [True] * 5 == marks


def test_a_closed_queue_cannot_be_flushed(queue):
    """It was flushed when it was closed."""
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.flush()


def test_a_read_only_handle_cannot_flush(open_queue):
    """Flushing writes."""
    open_queue()
    with pytest.raises(ReadOnlyError):
        open_queue(read_only=True).flush()
