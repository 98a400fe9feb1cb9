"""Queues that nobody closes: collected, left at the end of a program, or still read from."""

import gc
import threading
from datetime import timedelta

import pytest

import penstock
from penstock.log import directory, metadata, spare
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import payloads


def opened(path):
    """Open a queue for which the caller alone is responsible."""
    return penstock.open(path, segment_bytes=SEGMENT_BYTES)


@pytest.fixture
def is_clean(queue_path, reboot, eventually):
    """Tell whether the last handle left in order: then even a loss of power leaves no gap."""
    before = set(threading.enumerate())

    def ask() -> bool:
        # What was collected leaves by a thread of its own.
        eventually(lambda: before >= set(threading.enumerate()))
        reboot()
        with opened(queue_path) as queue:
            return [b"x"] * queue.append(b"next") == payloads(queue)[:-1]

    return ask


def test_a_queue_that_is_closed_is_clean(queue_path, is_clean):
    """All of it was flushed, and the end is marked."""
    with opened(queue_path) as queue:
        queue.append_many([b"x"] * 3)

    assert is_clean()


def test_a_queue_that_is_not_closed_is_not_clean(queue_path, reboot):
    """Otherwise the claims of this file would say nothing."""
    queue = opened(queue_path)
    queue.append_many([b"x"] * 3)
    reboot()
    (queue_path / directory.LOCK).unlink()
    (queue_path / directory.CONTROL).unlink()
    with opened(queue_path) as other:
        appended = other.append(b"next")
    queue.close()

    assert appended > 3


def test_a_queue_that_is_collected_is_closed(queue_path, is_clean):
    """Nobody has it any more, so nobody could close it."""
    queue = opened(queue_path)
    queue.append_many([b"x"] * 3)
    del queue
    gc.collect()

    assert is_clean()


def test_a_queue_in_a_cycle_is_closed(queue_path, is_clean):
    """It takes the collector to find it."""
    queue = opened(queue_path)
    queue.append_many([b"x"] * 3)
    cycle: list[object] = [queue]
    cycle.append(cycle)
    del queue, cycle
    gc.collect()

    assert is_clean()


ENDS = {
    "end": "",
    "exit": "sys.exit(0)",
    "thread": "threading.Thread(target=wait, daemon=True).start()",
    "follower": "threading.Thread(target=follow, daemon=True).start()",
    "global": "kept = [queue, queue.tailer(), queue.appender(), queue.tailer().read().view]",
}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_ends_closes_its_queues(queue_path, run_python, is_clean, end):
    """Whatever its threads are at, and whatever it still holds."""
    script = f"""
        import contextlib, sys, threading, penstock
        queue = penstock.open(sys.argv[1], segment_bytes={SEGMENT_BYTES})
        queue.append_many([b"x"] * 3)

        def wait():
            threading.Event().wait()

        def follow():
            with contextlib.suppress(penstock.errors.QueueClosedError):
                list(queue.tailer().follow())

        print("appended")
        {ENDS[end]}
    """

    assert ("appended\n", True) == (run_python(script, queue_path), is_clean())


def test_a_tailer_keeps_its_queue_open(queue_path):
    """A queue may be read in one line."""
    with opened(queue_path) as queue:
        queue.append_many([b"a", b"b"])
    found = []
    for message in opened(queue_path).tailer():
        gc.collect()
        found.append(message.payload)

    assert [b"a", b"b"] == found


def test_an_appender_keeps_its_queue_open(queue_path):
    """Whoever is handed one needs no queue beside it."""
    appender = opened(queue_path).appender()
    gc.collect()

    assert [0, range(1, 3)] == [appender.append(b"x"), appender.append_many([b"y", b"z"])]


def test_a_transaction_keeps_its_queue_open(queue_path):
    """Up to its end."""
    with opened(queue_path).transaction() as together:
        gc.collect()
        together.append(b"x")

    assert range(1) == together.sequences


@pytest.mark.parametrize("keeper", ["tailer", "appender", "transaction"])
def test_what_keeps_a_queue_open_lets_it_go(queue_path, is_clean, keeper):
    """It is closed with the last of them."""
    queue = opened(queue_path)
    queue.append_many([b"x"] * 3)
    kept = getattr(queue, keeper)()
    del queue
    gc.collect()
    assert kept is not None
    del kept
    gc.collect()

    assert is_clean()


@pytest.mark.usefixtures("tidy_at_once")
def test_a_queue_that_its_own_thread_collects_is_closed_at_once(
    queue_path, is_clean, monkeypatch, eventually
):
    """The thread was inside a lock of the queue, and waited for itself until the stall time."""
    read_header = spare.read_header
    is_garbage, collected = threading.Event(), threading.Event()

    def collect_then_read(path):
        # Threads of the queue look at the spare now and then, holding a lock.
        if is_garbage.is_set() and not collected.is_set():
            gc.collect()
            collected.set()
        return read_header(path)

    monkeypatch.setattr(spare, "read_header", collect_then_read)
    gc.disable()
    try:
        cycle: list[object] = [
            penstock.open(queue_path, segment_bytes=SEGMENT_BYTES, stall=timedelta(seconds=100))
        ]
        cycle[0].append_many([b"x"] * 3)  # type: ignore[attr-defined]
        cycle.append(cycle)
        del cycle
        is_garbage.set()
        eventually(collected.is_set)
    finally:
        gc.enable()

    assert is_clean()


@pytest.mark.timeout(30)
def test_a_queue_that_is_collected_within_an_open_does_not_stop_it(queue_path, monkeypatch):
    """The opener held the gate that the finalizer waited for, in the same thread and for ever."""
    read = metadata.read

    def collect_then_read(root):
        gc.collect()
        return read(root)

    cycle: list[object] = [opened(queue_path)]
    cycle.append(cycle)
    gc.disable()
    try:
        del cycle
        monkeypatch.setattr(metadata, "read", collect_then_read)
        with opened(queue_path) as queue:
            appended = queue.append(b"x")
    finally:
        gc.enable()

    assert 0 == appended
