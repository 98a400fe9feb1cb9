"""What processes say of themselves, in files that survive their death: one write a line."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.torture.history import Call, Found

_FOUND = struct.Struct("<QqQQ")


class Report:
    """A producer's own file: a line before each append, and one after it."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)

    def call(self, first: int, count: int) -> None:
        """Say that an append begins."""
        self._tell(f"call {first} {count} {time.monotonic_ns()}")

    def ok(self, sequence: int) -> None:
        """Say that it is done."""
        self._tell(f"ok {sequence} {time.monotonic_ns()}")

    def failed(self, error: BaseException) -> None:
        """Say that it raised an error which promises that nothing was appended."""
        self._tell(f"failed {type(error).__name__} {time.monotonic_ns()}")

    def _tell(self, line: str) -> None:
        os.write(self._fd, f"{line}\n".encode())


class Told(NamedTuple):
    """What one producer's file says."""

    calls: list[Call]
    errors: list[str]


def read_report(producer: int, path: Path) -> Told:
    """Read a producer's file; its last line may be cut off."""
    calls, errors = list[Call](), list[str]()
    if not path.exists():
        return Told(calls, errors)
    for line in path.read_text(encoding="ascii").split("\n")[:-1]:
        word, *rest = line.split(" ")
        if word == "call":
            first, count, now = map(int, rest)
            calls.append(Call(producer, first, count, now, "unknown"))
        elif word == "ok":
            sequence, now = map(int, rest)
            calls[-1] = calls[-1]._replace(outcome="ok", sequence=sequence, ended_ns=now)
        else:
            name, time_ns = rest
            calls[-1] = calls[-1]._replace(outcome="failed", ended_ns=int(time_ns))
            errors.append(name)
    return Told(calls, errors)


def pack_found(messages: Sequence[Found]) -> bytes:
    """Put messages that were read into few bytes."""
    return b"".join(_FOUND.pack(*message) for message in messages)


def read_found(path: Path) -> list[Found]:
    """Take them out again; the last one may be cut off."""
    if not path.exists():
        return []
    packed = path.read_bytes()
    whole = packed[: len(packed) // _FOUND.size * _FOUND.size]
    return [Found(*each) for each in _FOUND.iter_unpack(whole)]
