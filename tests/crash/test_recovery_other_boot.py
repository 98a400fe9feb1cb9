"""States K to Q of docs/durability.md: the machine stopped, and runs again."""

from pathlib import Path

import pytest

import penstock
from penstock import RetentionPolicy
from tests.crash.editing import (
    Page,
    damage,
    hole_at,
    numbers,
    segments,
    set_aside,
    torn_at,
    zero,
)
from tests.crash.states import (
    active,
    found_in,
    goes_on_beyond,
    log_with,
    sealed,
)


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
    assert "message 5 " in warnings[0]


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


def test_state_l_retention_drops_nothing_before_its_successor_has_a_durable_name(queue_path):
    """If it did, a loss of power could leave nothing that knows any sequence."""
    log_with(
        queue_path,
        *[sealed(10)] * 3,
        active(5),
        then=lambda queue: queue.compact(RetentionPolicy(segments=2)),
    )
    page = Page(queue_path)

    assert [3, 4] == numbers(queue_path)
    assert page.load("CONTROL_NAMED_NUMBER_AT") >= 3


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
