"""What rsketch's own tests of its queue claim, held against ours."""

import itertools

import pytest

from penstock import RollStrategy
from penstock.kernel import LAYOUT
from tests.unit.looking import (
    base_sequences,
    data_files,
    flip,
    frame_bytes,
    header_word,
    payloads,
    sequences,
)


def filled(queue, count):
    """Append numbered messages one by one."""
    for number in range(count):
        queue.append(b"message %d" % number)
    return queue


def test_appender_sequences(queue):
    """The first is 0, and the queue says which comes next."""
    appender = queue.appender()

    assert ([0, 1], 2) == ([appender.append(b"a"), appender.append(b"b")], queue.next_sequence)


def test_append_batch(queue):
    """Ten messages of one call have ten sequences in a row."""
    appended = queue.append_many([b"%d" % number for number in range(10)])

    assert (range(10), [b"%d" % number for number in range(10)]) == (appended, payloads(queue))


def test_appenders_share_one_counter(queue):
    """Two of one queue never get the same sequence."""
    one, other = queue.appender(), queue.appender()

    assert [0, 1, 2, 3] == [each.append(b"x") for each in (one, other, other, one)]


def test_basic_write_and_read(queue):
    """A hundred are written, a hundred are read in order, and then there is nothing yet."""
    tailer = filled(queue, 100).tailer()

    assert ([b"message %d" % number for number in range(100)], None) == (
        payloads(tailer),
        tailer.read(),
    )


def test_reopen(open_queue):
    """Fifty before, fifty after, all hundred in order."""
    with open_queue() as queue:
        filled(queue, 50)
    queue = open_queue()
    before = queue.next_sequence
    filled(queue, 50)

    assert (50, list(range(100))) == (before, sequences(queue.tailer()))


@pytest.mark.parametrize("index_every", [1, 10, 1000])
def test_tailer_at(open_queue, index_every):
    """A tailer begins at the sequence that was asked for, whatever the index has."""
    queue = filled(open_queue(index_every=index_every), 100)

    assert (25, 50) == (queue.tailer(25).read().sequence, queue.tailer(50).read().sequence)


def test_roll_by_count(open_queue, queue_path):
    """Twenty-five messages at ten a segment are three segments, which are read as one."""
    queue = filled(open_queue(roll=RollStrategy.by_count(10)), 25)

    assert ([0, 10, 20], list(range(25))) == (base_sequences(queue_path), sequences(queue.tailer()))


def test_iterator(queue):
    """A tailer is an iterator that ends."""
    taken = payloads(itertools.islice(filled(queue, 20).tailer(), 10))

    assert [b"message %d" % number for number in range(10)] == taken


def test_empty_queue(queue):
    """There is nothing yet."""
    assert queue.tailer().read() is None


def test_a_file_is_preallocated(open_queue, queue_path):
    """Its blocks are there before anything is written to them, so the disk cannot run out later."""
    open_queue()
    facts = data_files(queue_path)[0].stat()

    assert facts.st_blocks * 512 >= facts.st_size


@pytest.mark.parametrize("length", [0, 10, 100])
def test_disk_size(open_queue, queue_path, length):
    """A message takes its payload and 24 bytes, up to a multiple of 8."""
    queue = open_queue(roll=RollStrategy.by_count(1))
    queue.append(b"x" * length)
    queue.append(b"behind")
    end = header_word(data_files(queue_path)[1], "PREVIOUS_END_POSITION")

    assert frame_bytes(b"x" * length) == end - LAYOUT["SEGMENT_HEADER_BYTES"]


@pytest.mark.parametrize(
    ("lowest", "count", "expected"), [(0, 0, 0), (0, 5, 5), (5, 5, 10)], ids=["new", "five", "more"]
)
def test_recovery_counts_on(open_queue, reboot, lowest, count, expected):
    """After a clean close the next sequence is known, also when the machine was off meanwhile."""
    with open_queue() as queue:
        filled(queue, lowest)
    with open_queue() as queue:
        filled(queue, count)
    reboot()

    assert expected == open_queue().next_sequence


def test_recovery_stops_at_a_bad_message(open_queue, queue_path, reboot):
    """The eight before it are good; what was behind is told, and no sequence is used again."""
    queue = open_queue()
    filled(queue, 10)
    place = LAYOUT["SEGMENT_HEADER_BYTES"] + 8 * frame_bytes(b"message 0")
    flip(data_files(queue_path)[0], place + 20)
    reboot()
    # The handle of before the loss of power is not there to close anything.
    (queue_path / ".control").unlink()
    (queue_path / ".lock").unlink()
    recovered = open_queue()
    found = sequences(recovered.tailer())

    assert (list(range(8)), True) == (found, recovered.append(b"new") >= 10)


@pytest.mark.parametrize("damage", ["half", "flip", "empty"])
def test_a_broken_manifest_is_no_end(open_queue, queue_path, damage):
    """What stands in metadata.json is found again in the segments."""
    with open_queue(roll=RollStrategy.by_count(10)) as queue:
        filled(queue, 25)
    path = queue_path / "metadata.json"
    content = path.read_bytes()
    flipped = content.replace(b'"first_number": 1', b'"first_number": 3')
    path.write_bytes({"half": content[:100], "flip": flipped, "empty": b""}[damage])

    assert list(range(25)) == sequences(open_queue().tailer())
