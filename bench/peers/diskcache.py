"""diskcache.Deque: a persistent sequence over SQLite."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from diskcache import Cache, Deque

NAME = "diskcache"
MODE = "Deque over SQLite in WAL; synchronous NORMAL (its default), or FULL where durable"
THREADS = "shared"
PROCESSES = True

SYNCHRONOUS_NORMAL = 1
SYNCHRONOUS_FULL = 2


class Store:
    """One Deque without eviction."""

    def __init__(self, directory: str, durable: bool) -> None:
        self._cache = Cache(
            directory,
            eviction_policy="none",
            size_limit=1 << 40,
            timeout=30,
            sqlite_synchronous=SYNCHRONOUS_FULL if durable else SYNCHRONOUS_NORMAL,
        )
        self._deque = Deque.fromcache(self._cache)
        self.append = self._deque.append
        self.close = self._cache.close

    def append_many(self, payloads: Sequence[bytes]) -> None:
        with self._deque.transact():
            self._deque.extend(payloads)

    def messages(self) -> Iterator[bytes]:
        return iter(self._deque)


def open(directory: str, durable: bool = False) -> Store:
    return Store(directory, durable)
