"""Compacting: segments that retention lets go leave the disk, and readers are told."""

from datetime import timedelta

import pytest

from penstock import CompactResult, FlushMode, RetentionPolicy, RollStrategy, clock
from penstock.errors import QueueClosedError, ReadOnlyError, SequenceGoneError
from penstock.log import directory
from penstock.log.durable import Durability
from tests.unit.looking import base_sequences, data_files, payloads, sequences

DAY = timedelta(days=1)
DAY_NS = 86_400 * 10**9


@pytest.fixture
def pairs(open_queue):
    """Open a queue of twenty messages, two in each segment."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    for number in range(20):
        queue.append(b"%d" % number)
    return queue


def test_compacting_drops_the_oldest_segments(pairs, queue_path):
    """Their files leave the disk, and the messages of the others are all there."""
    result = pairs.compact(RetentionPolicy(segments=3))

    assert (7, [14, 16, 18], 14, list(range(14, 20))) == (
        result.segments_removed,
        base_sequences(queue_path),
        pairs.first_sequence,
        sequences(pairs.tailer()),
    )


def test_compacting_tells_the_bytes_it_freed(pairs, monkeypatch):
    """They are those that the files took on the disk when they went."""
    remove, taken = directory.remove_segment, []

    def measure_then_remove(data):
        files = [data, data.with_suffix(".index")]
        taken.append(sum(file.stat().st_blocks * 512 for file in files))
        return remove(data)

    monkeypatch.setattr(directory, "remove_segment", measure_then_remove)
    freed = pairs.compact(RetentionPolicy(segments=3)).bytes_freed

    assert (7, True, sum(taken)) == (len(taken), freed > 0, freed)


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
    monkeypatch.setattr("penstock.clock.now_ns", lambda: 2 * 10**18)
    queue.append(b"in 2033")
    queue.append(b"in 2033")
    queue.compact(RetentionPolicy(segments=1))

    assert ["2033"] == [path.name for path in queue_path.glob("[0-9]*")]


def test_age_counts_from_the_end_of_a_segment(pairs, monkeypatch):
    """Two days later all but the active one are older than a day, and none than three."""
    later = clock.now_ns() + 2 * DAY_NS
    monkeypatch.setattr(clock, "now_ns", lambda: later)
    results = [pairs.compact(RetentionPolicy(age=days * DAY)) for days in (3, 1)]

    assert [0, 9] == [result.segments_removed for result in results]


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


@pytest.mark.usefixtures("tidy_at_once")
def test_retention_works_in_the_background(open_queue, queue_path, eventually):
    """A queue that was opened with a policy needs no call."""
    queue = open_queue(roll=RollStrategy.by_count(2), retention=RetentionPolicy(segments=3))
    for _ in range(20):
        queue.append(b"x")

    eventually(lambda: queue.stats().segments == 3)

    assert [14, 16, 18] == base_sequences(queue_path)


def test_a_call_may_be_stricter_than_the_queue(open_queue, queue_path):
    """Its own policy is what a call without one goes by."""
    queue = open_queue(roll=RollStrategy.by_count(2), retention=RetentionPolicy(segments=8))
    for _ in range(20):
        queue.append(b"x")
    queue.compact(RetentionPolicy(segments=3))

    assert [14, 16, 18] == base_sequences(queue_path)


def test_a_flush_of_another_handle_survives_retention(open_queue, monkeypatch):
    """It had segments open that were dropped before their names were forced to the disk."""
    monkeypatch.setattr(Durability, "flush_sealed", lambda _: None)
    one, other = open_queue(roll=RollStrategy.by_count(1)), open_queue()
    for _ in range(4):
        one.append(b"x")
    other.compact(RetentionPolicy(segments=1))
    one.flush()

    assert (4, 4, None) == (one.append(b"y"), one.durable_sequence, one.stats().poisoned)


@pytest.mark.slow
@pytest.mark.usefixtures("tidy_at_once")
def test_handles_with_retention_get_along(open_queue, queue_path, eventually, caplog):
    """Each drops what the other has open, and neither minds."""
    options = {"roll": RollStrategy.by_count(1), "retention": RetentionPolicy(segments=2)}
    handles = [open_queue(**options, flush=FlushMode.batch(1)) for _ in range(2)]
    for _ in range(100):
        for handle in handles:
            handle.append(b"x")
            handle.compact()
            handle.tailer(on_gone="first").read()
    eventually(lambda: handles[0].durable_sequence == 200)
    eventually(lambda: len(data_files(queue_path)) == 2)

    assert (200, []) == (handles[1].next_sequence, caplog.messages)


def test_only_who_may_write_may_compact(pairs, open_queue):
    """Neither a read-only handle nor a closed one."""
    reader = open_queue(read_only=True)
    pairs.close()
    with pytest.raises(ReadOnlyError):
        reader.compact(RetentionPolicy(segments=1))
    with pytest.raises(QueueClosedError):
        pairs.compact(RetentionPolicy(segments=1))

    assert 0 == reader.first_sequence
