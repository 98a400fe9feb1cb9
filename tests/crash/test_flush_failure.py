"""A flush that fails: nobody is told that all is well, nothing is flushed again, all is rescued."""

from pathlib import Path

import pytest

from tests.crash.failing_flush import play
from tests.crash.flush_roles import ROLES
from tests.crash.preload import compiled


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the library that lets flushing fail."""
    try:
        return compiled("failing_flush", tmp_path_factory.mktemp("library"))
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize("role", [role.__name__ for role in ROLES])
def test_a_failed_flush_keeps_the_promise_for(library, queue_path, role):
    """Each role asserts what its docstring in flush_roles.py claims."""
    play(library, role, queue_path)
