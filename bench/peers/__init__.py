"""The peers: other ways to keep a queue on one machine, each in a module of the same shape.

A module has NAME, MODE (how it is set up, for the report), THREADS (how 8 threads may append:
"shared" handle, a handle "each", or None where the peer does not allow it), PROCESSES (whether two
processes may append) and `open(directory, durable=False)`. Without `durable` a peer runs in its
fastest setting; with it, each append must survive power loss. What `open` returns has
`append(payload)` and `close()`, and where the peer can do it `append_many(payloads)`,
`messages()` (an iterator of payloads), `read_at(number)` from 0, and `poll()` (the next payload
that this handle has not seen, or None).
"""

from __future__ import annotations

import importlib
from types import ModuleType

MODULES = {
    "queuelib": "queuelib",
    "lmdb": "lmdb",
    "sqlite3": "sqlite",
    "litequeue": "litequeue",
    "diskcache": "diskcache",
    "persist-queue": "persist_queue",
}
PYTHON_PEERS = tuple(MODULES)


def engine(name: str) -> ModuleType:
    """The module of a peer, by the name in the report."""
    return importlib.import_module(f"peers.{MODULES.get(name, name)}")
