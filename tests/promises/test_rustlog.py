"""What RustLog promises of its storage, as far as it is about the log: its tests, in our words."""

import pytest

from penstock import ReadBatch, RetentionPolicy, RollStrategy
from penstock.errors import SequenceGoneError
from tests.unit.looking import base_sequences, payloads, sequences


@pytest.fixture
def gapped(open_queue, reboot):
    """Open a queue with a gap behind messages 0 to 5, as a power cut leaves it."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        for number in range(6):
            queue.append(b"%d" % number * 22)
    (queue.path / ".control").unlink()
    reboot()
    queue = open_queue(roll=RollStrategy.by_count(2))
    behind = [queue.append(b"%d" % number * 22) for number in range(6, 10)]
    return queue, behind


def test_sequences_grow_by_one(queue):
    """From the base of the segment on."""
    assert [0, 1, 2] == [queue.append(payload) for payload in (b"one", b"two", b"three")]


def test_an_empty_payload_uses_a_sequence(queue):
    """It is a message like any other."""
    queue.append(b"")

    assert (1, ReadBatch) == (queue.append(b"x"), type(queue.read_from(0)))


@pytest.mark.parametrize(
    ("bytes_max", "expected"), [(50, 2), (44, 2), (43, 1), (66, 3), (21, 1), (0, 1)]
)
def test_bytes_max_is_soft(queue, bytes_max, expected):
    """Messages of 22 bytes: as many as fit, and one at least."""
    queue.append_many([b"x" * 22] * 5)
    batch = queue.read_from(0, bytes_max)

    assert (expected, expected) == (len(batch.messages), batch.next_sequence)


def test_batches_go_on_over_segments(open_queue):
    """Two, then two more, then the rest: next_sequence is where to ask."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    for _ in range(5):
        queue.append(b"x" * 16)
    found, place = [], 0
    while (batch := queue.read_from(place, 32)).messages:
        found.append(sequences(batch.messages))
        place = batch.next_sequence

    assert [[0, 1], [2, 3], [4]] == found


def test_from_the_middle_of_a_segment(open_queue):
    """Whether or not the index has it."""
    queue = open_queue(index_every=4)
    queue.append_many([b"x"] * 11)

    assert [list(range(at, 11)) for at in range(11)] == [
        sequences(queue.read_from(at).messages) for at in range(11)
    ]


def test_sealed_and_active_segments_are_read_as_one(open_queue, queue_path):
    """A reopened sealed segment was taken for empty, and 65 of 135 were read."""
    with open_queue(roll=RollStrategy.by_count(50)) as queue:
        for number in range(135):
            queue.append(b"%d" % number)
    queue = open_queue()
    batch = queue.read_from(0)

    assert ([0, 50, 100], [b"%d" % number for number in range(135)], 135) == (
        base_sequences(queue_path),
        payloads(batch.messages),
        batch.next_sequence,
    )


def test_below_the_first_message_is_an_error(open_queue):
    """It says both what was asked for and what there is."""
    queue = open_queue(roll=RollStrategy.by_count(50))
    for _ in range(110):
        queue.append(b"x")
    queue.compact(RetentionPolicy(segments=2))
    with pytest.raises(SequenceGoneError) as error:
        queue.read_from(49)

    assert (49, 50) == (error.value.sequence, error.value.first_sequence)


@pytest.mark.parametrize("ahead", [0, 1, 1000])
def test_beyond_the_end_there_is_nothing_yet(queue, ahead):
    """The same place is to be asked for again."""
    queue.append_many([b"x"] * 3)

    assert ReadBatch([], 3 + ahead) == queue.read_from(3 + ahead)


def test_in_a_gap_the_next_message_follows(gapped):
    """Anywhere in it, from its first sequence to its last."""
    queue, behind = gapped
    places = [6, 7, behind[0] // 2, behind[0] - 1]

    assert (True, [behind] * 4) == (
        behind[0] > 100,
        [sequences(queue.read_from(place).messages) for place in places],
    )


def test_a_batch_goes_over_a_gap(gapped):
    """The message before it and the one behind it may be in one."""
    queue, behind = gapped

    assert ([4, 5, behind[0]], behind[0] + 1) == (
        sequences(queue.read_from(4, 66).messages),
        queue.read_from(4, 66).next_sequence,
    )


def test_a_batch_may_end_before_a_gap(gapped):
    """What it says is next is in the gap, and leads over it."""
    queue, behind = gapped
    before = queue.read_from(4, 44)

    assert ([4, 5], 6, behind) == (
        sequences(before.messages),
        before.next_sequence,
        sequences(queue.read_from(before.next_sequence).messages),
    )


def test_the_next_sequence_after_a_reopen_is_not_used_before(open_queue):
    """It was the base of the segment again, so that two messages had one number."""
    told = []
    for _ in range(4):
        with open_queue() as queue:
            told += [queue.append(b"x") for _ in range(3)]

    assert list(range(12)) == told


def test_a_sealed_segment_takes_no_more(open_queue, queue_path):
    """Nothing refused it there; here its bytes are the same for ever."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    queue.append_many([b"x"] * 2)
    queue.append(b"y")
    first = min(queue_path.rglob("*.data"))
    before = first.read_bytes().rstrip(b"\0")
    for _ in range(10):
        queue.append(b"z")
    queue.close()

    assert before == first.read_bytes().rstrip(b"\0")


def test_payloads_may_be_larger_than_ten_megabytes(open_queue):
    """There, reading an active segment refused what a sealed one gave out."""
    queue = open_queue()
    queue.append(bytes(11 << 20))
    queue.append(b"x" * 100_000)

    assert [11 << 20, 100_000] == [len(message.view) for message in queue.tailer()]
