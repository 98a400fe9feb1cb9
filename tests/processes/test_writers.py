"""Several processes append to one queue, open it and close it at once, and nothing is lost."""

import itertools
import json

import pytest

import penstock
from penstock import RollStrategy
from tests.processes.children import HANG_SECONDS

pytestmark = pytest.mark.slow

ROLL = RollStrategy.by_count(97)
SEGMENT_BYTES = 1 << 16


def begin_together(children):
    """Let processes begin that have said that they are ready."""
    for child in children:
        child.expect("ready")
    for child in children:
        child.say("go")


def found_by_sequence(queue):
    """Read everything, by its sequence."""
    return {message.sequence: message.payload.decode() for message in queue.tailer()}


@pytest.mark.parametrize("count", [2, 4])
def test_what_processes_append_at_once_is_all_there(queue_path, play, count):
    """Each sequence that was returned names its message, and none is used twice."""
    with penstock.open(queue_path, roll=ROLL, segment_bytes=SEGMENT_BYTES) as queue:
        children = [play("append", queue_path, name, 1500) for name in "abcd"[:count]]
        begin_together(children)
        given = {name: child.hear_json() for name, child in zip("abcd", children, strict=False)}
        expected = {
            sequence: f"{name} {number}"
            for name, sequences in given.items()
            for number, sequence in enumerate(sequences)
        }

        assert 1500 * count == len(expected)
        assert expected == found_by_sequence(queue)
        assert list(range(1500 * count)) == sorted(expected)
        assert all(sequences == sorted(sequences) for sequences in given.values())
        assert () == queue.verify().faults


def test_sync_and_other_appenders_share_a_queue(queue_path, play):
    """The flush mode is each process's own."""
    with penstock.open(queue_path, roll=ROLL, segment_bytes=SEGMENT_BYTES) as queue:
        modes = ["sync", "batch", "async"]
        children = [play("append", queue_path, mode, 300, mode) for mode in modes]
        begin_together(children)
        given = [child.hear_json() for child in children]

        assert list(range(900)) == sorted(itertools.chain(*given))
        assert 900 == len(found_by_sequence(queue))
        assert max(given[0]) < queue.durable_sequence


def test_openers_and_closers_at_once_lose_nothing(queue_path, play):
    """The last one out cuts the segment while the next comes in."""
    children = [play("open_and_close", queue_path, name, 25) for name in "abc"]
    begin_together(children)
    given = {name: child.hear_json() for name, child in zip("abc", children, strict=True)}
    expected = {
        sequence: f"{name} {number}"
        for name, sequences in given.items()
        for number, sequence in enumerate(sequences)
    }
    with penstock.open(queue_path) as queue:
        assert list(range(75)) == sorted(expected)
        assert expected == found_by_sequence(queue)
        assert () == queue.verify().faults


def test_a_first_open_that_8_processes_race_for_makes_one_queue(queue_path, play):
    """Whoever comes second joins what the first one made."""
    children = [play("open_first", queue_path) for _ in range(8)]
    begin_together(children)
    heard = [child.hear_json() for child in children]
    queue_id = json.loads((queue_path / "metadata.json").read_text())["queue_id"]
    with penstock.open(queue_path) as queue:
        stats = queue.stats()

    assert {queue_id.replace("-", "")} == {each for each, _ in heard}
    assert list(range(8)) == sorted(sequence for _, sequence in heard)
    assert (1, 9) == (stats.segments, len(stats.pids))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_queue_whose_messages_end_with_a_page_opens_again(queue_path, count):
    """The last close cut the file there, and the next open looked behind its end."""
    with penstock.open(queue_path) as queue:
        for _ in range(count):
            queue.append(b"x" * (4096 - 24))
    with penstock.open(queue_path) as queue:
        position = queue._log.host.bank().position
        sequence = queue.append(b"next")
    penstock.open(queue_path).close()

    assert (0, count) == (position % 4096, sequence)


def test_no_wait_in_these_tests_is_without_end():
    """A child that hangs fails its test before pytest gives up on it."""
    assert HANG_SECONDS < 60
