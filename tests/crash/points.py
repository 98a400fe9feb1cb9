"""Killing a process at every call that changes something outside of it, one after the other."""

import os
import sys
from collections.abc import Callable
from types import FrameType, FunctionType
from typing import Any

from tests.crash.processes import KILLED, die, in_child

# What Python asks of the system or of the kernel's shared pages and changes a state with.
CHANGES = {
    *("open", "pwrite", "fsync", "replace", "rename", "unlink", "remove", "rmdir", "mkdir"),
    *("close", "truncate", "ftruncate"),
    *("begin_bank", "set_bank_word", "store", "raise_durable", "initialise", "claim_slot", "leave"),
    *("set_clean", "clear_clean", "locked", "try_locked", "poison", "wake"),
    *("allocate", "flush", "seal", "use_segment", "mend"),
}
MODULES = {"posix", "penstock._kernel"}
# More than any of our works makes, so that the search comes to an end.
POINTS_MAX = 500


class Points:
    """Counts the changes this thread makes, and dies before the one of a number."""

    def __init__(self, last: int) -> None:
        self._left = last

    def __call__(self, _frame: FrameType, event: str, called: Any) -> None:
        """Hear of a call, as `sys.setprofile` wants it."""
        if event == "c_call" and called.__name__ in CHANGES and module_of(called) in MODULES:
            self._left -= 1
            if self._left < 0:
                die()


def die_at(name: str) -> None:
    """From now on be killed before the first call of this name."""

    def watch(_frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called.__name__ == name and module_of(called) in MODULES:
            die()

    sys.setprofile(watch)


def module_of(called: Any) -> str:
    """Name the module that a compiled function or method is of."""
    owner = getattr(called, "__self__", None)
    if owner is None or isinstance(owner, FunctionType):
        return str(called.__module__)
    return str(getattr(owner, "__name__", type(owner).__module__))


def killed_before(
    point: int, work: Callable[..., object], first: Callable[[], object] | None = None
) -> bool:
    """Run `work` in a process that is killed before its change of this number, if it makes that.

    What is to be done `first` is not counted; `work` is given what comes of it.
    """

    def watched() -> None:
        given = [] if first is None else [first()]
        sys.setprofile(Points(point))
        try:
            work(*given)
        finally:
            sys.setprofile(None)
        # Here, before a queue that goes out of scope is closed.
        os._exit(0)

    ended = in_child(watched)
    assert ended in (0, KILLED), f"the process ended with {ended}, not by being killed"
    return ended == KILLED
