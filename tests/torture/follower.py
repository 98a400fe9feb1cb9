"""The processes that read while others append and die: each reports whatever it hears."""

from __future__ import annotations

import os
import random
import threading
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from penstock import Tailer
from penstock.read import Start
from tests.torture.history import Found
from tests.torture.payloads import identity_of
from tests.torture.producer import Part, settle
from tests.torture.reports import pack_found

# A reader that asks to end is heard this often.
_WAIT = timedelta(milliseconds=20)


@dataclass(frozen=True)
class Following(Part):
    """How one reader follows."""

    read_only: bool = True

    def heard_path(self) -> Path:
        """Where it says what it heard."""
        return self.folder / f"{self.name}.heard"


def follow_on(part: Following) -> None:
    """Follow from some message on, and tell each one's sequence and identity."""
    over = settle(part)
    rng = random.Random(part.seed * 15_485_863 + part.numbers.start)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    fd = os.open(part.heard_path(), flags, 0o600)
    with part.open_patiently(over, read_only=part.read_only) as queue:
        starts: list[Start] = ["start", "end", rng.randint(0, queue.next_sequence)]
        start = rng.choice(starts)
        tailer = queue.tailer(start, on_gone="raise" if part.keep is None else "first")
        hear(tailer, part, over, fd)


def hear(tailer: Tailer, part: Following, over: threading.Event, fd: int) -> None:
    """Report until asked to end, and then what is still there."""
    while True:
        is_last = over.is_set()
        for message in tailer.follow(_WAIT):
            identity = identity_of(part.seed, message.payload)
            os.write(fd, pack_found([Found(message.sequence, *identity, message.timestamp_ns)]))
            if over.is_set():
                break
        if is_last:
            return
