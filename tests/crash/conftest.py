"""What tests of crashes may ask for."""

from collections.abc import Callable

import pytest

from penstock import clock


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Start the machine anew: what processes shared in memory counts no more."""
    boots = iter(range(1, 100))

    def start() -> None:
        boot_id = b"boot of number%2d" % next(boots)
        monkeypatch.setattr(clock, "boot_id", lambda: boot_id)

    return start
