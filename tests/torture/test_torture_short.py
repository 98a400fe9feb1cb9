"""A short piece of each torture, so that what it stands on is never broken for long."""

import pytest

from tests.torture import kill9, lines, steps

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SEED = 20_260_115


def test_random_kills_lose_nothing():
    """Processes die and stand still at any moment, and every promise is kept."""
    figures = kill9.torture(SEED, kills=25, processes=4)

    assert [] == figures.faults
    assert 25 <= figures.counts["kills"]


def test_a_death_at_any_line_loses_nothing():
    """Whoever comes next makes good what was left in the middle of an open, a roll or a close."""
    figures = lines.deaths(SEED, trials=40)

    assert [] == figures.faults
    assert 40 == figures.counts["trials"]


def test_an_interrupt_at_any_moment_loses_nothing():
    """An exception out of a signal leaves the handle usable, or closed for good."""
    figures = lines.interrupts(SEED, trials=40)

    assert [] == figures.faults
    assert 40 == figures.counts["trials"]


@pytest.mark.parametrize("which", range(2), ids=[append.name for append in steps.APPENDS[:2]])
def test_a_death_at_any_instruction_of_an_append_loses_nothing(which):
    """Each store of an append leaves a state that can be mended, with the page and without."""
    figures = steps.torture(SEED, steps.APPENDS[which : which + 1])
    if figures.counts[steps.SKIPPED]:
        pytest.skip(steps.SKIPPED)

    assert [] == figures.faults
    assert 10 < figures.counts["states"]
