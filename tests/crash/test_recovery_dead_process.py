"""States A to I of docs/durability.md: a process died, and the machine runs on."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import penstock
from penstock import RetentionPolicy
from penstock.kernel import LAYOUT
from tests.crash.editing import Page, load, numbers, positions, segments, write, zero
from tests.crash.points import die_at, killed_before
from tests.crash.states import (
    active,
    append_together,
    found_in,
    log_with,
    opened,
    payload,
    roll,
    sealed,
)

# What an append stores in the bank once its frames are published, in this order.
COUNTED = (
    "BANK_LAST_CHECK",
    "BANK_LAST_TIMESTAMP",
    "BANK_MARKED_SEQUENCE",
    "BANK_NEXT_SEQUENCE",
    "BANK_POSITION",
)
LEFTOVERS = (".spare", ".spare.tmp", ".spare.taken.tmp", ".control.tmp", "metadata.json.tmp")


@pytest.fixture(params=["alone", "in company"])
def find(request):
    """Look at the log as the next who opens it, or as one who had it open when the other died."""

    def found(root: Path, accident: Callable[[], object]):
        if request.param == "in company":
            return found_in(root, accident=accident)
        accident()
        return found_in(root)

    return found


def killed_within_append(
    root: Path, messages: int, *, written: int | None = None, counted: int = 0
) -> None:
    """Leave what a writer leaves that dies while it appends some messages as one.

    `written` bytes of the frames are there and nothing is published; or, if None, all is
    published, and so many of the words that count it are stored.
    """
    page = Page(root)
    begin, before = page.bank("BANK_POSITION"), page.banked(COUNTED)
    log_with(root, then=lambda queue: append_together(queue, messages))
    segment, end = segments(root)[-1], page.bank("BANK_POSITION")
    for name in COUNTED[counted:]:
        page.set_bank(name, before[name])
    if written is not None:
        zero(segment, begin + written, end)
        # The first word is stored last of all, so it is not there.
        zero(segment, begin, begin + 8)
    page.store("CONTROL_APPEND_LOCK_AT", dead_owner(root), 4)


def dead_owner(root: Path) -> int:
    """Tell what a lock word says if the process that was killed last holds it."""
    slots_at, slot_bytes = LAYOUT["CONTROL_SLOTS_AT"], LAYOUT["CONTROL_SLOT_BYTES"]
    pids = [load(root / ".control", slots_at + slot * slot_bytes) for slot in range(8)]
    # Slots are taken from the first on, and the dead leave their number there.
    return max(slot + 1 for slot, pid in enumerate(pids) if pid)


def test_state_a_a_new_folder_becomes_a_queue(queue_path):
    """What is not there yet is made."""
    found = found_in(queue_path)

    assert ([], 0, [], []) == (found.sequences, found.appended, found.faults, found.warnings)


def test_state_a_an_empty_folder_becomes_a_queue(queue_path):
    """The folder may be there before the queue is."""
    queue_path.mkdir()

    assert 0 == found_in(queue_path).appended


def test_state_a_who_only_reads_makes_nothing(queue_path):
    """A mistyped path stays as it is."""
    found = found_in(queue_path, read_only=True)

    assert found.error is not None
    assert "QueueNotFoundError" == found.error.partition(":")[0]
    assert not queue_path.exists()


@pytest.mark.slow
def test_state_a_a_queue_killed_while_it_is_made_is_made_by_the_next(memory_path):
    """Whatever was there of it, the queue begins with message 0."""
    outcomes, point = [], 0
    while killed_before(point, partial(opened, memory_path / str(point))):
        found = found_in(memory_path / str(point))
        outcomes.append((found.sequences, found.appended, found.faults, found.warnings))
        point += 1

    assert point > 30
    assert [([], 0, [], [])] * point == outcomes


def test_state_b_a_log_whose_writer_was_killed_is_whole(queue_path):
    """Between two appends there is nothing to mend, and the same segment goes on."""
    log_with(queue_path, sealed(3), active(4))
    found = found_in(queue_path)

    assert (list(range(7)), 7) == (found.sequences, found.appended)
    assert ([], [], [], [1, 2]) == (found.told, found.faults, found.warnings, numbers(queue_path))


def test_state_b_a_log_is_whole_for_one_who_had_it_open(queue_path):
    """The death of another process changes nothing."""
    found = found_in(queue_path, accident=lambda: log_with(queue_path, sealed(3), active(4)))

    assert (list(range(7)), 7, []) == (found.sequences, found.appended, found.faults)


@pytest.mark.parametrize("written", [0, 8, 16, 24, 64])
def test_state_c_a_half_copied_message_was_never_there(queue_path, find, written):
    """Nothing of it was published, so nothing of it counts, and its place is used again."""
    log_with(queue_path, active(3))
    found = find(queue_path, lambda: killed_within_append(queue_path, 1, written=written))

    assert ([0, 1, 2], [], 3) == (found.sequences, found.wrong, found.appended)
    assert ([], [], [1]) == (found.told, found.faults, numbers(queue_path))


def test_state_c_bytes_behind_a_half_copied_message_are_zeros_again(queue_path, find):
    """A shorter message in its place is followed by nothing."""
    log_with(queue_path, active(2))
    find(queue_path, lambda: killed_within_append(queue_path, 9, written=300))
    segment = segments(queue_path)[0]
    behind = segment.read_bytes()[positions(segment)[-1] :]

    assert {0} == set(behind)


@pytest.mark.parametrize("counted", range(len(COUNTED) + 1))
def test_state_d_a_published_message_counts(queue_path, find, counted):
    """Once its first word is stored others may have read it, so it stays."""
    log_with(queue_path, active(3))
    found = find(queue_path, lambda: killed_within_append(queue_path, 1, counted=counted))

    assert ([0, 1, 2, 3], [], 4) == (found.sequences, found.wrong, found.appended)
    assert ([], [], [1]) == (found.told, found.faults, numbers(queue_path))


def test_state_d_the_first_message_of_a_log_counts(queue_path, find):
    """There need be no message before it."""
    log_with(queue_path)
    found = find(queue_path, lambda: killed_within_append(queue_path, 1))

    assert ([0], 1, []) == (found.sequences, found.appended, found.faults)


@pytest.mark.parametrize("written", [8, 100, 200])
def test_state_e_an_unpublished_atomic_append_was_never_there(queue_path, find, written):
    """Some of its messages may stand there whole: without the first none counts."""
    log_with(queue_path, active(3))
    found = find(queue_path, lambda: killed_within_append(queue_path, 5, written=written))

    assert ([0, 1, 2], [], 3) == (found.sequences, found.wrong, found.appended)
    assert ([], []) == (found.told, found.faults)


@pytest.mark.parametrize("counted", range(len(COUNTED) + 1))
def test_state_e_a_published_atomic_append_counts_as_a_whole(queue_path, find, counted):
    """One word publishes all of its messages."""
    log_with(queue_path, active(3))
    found = find(queue_path, lambda: killed_within_append(queue_path, 5, counted=counted))

    assert (list(range(8)), [], 8) == (found.sequences, found.wrong, found.appended)
    assert ([], []) == (found.told, found.faults)


def killed_while_rolling(root: Path, before: str) -> None:
    """Leave what a writer leaves that dies in a roll, before it makes the call of this name."""

    def roll_and_die(queue: penstock.Queue) -> None:
        die_at(before)
        roll(queue)

    log_with(root, then=roll_and_die)


def test_state_f_a_segment_that_was_sealed_is_followed_by_the_next(queue_path, find):
    """The seal stands; what is missing is what comes behind it."""
    log_with(queue_path, active(5))
    found = find(queue_path, lambda: killed_while_rolling(queue_path, "rename"))

    assert (list(range(5)), 5, []) == (found.sequences, found.appended, found.told)
    assert ([], [1, 2]) == (found.faults, numbers(queue_path))


def test_state_g_a_segment_that_the_page_does_not_know_is_begun_anew(queue_path, find):
    """Nobody can have appended to it."""
    log_with(queue_path, active(5))
    found = find(queue_path, lambda: killed_while_rolling(queue_path, "begin_bank"))

    assert (list(range(5)), 5, []) == (found.sequences, found.appended, found.told)
    assert ([], [1, 2]) == (found.faults, numbers(queue_path))


def test_state_g_a_segment_with_messages_is_never_removed(queue_path):
    """A page that names the segment before is not believed against messages that are there."""
    log_with(queue_path, sealed(10))
    old = Page(queue_path).path.read_bytes()
    log_with(queue_path, sealed(10), active(5))
    write(Page(queue_path).path, 0, old)
    found = found_in(queue_path)

    assert (list(range(25)), 25) == (found.sequences, found.appended)


@pytest.mark.slow
@pytest.mark.parametrize("boots", ["same boot", "other boot"])
def test_state_g_a_writer_killed_at_any_point_of_a_roll_loses_nothing(memory_path, boots, reboot):
    """Every change that a roll makes may be its last."""
    outcomes, point = [], 0
    while True:
        root = memory_path / str(point)
        log_with(root, active(5))

        def rolls(root: Path = root) -> None:
            queue = opened(root)
            roll(queue)
            queue.append(payload(5))

        was_killed = killed_before(point, rolls)
        if boots == "other boot":
            reboot()
        found = found_in(root)
        is_last = found.sequences == list(range(6))
        kept = is_last or found.sequences == list(range(5))
        goes_on = found.appended is not None and found.appended >= len(found.sequences)
        outcomes.append((kept, goes_on, found.told, found.faults))
        if not was_killed:
            break
        point += 1

    assert point > 15
    assert [(True, True, [], [])] * (point + 1) == outcomes


def flush_and_die(queue: penstock.Queue) -> None:
    """Die inside of a flush, holding its lock."""
    die_at("fsync")
    queue.flush()


def compact_and_die(queue: penstock.Queue) -> None:
    """Die inside of a compaction, holding the maintenance lock."""
    die_at("unlink")
    queue.compact(RetentionPolicy(segments=1))


def flushed_after(root: Path) -> tuple[int, int]:
    """Flush and compact once more, and tell how far the log is durable and goes."""
    log_with(root, flushed=True, then=lambda queue: queue.compact(RetentionPolicy(segments=1)))
    page = Page(root)
    return page.load("CONTROL_DURABLE_SEQUENCE_AT"), page.bank("BANK_NEXT_SEQUENCE")


def test_state_h_a_flush_whose_process_died_is_done_by_the_next(queue_path, find):
    """The lock is no longer anybody's."""
    log_with(queue_path, sealed(5), active(5))
    found = find(queue_path, lambda: log_with(queue_path, then=flush_and_die))

    assert (list(range(10)), 10, []) == (found.sequences, found.appended, found.faults)
    assert (11, 11) == flushed_after(queue_path)


