"""Plays a role in a process in which flushing fails while a file is there; see failing_flush.c."""

import subprocess
import sys
from pathlib import Path

from tests.crash.preload import under

PATIENCE_SECONDS = 60
SWITCH, NOTES = "PENSTOCK_FLUSH_FAILS_IF", "PENSTOCK_FLUSH_NOTES"


def play(library: Path, role: str, queue: Path) -> None:
    """Play a role of flush_roles.py, which fails if anything is not as the role claims."""
    told = {SWITCH: str(queue.parent / "flushing-fails"), NOTES: str(queue.parent / "flushes")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.crash.flush_roles", role, str(queue)],
        env=under(library, **told),
        timeout=PATIENCE_SECONDS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (done.returncode, done.stderr), f"{role} ended so: {done.stderr}"
