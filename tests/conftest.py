"""What any test may ask for."""

from pathlib import Path

import pytest


@pytest.fixture
def queue_path(tmp_path: Path) -> Path:
    """Name a directory for a queue that is not there yet."""
    return tmp_path / "queue"
