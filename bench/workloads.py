"""The workloads: each takes an engine (Penstock or a peer) and a job, and returns named figures."""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import random
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType

from measure import Job, frame_bytes, payloads_of, per_second, timed_calls, warm_memory

Figures = dict[str, float]

MANY = 100
MANY_LISTS = 16
THREAD_COUNT = 8
PROCESS_COUNT = 2
READ_PASSES = 3
ARROW_BATCH_BYTES = 1 << 20


def append(engine: ModuleType, job: Job) -> Figures:
    """Append one by one from one thread."""
    store = engine.open(job.directory)
    warm_memory(job.warm_bytes, job.directory)
    count, taken = timed_calls(
        store.append, payloads_of(job.payload_bytes), job.count_max, job.seconds_max
    )
    store.close()
    return {"ns": taken / count, "rate": per_second(count, taken), "messages": float(count)}


def append_many(engine: ModuleType, job: Job) -> Figures:
    """Append a hundred messages in each call."""
    store = engine.open(job.directory)
    lists = _lists(job.payload_bytes)
    warm_memory(job.warm_bytes, job.directory)
    calls, taken = timed_calls(store.append_many, lists, job.count_max // MANY, job.seconds_max)
    store.close()
    count = calls * MANY
    return {"ns": taken / count, "rate": per_second(count, taken), "messages": float(count)}


def append_threads(engine: ModuleType, job: Job) -> Figures:
    """Eight threads append to one queue."""
    return _threads(engine, job, durable=False)


def sync_one(engine: ModuleType, job: Job) -> Figures:
    """Append one by one, each message durable before the next."""
    store = engine.open(job.directory, durable=True)
    payloads = payloads_of(job.payload_bytes)
    timed_calls(store.append, payloads, 64, 0.1)
    count, taken = timed_calls(store.append, payloads, job.count_max, job.seconds_max)
    store.close()
    return {"us": taken / count / 1e3, "rate": per_second(count, taken)}


def sync_threads(engine: ModuleType, job: Job) -> Figures:
    """Eight threads append, each message durable when its append returns."""
    return _threads(engine, job, durable=True)


def _threads(engine: ModuleType, job: Job, durable: bool) -> Figures:
    if engine.THREADS is None:
        raise NotImplementedError("not safe with several threads")
    shared = engine.open(job.directory, durable=durable)
    barrier = threading.Barrier(THREAD_COUNT)
    spans: list[tuple[int, int, int]] = []
    warm_memory(job.warm_bytes, job.directory)

    def work() -> None:
        store = shared if engine.THREADS == "shared" else engine.open(job.directory, durable)
        barrier.wait()
        spans.append(_span(store.append, job, job.count_max // THREAD_COUNT))

    threads = [threading.Thread(target=work) for _ in range(THREAD_COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.close()
    return _together(spans, THREAD_COUNT)


def append_processes(engine: ModuleType, job: Job) -> Figures:
    """Two processes append to one queue."""
    if not engine.PROCESSES:
        raise NotImplementedError("not safe with several processes")
    engine.open(job.directory).close()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESS_COUNT)
    results = context.SimpleQueue()
    workers = [
        context.Process(target=_process, args=(engine.__name__, job, barrier, results))
        for _ in range(PROCESS_COUNT)
    ]
    warm_memory(job.warm_bytes, job.directory)
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    failed = [worker.exitcode for worker in workers if worker.exitcode]
    if failed:
        raise RuntimeError(f"a writing process ended with {failed[0]}")
    return _together([results.get() for _ in workers], PROCESS_COUNT)


def _process(engine_name: str, job: Job, barrier: threading.Barrier, results: object) -> None:
    engine = importlib.import_module(engine_name)
    store = engine.open(job.directory)
    barrier.wait(timeout=30)
    results.put(_span(store.append, job, job.count_max // PROCESS_COUNT))
    store.close()


def _span(call: Callable[[bytes], object], job: Job, count_max: int) -> tuple[int, int, int]:
    """Append until the share or the time is used up: (messages, began, ended)."""
    payloads = payloads_of(job.payload_bytes, 64)
    began = time.perf_counter_ns()
    count, taken = timed_calls(call, payloads, count_max, job.seconds_max)
    return count, began, began + taken


def _together(spans: list[tuple[int, int, int]], expected: int) -> Figures:
    """The rate of all writers, from the first beginning to the last end."""
    if len(spans) != expected:
        raise RuntimeError(f"{expected - len(spans)} of {expected} writers failed")
    count = sum(span[0] for span in spans)
    taken = max(span[2] for span in spans) - min(span[1] for span in spans)
    return {
        "ns": taken / count,
        "us": taken / count / 1e3,
        "rate": per_second(count, taken),
        "messages": float(count),
    }


def iterate(engine: ModuleType, job: Job) -> Figures:
    """Iterate all messages that are there, and take each payload."""
    store, built = _built(engine, job)
    touched = []
    for _ in range(READ_PASSES):
        payload = None
        began = time.perf_counter_ns()
        for payload in store.messages():  # noqa: B007 - the last one is looked at below.
            pass
        elapsed = time.perf_counter_ns() - began
        if payload is None:
            break  # Reading took the messages out: there is no second pass.
        touched.append(elapsed / job.read_count)
        _expect(built[(job.read_count - 1) % len(built)], payload)
    store.close()
    return {"payload_ns": _middle(touched)}


def iterate_messages(engine: ModuleType, job: Job) -> Figures:
    """Iterate Penstock's messages, without and with taking the payload."""
    store, built = _built(engine, job)
    bare, touched = [], []
    for _ in range(READ_PASSES):
        tailer = store.queue.tailer()
        began = time.perf_counter_ns()
        for message in tailer:  # noqa: B007 - the last one is looked at below.
            pass
        bare.append((time.perf_counter_ns() - began) / job.read_count)
        _expect(built[(job.read_count - 1) % len(built)], message.payload)
        tailer = store.queue.tailer()
        began = time.perf_counter_ns()
        for message in tailer:
            message.payload  # noqa: B018 - making the bytes is what is timed.
        touched.append((time.perf_counter_ns() - began) / job.read_count)
    store.close()
    return {"ns": _middle(bare), "payload_ns": _middle(touched)}


def seek_read(engine: ModuleType, job: Job) -> Figures:
    """Read single messages at random places."""
    return _seek(*_built(engine, job), job)


def seek_rolled(engine: ModuleType, job: Job) -> Figures:
    """Read single messages at random places of a log that has rolled."""
    return _seek(*_built(engine, job, segment_bytes=engine.ROLL_BYTES), job)


def _seek(store: object, built: list[bytes], job: Job) -> Figures:
    source = random.Random(7)
    numbers = [source.randrange(job.read_count) for _ in range(20_000)]
    for number in numbers[:500]:
        _expect(built[number % len(built)], store.read_at(number))
    count, taken = timed_calls(store.read_at, numbers, job.count_max, job.seconds_max)
    store.close()
    return {"us": taken / count / 1e3}


def read_many(engine: ModuleType, job: Job) -> Figures:
    """Read a thousand messages in each call."""
    store, built = _built(engine, job)
    taken = []
    for _ in range(READ_PASSES):
        tailer = store.queue.tailer()
        count = 0
        began = time.perf_counter_ns()
        while messages := tailer.read_many(1000):
            count += len(messages)
            last = messages
        taken.append((time.perf_counter_ns() - began) / count)
        _expect(job.read_count, count)
    _expect(built[(job.read_count - 1) % len(built)], last[-1].payload)
    store.close()
    return {"ns": _middle(taken)}


def read_arrow(engine: ModuleType, job: Job) -> Figures:
    """Read everything as Arrow batches of about 1 MiB."""
    store, built = _built(engine, job)
    taken = []
    for _ in range(READ_PASSES):
        tailer = store.queue.tailer()
        count = 0
        began = time.perf_counter_ns()
        while (batch := tailer.read_arrow(bytes_max=ARROW_BATCH_BYTES)) is not None:
            count += batch.num_rows
            last = batch
        taken.append((time.perf_counter_ns() - began) / count)
        _expect(job.read_count, count)
    _expect(built[(job.read_count - 1) % len(built)], last.column("payload")[-1].as_py())
    store.close()
    nanoseconds = _middle(taken)
    return {"ns": nanoseconds, "gb_s": job.payload_bytes / nanoseconds}


def _built(engine: ModuleType, job: Job, **options: int) -> tuple[object, list[bytes]]:
    """A store with `read_count` messages, and the payloads that repeat in it."""
    store = engine.open(job.directory, **options)
    lists = _lists(job.payload_bytes)
    warm_memory(job.read_count * frame_bytes(job.payload_bytes), job.directory)
    fill(store, lists, job.read_count)
    return store, list(itertools.chain.from_iterable(lists))


def fill(store: object, lists: list[list[bytes]], count: int) -> None:
    """Append this many messages, by the hundred where the store can."""
    many = getattr(store, "append_many", None)
    for payloads in itertools.islice(itertools.cycle(lists), count // MANY):
        if many is not None:
            many(payloads)
        else:
            for payload in payloads:
                store.append(payload)


def _lists(payload_bytes: int) -> list[list[bytes]]:
    payloads = itertools.cycle(payloads_of(payload_bytes))
    return [list(itertools.islice(payloads, MANY)) for _ in range(MANY_LISTS)]


def _expect(expected: object, got: object) -> None:
    """A fast wrong answer is no figure."""
    if expected != got:
        raise RuntimeError(f"read {got!r:.60}, expected {expected!r:.60}")


def _middle(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[len(ordered) // 2]
