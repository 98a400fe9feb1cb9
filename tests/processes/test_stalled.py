"""A process that stands still keeps its lock: it is waited for, told of, and never overridden."""

import time
from datetime import timedelta
from pathlib import Path

import pytest

import penstock
from penstock import RollStrategy
from penstock.errors import WriterStalledError
from tests.processes.children import HANG_SECONDS, state_of, until

pytestmark = pytest.mark.slow

STALL = timedelta(milliseconds=200)


def payloads(queue):
    """Read all there is, from the start."""
    return [message.payload for message in queue.tailer()]


def test_a_stopped_writer_is_told_of_and_never_overridden(queue_path, play):
    """Its roll is ended by itself, and its message lands before those of who waited."""
    with penstock.open(queue_path, stall=STALL, roll=RollStrategy.by_count(1)) as queue:
        queue.append(b"before")
        rolling = play("roll_when_told", queue_path, "rolled")
        rolling.expect("rolling")
        rolling.stop()
        told = []
        for _ in range(3):
            with pytest.raises(WriterStalledError) as caught:
                queue.append(b"refused")
            told.append(caught.value.pid)
        read_meanwhile = payloads(queue)
        rolling.say("go on")
        rolling.go_on()
        sequence = rolling.hear_json()
        queue.append(b"after")

        assert [rolling.pid] * 3 == told
        assert [b"before"] == read_meanwhile
        assert (1, 0) == (sequence, queue.stats().takeovers)
        assert [b"before", b"rolled", b"after"] == payloads(queue)
        assert () == queue.verify().faults


def test_a_writer_stopped_in_the_middle_of_an_append_ends_it(queue_path, play):
    """Who waits goes on as soon as the stopped one does, without an error."""
    with penstock.open(queue_path) as queue:
        queue.append(b"before")
        waiting = play("append_when_told", queue_path, "patient", 60_000)
        waiting.expect("ready")
        within = play("stay_in_append", queue_path, "published", "slow")
        within.expect("within")
        within.stop()
        waiting.say("go")
        waiting.expect("appending")
        until(lambda: state_of(waiting.pid) == "S", "the wait")
        within.say("go on")
        within.go_on()
        sequence = waiting.hear_json()

        assert (2, 0) == (sequence, queue.stats().takeovers)
        assert [b"before", b"slow", b"patient"] == payloads(queue)


def test_who_was_stopped_itself_blames_nobody(queue_path, play):
    """The time in which a waiter stood still counted as the owner's, and it blamed process 0."""
    with penstock.open(queue_path) as queue:
        waiting = play("append_when_told", queue_path, "patient", 1000)
        waiting.expect("ready")
        holding = play("hold", queue_path, "append")
        holding.expect("held")
        waiting.say("go")
        waiting.expect("appending")
        until(lambda: state_of(waiting.pid) == "S", "the wait for the lock")
        waiting.stop()
        holding.say("let go")
        holding.expect("let go")
        stopped = time.monotonic()
        until(lambda: time.monotonic() - stopped > 1.2, "the waiter's stall")
        waiting.go_on()

        assert 0 == waiting.hear_json()
        assert [b"patient"] == payloads(queue)


def test_a_stopped_flusher_does_not_stop_a_sync_append_for_ever(queue_path, play):
    """A flush that another process stands still in is done by who waits for it, or told of."""
    with penstock.open(queue_path):
        holding = play("hold", queue_path, "flush")
        holding.expect("held")
        holding.stop()
        stall_ms = STALL // timedelta(milliseconds=1)
        sync = play("append_when_told", queue_path, "sync", stall_ms, "sync")
        sync.expect("ready")
        sync.say("go")
        sync.expect("appending")
        heard = sync.hear_json()

    assert heard == 0 or "stall" in heard.lower()


def test_an_open_that_fails_lets_go_of_everything(queue_path, play):
    """An open that met a stopped writer kept its locks until the end of the process."""
    with penstock.open(queue_path) as queue:
        queue.append(b"before")
    holding = play("hold", queue_path, "append")
    holding.expect("held")
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(WriterStalledError):
        penstock.open(queue_path, stall=STALL)
    left_open = set(Path("/proc/self/fd").iterdir()) - before
    holding.kill()
    with penstock.open(queue_path, exclusive=True) as queue:
        sequence = queue.append(b"alone")

    assert 1 == sequence
    assert set() == left_open


def test_reading_goes_on_while_a_writer_stands_still(queue_path, play):
    """Readers take no lock."""
    with penstock.open(queue_path, stall=STALL) as queue:
        queue.append_many([b"1", b"2"])
        holding = play("hold", queue_path, "append")
        holding.expect("held")
        holding.stop()
        begun = time.monotonic()
        found = [payloads(queue), [m.payload for m in queue.read_from(1).messages]]
        facts = (queue.next_sequence, queue.first_sequence, queue.verify().ok)

        assert [[b"1", b"2"], [b"2"]] == found
        assert (2, 0, True) == facts
        assert time.monotonic() - begun < HANG_SECONDS
