"""Seeking: by sequence and by time, over any number of segments."""

import random
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import RollStrategy
from penstock.errors import SequenceUnknownError
from penstock.message import ns_of
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import data_files, sequences

MICROSECOND = timedelta(microseconds=1)
LONG_AGO = datetime(1970, 1, 1, tzinfo=timezone.utc)
FAR_OFF = datetime(2200, 1, 1, tzinfo=timezone.utc)
COUNT = 500


@pytest.fixture(scope="module", params=[1, 7, 1024], ids="index_every_{}".format)
def filled(request, tmp_path_factory):
    """Fill many segments of different lengths, with different densities of the index."""
    path = tmp_path_factory.mktemp("seek") / "queue"
    lengths = random.Random(7)
    with penstock.open(path, segment_bytes=SEGMENT_BYTES, index_every=request.param) as queue:
        for _ in range(COUNT):
            queue.append(b"x" * lengths.randrange(3000))
        assert len(data_files(path)) > 10
        yield queue


@pytest.fixture(scope="module")
def times(filled):
    """List the time of each message."""
    return [message.timestamp_ns for message in filled.tailer()]


def test_every_sequence_is_found(filled):
    """In any order, with one tailer."""
    wanted = random.Random(7).sample(range(COUNT), COUNT)
    tailer = filled.tailer()
    found = []
    for sequence in wanted:
        tailer.seek(sequence=sequence)
        found.append(tailer.read().sequence)

    assert wanted == found


