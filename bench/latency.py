"""How long one append takes, and the way from a writer to a reader in another process."""

from __future__ import annotations

import importlib
import multiprocessing
import struct
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import ModuleType

from measure import Job, latencies_of, payloads_of, percentiles, warm_memory

Figures = dict[str, float]

# A roll shows in the append that causes it or in the ones around it.
ROLL_NEIGHBOURS = 8
SPIN_GAP_NS = 20_000
SLEEP_GAP_SECONDS = 0.001
SILENCE_SECONDS = 10
STAMP = struct.Struct("<q")
# The first messages meet cold caches in both processes.
WARM_MESSAGES = 200


def append_latency(engine: ModuleType, job: Job) -> Figures:
    """Percentiles of one append; Penstock rolls every 64 MiB meanwhile."""
    ours = engine.NAME == "penstock"
    options = {"segment_bytes": engine.ROLL_BYTES} if ours else {}
    store = engine.open(job.directory, **options)
    payloads = payloads_of(job.payload_bytes)
    warm_memory(job.warm_bytes, job.directory)
    warmed = len(latencies_of(store.append, payloads, WARM_MESSAGES, job.seconds_max))
    taken = latencies_of(store.append, payloads, job.count_max, job.seconds_max)
    store.close()
    figures = percentiles(taken)
    if ours:
        figures |= _rolls(engine, job, taken, warmed)
    return figures


def _rolls(engine: ModuleType, job: Job, taken: list[int], skipped: int) -> Figures:
    """The worst append beside each roll."""
    first, *later = engine.first_sequences(job.directory)
    worst = []
    for sequence in later:
        place = sequence - first - skipped
        if ROLL_NEIGHBOURS <= place < len(taken):
            worst.append(max(taken[place - ROLL_NEIGHBOURS : place + ROLL_NEIGHBOURS]))
    if not worst:
        return {"rolls": 0.0}
    return {"rolls": float(len(worst)), "roll_max": float(max(worst))}


def spinning(engine: ModuleType, job: Job) -> Figures:
    """Writer to reader in another process; the reader asks again and again."""
    return _across(engine, job, _spun, SPIN_GAP_NS)


def asleep(engine: ModuleType, job: Job) -> Figures:
    """Writer to reader in another process; the reader sleeps until it is woken."""
    return _across(engine, job, _followed, 0)


def _across(
    engine: ModuleType, job: Job, receive: Callable[[object, int], Iterator[bytes]], gap_ns: int
) -> Figures:
    store = engine.open(job.directory)
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    count = job.count_max + WARM_MESSAGES
    writer = context.Process(
        target=_write, args=(engine.__name__, job, count, gap_ns, ready), daemon=True
    )
    writer.start()
    ready.wait(timeout=30)
    clock = time.perf_counter_ns
    taken = []
    for payload in receive(store, count):
        arrived = clock()
        taken.append(arrived - STAMP.unpack_from(payload)[0])
    writer.join(timeout=SILENCE_SECONDS)
    store.close()
    if len(taken) < count:
        raise RuntimeError(f"{count - len(taken)} of {count} messages did not arrive")
    return percentiles(taken[WARM_MESSAGES:])


def _spun(store: object, count: int) -> Iterator[bytes]:
    poll = store.poll
    deadline = time.monotonic() + SILENCE_SECONDS
    while count:
        payload = poll()
        if payload is not None:
            count -= 1
            yield payload
        elif time.monotonic() > deadline:
            return


def _followed(store: object, count: int) -> Iterator[bytes]:
    tailer = store.queue.tailer()
    for message in tailer.follow(timeout=timedelta(seconds=SILENCE_SECONDS)):
        yield message.payload
        count -= 1
        if not count:
            return


def _write(engine_name: str, job: Job, count: int, gap_ns: int, ready: object) -> None:
    """Append messages that carry their own time, at even gaps."""
    engine = importlib.import_module(engine_name)
    store = engine.open(job.directory)
    clock = time.perf_counter_ns
    rest = bytes(job.payload_bytes - STAMP.size)
    ready.set()
    time.sleep(0.2)
    due = clock()
    for _ in range(count):
        if gap_ns:
            due += gap_ns
            while clock() < due:
                pass
        else:
            time.sleep(SLEEP_GAP_SECONDS)
        store.append(STAMP.pack(clock()) + rest)
    store.close()
