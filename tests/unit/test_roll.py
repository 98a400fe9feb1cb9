"""Rolling: when the active segment is sealed and the next begun, and what the files look like."""

from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import RollStrategy
from penstock.log import directory
from penstock.log.durable import Durability
from penstock.log.roll import NEVER, Bank, is_due, limits
from penstock.log.spare import SpareMaker
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import (
    HEADER_BYTES,
    SEAL_BYTES,
    base_sequences,
    data_files,
    frame_bytes,
    header_word,
    payloads,
)

HOUR = timedelta(hours=1)
MIB = 1 << 20


def put(queue, count, payload=b"x"):
    """Append the same payload so many times."""
    for _ in range(count):
        queue.append(payload)


def clock_at(monkeypatch, moment):
    """Let the clock stand at a moment, said as in ISO 8601."""
    now = datetime.fromisoformat(f"{moment}+00:00")
    monkeypatch.setattr("penstock.clock.now_ns", lambda: int(now.timestamp()) * 10**9)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (RollStrategy(), (9000, NEVER, NEVER)),
        (RollStrategy.by_size(5000), (5000, NEVER, NEVER)),
        (RollStrategy.by_size(10_000), (9000, NEVER, NEVER)),
        (RollStrategy.by_count(10), (9000, 110, NEVER)),
        (RollStrategy.by_time(timedelta(microseconds=3)), (9000, NEVER, 4000)),
        (RollStrategy.by_time(timedelta.max), (9000, NEVER, NEVER)),
        (RollStrategy(5000, timedelta(microseconds=3), 10), (5000, 110, 4000)),
    ],
)
def test_limits_say_where_a_segment_ends(strategy, expected):
    """The capacity is a limit too, and no time is beyond what 63 bits count."""
    assert expected == limits(strategy, capacity=9000, base_sequence=100, begun_at_ns=1000)


def bank(**facts):
    """Make a bank of a segment of sequences from 100 on, with room for ten."""
    words = dict.fromkeys(Bank._fields, 0) | {
        "base_sequence": 100,
        "next_sequence": 105,
        "capacity": 9000,
        "roll_position": 8000,
        "roll_sequence": 110,
        "roll_time": 4000,
    }
    return Bank(**(words | facts))


@pytest.mark.parametrize(
    ("end", "count", "now_ns", "expected"),
    [
        (8000, 5, 3999, False),
        (8001, 5, 3999, True),
        (8000, 6, 3999, True),
        (8000, 5, 4000, True),
    ],
)
def test_a_segment_is_due_at_the_first_limit(end, count, now_ns, expected):
    """Each limit is what the segment may still reach, and not more."""
    assert expected == is_due(bank(), end, count, now_ns)


@pytest.mark.parametrize(("end", "expected"), [(9000, False), (9001, True)])
def test_only_its_capacity_rolls_an_empty_segment(end, expected):
    """Whatever the strategy says, the first append finds its place."""
    assert expected == is_due(bank(next_sequence=100), end, count=50, now_ns=5000)


def test_by_count_rolls_after_so_many(open_queue, queue_path):
    """The segment holds exactly the count."""
    put(open_queue(roll=RollStrategy.by_count(3)), 7)

    assert [0, 3, 6] == base_sequences(queue_path)


