"""Sleeping for a task of asyncio, in a thread that nobody has to join at the end of the program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future


def in_thread(sleep: Callable[[int], None], duration_ns: int) -> Future[None]:
    """Sleep in a thread of its own; asyncio's own would all be taken by a few dozen readers."""
    done: Future[None] = Future()

    def wait() -> None:
        try:
            sleep(duration_ns)
        finally:
            done.set_result(None)

    threading.Thread(target=wait, name="penstock-wait", daemon=True).start()
    return done
