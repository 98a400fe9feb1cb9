"""What tests of crashes may ask for."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.editing import Page
from tests.crash.states import active, log_with, sealed


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """Name a folder on a disk of memory: these tests open queues ten thousand times."""
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=place) as name:
        yield Path(name)


@pytest.fixture
def queue_path(memory_path: Path) -> Path:
    """Name a directory for a queue that is not there yet, on a disk of memory."""
    return memory_path / "queue"


@pytest.fixture(params=["closed", "killed"])
def left(request):
    """Leave a log of 15 messages, closed or not."""

    def leave(root: Path) -> None:
        log_with(root, sealed(10), active(5), closed=request.param == "closed")

    return leave


@pytest.fixture(params=["page kept", "page lost"])
def stop(request, reboot):
    """Start the machine anew; of the page that processes shared there may be anything left."""

    def stopped(root: Path) -> None:
        if request.param == "page lost":
            Page(root).path.unlink()
        reboot()

    return stopped