def test_seeking_leaves_the_rest_of_the_way(filled):
    """All that follows is read from there."""
    tailer = filled.tailer("end")
    tailer.seek(sequence=COUNT // 2)

    assert list(range(COUNT // 2, COUNT)) == sequences(tailer)


def test_the_end_is_a_place(filled):
    """There is nothing to read there yet."""
    tailer = filled.tailer()
    tailer.seek(sequence=COUNT)

    assert (COUNT, None) == (tailer.next_sequence, tailer.read())


def test_every_time_is_found(filled, times):
    """What comes is the first message at that time or after, and all that follow."""
    tailer = filled.tailer()
    found, expected = [], []
    for message in list(filled.tailer()):
        tailer.seek(time=message.timestamp)
        found.append(tailer.read().sequence)
        asked = ns_of(message.timestamp)
        expected.append(next(at for at, time in enumerate(times) if time >= asked))

    assert expected == found


@given(data=st.data())
@settings(max_examples=60, derandomize=True, deadline=None)
def test_any_time_between_two_messages_is_found(filled, times, data):
    """The first message at that time or after comes next."""
    before = times[0] // 1000 - 5
    asked = LONG_AGO + data.draw(st.integers(before, times[-1] // 1000 + 5)) * MICROSECOND
    expected = next((at for at, time in enumerate(times) if time >= ns_of(asked)), None)
    message = filled.tailer(start=asked).read()

    assert expected == (message and message.sequence)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("by", ["sequence", "time"])
def test_what_another_handle_rolled_since_is_found(open_queue, read_only, by):
    """The list of segments was that of the last look, and the place in an older one."""
    writer = open_queue(roll=RollStrategy.by_count(5))
    writer.append(b"x")
    looking = open_queue(read_only=read_only)
    found = []
    for _ in range(3):
        for _ in range(20):
            writer.append(b"x")
        wanted = writer.next_sequence - 7
        place = wanted if by == "sequence" else writer.tailer(start=wanted).read().timestamp
        found.append((wanted, looking.tailer(start=place).read().timestamp))

    assert found == [(at, writer.tailer(start=at).read().timestamp) for at, _ in found]


def test_a_time_before_everything_is_the_start(filled):
    """However long ago."""
    assert 0 == filled.tailer(start=LONG_AGO).read().sequence


def test_a_time_behind_everything_is_the_end(open_queue):
    """What is appended next is read, though it is from before that time."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    queue.append_many([b"x"] * 3)
    tailer = queue.tailer(start=FAR_OFF)
    before = tailer.read()
    queue.append(b"x")

    assert (None, 3) == (before, tailer.read().sequence)


def test_a_time_in_an_empty_queue_is_the_start(queue):
    """Both before and behind there is nothing."""
    tailers = [queue.tailer(start=LONG_AGO), queue.tailer(start=FAR_OFF)]
    queue.append(b"x")

    assert [[0], [0]] == [sequences(tailer) for tailer in tailers]


def test_a_time_is_the_same_in_every_zone(filled, times):
    """Only the moment counts."""
    zone = timezone(timedelta(hours=5, minutes=45))
    middle = filled.tailer(start=COUNT // 2).read().timestamp
    expected = next(at for at, time in enumerate(times) if time >= ns_of(middle))

    assert expected == filled.tailer(start=middle.astimezone(zone)).read().sequence


def test_the_first_of_many_messages_of_one_time_is_found(open_queue, monkeypatch):
    """Where a clock stands still, one time reaches over several segments."""
    standing = int(FAR_OFF.timestamp()) * 10**9
    monkeypatch.setattr("penstock.clock.now_ns", lambda: standing)
    queue = open_queue(roll=RollStrategy.by_count(3))
    for _ in range(10):
        queue.append(b"x")

    assert list(range(10)) == sequences(queue.tailer(start=FAR_OFF))


def test_time_never_goes_back(open_queue, monkeypatch):
    """When the clock is set back, messages keep the last time until it has caught up."""
    monkeypatch.setattr("penstock.clock.now_ns", lambda: int(FAR_OFF.timestamp()) * 10**9)
    queue = open_queue(roll=RollStrategy.by_count(3))
    queue.append(b"x")
    monkeypatch.undo()
    for _ in range(9):
        queue.append(b"x")

    assert [FAR_OFF] * 10 == [message.timestamp for message in queue.tailer()]


@pytest.mark.parametrize(
    ("place", "kind", "words"),
    [
        ({}, TypeError, "seek takes either sequence= or time="),
        ({"sequence": 1, "time": FAR_OFF}, TypeError, "seek takes either sequence= or time="),
        ({"sequence": -1}, ValueError, "a sequence is 0 or more, not -1"),
        ({"sequence": 1.5}, TypeError, "integer"),
        ({"sequence": "1"}, TypeError, "integer"),
        ({"time": 5}, TypeError, "datetime"),
        ({"time": "now"}, TypeError, "datetime"),
        ({"time": datetime(2026, 1, 1)}, ValueError, "has no time zone"),  # noqa: DTZ001
        ({"sequence": COUNT + 1}, SequenceUnknownError, "start at 'end'"),
    ],
    ids=["nothing", "both", "negative", "float", "str", "int", "word", "naive", "unknown"],
)
def test_a_place_that_is_none_is_refused(filled, place, kind, words):
    """The tailer stays where it was."""
    tailer = filled.tailer(start=3)
    with pytest.raises(kind, match=words):
        tailer.seek(**place)

    assert 3 == tailer.read().sequence


def test_seeking_needs_no_index(open_queue, queue_path):
    """It is a cache: without it the way is only longer."""
    with open_queue(roll=RollStrategy.by_count(10), index_every=2) as queue:
        for _ in range(35):
            queue.append(b"x")
    for index in queue_path.rglob("*.index"):
        index.unlink()
    reopened = open_queue()

    assert list(range(35)) == [reopened.tailer(start=at).read().sequence for at in range(35)]


def test_seeking_does_not_believe_a_false_index(open_queue, queue_path):
    """An entry counts only if a true frame with its number stands there."""
    with open_queue(index_every=2) as queue:
        for number in range(35):
            queue.append(b"%d" % number)
    for index in queue_path.rglob("*.index"):
        content = index.read_bytes()
        index.write_bytes(content[:256] + content[272:] + content[256:272])
    reopened = open_queue()

    assert [b"%d" % at for at in range(35)] == [
        reopened.tailer(start=at).read().payload for at in range(35)
    ]
