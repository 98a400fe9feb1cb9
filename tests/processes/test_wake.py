"""A reader that sleeps in another process is woken by whatever there is to read."""

import pytest

import penstock
from penstock import RollStrategy
from penstock.kernel import LAYOUT
from tests.processes.children import state_of, until

pytestmark = pytest.mark.slow

WAKE_AT = LAYOUT["CONTROL_WAKE_AT"]


@pytest.fixture
def queue(queue_path):
    """Open a queue that rolls at every third message."""
    with penstock.open(queue_path, roll=RollStrategy.by_count(3)) as queue:
        yield queue


def wake_word(queue):
    """Read the word that sleepers mark and appenders turn; it is odd while someone sleeps."""
    return queue._log.control.load(WAKE_AT) & 0xFFFFFFFF


def wait_for_sleep(queue, *readers):
    """Wait until somebody sleeps, and all of these do."""
    until(
        lambda: wake_word(queue) % 2 and all(state_of(each.pid) == "S" for each in readers),
        "the readers' sleep",
    )


def append_one(queue):
    """Append one message."""
    queue.append(b"one")
    return ["one"]


def append_several(queue):
    """Append several as one."""
    queue.append_many([b"1", b"2"])
    return ["1", "2"]


def append_over_rolls(queue):
    """Append so many that the queue rolls more than once."""
    for number in range(8):
        queue.append(f"{number}".encode())
    return [f"{number}" for number in range(8)]


@pytest.mark.parametrize("append", [append_one, append_several, append_over_rolls])
@pytest.mark.parametrize("start", ["start", "end"])
def test_a_sleeping_reader_is_woken(queue, play, append, start):
    """The appender turns the word that the sleeper marked, and the sleeper reads on."""
    reader = play("follow", queue.path, "writing", start)
    reader.expect("ready")
    wait_for_sleep(queue, reader)
    before = wake_word(queue)
    expected = append(queue)
    heard = [reader.hear() for _ in expected]

    assert expected == heard
    assert before != wake_word(queue)


def test_all_who_sleep_are_woken(queue, play):
    """One append is for every reader."""
    readers = [play("follow", queue.path, "writing", "end") for _ in range(4)]
    for reader in readers:
        reader.expect("ready")
    heard = []
    for number in range(10):
        wait_for_sleep(queue, *readers)
        queue.append(f"{number}".encode())
        heard.append({reader.hear() for reader in readers})

    assert [{f"{number}"} for number in range(10)] == heard


def test_a_reader_is_woken_by_an_appender_that_dies_at_once(queue, play):
    """What is published is read, though nobody lives to tell of it."""
    reader = play("follow", queue.path, "writing", "end")
    reader.expect("ready")
    wait_for_sleep(queue, reader)
    play("append_partly", queue.path, "counted", "last words").wait()
    # Who next takes the lock counts what the dead one had published.
    queue.append(b"next")

    assert ["last words", "next"] == [reader.hear(), reader.hear()]


def test_following_ends_when_nothing_came_for_a_while(queue, play):
    """The timeout counts from the last message."""
    queue.append(b"there")
    reader = play("follow", queue.path, "writing", "start", 50)
    reader.expect("ready")

    assert ["there", "over"] == [reader.hear(), reader.hear()]
    assert 0 == reader.wait()
