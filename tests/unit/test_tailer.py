"""Tailers: reading what is there, in order, each from a place of its own."""

import pytest

from penstock import RollStrategy
from penstock.errors import QueueClosedError, SequenceUnknownError
from tests.unit.looking import payloads, sequences

ROLLS = [RollStrategy(), RollStrategy.by_count(3)]


@pytest.fixture(params=ROLLS, ids=["one_segment", "many_segments"])
def ten(open_queue, request):
    """Open a queue of ten messages, in one segment or in several."""
    queue = open_queue(roll=request.param)
    for number in range(10):
        queue.append(b"%d" % number)
    return queue


def test_a_tailer_starts_at_the_first_message(ten):
    """Nobody has to say so."""
    assert list(range(10)) == sequences(ten.tailer())


@pytest.mark.parametrize("start", range(11))
def test_a_tailer_starts_at_a_sequence(ten, start):
    """The next message to come is a place too."""
    assert list(range(start, 10)) == sequences(ten.tailer(start=start))


def test_a_tailer_at_the_end_sees_only_what_is_new(ten):
    """Not even the last message."""
    tailer = ten.tailer("end")
    before = tailer.read()
    ten.append(b"new")

    assert (None, [b"new"]) == (before, payloads(tailer))


def test_a_tailer_of_an_empty_queue_waits_for_the_first_message(queue):
    """Start and end are the same place then."""
    tailers = [queue.tailer("start"), queue.tailer("end"), queue.tailer(0)]
    before = [tailer.read() for tailer in tailers]
    queue.append(b"x")

    assert ([None] * 3, [[b"x"]] * 3) == (before, [payloads(tailer) for tailer in tailers])


def test_reading_returns_none_when_there_is_nothing_yet(queue):
    """An empty message is a message, and what comes later is read."""
    tailer = queue.tailer()
    read = [tailer.read()]
    queue.append(b"")
    read += [tailer.read(), tailer.read()]
    queue.append(b"x")
    read += [tailer.read(), tailer.read()]

    assert [None, b"", None, b"x", None] == [message and message.payload for message in read]


def test_iterating_ends_at_what_is_there(ten):
    """It goes on from there when it is asked again."""
    tailer = ten.tailer()
    first = sequences(tailer)
    ten.append_many([b"new"] * 2)

    assert (list(range(10)), [10, 11], []) == (first, sequences(tailer), sequences(tailer))


def test_a_tailer_is_its_own_iterator(ten):
    """A loop that was left is gone on with by the next."""
    tailer = ten.tailer()
    for message in tailer:
        if message.sequence == 3:
            break

    assert (True, [4, 5, 6, 7, 8, 9]) == (iter(tailer) is tailer, sequences(tailer))


def test_next_sequence_is_that_of_the_next_message(ten):
    """Before, between and behind the messages."""
    tailer = ten.tailer()
    places = [tailer.next_sequence]
    places += [tailer.next_sequence for _ in tailer]

    assert list(range(11)) == places


@pytest.mark.parametrize(
    ("count", "expected"), [(0, []), (1, [0]), (4, [0, 1, 2, 3]), (100, list(range(10)))]
)
def test_read_many_reads_so_many_at_most(ten, count, expected):
    """What is there now is enough."""
    assert expected == sequences(ten.tailer().read_many(count))


def test_read_many_goes_on_where_it_ended(ten):
    """No message is read twice and none is left out."""
    tailer = ten.tailer()
    parts = [sequences(tailer.read_many(count)) for count in (4, 1, 4, 4, 4)]

    assert [[0, 1, 2, 3], [4], [5, 6, 7, 8], [9], []] == parts


