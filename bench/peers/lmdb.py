"""LMDB as a queue: an append-only table keyed by an 8-byte number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import lmdb

NAME = "lmdb"
MODE = "one table, key = number; writemap and no sync, or its default sync where durable"
THREADS = "shared"
PROCESSES = True

MAP_BYTES = 8 << 30


class Store:
    """One environment; the number of the next message is read inside each transaction."""

    def __init__(self, directory: str, durable: bool) -> None:
        self._environment = lmdb.open(
            directory, map_size=MAP_BYTES, writemap=not durable, sync=durable, max_readers=64
        )
        self._seen = 0
        self.close = self._environment.close

    def append(self, payload: bytes) -> None:
        with self._environment.begin(write=True) as transaction:
            number = transaction.stat()["entries"]
            transaction.put(number.to_bytes(8, "big"), payload, append=True)

    def append_many(self, payloads: Sequence[bytes]) -> None:
        with self._environment.begin(write=True) as transaction:
            first = transaction.stat()["entries"]
            items = [
                (number.to_bytes(8, "big"), payload)
                for number, payload in enumerate(payloads, first)
            ]
            transaction.cursor().putmulti(items, append=True)

    def messages(self) -> Iterator[bytes]:
        with self._environment.begin() as transaction:
            yield from transaction.cursor().iternext(keys=False, values=True)

    def read_at(self, number: int) -> bytes | None:
        with self._environment.begin() as transaction:
            return transaction.get(number.to_bytes(8, "big"))

    def poll(self) -> bytes | None:
        payload = self.read_at(self._seen)
        if payload is not None:
            self._seen += 1
        return payload


def open(directory: str, durable: bool = False) -> Store:
    return Store(directory, durable)
