"""Power fails again and again, and of what was not forced to the disk anything may be left."""

from pathlib import Path

import pytest

from tests.crash.power import trials
from tests.crash.preload import compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the library that keeps what is forced to the disk."""
    try:
        return compiled("forced", tmp_path_factory.mktemp("library"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_no_power_loss_breaks_the_promise(library):
    """A slice of what a torture run does for longer; see power.py."""
    figures = trials(library, seed=20261119, count=40)

    assert [] == figures.failures
    assert (40, True) == (figures.trials, figures.lost < figures.durable)


@pytest.mark.slow
@pytest.mark.parametrize("lie", ["names", "bytes"])
def test_a_disk_that_lies_is_noticed(library, monkeypatch, lie):
    """If a flush were missing, this would be told: the engine is worth something."""
    monkeypatch.setenv("PENSTOCK_FORCES_NOT", lie)
    figures = trials(library, seed=1, count=25)

    assert any("were durable and are gone" in failure for failure in figures.failures)
