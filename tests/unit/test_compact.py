"""Retention: which segments may go, and what their readers see."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import CompactResult, RetentionPolicy, RollStrategy
from penstock.errors import QueueClosedError, ReadOnlyError, SequenceGoneError
from penstock.log import directory
from penstock.log.compact import SealedSegment, segments_to_drop
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import base_sequences, data_files, payloads, sequences

NOW_NS = 10**18
DAY = timedelta(days=1)
DAY_NS = 86_400 * 10**9


@pytest.fixture
def pairs(open_queue):
    """Open a queue of twenty messages, two in each segment."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    for number in range(20):
        queue.append(b"%d" % number)
    return queue


def sealed(*facts):
    """Make sealed segments, numbered from 1, of (bytes, days since they ended)."""
    return [
        SealedSegment(number, size, NOW_NS - days * DAY_NS)
        for number, (size, days) in enumerate(facts, start=1)
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RetentionPolicy(), []),
        (RetentionPolicy(age=4 * DAY), []),
        (RetentionPolicy(age=3 * DAY), [1]),
        (RetentionPolicy(age=timedelta(seconds=1)), [1, 2, 3]),
        (RetentionPolicy(bytes=70), []),
        (RetentionPolicy(bytes=69), [1]),
        (RetentionPolicy(bytes=60), [1]),
        (RetentionPolicy(bytes=59), [1, 2]),
        (RetentionPolicy(bytes=1), [1, 2, 3]),
        (RetentionPolicy(segments=4), []),
        (RetentionPolicy(segments=3), [1]),
        (RetentionPolicy(segments=1), [1, 2, 3]),
        (RetentionPolicy(segments=1, segments_min=3), [1]),
        (RetentionPolicy(bytes=1, segments_min=9), []),
        (RetentionPolicy(age=3 * DAY, segments=2), [1, 2]),
    ],
)
def test_a_policy_says_what_goes(policy, expected):
    """Three sealed segments of 10, 20 and 30 bytes and an active one of 10."""
    segments = sealed((10, 4), (20, 3), (30, 1))

    assert expected == segments_to_drop(segments, 10, policy, NOW_NS)


SEGMENTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), max_size=8).map(
    lambda facts: sealed(*((size, days) for size, days in facts))
)
POLICIES = st.builds(
    RetentionPolicy,
    age=st.none() | st.integers(1, 9).map(lambda days: days * DAY),
    bytes=st.none() | st.integers(1, 500),
    segments=st.none() | st.integers(1, 9),
    segments_min=st.integers(1, 9),
)


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(derandomize=True, deadline=None)
def test_only_the_oldest_go(segments, active_bytes, policy):
    """What goes is a beginning of what there is, so that no gap comes to be."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)

    assert [segment.number for segment in segments[: len(dropped)]] == dropped


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(derandomize=True, deadline=None)
def test_so_many_always_stay(segments, active_bytes, policy):
    """The active one counts, and stays itself."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    left = len(segments) + 1 - len(dropped)

    assert left >= min(policy.segments_min, len(segments) + 1)


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(derandomize=True, deadline=None)
def test_nothing_goes_without_a_reason(segments, active_bytes, policy):
    """Each that goes was too old, or one too many when it went."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    reasons = []
    for at, segment in enumerate(segments[: len(dropped)]):
        left = segments[at:]
        reasons.append(
            (policy.age is not None and segment.ended_at_ns < NOW_NS - policy.age / DAY * DAY_NS)
            or (policy.segments is not None and len(left) + 1 > policy.segments)
            or (
                policy.bytes is not None
                and sum(each.bytes for each in left) + active_bytes > policy.bytes
            )
        )

    assert [True] * len(dropped) == reasons


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(derandomize=True, deadline=None)
def test_what_stays_is_allowed_to(segments, active_bytes, policy):
    """The oldest that stays passes no limit, or is needed for the minimum."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    again = segments_to_drop(segments[len(dropped) :], active_bytes, policy, NOW_NS)

    assert [] == again


def test_compacting_drops_the_oldest_segments(pairs, queue_path):
    """Their files leave the disk, and the messages of the others are all there."""
    result = pairs.compact(RetentionPolicy(segments=3))

    assert (7, [14, 16, 18], 14, list(range(14, 20))) == (
        result.segments_removed,
        base_sequences(queue_path),
        pairs.first_sequence,
        sequences(pairs.tailer()),
    )


def test_compacting_tells_the_bytes_it_freed(pairs, queue_path, eventually):
    """They are those of the disk."""
    files = data_files(queue_path)[:-1]
    eventually(lambda: all(file.stat().st_size < SEGMENT_BYTES for file in files))
    eventually((queue_path / directory.SPARE).exists)
    before = directory.disk_bytes(queue_path)
    result = pairs.compact(RetentionPolicy(segments=3))

    assert before - directory.disk_bytes(queue_path) == result.bytes_freed


def test_compacting_leaves_nothing_of_a_segment(pairs, queue_path):
    """Its index goes with it."""
    pairs.compact(RetentionPolicy(segments=3))

    assert len(data_files(queue_path)) == len(list(queue_path.rglob("*.index")))


def test_the_active_segment_always_stays(pairs, queue_path):
    """However strict the policy is."""
    pairs.compact(RetentionPolicy(bytes=1, age=timedelta(microseconds=1), segments=1))

    assert ([18], [b"18", b"19"]) == (base_sequences(queue_path), payloads(pairs))


@pytest.mark.parametrize(
    "policy", [None, RetentionPolicy(), RetentionPolicy(age=DAY), RetentionPolicy(segments=10)]
)
def test_compacting_without_a_reason_does_nothing(pairs, policy):
    """A queue has no policy of its own unless it was given one."""
    assert (CompactResult(0, 0), 0) == (pairs.compact(policy), pairs.first_sequence)


