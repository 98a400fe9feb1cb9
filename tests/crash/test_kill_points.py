"""A process is killed before each change that it makes, one after the other: nothing is lost."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import penstock
from penstock import RetentionPolicy
from tests.crash.points import killed_before
from tests.crash.states import active, append, found_in, log_with, opened, roll, sealed


def opens(root: Path, point: int) -> bool:
    """Join, or recover."""
    return killed_before(point, partial(opened, root))


def closes(root: Path, point: int) -> bool:
    """Be the last one out."""
    return killed_before(point, penstock.Queue.close, partial(opened, root))


def flushes(root: Path, point: int) -> bool:
    """Make everything durable, segments and their names."""
    return killed_before(point, penstock.Queue.flush, partial(opened, root))


def compacts(root: Path, point: int) -> bool:
    """Drop the first segments."""
    policy = RetentionPolicy(segments=2)
    return killed_before(point, lambda queue: queue.compact(policy), partial(opened, root))


def rolls(root: Path, point: int) -> bool:
    """Begin another segment, and append to it."""
    return killed_before(point, roll_and_append, partial(opened, root))


def roll_and_append(queue: penstock.Queue) -> None:
    """Append one message, and one to a new segment."""
    append(queue, 1)
    roll(queue)
    append(queue, 1)


@pytest.mark.slow
@pytest.mark.parametrize("work", [opens, closes, flushes, compacts, rolls])
@pytest.mark.parametrize("boots", ["one boot", "another boot before", "another boot after"])
def test_no_point_at_which_a_process_is_killed_loses_a_message(memory_path, work, boots, reboot):
    """What had been appended is there, is no damage, and no sequence comes again."""
    broken, point, was_killed = [], 0, True
    while was_killed:
        root = memory_path / str(point)
        log_with(root, sealed(5), sealed(5), active(5))
        if boots == "another boot before":
            reboot()
        was_killed = work(root, point)
        if boots == "another boot after":
            reboot()
        found = found_in(root)
        is_whole = are_all_there(found.sequences, work)
        goes_on = (found.appended or 0) > max([14, *found.sequences])
        if not (is_whole and goes_on) or found.wrong or found.told or found.faults:
            broken.append((point, found))
        point += 1

    assert point > 4
    assert [] == broken


def are_all_there(sequences: list[int], work: Callable[[Path, int], bool]) -> bool:
    """Compare with what was appended, but for what retention may have let go."""
    wanted = [sequence for sequence in sequences if sequence < 15]
    rest = sequences[len(wanted) :]
    first = wanted[0] if wanted and work is compacts else 0
    return (
        first in (0, 5, 10)
        and wanted == list(range(first, 15))
        and len(rest) <= 2 * (work is rolls)
    )