@pytest.mark.parametrize(
    ("bytes_max", "expected"),
    [(0, [0]), (1, [0]), (99, [0]), (199, [0]), (200, [0, 1]), (450, [0, 1, 2, 3])],
)
def test_read_many_reads_so_many_bytes_at_most(open_queue, bytes_max, expected):
    """But at least one message, so that a large one is no end."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    for size in (100, 100, 100, 100, 100, 0):
        queue.append(b"x" * size)

    assert expected == sequences(queue.tailer().read_many(100, bytes_max=bytes_max))


def test_read_many_counts_no_bytes_for_empty_messages(queue):
    """They always fit."""
    queue.append_many([b"x" * 10, b"", b"", b"y", b""])

    assert [0, 1, 2] == sequences(queue.tailer().read_many(100, bytes_max=10))


@pytest.mark.parametrize("arguments", [{"count": -1}, {"count": 5, "bytes_max": -1}])
def test_read_many_refuses_less_than_nothing(ten, arguments):
    """The sentence names what was wrong."""
    with pytest.raises(ValueError, match=r"count|bytes_max"):
        ten.tailer().read_many(**arguments)


def test_a_bad_read_many_leaves_the_place(ten):
    """What is read next is what would have been."""
    tailer = ten.tailer()
    with pytest.raises(TypeError):
        tailer.read_many("five")

    assert 0 == tailer.read().sequence


def test_tailers_have_places_of_their_own(ten):
    """One does not take messages from another."""
    one, other = ten.tailer(), ten.tailer()
    read = [one.read(), other.read(), one.read(), one.read(), other.read()]

    assert [0, 0, 1, 2, 1] == sequences(read)


def test_a_tailer_sees_what_other_handles_append(open_queue):
    """At once, and in the order of the log."""
    one, other = open_queue(), open_queue()
    tailer = one.tailer()
    read = []
    for number in range(6):
        (one, other)[number % 2].append(b"%d" % number)
        read.append(tailer.read().payload)

    assert [b"0", b"1", b"2", b"3", b"4", b"5"] == read


def test_a_tailer_goes_over_every_roll(open_queue):
    """Read message by message, while the segments are begun before its eyes."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    tailer = queue.tailer()
    read = []
    for number in range(9):
        queue.append(b"%d" % number)
        read.append((tailer.read().payload, tailer.read()))

    assert [(b"%d" % number, None) for number in range(9)] == read


def test_messages_of_many_segments_stay_readable(open_queue):
    """More than a handle keeps open at once."""
    queue = open_queue(roll=RollStrategy.by_count(1))
    contents = [b"%d" % number for number in range(40)]
    for content in contents:
        queue.append(content)
    messages = list(queue.tailer())

    assert (contents, contents) == (
        payloads(messages),
        [bytes(message.view) for message in messages],
    )


@pytest.mark.parametrize("how", ["read", "read_many", "iterate", "seek", "follow", "read_arrow"])
def test_a_closed_queue_is_not_read(ten, how):
    """A tailer that is behind the end of what it knew says so."""
    tailer = ten.tailer("end")
    ten.close()
    ways = {
        "read": tailer.read,
        "read_many": tailer.read_many,
        "iterate": lambda: list(tailer),
        "seek": lambda: tailer.seek(sequence=0),
        "follow": lambda: list(tailer.follow()),
        "read_arrow": tailer.read_arrow,
    }
    with pytest.raises(QueueClosedError):
        ways[how]()


def test_a_tailer_in_the_middle_of_a_closed_queue_ends_with_an_error(ten):
    """It never ends as if there were no more messages."""
    tailer = ten.tailer()
    tailer.read()
    ten.close()
    with pytest.raises(QueueClosedError):
        list(tailer)


def test_a_closed_queue_makes_no_tailer(ten):
    """Whatever it is to start at."""
    ten.close()
    with pytest.raises(QueueClosedError):
        ten.tailer()


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        ("begin", TypeError),
        (1.5, TypeError),
        (None, TypeError),
        (b"start", TypeError),
        (True, TypeError),
        (-1, ValueError),
    ],
)
def test_a_start_that_is_no_place_is_refused(ten, start, kind):
    """The sentence says which there are."""
    with pytest.raises(kind, match=r"start is a sequence|a sequence is 0 or more"):
        ten.tailer(start=start)


def test_a_start_beyond_the_end_is_unknown(ten):
    """The error says what the next append gets."""
    with pytest.raises(SequenceUnknownError) as error:
        ten.tailer(start=11)

    assert (11, 10) == (error.value.sequence, error.value.next_sequence)


@pytest.mark.parametrize("option", ["on_corrupt", "on_gone"])
def test_an_unknown_choice_is_refused(ten, option):
    """The sentence names the choices."""
    with pytest.raises(ValueError, match=f"{option} is one of 'raise', '"):
        ten.tailer(**{option: "ignore"})