def test_state_h_a_compaction_whose_process_died_is_done_by_the_next(queue_path, find):
    """What retention had let go before may be there or not; what it had not is."""
    log_with(queue_path, sealed(5), sealed(5), active(5))
    found = find(queue_path, lambda: log_with(queue_path, then=compact_and_die))
    flushed_after(queue_path)

    assert (list(range(10, 15)), 15, []) == (found.sequences[-5:], found.appended, found.faults)
    assert [3] == numbers(queue_path)


def test_state_i_what_was_being_made_is_not_in_the_way(queue_path):
    """Files of these names are nobody's when nobody has the queue open."""
    log_with(queue_path, sealed(3), active(4))
    for name in LEFTOVERS:
        (queue_path / name).write_bytes(b"half")
    found = found_in(queue_path)

    assert (list(range(7)), 7, []) == (found.sequences, found.appended, found.faults)


def test_state_i_recovery_removes_what_was_being_made(queue_path, reboot):
    """Another boot needs none of it."""
    log_with(queue_path, sealed(3), active(4))
    for name in LEFTOVERS:
        (queue_path / name).write_bytes(b"half")
    reboot()
    found = found_in(queue_path)

    assert (list(range(7)), []) == (found.sequences, found.faults)
    assert [] == sorted(path.name for path in queue_path.glob("*.tmp"))
