"""Work done in processes of its own, which end as a test wants them to."""

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import NoReturn

KILLED = -signal.SIGKILL
# No work of a test takes as long; what waits for ever is ended, and seen by how it ended.
HANGS_AFTER_SECONDS = 30


def die(*_: object) -> NoReturn:
    """End this process as a crash does: nothing is closed, flushed or told."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this signal")


def in_child(work: Callable[[], object]) -> int:
    """Run `work` in a fork and tell how it ended: 0, its exit status, or minus a signal."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _work_and_exit(work)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)


def _work_and_exit(work: Callable[[], object]) -> NoReturn:
    status = 1
    signal.alarm(HANGS_AFTER_SECONDS)
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001
        # Whatever it was, it must not go up into the test runner of the parent.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def killed(work: Callable[[], object]) -> None:
    """Run `work` in a process that is killed right after, or within."""

    def work_and_die() -> None:
        work()
        die()

    ended = in_child(work_and_die)
    assert ended == KILLED, f"the process was to be killed, and ended with {ended}"
