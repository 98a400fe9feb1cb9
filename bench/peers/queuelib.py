"""queuelib's FifoDiskQueue: files of 100,000 messages, written by one process, read by popping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from queuelib import FifoDiskQueue

NAME = "queuelib"
MODE = "FifoDiskQueue; never flushes, and forgets after kill -9 what was appended since open"
THREADS = None
PROCESSES = False


class Store:
    """One FifoDiskQueue; reading takes the messages out."""

    def __init__(self, directory: str) -> None:
        self._queue = FifoDiskQueue(str(Path(directory) / "queue"))
        self.append = self._queue.push
        self.close = self._queue.close

    def messages(self) -> Iterator[bytes]:
        return iter(self._queue.pop, None)


def open(directory: str, durable: bool = False) -> Store:
    if durable:
        raise NotImplementedError("queuelib has no flush")
    return Store(directory)
