"""SQLite as a queue: one table in WAL mode, as most people write it themselves."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

NAME = "sqlite3"
MODE = "one table, WAL; synchronous NORMAL, or FULL where durable"
THREADS = "each"
PROCESSES = True

INSERT = "INSERT INTO messages (payload) VALUES (?)"


class Store:
    """One connection, which commits after every statement."""

    def __init__(self, directory: str, durable: bool) -> None:
        self._connection = sqlite3.connect(
            Path(directory) / "queue.db", isolation_level=None, timeout=30
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS messages (number INTEGER PRIMARY KEY, payload BLOB)"
        )
        self._seen = 0
        self.close = self._connection.close

    def append(self, payload: bytes) -> None:
        self._connection.execute(INSERT, (payload,))

    def append_many(self, payloads: Sequence[bytes]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(INSERT, [(payload,) for payload in payloads])
        self._connection.execute("COMMIT")

    def messages(self) -> Iterator[bytes]:
        rows = self._connection.execute("SELECT payload FROM messages ORDER BY number")
        return (payload for (payload,) in rows)

    def read_at(self, number: int) -> bytes | None:
        row = self._connection.execute(
            "SELECT payload FROM messages WHERE number = ?", (number + 1,)
        ).fetchone()
        return None if row is None else row[0]

    def poll(self) -> bytes | None:
        payload = self.read_at(self._seen)
        if payload is not None:
            self._seen += 1
        return payload


def open(directory: str, durable: bool = False) -> Store:
    return Store(directory, durable)
