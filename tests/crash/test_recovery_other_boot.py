"""States K to Q of docs/durability.md: the machine stopped, and runs again."""

from pathlib import Path

import pytest

import penstock
from tests.crash.editing import (
    Page,
    damage,
    hole_at,
    load,
    numbers,
    positions,
    segments,
    set_aside,
    torn_at,
    write,
    zero,
)
from tests.crash.states import (
    LOST_MAX,
    Found,
    active,
    append_together,
    found_in,
    log_with,
    opened,
    payload,
    sealed,
)


@pytest.fixture(params=["page kept", "page lost"])
def stop(request, reboot):
    """Start the machine anew; of the page that processes shared there may be anything left."""

    def stopped(root: Path) -> None:
        if request.param == "page lost":
            Page(root).path.unlink()
        reboot()

    return stopped


def goes_on_beyond(found: Found, sequence: int) -> bool:
    """Tell whether the next sequence is one that nothing before this can have had."""
    return found.appended is not None and found.appended >= sequence + LOST_MAX


def test_state_k_a_clean_close_loses_nothing(queue_path, reboot):
    """All was flushed, and the page says so: there is no gap."""
    log_with(queue_path, sealed(10), active(5), closed=True)
    reboot()
    found = found_in(queue_path)

    assert (list(range(15)), 15, 15) == (found.sequences, found.durable_sequence, found.appended)
    assert ([], [], []) == (found.told, found.faults, found.warnings)


def test_state_k_a_segment_of_an_earlier_boot_is_not_appended_to(queue_path, reboot):
    """Not even when all of it is in order."""
    log_with(queue_path, active(5), closed=True)
    before = segments(queue_path)[0].read_bytes()
    reboot()
    found_in(queue_path)

    assert ([1, 2], before) == (numbers(queue_path), segments(queue_path)[0].read_bytes())


def test_state_k_an_empty_queue_that_was_closed_stays_empty(queue_path, reboot):
    """There was nothing to lose."""
    log_with(queue_path, closed=True)
    reboot()
    found = found_in(queue_path)

    assert ([], 0, []) == (found.sequences, found.appended, found.warnings)


def test_state_k_a_clean_close_that_was_opened_since_is_no_clean_close(queue_path, reboot):
    """Messages of the second handle are gone; their sequences were once given out again."""
    log_with(queue_path, active(5), closed=True)
    log_with(queue_path, active(3))
    torn_at(segments(queue_path)[0], 5)
    reboot()
    found = found_in(queue_path)

    assert list(range(5)) == found.sequences
    assert goes_on_beyond(found, 5)


def test_state_l_a_whole_end_keeps_all_messages(queue_path, stop):
    """Nobody knows whether there were more, so the log goes on where there cannot have been any."""
    log_with(queue_path, sealed(10), active(5))
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(15)), [], []) == (found.sequences, found.told, found.faults)
    assert goes_on_beyond(found, 10)


def test_state_l_a_possible_loss_is_logged(queue_path, stop):
    """Who reads the log of the program learns from which sequence on."""
    log_with(queue_path, active(5))
    stop(queue_path)
    warnings = found_in(queue_path).warnings

    assert 1 == len(warnings)
    assert "messages from 5 on" in warnings[0]


def test_state_l_a_lost_page_costs_no_durable_message(queue_path, stop):
    """The mark stands in the log too."""
    log_with(queue_path, active(5), flushed=True)
    log_with(queue_path, active(5))
    stop(queue_path)
    found = found_in(queue_path)

    assert list(range(10)) == found.sequences
    assert found.durable_sequence >= 5


@pytest.mark.parametrize("lost", [1, 2, 3])
def test_state_l_segments_whose_names_were_lost_leave_no_sequence_behind(queue_path, stop, lost):
    """Full of the least messages there are, and the next sequence is still beyond them."""
    log_with(queue_path, then=lambda queue: fill(queue, 4), segment_bytes=8192, flushed=True)
    log_with(queue_path, then=lambda queue: fill(queue, lost), segment_bytes=8192)
    highest = Page(queue_path).bank("BANK_NEXT_SEQUENCE")
    for path in segments(queue_path)[-lost:]:
        path.unlink()
    stop(queue_path)
    found = found_in(queue_path, segment_bytes=8192)

    assert found.appended is not None
    assert found.appended >= highest


def fill(queue: penstock.Queue, segments_more: int) -> None:
    """Append empty messages until so many segments more were begun."""
    until = queue.stats().segments + segments_more
    while queue.stats().segments < until:
        for _ in range(40):
            queue.append(b"")


@pytest.mark.slow
def test_state_l_no_more_segments_are_unnamed_than_recovery_counts_on(queue_path, stop):
    """All that have no durable name are lost, and no sequence of theirs comes again."""
    log_with(queue_path, then=lambda queue: fill(queue, 12), segment_bytes=8192)
    page = Page(queue_path)
    highest, named = page.bank("BANK_NEXT_SEQUENCE"), page.load("CONTROL_NAMED_NUMBER_AT")
    for number, path in zip(numbers(queue_path), segments(queue_path), strict=True):
        if number > named:
            path.unlink()
    stop(queue_path)
    found = found_in(queue_path, segment_bytes=8192)

    assert found.appended is not None
    assert found.appended >= highest


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
    came_back, all_told = [], []
    for _ in range(3):
        stop(queue_path)
        log_with(queue_path, active(12))
        found = found_in(queue_path)
        came_back += [sequence for sequence in found.sequences if 10 <= sequence < 20]
        all_told += found.told + found.faults

    assert ([], []) == (came_back, all_told)


