"""What a queue tells about itself."""

import os
import signal

import pytest

from penstock import RetentionPolicy, RollStrategy
from penstock.errors import QueueClosedError
from penstock.log import directory


def test_a_new_queue_is_empty(queue):
    """All sequences are the first."""
    stats = queue.stats()

    assert (0, 0, 0, 0, 1, 0, (os.getpid(),), None) == (
        *(stats.first_sequence, stats.next_sequence, stats.durable_sequence, stats.durability_lag),
        *(stats.segments, stats.takeovers, stats.pids, stats.poisoned),
    )


def test_stats_follow_the_queue(open_queue):
    """Appends, rolls, a flush and a compaction show in them."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    for _ in range(7):
        queue.append(b"x")
    queue.flush()
    queue.append(b"x")
    queue.compact(RetentionPolicy(segments=2))
    stats = queue.stats()

    assert (4, 8, 7, 1, 2) == (
        *(stats.first_sequence, stats.next_sequence, stats.durable_sequence, stats.durability_lag),
        stats.segments,
    )


@pytest.mark.parametrize("read_only", [True, False])
def test_every_handle_tells_the_same(open_queue, read_only):
    """Also of segments that another handle began, and processes that came later."""
    queue, other = open_queue(roll=RollStrategy.by_count(1)), open_queue(read_only=read_only)
    for _ in range(5):
        queue.append(b"x")
    # Sealed segments become durable by themselves, at a moment that is nobody's to say.
    queue.flush()
    one, two = queue.stats(), other.stats()

    assert (one.next_sequence, one.segments, one.durable_sequence, one.pids) == (
        *(two.next_sequence, two.segments, two.durable_sequence),
        two.pids,
    )


@pytest.mark.usefixtures("tidy_at_once")
def test_disk_bytes_are_those_of_all_files(queue, queue_path, eventually):
    """The spare and the lock included."""
    queue.append(b"x")
    eventually((queue_path / directory.SPARE).exists)

    assert queue.stats().disk_bytes == sum(
        path.stat().st_blocks * 512 for path in queue_path.rglob("*") if path.is_file()
    )


def test_each_handle_is_named_by_its_process(open_queue):
    """One entry for each that may append; those that only read are not named."""
    queue = open_queue()
    other, _reader = open_queue(), open_queue(read_only=True)
    before = queue.stats().pids
    other.close()

    assert ((os.getpid(),) * 2, (os.getpid(),)) == (before, queue.stats().pids)


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [True, False])
def test_no_dead_process_is_named(queue_path, open_queue, start_python, read_only):
    """A killed one leaves its number behind, but not its lock."""
    script = """
        import sys, penstock
        with penstock.open(sys.argv[1]) as queue:
            print("open", flush=True)
            sys.stdin.read()
    """
    staying = open_queue()
    looking = open_queue(read_only=True) if read_only else staying
    process = start_python(script, queue_path)
    process.stdout.readline()
    before = set(looking.stats().pids)
    process.send_signal(signal.SIGKILL)
    process.wait()

    assert ({os.getpid(), process.pid}, {os.getpid()}) == (before, set(looking.stats().pids))


def test_a_closed_queue_tells_nothing(queue):
    """Every question is an error."""
    queue.close()
    refused = 0
    for ask in (
        queue.stats,
        lambda: queue.first_sequence,
        lambda: queue.next_sequence,
        lambda: queue.durable_sequence,
    ):
        with pytest.raises(QueueClosedError):
            ask()
        refused += 1

    assert 4 == refused


def test_a_closed_queue_still_says_which_it_was(queue, queue_path):
    """A log line about it should not fail."""
    opened = repr(queue)
    queue.close()

    assert (
        f"<Queue {queue_path}: next is 0>",
        f"<Queue {queue_path}: closed>",
        queue_path,
    ) == (opened, repr(queue), queue.path)
