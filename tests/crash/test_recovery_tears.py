"""States M, N and P of docs/durability.md: power failed while the end was not durable."""

import pytest

from penstock.kernel import LAYOUT
from tests.crash.editing import (
    hole_at,
    load,
    numbers,
    positions,
    segments,
    set_aside,
    torn_at,
    write,
)
from tests.crash.states import (
    active,
    append_together,
    found_in,
    goes_on_beyond,
    log_with,
    payload,
    sealed,
)


@pytest.mark.parametrize("ordinal", [0, 1, 7, 19])
def test_state_m_a_torn_end_keeps_what_is_before_it(queue_path, stop, ordinal):
    """It is what a loss of power is expected to leave, and no damage."""
    log_with(queue_path, active(20))
    torn_at(segments(queue_path)[0], ordinal)
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(ordinal)), [], []) == (found.sequences, found.told, found.faults)
    assert goes_on_beyond(found, ordinal)


def test_state_m_the_bytes_of_a_torn_end_stay(queue_path, stop):
    """Recovery may be wrong, so it takes nothing away."""
    log_with(queue_path, active(20))
    torn_at(segments(queue_path)[0], 7)
    before = segments(queue_path)[0].read_bytes()
    stop(queue_path)
    found_in(queue_path)

    assert before == segments(queue_path)[0].read_bytes()


def test_state_m_a_tear_right_at_the_durable_mark_keeps_all_that_is_durable(queue_path, stop):
    """The mark is the first sequence that may be missing."""
    log_with(queue_path, active(10), flushed=True)
    log_with(queue_path, active(10))
    torn_at(segments(queue_path)[0], 10)
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)


def test_state_m_a_tear_in_the_last_but_one_segment_ends_the_log_there(queue_path, stop):
    """Of two segments that were not durable the older one may be the torn one."""
    log_with(queue_path, sealed(10), active(5))
    torn_at(segments(queue_path)[0], 6)
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(6)), [], []) == (found.sequences, found.told, found.faults)
    assert (["0002.data.torn"], [1, 3]) == (set_aside(queue_path), numbers(queue_path))
    assert goes_on_beyond(found, 10)


def test_state_m_who_only_reads_sees_the_log_end_at_the_tear(queue_path, reboot):
    """What recovery would not count is not shown before it either."""
    log_with(queue_path, active(20))
    hole_at(segments(queue_path)[0], 10)
    reboot()
    found = found_in(queue_path, read_only=True)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_state_n_a_hole_ends_the_log(queue_path, stop, count):
    """Pages are written back in any order, so true messages may stand behind one that is not."""
    log_with(queue_path, active(20))
    hole_at(segments(queue_path)[0], 10, count)
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)


def test_state_n_messages_behind_a_hole_never_come_back(queue_path, stop):
    """Whatever is appended later, and however often the machine stops."""
    log_with(queue_path, active(20))
    hole_at(segments(queue_path)[0], 10)
    came_back, all_told = list[int](), list[object]()
    for _ in range(3):
        stop(queue_path)
        log_with(queue_path, active(12))
        found = found_in(queue_path)
        came_back += [sequence for sequence in found.sequences if 10 <= sequence < 20]
        all_told += [*found.told, *found.faults]

    assert ([], []) == (came_back, all_told)


def test_state_n_garbage_in_place_of_zeros_is_a_hole_too(queue_path, stop):
    """What was allocated and never written need not read as zeros."""
    log_with(queue_path, active(20))
    path = segments(queue_path)[0]
    write(path, positions(path)[10], bytes(range(1, 41)))
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_state_p_an_unfinished_atomic_append_was_never_there(queue_path, stop, missing):
    """Some of its messages stand there whole, and none of them counts."""
    log_with(queue_path, active(3), then=lambda queue: append_together(queue, 4))
    torn_at(segments(queue_path)[0], 3 + missing)
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(3)), [], []) == (found.sequences, found.told, found.faults)
    assert goes_on_beyond(found, 3)


def test_state_p_an_atomic_append_that_is_whole_counts(queue_path, stop):
    """All of its messages reached the disk."""
    log_with(queue_path, active(3), then=lambda queue: append_together(queue, 4))
    stop(queue_path)

    assert list(range(7)) == found_in(queue_path).sequences


def test_state_m_no_sequence_comes_again_over_many_boots(queue_path, stop):
    """Each boot appends and loses its last messages, and the next one goes on beyond them."""
    given: list[int] = []
    for boot in range(6):
        log_with(queue_path, active(8))
        path = segments(queue_path)[-1]
        base = load(path, LAYOUT["SEGMENT_BASE_SEQUENCE_AT"])
        given += [base + ordinal for ordinal in range(len(positions(path)) - 1)]
        torn_at(path, boot)
        stop(queue_path)

    assert 48 == len(given)
    assert sorted(set(given)) == given


def test_payloads_tell_their_sequences():
    """What all of these tests compare with is of one sequence alone."""
    assert 1000 == len({payload(sequence) for sequence in range(1000)})