def test_compacting_again_does_nothing(pairs):
    """The first time did it all."""
    pairs.compact(RetentionPolicy(segments=3))

    assert CompactResult(0, 0) == pairs.compact(RetentionPolicy(segments=3))


def test_what_was_dropped_stays_dropped(pairs, open_queue):
    """After reopening nothing is missing, and sequences go on."""
    pairs.compact(RetentionPolicy(segments=3))
    pairs.close()
    queue = open_queue(verify=True)

    assert (14, 20, list(range(14, 20))) == (
        queue.first_sequence,
        queue.append(b"new"),
        sequences(queue.tailer())[:-1],
    )


def test_empty_folders_of_days_go_too(open_queue, queue_path, monkeypatch):
    """A queue that runs for years leaves no trail of them."""
    queue = open_queue(roll=RollStrategy.by_count(1))
    queue.append(b"today")
    monkeypatch.setattr("penstock.clock.now_ns", lambda: NOW_NS * 2)
    queue.append(b"in 2033")
    queue.append(b"in 2033")
    queue.compact(RetentionPolicy(segments=1))

    assert ["2033"] == [path.name for path in queue_path.glob("[0-9]*")]


def test_a_slow_tailer_hears_that_its_messages_are_gone(pairs):
    """The error says which, and where the first is that can be had."""
    tailer = pairs.tailer()
    read = [tailer.read().sequence]
    pairs.compact(RetentionPolicy(segments=3))
    with pytest.raises(SequenceGoneError) as error:
        read.extend(tailer.read().sequence for _ in range(20))
    expected = tailer.next_sequence

    assert (expected, 14) == (error.value.sequence, error.value.first_sequence)


def test_a_tailer_stays_where_it_was_when_its_messages_are_gone(pairs):
    """Asking again does not get around the error; seeking does."""
    tailer = pairs.tailer(start=1)
    tailer.read()
    pairs.compact(RetentionPolicy(segments=3))
    told = []
    for _ in range(3):
        with pytest.raises(SequenceGoneError) as error:
            tailer.read()
        told.append((error.value.sequence, tailer.next_sequence))
    tailer.seek(sequence=error.value.first_sequence)

    assert ([(2, 2)] * 3, list(range(14, 20))) == (told, sequences(tailer))


def test_a_tailer_that_may_jump_goes_on_at_the_first(pairs):
    """What it had mapped it reads to its end, and then what is left."""
    tailer = pairs.tailer(on_gone="first")
    tailer.read()
    pairs.compact(RetentionPolicy(segments=3))

    assert [1, *range(14, 20)] == sequences(tailer)


def test_what_was_appended_after_the_last_look_is_not_lost_silently(open_queue):
    """The tailer stood in the active segment, which was filled, sealed and dropped since."""
    queue = open_queue(roll=RollStrategy.by_count(10))
    queue.append_many([b"x"] * 3)
    tailer = queue.tailer()
    read = sequences(tailer)
    for _ in range(22):
        queue.append(b"x")
    queue.compact(RetentionPolicy(segments=2))
    try:
        read += sequences(tailer)
    except SequenceGoneError as error:
        read += range(error.sequence, 25)

    assert list(range(25)) == read


@pytest.mark.parametrize("start", [0, 13])
def test_starting_at_what_is_gone_is_refused(pairs, start):
    """Unless the tailer may jump."""
    pairs.compact(RetentionPolicy(segments=3))
    with pytest.raises(SequenceGoneError) as error:
        pairs.tailer(start=start)

    assert (start, 14, 14) == (
        error.value.sequence,
        error.value.first_sequence,
        pairs.tailer(start=start, on_gone="first").read().sequence,
    )


def test_a_time_before_what_is_left_is_its_start(pairs):
    """Asking by time asks for what there is."""
    oldest = pairs.tailer().read().timestamp
    pairs.compact(RetentionPolicy(segments=3))

    assert 14 == pairs.tailer(start=oldest).read().sequence


def test_other_handles_see_what_is_gone(pairs, open_queue):
    """Writers and readers that were open before."""
    handles = [open_queue(), open_queue(read_only=True)]
    before = [sequences(handle.tailer()) for handle in handles]
    pairs.compact(RetentionPolicy(segments=3))

    assert ([list(range(20))] * 2, [(14, list(range(14, 20)))] * 2) == (
        before,
        [(handle.first_sequence, sequences(handle.tailer())) for handle in handles],
    )


def test_retention_works_in_the_background(open_queue, queue_path, eventually):
    """A queue that was opened with a policy needs no call."""
    queue = open_queue(roll=RollStrategy.by_count(2), retention=RetentionPolicy(segments=3))
    for _ in range(20):
        queue.append(b"x")

    assert eventually(lambda: base_sequences(queue_path) == [14, 16, 18])


def test_a_call_may_be_stricter_than_the_queue(open_queue, queue_path):
    """Its own policy is what a call without one goes by."""
    queue = open_queue(roll=RollStrategy.by_count(2), retention=RetentionPolicy(segments=8))
    for _ in range(20):
        queue.append(b"x")
    queue.compact(RetentionPolicy(segments=3))

    assert [14, 16, 18] == base_sequences(queue_path)


def test_only_who_may_write_may_compact(pairs, open_queue):
    """Neither a read-only handle nor a closed one."""
    reader = open_queue(read_only=True)
    pairs.close()
    with pytest.raises(ReadOnlyError):
        reader.compact(RetentionPolicy(segments=1))
    with pytest.raises(QueueClosedError):
        pairs.compact(RetentionPolicy(segments=1))

    assert 0 == reader.first_sequence
