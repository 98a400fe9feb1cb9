"""Whoever dies holding a lock is proven dead, what it left is mended, and the others go on."""

import time

import pytest

import penstock
from penstock import FlushMode

pytestmark = pytest.mark.slow


@pytest.fixture
def queue(queue_path):
    """Open a queue that has one message."""
    with penstock.open(queue_path) as queue:
        queue.append(b"before")
        yield queue


def payloads(queue: penstock.Queue) -> list[bytes]:
    """Read all there is, from the start."""
    return [message.payload for message in queue.tailer()]


@pytest.mark.parametrize("lock", ["append", "flush", "maintenance"])
def test_the_others_go_on_when_the_owner_of_a_lock_was_killed(queue_path, play, lock):
    """No lock outlives its owner, and each takeover is counted."""
    with penstock.open(queue_path, flush=FlushMode.SYNC) as queue:
        queue.append(b"before")
        play("die_holding", queue_path, lock).wait()
        begun = time.monotonic()
        queue.append(b"after")
        queue.flush()
        queue.compact(penstock.RetentionPolicy(segments=10))
        took_ms = (time.monotonic() - begun) * 1000
        print(f"\nthe {lock} lock of a dead process was free again after {took_ms:.1f} ms")

        assert 1 <= queue.stats().takeovers
        assert [b"before", b"after"] == payloads(queue)


@pytest.mark.parametrize(
    ("stage", "found"),
    [
        ("written", [b"before", b"after"]),
        ("published", [b"before", b"1", b"2", b"3", b"after"]),
        ("counted", [b"before", b"1", b"2", b"3", b"after"]),
    ],
)
def test_an_append_that_was_cut_short_counts_whole_or_not_at_all(queue, play, stage, found):
    """What a dead writer had published counts, what it had not leaves no trace."""
    play("append_partly", queue.path, stage, "1", "2", "3").wait()
    sequence = queue.append(b"after")

    assert len(found) - 1 == sequence
    assert found == payloads(queue)
    assert () == queue.verify().faults


@pytest.mark.parametrize(
    ("stage", "found"),
    [
        ("written", [b"before", b"after"]),
        ("published", [b"before", b"1", b"2", b"after"]),
        ("counted", [b"before", b"1", b"2", b"after"]),
    ],
)
def test_the_last_close_counts_what_a_dead_writer_published(queue, play, stage, found):
    """The last close took the lock over and forgot to mend: a published message was lost."""
    play("append_partly", queue.path, stage, "1", "2").wait()
    queue.close()
    with penstock.open(queue.path) as again:
        again.append(b"after")
        # One behind the other shows whether anything dirty was left there.
        again.append(b"later")

        assert [*found, b"later"] == payloads(again)
        assert () == again.verify().faults
        assert 1 == again.stats().segments


@pytest.mark.parametrize("stage", ["written", "published", "counted"])
def test_what_a_dead_writer_left_is_mended_when_nobody_else_was_there(queue_path, play, stage):
    """The next to open takes the lock over from a process that died alone."""
    play("append_partly", queue_path, stage, "1", "2").wait()
    with penstock.open(queue_path) as queue:
        queue.append(b"after")
        published = [] if stage == "written" else [b"1", b"2"]

        assert [*published, b"after"] == payloads(queue)
        assert () == queue.verify().faults


def test_an_append_many_that_was_cut_short_stays_away_when_the_page_is_lost(queue, play):
    """Frames behind the one that was never published came back, and the first read as damage."""
    play("append_partly", queue.path, "written", "1", "2", "3").wait()
    queue.close()
    (queue.path / ".control").unlink()
    with penstock.open(queue.path) as again:
        again.append(b"after")

        assert [b"before", b"after"] == payloads(again)
        assert () == again.verify().faults


@pytest.mark.parametrize("stage", ["published", "counted"])
def test_a_reader_in_the_middle_of_an_append_sees_a_healthy_log(queue, play, stage):
    """The place of the end and its sequence were of two moments, and a tailer called it damage."""
    appending = play("stay_in_append", queue.path, stage, "1", "2")
    appending.expect("within")
    at_end = queue.tailer("end")
    read = at_end.read()
    faults = queue.verify().faults
    appending.say("go on")
    appending.expect("done")

    assert (None, ()) == (read, faults)
    assert [] == [message for message in at_end if message.payload not in (b"1", b"2")]
    assert [b"before", b"1", b"2"] == payloads(queue)


def test_the_place_of_a_dead_handle_is_given_to_the_next(queue_path, play):
    """Slots are for the living: as many may die as will."""
    with penstock.open(queue_path) as queue:
        for _ in range(3):
            play("die_holding", queue_path, "append").wait()
        alive = len(queue.stats().pids)

        assert 1 == alive
        assert 0 == queue.append(b"after")


@pytest.mark.parametrize("read_only", [False, True], ids=["writer", "reader"])
def test_the_segment_of_a_roll_that_was_cut_short_is_not_kept(queue_path, play, read_only):
    """Who saw it at open had mapped it, and read there when another had begun it anew."""
    play("create", queue_path, 1).wait()
    with penstock.open(queue_path) as queue:
        queue.append(b"before")
    play("die_in_roll", queue_path, "killed").wait()
    with (
        penstock.open(queue_path, read_only=read_only) as first,
        penstock.open(queue_path) as second,
    ):
        tailer = first.tailer()
        second.append(b"second")
        (second if read_only else first).append(b"first")
        read = [message.payload for message in tailer]

        assert [b"before", b"second", b"first"] == payloads(second) == read
        assert () == second.verify().faults


def test_a_compact_that_was_cut_short_is_ended_by_the_next(queue_path, play):
    """What had been dropped was still there for some ways to read, and its files for ever."""
    play("create", queue_path, 1).wait()
    with penstock.open(queue_path) as queue:
        for number in range(6):
            queue.append(f"{number}".encode())
    play("die_in_compact", queue_path, 3).wait()
    with penstock.open(queue_path) as queue:
        read = [message.sequence for message in queue.tailer()]
        told = (queue.first_sequence, queue.verify().messages, queue.read_from(4).next_sequence)
        with pytest.raises(penstock.errors.SequenceGoneError):
            queue.tailer(0)
        queue.compact(penstock.RetentionPolicy(segments=1000))
        files = len(list(queue_path.rglob("*.data")))

        assert [3, 4, 5] == read
        assert (3, 3, 6) == told
        assert queue.stats().segments == files
        assert files < 6
