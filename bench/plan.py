"""What is measured: which participants take part in which workload, and how much each has to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from measure import Job, frame_bytes
from peers import PYTHON_PEERS

MACHINE = "machine"
PYTHON = "python"
KERNEL = "kernel"
PENSTOCK = "penstock"
CHRONICLE = "chronicle"
# What runs in the module of limits: what the machine, the interpreter and the kernel allow.
LIMITS = (MACHINE, PYTHON, KERNEL)
FAST_PEERS = ("queuelib", "lmdb", "sqlite3")
SLOW_PEERS = tuple(peer for peer in PYTHON_PEERS if peer not in FAST_PEERS)
PARTICIPANTS = (*LIMITS, PENSTOCK, *PYTHON_PEERS, CHRONICLE)

PAYLOAD_BYTES = {"100 B": 100, "1 KiB": 1024}
BUILD_BYTES = {"64 MiB": 64 << 20, "1 GiB": 1 << 30}
# With segments of 1 GiB the sustained appends cross two rolls.
APPEND_BYTES = 9 << 28
WARM_BYTES_MORE = 256 << 20
CHRONICLE_HEADER_BYTES = 4
# What stops a participant that has to write all of it, should it be far slower than expected.
APPEND_SECONDS_MAX = 20.0
READ_COUNTS = {
    "queuelib": 200_000,
    "litequeue": 50_000,
    "diskcache": 20_000,
    "persist-queue": 10_000,
}
READ_COUNT = 1_000_000
SEEK_COUNT_MAX = 50_000
LATENCY_COUNT = 3_000_000
SPIN_COUNT = 20_000
SLEEP_COUNT = 1_000
# The workloads that a quick run measures at 1 KiB too.
QUICK_LARGE = ("append", "append_many", "read_arrow")
PROGRAM = Path(__file__).parent / ".build" / "append_loop"


class Key(NamedTuple):
    """Where a figure belongs in the report."""

    workload: str
    size: str
    participant: str

    def __str__(self) -> str:
        return f"{self.workload}, {self.size}, {self.participant}"


@dataclass(frozen=True)
class Workload:
    """One thing to measure: its first figure and, by participant, what child.py calls."""

    name: str
    figure: str
    sizes: tuple[str, ...]
    functions: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Run:
    """One measurement in a process of its own; the directory of its job is still to be made."""

    key: Key
    function: str
    job: Job


def _each(function: str, *participants: str) -> dict[str, str]:
    return dict.fromkeys(participants, function)


_BOTH = tuple(PAYLOAD_BYTES)
_SMALL = _BOTH[:1]
_SHARED_PEERS = tuple(peer for peer in PYTHON_PEERS if peer != "queuelib")
_BATCH_PEERS = ("lmdb", "sqlite3", "litequeue", "diskcache")
_SEEKING = (PENSTOCK, "lmdb", "sqlite3")

WORKLOADS = (
    Workload(
        "append",
        "ns",
        _BOTH,
        {MACHINE: "mapped_loop", PYTHON: "python_call", KERNEL: "kernel_loop"}
        | _each("append", PENSTOCK, *PYTHON_PEERS, CHRONICLE),
    ),
    Workload(
        "append_many",
        "ns",
        _BOTH,
        {MACHINE: "mapped_loop"} | _each("append_many", PENSTOCK, *_BATCH_PEERS),
    ),
    Workload(
        "append_threads", "ns", _BOTH, _each("append_threads", PENSTOCK, *_SHARED_PEERS, CHRONICLE)
    ),
    Workload(
        "append_processes",
        "ns",
        _BOTH,
        _each("append_processes", PENSTOCK, *_SHARED_PEERS, CHRONICLE),
    ),
    Workload(
        "sync_one",
        "us",
        _SMALL,
        {MACHINE: "fdatasync"} | _each("sync_one", PENSTOCK, *_SHARED_PEERS, CHRONICLE),
    ),
    Workload("sync_threads", "us", _SMALL, _each("sync_threads", PENSTOCK, *_SHARED_PEERS)),
    Workload(
        "iterate",
        "payload_ns",
        _BOTH,
        {PENSTOCK: "iterate_messages"} | _each("iterate", *PYTHON_PEERS, CHRONICLE),
    ),
    Workload("read_many", "ns", _BOTH, _each("read_many", PENSTOCK)),
    Workload("read_arrow", "ns", _BOTH, {MACHINE: "memcpy", PENSTOCK: "read_arrow"}),
    Workload("seek_read", "us", _BOTH, _each("seek_read", *_SEEKING, CHRONICLE)),
    Workload("seek_rolled", "us", _BOTH, _each("seek_rolled", PENSTOCK)),
    Workload(
        "append_latency",
        "p999",
        _BOTH,
        {MACHINE: "python_clock"} | _each("append_latency", PENSTOCK, *FAST_PEERS, CHRONICLE),
    ),
    Workload(
        "spinning",
        "p50",
        _SMALL,
        {MACHINE: "shared_memory"} | _each("spinning", *_SEEKING, CHRONICLE),
    ),
    Workload("asleep", "p50", _SMALL, {MACHINE: "pipe_wake", PENSTOCK: "asleep"}),
    Workload("open_after_kill", "ms", tuple(BUILD_BYTES), _each("open_after_kill", *_SEEKING)),
)
NAMES = tuple(workload.name for workload in WORKLOADS)


def runs_of(
    names: Iterable[str], participants: Iterable[str], seconds: float, quick: bool
) -> Iterator[Run]:
    """One round of all that was asked for."""
    wanted = set(participants)
    for workload in WORKLOADS:
        if workload.name not in names:
            continue
        for size in workload.sizes:
            for participant, function in workload.functions.items():
                key = Key(workload.name, size, participant)
                if participant in wanted and not _left_out(key, quick):
                    yield Run(key, function, _job(key, seconds))


def _left_out(key: Key, quick: bool) -> bool:
    """Tell what would take minutes and could not win."""
    if key.size == "1 KiB":
        return key.participant in SLOW_PEERS or (quick and key.workload not in QUICK_LARGE)
    return key.size == "1 GiB" and key.participant == "sqlite3"


def _job(key: Key, seconds: float) -> Job:
    payload_bytes = PAYLOAD_BYTES.get(key.size, 100)
    job = {"directory": "", "payload_bytes": payload_bytes, "seconds_max": seconds}
    if key.workload.startswith("append") and key.workload != "append_latency":
        job |= _append_job(key, payload_bytes, seconds)
    elif key.workload.startswith("sync"):
        job |= {"count_max": 1_000_000}
    elif key.workload == "append_latency":
        count = LATENCY_COUNT if payload_bytes == 100 else LATENCY_COUNT // 2
        job |= {"count_max": count, "warm_bytes": _warm(key, count * frame_bytes(payload_bytes))}
        if key.participant not in PYTHON_PEERS:
            job |= {"seconds_max": APPEND_SECONDS_MAX}
    elif key.workload in ("spinning", "asleep"):
        job |= {"count_max": SPIN_COUNT if key.workload == "spinning" else SLEEP_COUNT}
    elif key.workload == "open_after_kill":
        job |= {"count_max": 1, "build_bytes": BUILD_BYTES[key.size]}
    else:
        count = READ_COUNTS.get(key.participant, READ_COUNT)
        count = count if payload_bytes == 100 else count // 4
        job |= {"count_max": SEEK_COUNT_MAX, "read_count": count}
    return Job(**job)


def _append_job(key: Key, payload_bytes: int, seconds: float) -> dict[str, object]:
    """The peers in Python append for a time; the others write more than memory takes at once."""
    taken = frame_bytes(payload_bytes)
    if key.participant == CHRONICLE:
        taken = payload_bytes + CHRONICLE_HEADER_BYTES
    count = APPEND_BYTES // taken
    whole = key.participant not in PYTHON_PEERS
    if key.participant == CHRONICLE and key.workload != "append":
        # Its writers together are slower than one, so that the whole would take too long.
        seconds, whole = 3 * seconds, False
    return {
        "count_max": count,
        "seconds_max": APPEND_SECONDS_MAX if whole else seconds,
        "warm_bytes": _warm(key, APPEND_BYTES),
        "program": str(PROGRAM),
    }


def _warm(key: Key, byte_count: int) -> int:
    """Memory that the run will fill, and no more: warming takes time too."""
    if key.participant in PYTHON_PEERS:
        return min(byte_count, 2 * WARM_BYTES_MORE)
    return 0 if key.participant == PYTHON else byte_count + WARM_BYTES_MORE
