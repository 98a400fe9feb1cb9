"""A process is killed before each change that it makes, one after the other: nothing is lost."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from penstock import RetentionPolicy
from tests.crash.points import killed_before
from tests.crash.states import active, found_in, log_with, opened, payload, roll, sealed


def closes(root: Path) -> None:
    """Be the last one out."""
    opened(root).close()


def flushes(root: Path) -> None:
    """Make everything durable, two segments and their names."""
    opened(root).flush()


def compacts(root: Path) -> None:
    """Drop the first segment."""
    opened(root).compact(RetentionPolicy(segments=2))


def rolls(root: Path) -> None:
    """Begin another segment, and append to it."""
    queue = opened(root)
    roll(queue)
    queue.append(payload(15))


WORKS = [opened, closes, flushes, compacts, rolls]


@pytest.mark.slow
@pytest.mark.parametrize("work", WORKS)
@pytest.mark.parametrize("boots", ["one boot", "another boot before", "another boot after"])
def test_no_point_at_which_a_process_is_killed_loses_a_message(memory_path, work, boots, reboot):
    """What had been appended is there, is no damage, and no sequence comes again."""
    broken, point, was_killed = [], 0, True
    while was_killed:
        root = memory_path / str(point)
        log_with(root, sealed(5), sealed(5), active(5))
        if boots == "another boot before":
            reboot()
        was_killed = killed_before(point, partial(work, root))
        if boots == "another boot after":
            reboot()
        found = found_in(root)
        is_whole = are_all_there(found.sequences, work)
        goes_on = (found.appended or 0) > max([14, *found.sequences])
        if not (is_whole and goes_on) or found.wrong or found.told or found.faults:
            broken.append((point, found))
        point += 1

    assert point > 8
    assert [] == broken


def are_all_there(sequences: list[int], work: Callable[[Path], object]) -> bool:
    """Compare with what was appended, but for what retention may have let go."""
    wanted = [sequence for sequence in sequences if sequence < 15]
    rest = sequences[len(wanted) :]
    first = wanted[0] if wanted and work is compacts else 0
    return first in (0, 5) and wanted == list(range(first, 15)) and len(rest) <= (work is rolls)
