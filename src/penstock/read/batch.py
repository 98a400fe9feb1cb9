"""Some messages read at once, and where the next read goes on."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kernel import Message


@dataclass(frozen=True)
class ReadBatch:
    """What `queue.read_from` returns."""

    messages: list[Message]
    next_sequence: int
    """Where to read on: behind the last message, or what was asked for if there was none."""