def test_state_n_garbage_in_place_of_zeros_is_a_hole_too(queue_path, stop):
    """What was allocated and never written need not read as zeros."""
    log_with(queue_path, active(20))
    path = segments(queue_path)[0]
    write(path, positions(path)[10], bytes(range(1, 41)))
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)


def durable_log(root: Path) -> None:
    """Leave 20 durable messages and 5 that are not; the log itself tells of the mark."""
    log_with(root, active(20), flushed=True)
    log_with(root, active(5))


@pytest.mark.parametrize("ordinal", [0, 7, 19])
def test_state_o_damage_below_the_durable_mark_cuts_nothing(queue_path, stop, ordinal):
    """It is told, and all other messages count."""
    durable_log(queue_path)
    damage(segments(queue_path)[0], ordinal)
    stop(queue_path)
    found = found_in(queue_path)

    assert [*range(ordinal), *range(ordinal + 1, 25)] == found.sequences
    assert ([[ordinal, ordinal + 1]], 1) == (found.told, len(found.faults))
    assert goes_on_beyond(found, 0)


def test_state_o_zeros_below_the_durable_mark_cut_nothing(queue_path, stop):
    """A sector that was lost is damage, and no hole."""
    durable_log(queue_path)
    hole_at(segments(queue_path)[0], 7, 3)
    stop(queue_path)
    found = found_in(queue_path)

    assert ([*range(7), *range(10, 25)], [[7, 10]]) == (found.sequences, found.told)


def test_state_o_damage_after_a_clean_close_is_never_a_tear(queue_path, reboot):
    """The last message of all is told as damaged, and its sequence is not used again."""
    log_with(queue_path, active(20), closed=True)
    damage(segments(queue_path)[0], 19)
    reboot()
    found = found_in(queue_path)

    assert (list(range(19)), [[19, 20]]) == (found.sequences, [told[:2] for told in found.told])
    assert found.appended is not None
    assert found.appended >= 20


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


def zero_length(path: Path) -> None:
    """Leave the name alone."""
    path.write_bytes(b"")


def shorter_than_a_header(path: Path) -> None:
    """Leave one sector."""
    path.write_bytes(path.read_bytes()[:512])


def without_second_part(path: Path) -> None:
    """Leave a segment that was made and, as far as the disk knows, not begun."""
    zero(path, 512)


def without_first_part(path: Path) -> None:
    """Leave blocks that were never written."""
    zero(path, 0)


@pytest.mark.parametrize(
    "leave", [zero_length, shorter_than_a_header, without_second_part, without_first_part]
)
def test_state_q_a_segment_that_was_never_begun_is_set_aside(queue_path, stop, leave):
    """It may have held messages that were not durable, and no sequence of theirs comes again."""
    log_with(queue_path, sealed(10), active(5))
    leave(segments(queue_path)[1])
    stop(queue_path)
    found = found_in(queue_path)

    assert (list(range(10)), [], []) == (found.sequences, found.told, found.faults)
    assert ["0002.data.torn"] == set_aside(queue_path)
    assert goes_on_beyond(found, 10)


def test_state_q_a_queue_whose_only_segment_was_never_begun_opens(queue_path, stop):
    """The machine stopped a moment after the queue was made."""
    log_with(queue_path, active(5))
    zero_length(segments(queue_path)[0])
    stop(queue_path)
    found = found_in(queue_path)

    assert (None, [], []) == (found.error, found.sequences, found.told)
    assert goes_on_beyond(found, 0)


def test_state_q_what_was_durable_in_it_is_told(queue_path, reboot):
    """A header that vanished from under durable messages is damage, and no crash."""
    log_with(queue_path, sealed(10), active(5), flushed=True)
    without_second_part(segments(queue_path)[1])
    reboot()
    found = found_in(queue_path)

    assert (list(range(10)), [[10, 15]]) == (found.sequences, found.told)
    assert goes_on_beyond(found, 15)


def test_no_sequence_comes_again_over_many_boots(queue_path, stop):
    """Each boot appends, loses its last messages, and the next one goes on beyond all of them."""
    given: list[int] = []
    for boot in range(6):
        before = 0 if not given else given[-1]
        log_with(queue_path, active(8))
        path = segments(queue_path)[-1]
        base = load(path, 520)
        given += [base + ordinal for ordinal in range(len(positions(path)) - 1)]
        torn_at(path, boot)
        stop(queue_path)
        assert given[-1] > before

    assert sorted(set(given)) == given


def test_payloads_tell_their_sequences():
    """What all of these tests compare with is of one sequence alone."""
    assert 1000 == len({payload(sequence) for sequence in range(1000)})


def test_an_open_queue_is_not_recovered_by_another_handle(queue_path):
    """Who comes second joins; it has nothing to bring in order."""
    with opened(queue_path) as queue:
        queue.append(payload(0))
        found = found_in(queue_path)

    assert ([0], 1, [1]) == (found.sequences, found.appended, numbers(queue_path))
