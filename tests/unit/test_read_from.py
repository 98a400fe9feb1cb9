"""Reading a batch from a sequence on, as a server does that keeps no place for its callers."""

import pytest

from penstock import ReadBatch, RetentionPolicy, RollStrategy
from penstock.errors import QueueClosedError, SequenceGoneError
from tests.unit.looking import payloads, sequences


@pytest.fixture
def ten(open_queue):
    """Open a queue of ten messages of 100 bytes in four segments."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    for number in range(10):
        queue.append(b"%d" % number * 100)
    return queue


@pytest.mark.parametrize("sequence", range(10))
def test_a_batch_begins_at_its_sequence(ten, sequence):
    """It goes on over every segment, and says where the next one begins."""
    batch = ten.read_from(sequence)

    assert (list(range(sequence, 10)), 10) == (sequences(batch.messages), batch.next_sequence)


@pytest.mark.parametrize(
    ("bytes_max", "count"),
    [(0, 1), (1, 1), (99, 1), (100, 1), (199, 1), (200, 2), (550, 5), (1000, 10), (1 << 40, 10)],
)
def test_a_batch_has_so_many_bytes_at_most(ten, bytes_max, count):
    """But one message at least."""
    batch = ten.read_from(0, bytes_max)

    assert (list(range(count)), count) == (sequences(batch.messages), batch.next_sequence)


def test_batches_lead_from_one_to_the_next(ten):
    """Nothing is read twice, and the last one has no messages."""
    found, place = [], 0
    while (batch := ten.read_from(place, 250)).messages:
        found.append(sequences(batch.messages))
        place = batch.next_sequence

    assert ([[0, 1], [2, 3], [4, 5], [6, 7], [8, 9]], 10) == (found, place)


@pytest.mark.parametrize("sequence", [10, 11, 1 << 40])
def test_behind_the_end_there_is_nothing_yet(ten, sequence):
    """The same sequence is to be asked for again."""
    assert ReadBatch([], sequence) == ten.read_from(sequence)


def test_an_empty_queue_has_an_empty_batch(queue):
    """It is no error to be early."""
    assert ReadBatch([], 0) == queue.read_from(0)


def test_empty_messages_are_in_a_batch(queue):
    """They take no bytes, and are messages all the same."""
    queue.append_many([b"", b"", b"x", b""])

    assert [b"", b""] == payloads(queue.read_from(0, 0).messages)


def test_below_the_first_message_it_is_gone(ten):
    """The error says where to go on."""
    ten.compact(RetentionPolicy(segments=2))
    with pytest.raises(SequenceGoneError) as error:
        ten.read_from(2)

    assert (2, 6) == (error.value.sequence, error.value.first_sequence)


def test_the_first_message_that_is_left_can_be_read(ten):
    """Where the error pointed to."""
    ten.compact(RetentionPolicy(segments=2))

    assert list(range(6, 10)) == sequences(ten.read_from(6).messages)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_batch_is_found_in_what_another_handle_rolled_since(open_queue, read_only):
    """It began in the last segment that was known, seven messages too early."""
    writer = open_queue(roll=RollStrategy.by_count(5))
    writer.append(b"x")
    looking = open_queue(read_only=read_only)
    for _ in range(19):
        writer.append(b"x")

    assert list(range(12, 20)) == sequences(looking.read_from(12).messages)


def test_a_gap_is_passed_over(open_queue, reboot):
    """Sequences that nobody has are no error; the messages behind them are read."""
    with open_queue() as queue:
        queue.append_many([b"a", b"b"])
    reboot()
    queue = open_queue()
    gap_begins, gap_ends = 2, queue.append(b"c")
    queue_batches = [queue.read_from(place) for place in (0, gap_begins, gap_ends)]

    assert [[b"a", b"b", b"c"], [b"c"], [b"c"]] == [
        payloads(batch.messages) for batch in queue_batches
    ]


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ((-1,), ValueError),
        ((0, -1), ValueError),
        (("0",), TypeError),
        ((1.5,), TypeError),
        ((99.5,), TypeError),
        ((None,), TypeError),
    ],
)
def test_a_place_that_is_none_is_refused(ten, arguments, kind):
    """Before anything is read."""
    with pytest.raises(kind):
        ten.read_from(*arguments)


def test_a_closed_queue_is_not_read(ten):
    """Not even behind its end."""
    ten.close()
    with pytest.raises(QueueClosedError):
        ten.read_from(10)


def test_a_read_only_handle_reads_batches(ten, open_queue):
    """It sees what the writer appends at once."""
    reader = open_queue(read_only=True)
    ten.append(b"new")
    batch = reader.read_from(9)

    assert ([b"9" * 100, b"new"], 11) == (payloads(batch.messages), batch.next_sequence)
