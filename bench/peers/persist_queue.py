"""persist-queue's SQLiteQueue, the most installed persistent queue of Python."""

from __future__ import annotations

from collections.abc import Iterator

from persistqueue import SQLiteQueue

NAME = "persist-queue"
MODE = "SQLiteQueue, auto_commit; synchronous set to NORMAL, or FULL (its default) where durable"
THREADS = "shared"
PROCESSES = True


class Store:
    """One SQLiteQueue; reading takes the messages out."""

    def __init__(self, directory: str, durable: bool) -> None:
        self._queue = SQLiteQueue(directory, multithreading=True, auto_commit=True, timeout=30)
        if not durable:
            # It has no setting for this; without it each append would wait for the disk.
            self._queue._putter.execute("PRAGMA synchronous = NORMAL")
        self.append = self._queue.put
        self.close = self._queue.close

    def messages(self) -> Iterator[bytes]:
        while self._queue.size:
            yield self._queue.get(block=False)


def open(directory: str, durable: bool = False) -> Store:
    return Store(directory, durable)
