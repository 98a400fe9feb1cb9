"""Penstock in the shape of a peer, so that the same loops measure both."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import penstock
from penstock import FlushMode, RollStrategy

NAME = "penstock"
MODE = "FlushMode.ASYNC, or FlushMode.SYNC where durable; every frame checked on reading"
THREADS = "shared"
PROCESSES = True

ROLL_BYTES = 64 << 20
# Where a segment's header holds the sequence of its first message; see docs/format.md.
BASE_SEQUENCE_AT = 520


class Store:
    """One queue. What is timed is the library's own bound methods, nothing around them."""

    def __init__(self, directory: str, durable: bool, segment_bytes: int | None) -> None:
        options = {}
        if segment_bytes is not None:
            options = {"segment_bytes": segment_bytes, "roll": RollStrategy.by_size(segment_bytes)}
        self.queue = penstock.open(
            Path(directory) / "queue",
            flush=FlushMode.SYNC if durable else FlushMode.ASYNC,
            **options,
        )
        self.append = self.queue.append
        self.append_many = self.queue.append_many
        self.close = self.queue.close
        # The kernel alone, for the limits: no Python stands around each append.
        self.append_loop = self.queue._log.writer.append_loop
        self._tailer: penstock.Tailer | None = None
        self._first_sequence = self.queue.first_sequence

    def messages(self) -> Iterator[bytes]:
        return (message.payload for message in self.queue.tailer())

    def read_at(self, number: int) -> bytes | None:
        if self._tailer is None:
            self._tailer = self.queue.tailer()
        self._tailer.seek(sequence=self._first_sequence + number)
        return self.poll()

    def poll(self) -> bytes | None:
        if self._tailer is None:
            self._tailer = self.queue.tailer()
        message = self._tailer.read()
        return None if message is None else message.payload


def open(directory: str, durable: bool = False, segment_bytes: int | None = None) -> Store:
    return Store(directory, durable, segment_bytes)


def first_sequences(directory: str) -> list[int]:
    """The sequence of the first message of each segment, in order."""
    first = []
    for path in Path(directory, "queue").glob("[0-9]*/*/*/*.data"):
        with path.open("rb") as file:
            header = os.pread(file.fileno(), 8, BASE_SEQUENCE_AT)
        first.append(int.from_bytes(header, "little"))
    return sorted(first)