def test_by_count_counts_each_message_of_many(open_queue, queue_path):
    """A batch that would go beyond the count comes into the next segment, whole."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    for size in (2, 2, 1, 5, 1):
        queue.append_many([b"x"] * size)

    assert [0, 2, 5, 10] == base_sequences(queue_path)


def test_by_size_rolls_before_the_size(open_queue, queue_path):
    """A segment with its header and its seal never takes more."""
    frame = frame_bytes(b"x" * 100)
    # The first frame behind a flush carries a mark, so nothing is flushed here.
    size = HEADER_BYTES + 5 * frame + SEAL_BYTES
    put(open_queue(roll=RollStrategy.by_size(size)), 11, b"x" * 100)

    assert [0, 5, 10] == base_sequences(queue_path)


def test_by_size_needs_every_byte(open_queue, queue_path):
    """One byte less, and one message less fits."""
    frame = frame_bytes(b"x" * 100)
    size = HEADER_BYTES + 5 * frame + SEAL_BYTES - 1
    put(open_queue(roll=RollStrategy.by_size(size)), 9, b"x" * 100)

    assert [0, 4, 8] == base_sequences(queue_path)


def test_a_size_too_small_for_anything_gives_each_message_a_segment(open_queue, queue_path):
    """It never keeps a message from being appended."""
    put(open_queue(roll=RollStrategy.by_size(1)), 3)

    assert [0, 1, 2] == base_sequences(queue_path)


def test_by_time_rolls_at_the_first_append_behind_it(open_queue, queue_path):
    """An interval that is over with each append gives each a segment."""
    put(open_queue(roll=RollStrategy.by_time(timedelta(microseconds=1))), 3)

    assert [0, 1, 2] == base_sequences(queue_path)


def test_by_time_waits_for_the_time(open_queue, queue_path):
    """Nothing rolls before."""
    put(open_queue(roll=RollStrategy.by_time(HOUR)), 50)

    assert [0] == base_sequences(queue_path)


@pytest.mark.parametrize(
    ("strategies", "expected"),
    [
        ([RollStrategy.by_count(2), RollStrategy.by_time(HOUR), RollStrategy.by_size(MIB)], [0, 2]),
        ([RollStrategy.by_count(50), RollStrategy.by_size(1)], [0, 1, 2, 3]),
        ([RollStrategy.by_time(timedelta(microseconds=1)), RollStrategy.by_count(9)], [0, 1, 2, 3]),
    ],
    ids=["count", "size", "time"],
)
def test_any_of_rolls_at_the_first(open_queue, queue_path, strategies, expected):
    """The others are not waited for."""
    put(open_queue(roll=RollStrategy.any_of(*strategies)), 4)

    assert expected == base_sequences(queue_path)


def test_a_full_segment_rolls_whatever_the_strategy(open_queue, queue_path):
    """A message larger than what is left comes into the next segment."""
    queue = open_queue(roll=RollStrategy.by_count(1000))
    put(queue, 3, b"x" * 40_000)

    assert ([0, 1, 2], 3) == (base_sequences(queue_path), len(payloads(queue)))


def test_a_message_larger_than_a_segment_gets_its_own(open_queue, queue_path):
    """Its neighbours are in segments of the usual size."""
    queue = open_queue()
    contents = [b"before", b"x" * (4 * SEGMENT_BYTES), b"behind" * 1000]
    for content in contents:
        queue.append(content)
    capacities = [header_word(file, "CAPACITY") for file in data_files(queue_path)]

    assert (contents, [SEGMENT_BYTES, True, SEGMENT_BYTES]) == (
        payloads(queue),
        [capacities[0], capacities[1] > 4 * SEGMENT_BYTES, capacities[2]],
    )


def test_a_large_first_message_leaves_an_empty_segment(open_queue):
    """The sequences go on without a gap all the same."""
    queue = open_queue()
    contents = [b"x" * (2 * SEGMENT_BYTES), b"behind"]
    appended = [queue.append(content) for content in contents]

    assert ([0, 1], contents, 0) == (appended, payloads(queue), queue.first_sequence)


def test_each_header_says_where_the_segment_before_ended(open_queue, queue_path):
    """The chain makes a missing or cut segment noticed."""
    put(open_queue(roll=RollStrategy.by_count(2)), 5)
    frames = 2 * frame_bytes(b"x")

    assert [(0, 0, 0), (1, HEADER_BYTES + frames, 2), (2, HEADER_BYTES + frames, 4)] == [
        tuple(
            header_word(file, f"PREVIOUS_{name}")
            for name in ("NUMBER", "END_POSITION", "END_SEQUENCE")
        )
        for file in data_files(queue_path)
    ]


def test_segments_are_named_by_day_and_number(open_queue, queue_path, monkeypatch):
    """The day is that of UTC, and the number goes on over midnight."""
    clock_at(monkeypatch, "2031-12-31T23:59:00")
    queue = open_queue(roll=RollStrategy.by_count(1))
    put(queue, 2)
    clock_at(monkeypatch, "2032-01-01T00:00:00")
    put(queue, 2)

    assert [
        "2031/12/31/20311231-0001.data",
        "2031/12/31/20311231-0002.data",
        "2032/01/01/20320101-0003.data",
        "2032/01/01/20320101-0004.data",
    ] == [str(file.relative_to(queue_path)) for file in data_files(queue_path)]


def test_each_segment_has_its_index_beside_it(open_queue, queue_path):
    """It has the same name with another ending."""
    put(open_queue(roll=RollStrategy.by_count(1)), 3)

    assert [file.with_suffix(".index") for file in data_files(queue_path)] == sorted(
        queue_path.rglob("*.index")
    )


@given(numbers=st.sets(st.integers(1, 123_456), max_size=8))
@settings(max_examples=20, derandomize=True, deadline=None)
def test_numbers_have_four_digits_or_more(tmp_path_factory, numbers):
    """The order is that of the numbers, not of the names."""
    root = tmp_path_factory.mktemp("numbers")
    for number in numbers:
        path = directory.segment_path(root, number, begun_at_ns=number * 10**14)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert sorted(numbers) == list(directory.list_segments(root))


@pytest.mark.usefixtures("tidy_at_once")
def test_a_sealed_segment_is_cut_to_its_messages(open_queue, queue_path, eventually):
    """What was allocated and not used is given back after a while."""
    put(open_queue(roll=RollStrategy.by_count(2)), 5)
    expected = HEADER_BYTES + 2 * frame_bytes(b"x") + SEAL_BYTES
    sealed = data_files(queue_path)[:2]
    eventually(lambda: all(file.stat().st_size < SEGMENT_BYTES for file in sealed))

    assert [expected, expected] == [file.stat().st_size for file in sealed]


@pytest.mark.usefixtures("tidy_at_once")
def test_a_spare_is_kept_ready(open_queue, queue_path, eventually):
    """The next roll need not wait for one to be made."""
    queue = open_queue()
    put(queue, 1)
    spare = queue_path / directory.SPARE
    eventually(spare.exists)
    inode = spare.stat().st_ino
    put(queue, 2, b"x" * 40_000)

    assert inode == data_files(queue_path)[1].stat().st_ino


@pytest.mark.usefixtures("tidy_at_once")
def test_handles_with_different_sizes_do_not_replace_each_others_spare(
    open_queue, eventually, monkeypatch
):
    """They did so in turns for ever, each time with a new file forced to the disk."""
    make, flush_sealed = SpareMaker._make, Durability.flush_sealed
    made: list[Path] = []
    rounds: Counter[Durability] = Counter()

    def make_and_tell(*arguments):
        made.append(make(*arguments))
        return made[-1]

    def count_rounds(durability):
        rounds[durability] += 1
        flush_sealed(durability)

    monkeypatch.setattr(SpareMaker, "_make", make_and_tell)
    monkeypatch.setattr(Durability, "flush_sealed", count_rounds)
    handles = [open_queue(segment_bytes=size) for size in (SEGMENT_BYTES, 2 * SEGMENT_BYTES)]
    put(handles[0], 1)
    rounds.clear()
    eventually(lambda: len(rounds) == 2 and min(rounds.values()) > 5)

    # One for the first segment, and one to be ready.
    assert len(made) <= 2


def test_an_empty_queue_takes_little_disk(queue_path):
    """Though its segments may grow to a gigabyte, it takes at most 2 MiB while it is open."""
    with penstock.open(queue_path):
        taken = directory.disk_bytes(queue_path)

    assert taken <= 2 * MIB


@pytest.mark.usefixtures("tidy_at_once")
def test_closing_the_last_handle_gives_back_what_is_unused(queue_path, eventually):
    """Before, there are blocks ahead of the appenders, and a spare."""
    queue = penstock.open(queue_path)
    put(queue, 1)
    eventually((queue_path / directory.SPARE).exists)
    other = penstock.open(queue_path)
    other.close()
    before = directory.disk_bytes(queue_path)
    queue.close()

    assert (True, True) == (before >= 2 * MIB, directory.disk_bytes(queue_path) < MIB // 8)


def test_a_queue_that_was_cut_grows_again(open_queue):
    """The blocks that were given back are had again when they are needed."""
    contents = [bytes([number]) * 9000 for number in range(20)]
    for content in contents:
        with open_queue(exclusive=True) as queue:
            queue.append(content)

    assert contents == payloads(open_queue())
