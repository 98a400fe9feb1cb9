"""What tests of crashes may ask for."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import clock
from tests.crash.editing import Page
from tests.crash.states import active, log_with, sealed


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Start the machine anew: what processes shared in memory counts no more."""
    boots = iter(range(1, 100))

    def start() -> None:
        boot_id = b"boot of number%2d" % next(boots)
        monkeypatch.setattr(clock, "boot_id", lambda: boot_id)

    return start


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
