"""What this machine and this interpreter allow, measured in the same run as everything else."""

from __future__ import annotations

import collections
import ctypes
import mmap
import multiprocessing
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from measure import (
    Job,
    frame_bytes,
    latencies_of,
    payloads_of,
    percentiles,
    quiet,
    timed_calls,
    warm_memory,
)

Figures = dict[str, float]

MODES = {
    "machine": "what this machine allows: a loop in C, memcpy, fdatasync, a pipe, shared memory",
    "python": "the same loop in Python around the cheapest call there is",
    "kernel": "Penstock's kernel called in a loop in Rust, without Python around each append",
}
COPY_BYTES = 128 << 20
KERNEL_BLOCK = 10_000
COPY_PASSES = 8
SOURCE = Path(__file__).with_name("append_loop.c")
SPIN_GAP_NS = 20_000
SLEEP_GAP_SECONDS = 0.001


def compile_append_loop(program: Path) -> str | None:
    """Build the loop in C; the reason, if that cannot be done here."""
    program.parent.mkdir(exist_ok=True)
    if program.exists() and program.stat().st_mtime > SOURCE.stat().st_mtime:
        return None
    try:
        result = subprocess.run(
            ["cc", "-O2", "-o", str(program), str(SOURCE)],
            check=False,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        return "no C compiler"
    return None if result.returncode == 0 else f"cc failed: {result.stderr.strip()[:200]}"


def memcpy(job: Job) -> Figures:
    """Copy between two buffers far greater than the caches."""
    source, target = (mmap.mmap(-1, COPY_BYTES) for _ in range(2))
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(pages)) for pages in (target, source)]
    for address in addresses:
        ctypes.memset(address, 1, COPY_BYTES)
    taken = []
    for _ in range(COPY_PASSES):
        began = time.perf_counter_ns()
        ctypes.memmove(*addresses, COPY_BYTES)
        taken.append(time.perf_counter_ns() - began)
    taken.sort()
    gb_s = COPY_BYTES / taken[len(taken) // 2]
    return {"gb_s": gb_s, "ns": job.payload_bytes / gb_s}


def mapped_loop(job: Job) -> Figures:
    """Store frames into a mapped file in C, on fresh pages and on warm ones."""
    warm_memory(job.warm_bytes, job.directory)
    path = Path(job.directory) / "frames"
    answer = subprocess.run(
        [job.program, str(path), str(job.payload_bytes), str(job.count_max)],
        capture_output=True,
        text=True,
        check=True,
    )
    fresh, warm = map(float, answer.stdout.split())
    return {"ns": fresh, "rate": 1e9 / fresh, "warm_ns": warm, "warm_rate": 1e9 / warm}


def kernel_loop(job: Job) -> Figures:
    """The whole append of Penstock's kernel, called in a loop in Rust."""
    import ours

    store = ours.open(job.directory)
    payload = payloads_of(job.payload_bytes, 1)[0]
    warm_memory(job.warm_bytes, job.directory)
    count = taken = 0
    while count < job.count_max and taken < job.seconds_max * 1e9:
        # Between two blocks the threads that keep the queue get their turn at the interpreter.
        taken += store.append_loop(payload, KERNEL_BLOCK)
        count += KERNEL_BLOCK
    store.close()
    return {"ns": taken / count, "rate": count / taken * 1e9, "messages": float(count)}


def python_call(job: Job) -> Figures:
    """The same timed loop around the cheapest call there is: a deque of one takes the payload."""
    quiet()
    call = collections.deque(maxlen=1).append
    count, taken = timed_calls(call, payloads_of(job.payload_bytes), 5_000_000, 1.0)
    return {"ns": taken / count}


def python_clock(job: Job) -> Figures:
    """The loop of the latencies around the same call: what the machine itself interrupts."""
    quiet()
    call = collections.deque(maxlen=1).append
    payloads = payloads_of(job.payload_bytes)
    return percentiles(latencies_of(call, payloads, job.count_max, job.seconds_max))


def fdatasync(job: Job) -> Figures:
    """Write one frame after the other into a preallocated file and force each to the disk."""
    size = frame_bytes(job.payload_bytes)
    frame = bytes(range(256)) * (size // 256 + 1)
    frame = frame[:size]
    file = os.open(Path(job.directory) / "frames", os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(file, 0, 64 << 20)
    os.fsync(file)
    places = range(0, (64 << 20) - size, size)

    def write_through(position: int) -> None:
        os.pwrite(file, frame, position)
        os.fdatasync(file)

    timed_calls(write_through, places, 64, 0.1)
    count, taken = timed_calls(write_through, places[64:], job.count_max, job.seconds_max)
    os.close(file)
    return {"us": taken / count / 1e3, "rate": count / taken * 1e9}


def shared_memory(job: Job) -> Figures:
    """One writer and one reader that spin on 16 bytes of shared memory, in Python."""
    path = Path(job.directory) / "shared"
    path.write_bytes(bytes(mmap.PAGESIZE))
    return _across(_write_shared, _read_shared, str(path), job.count_max)


def pipe_wake(job: Job) -> Figures:
    """One writer that wakes one reader through a pipe, in Python."""
    path = Path(job.directory) / "pipe"
    os.mkfifo(path)
    return _across(_write_pipe, _read_pipe, str(path), job.count_max)


def _across(
    write: Callable[[str, int], None], read: Callable[[str, int], list[int]], path: str, count: int
) -> Figures:
    quiet()
    writer = multiprocessing.get_context("spawn").Process(target=write, args=(path, count))
    writer.start()
    taken = read(path, count)
    writer.join(timeout=10)
    return percentiles(taken[len(taken) // 100 :])


def _words(path: str) -> memoryview:
    """The time and the number of the newest message; each store of a word is whole."""
    with Path(path).open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), mmap.PAGESIZE)).cast("q")


def _write_shared(path: str, count: int) -> None:
    clock = time.perf_counter_ns
    words = _words(path)
    time.sleep(0.2)
    due = clock()
    for number in range(1, count + 1):
        due += SPIN_GAP_NS
        while clock() < due:
            pass
        words[0] = clock()
        words[1] = number


def _read_shared(path: str, count: int) -> list[int]:
    clock = time.perf_counter_ns
    words = _words(path)
    taken = []
    seen = 0
    deadline = clock() + 30_000_000_000
    while seen < count and clock() < deadline:
        number = words[1]
        if number != seen:
            taken.append(clock() - words[0])
            seen = number
    return taken


def _write_pipe(path: str, count: int) -> None:
    pipe = os.open(path, os.O_WRONLY)
    for _ in range(count):
        time.sleep(SLEEP_GAP_SECONDS)
        os.write(pipe, time.perf_counter_ns().to_bytes(8, "little"))
    os.close(pipe)


def _read_pipe(path: str, count: int) -> list[int]:
    pipe = os.open(path, os.O_RDONLY)
    taken = []
    while len(taken) < count and (stamp := os.read(pipe, 8)):
        taken.append(time.perf_counter_ns() - int.from_bytes(stamp, "little"))
    os.close(pipe)
    return taken
