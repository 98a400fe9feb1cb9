"""What every timed program here shares: payloads, warm memory, timed loops, percentiles."""

from __future__ import annotations

import gc
import itertools
import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

PAYLOAD_COUNT = 1024
# Long enough that reading the clock between two blocks costs nothing, short enough to stop in time.
BLOCK_NS = 10_000_000
WARM_STEP_BYTES = 1 << 20
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}


@dataclass(frozen=True)
class Job:
    """What one child process is asked to do."""

    directory: str
    payload_bytes: int
    count_max: int
    seconds_max: float
    warm_bytes: int = 0
    read_count: int = 0
    build_bytes: int = 0
    program: str = ""


def payloads_of(payload_bytes: int, count: int = PAYLOAD_COUNT) -> list[bytes]:
    """Different payloads, the same in every process: one object alone would flatter the cache."""
    source = random.Random(20260115)
    return [source.randbytes(payload_bytes) for _ in range(count)]


def frame_bytes(payload_bytes: int) -> int:
    """What one message takes on disk: a head of 16, the payload padded to 8, a check of 8."""
    return 16 + (payload_bytes + 7) // 8 * 8 + 8


def warm_memory(byte_count: int, directory: str) -> None:
    """Take this much page cache and free it, so that the next pages come from this machine at once.

    A virtual machine gives memory that stays free for some seconds back to its host, and the
    first touch of such a page costs hundreds of times more than the append that causes it. A file
    beside the data is what helps: a file takes the pages that a file has freed, while after as
    much anonymous memory the next append was still five times slower.
    """
    if byte_count <= 0:
        return
    path = Path(directory) / "warm"
    zeros = bytes(WARM_STEP_BYTES)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        os.posix_fallocate(file, 0, byte_count)
        for position in range(0, byte_count, WARM_STEP_BYTES):
            os.pwrite(file, zeros, position)
    finally:
        os.close(file)
        path.unlink()


def timed_calls(
    call: Callable[[object], object], values: Sequence[object], count_max: int, seconds_max: float
) -> tuple[int, int]:
    """Call with each value in turn until the count or the time is reached: (calls, ns)."""
    source = itertools.cycle(values)
    block = 16
    done = 0
    began = now = time.perf_counter_ns()
    deadline = began + int(seconds_max * 1e9)
    while done < count_max and now < deadline:
        block = min(block, count_max - done)
        before = now
        for value in itertools.islice(source, block):
            call(value)
        now = time.perf_counter_ns()
        done += block
        if now - before < BLOCK_NS:
            block *= 2
    return done, now - began


def latencies_of(
    call: Callable[[object], object], values: Sequence[object], count: int, seconds_max: float
) -> list[int]:
    """The time of each single call in ns, one clock reading included."""
    clock = time.perf_counter_ns
    source = itertools.cycle(values)
    taken = [0] * count
    deadline = clock() + int(seconds_max * 1e9)
    before = clock()
    for number, value in zip(range(count), source, strict=False):
        call(value)
        after = clock()
        taken[number] = after - before
        before = after
        if after > deadline:
            return taken[: number + 1]
    return taken


def percentiles(values: Iterable[int]) -> dict[str, float]:
    """Named percentiles and the greatest of the values."""
    ordered = sorted(values)
    last = len(ordered) - 1
    figures = {
        name: float(ordered[min(last, int(share * len(ordered)))])
        for name, share in PERCENTILES.items()
    }
    return figures | {"max": float(ordered[-1]), "samples": float(len(ordered))}


def quiet() -> None:
    """Keep the cyclic collector out of the timed loops; messages make no cycles."""
    gc.collect()
    gc.freeze()
    gc.disable()


def per_second(count: int, nanoseconds: float) -> float:
    """Messages a second."""
    return count / nanoseconds * 1e9
