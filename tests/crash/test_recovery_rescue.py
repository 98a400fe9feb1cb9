"""State J of docs/durability.md: the log was poisoned, and everybody has closed it."""

from functools import partial
from pathlib import Path

import pytest

from tests.crash.editing import Page, damage, fill_with_garbage, segments, store, torn_at, zero
from tests.crash.points import killed_before
from tests.crash.states import LOST_MAX, active, found_in, log_with, opened, poison, sealed


def poisoned(root: Path) -> None:
    """Leave a log of which 4 messages are durable and 21 are in memory only."""
    log_with(root, active(4), flushed=True)
    log_with(root, sealed(6), sealed(10), active(5), then=poison)


def test_state_j_a_rescue_keeps_what_memory_held(queue_path):
    """All messages are there under their sequences, and the log goes on without a gap."""
    poisoned(queue_path)
    found = found_in(queue_path)

    assert (list(range(25)), [], 25) == (found.sequences, found.wrong, found.appended)
    assert ([], []) == (found.told, found.faults)


def test_state_j_a_rescued_log_is_poisoned_no_more(queue_path):
    """Appending and flushing go on as ever."""
    poisoned(queue_path)
    found_in(queue_path)
    log_with(queue_path, active(2), flushed=True)
    page = Page(queue_path)

    assert (0, 28) == (
        page.load("CONTROL_POISON_ERRNO_AT", 4),
        page.load("CONTROL_DURABLE_SEQUENCE_AT"),
    )


def test_state_j_rescued_messages_are_durable(queue_path):
    """What was rescued is on the disk before anybody can go on."""
    poisoned(queue_path)
    found = found_in(queue_path)

    assert 25 == found.durable_sequence


def test_state_j_a_rescue_over_a_gap_keeps_each_sequence(queue_path, reboot):
    """Messages behind a gap that an earlier power loss left were once renumbered."""
    log_with(queue_path, active(10))
    reboot()
    log_with(queue_path, active(5), then=poison)
    found = found_in(queue_path)
    behind = found.sequences[10:]

    assert ([], list(range(10)), 5) == (found.wrong, found.sequences[:10], len(behind))
    assert (behind[-1] + 1, []) == (found.appended, found.faults)


def test_state_j_a_rescue_over_damage_keeps_what_is_behind_it(queue_path):
    """One damaged message once took those behind it, and others got their sequences."""
    poisoned(queue_path)
    damage(segments(queue_path)[0], 7)
    found = found_in(queue_path)

    assert [*range(7), *range(8, 25)] == found.sequences
    assert ([], [[7, 8]], 25) == (found.wrong, found.told, found.appended)


def test_state_j_a_rescue_over_a_damaged_header_opens(queue_path):
    """A segment that cannot be read must not keep all others from being read."""
    poisoned(queue_path)
    store(segments(queue_path)[1], 40, 0)
    found = found_in(queue_path)

    assert (None, [*range(10), *range(20, 25)]) == (found.error, found.sequences)
    assert ([], [[10, 20]], 25) == (found.wrong, found.told, found.appended)


@pytest.mark.slow
def test_state_j_a_rescue_killed_at_any_point_is_done_by_the_next(memory_path):
    """Messages once came back twice, under other sequences."""
    outcomes, point, was_killed = [], 0, True
    while was_killed:
        root = memory_path / str(point)
        log_with(root, active(4), flushed=True)
        log_with(root, sealed(6), active(5), then=poison)
        was_killed = killed_before(point, partial(opened, root))
        found = found_in(root)
        outcomes.append((found.sequences, found.wrong, found.appended, found.faults))
        point += 1

    assert point > 30
    assert [(list(range(15)), [], 15, [])] * point == outcomes


def test_state_j_a_restart_leaves_nothing_to_rescue(queue_path, reboot):
    """Memory is gone, so this is as any other end of the machine: no sequence comes again."""
    poisoned(queue_path)
    torn_at(segments(queue_path)[2], 1)
    reboot()
    found = found_in(queue_path)

    assert (list(range(21)), []) == (found.sequences, found.wrong)
    assert found.appended is not None
    assert found.appended >= 21 + LOST_MAX


def test_state_j_the_page_of_another_queue_poisons_nothing(queue_path, tmp_path):
    """Its cause and its durable mark are not ours."""
    poisoned(tmp_path / "other")
    log_with(queue_path, active(5), closed=True)
    Page(queue_path).path.write_bytes(Page(tmp_path / "other").path.read_bytes())
    found = found_in(queue_path)

    assert (list(range(5)), 5, []) == (found.sequences, found.appended, found.faults)
    assert found.durable_sequence <= 5


def test_state_j_garbage_poisons_nothing(queue_path):
    """The process once died by SIGBUS here."""
    log_with(queue_path, active(5), closed=True)
    fill_with_garbage(Page(queue_path).path)
    found = found_in(queue_path)

    assert (list(range(5)), 5, []) == (found.sequences, found.appended, found.faults)
    assert found.durable_sequence <= 5


def test_state_j_a_poisoned_log_whose_file_was_cut_opens(queue_path):
    """What is not there any more cannot be rescued, and is told."""
    poisoned(queue_path)
    zero(segments(queue_path)[0], 4096)
    found = found_in(queue_path)

    assert (None, list(range(10, 25))) == (found.error, found.sequences)
    assert ([[0, 10]], 25) == (found.told, found.appended)
