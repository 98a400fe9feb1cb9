"""litequeue: a work queue in one SQLite file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from litequeue import LiteQueue

NAME = "litequeue"
MODE = "SQLite in WAL; synchronous NORMAL (its default), or FULL where durable"
THREADS = "each"
PROCESSES = True


class Store:
    """One LiteQueue; messages are listed with its own table, as its pop marks one at a time."""

    def __init__(self, directory: str, durable: bool) -> None:
        self._queue = LiteQueue(Path(directory) / "queue.db", timeout=30)
        if durable:
            self._queue.conn.execute("PRAGMA synchronous = FULL")
        self.append = self._queue.put
        self.close = self._queue.close

    def append_many(self, payloads: Sequence[bytes]) -> None:
        with self._queue.transaction(mode="IMMEDIATE"):
            for payload in payloads:
                self._queue.put(payload)

    def messages(self) -> Iterator[bytes]:
        query = f"SELECT data FROM {self._queue.table} ORDER BY rowid"  # noqa: S608 - its own name.
        rows = self._queue.conn.execute(query)
        return (row[0] for row in rows)


def open(directory: str, durable: bool = False) -> Store:
    return Store(directory, durable)
