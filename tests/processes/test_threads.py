"""Threads share a queue: what each appends is there, under the sequence that it was told."""

import sys
import threading
from datetime import timedelta

import pytest

import penstock
from penstock import FlushMode, RollStrategy
from tests.processes.children import HANG_SECONDS

pytestmark = pytest.mark.slow

THREADS = 8
ROLL = RollStrategy.by_count(61)


def run_together(*works):
    """Run each work in a thread of its own, and raise the first thing that went wrong."""
    failures = []
    gate = threading.Barrier(len(works))

    def run(work):
        try:
            gate.wait()
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised again
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if failures:
        raise failures[0]


@pytest.fixture(autouse=True)
def _hasty():
    """Let threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def one_by_one(queue, told, name, count):
    """Append single messages."""
    for number in range(count):
        payload = f"{name} {number}"
        told[queue.append(payload.encode())] = payload


def several(queue, told, name, count):
    """Append a few at once."""
    for number in range(0, count, 5):
        payloads = [f"{name} {each}" for each in range(number, number + 5)]
        sequences = queue.append_many([payload.encode() for payload in payloads])
        told.update(zip(sequences, payloads, strict=True))


def in_transactions(queue, told, name, count):
    """Append a few with options of their own as one."""
    for number in range(0, count, 5):
        payloads = [f"{name} {each}" for each in range(number, number + 5)]
        with queue.transaction() as together:
            for payload in payloads:
                together.append(payload.encode(), key=payload.encode())
        told.update(zip(together.sequences, payloads, strict=True))


@pytest.mark.parametrize("append", [one_by_one, several, in_transactions])
@pytest.mark.parametrize(
    ("mode", "count"),
    [(FlushMode.ASYNC, 500), (FlushMode.SYNC, 50), (FlushMode.batch(), 200)],
    ids=["async", "sync", "batch"],
)
def test_each_sequence_names_its_own_message(queue_path, append, mode, count):
    """What threads append at once is all there, in each thread's order."""
    with penstock.open(queue_path, roll=ROLL, flush=mode) as queue:
        told = [dict[int, str]() for _ in range(THREADS)]
        appender = queue.appender()
        run_together(
            *(
                lambda name=name: append(
                    queue if append is in_transactions else appender, told[name], name, count
                )
                for name in range(THREADS)
            )
        )
        found = {message.sequence: message.payload.decode() for message in queue.tailer()}
        expected = {sequence: payload for each in told for sequence, payload in each.items()}

        assert THREADS * count == len(expected)
        assert expected == found
        assert all(list(each) == sorted(each) for each in told)
        assert mode != FlushMode.SYNC or queue.durable_sequence >= len(expected)


def test_reading_while_another_thread_rolls_never_fails(queue_path):
    """The list of segments was walked while a roll added to it."""
    count = 400
    with penstock.open(queue_path, roll=RollStrategy.by_count(2)) as queue:
        heard = list[int]()

        def append():
            for number in range(count):
                queue.append(b"%d" % number)

        def follow():
            tailer = queue.tailer()
            while len(heard) < count:
                heard.extend(int(m.payload) for m in tailer.follow(timedelta(milliseconds=20)))

        def look():
            while len(heard) < count:
                assert queue.stats().segments
                segments = queue._log.segments
                assert segments.after(count) is None

        run_together(append, follow, look)

    assert list(range(count)) == heard


def test_a_tailer_in_two_threads_works_or_says_so(queue_path):
    """Each message is read once or not at all, and the error says what to do."""
    count = 20_000
    with penstock.open(queue_path, roll=RollStrategy.by_count(1000)) as queue:
        queue.append_many([b"%d" % number for number in range(count)])
        tailer = queue.tailer()
        heard, refused = list[int](), list[str]()

        def read():
            misses = 0
            while misses < 100:
                try:
                    messages = tailer.read_many(10)
                except RuntimeError as error:
                    refused.append(str(error))
                    continue
                misses += not messages
                heard.extend(int(message.payload) for message in messages)

        run_together(read, read)

    assert list(range(count)) == sorted(heard)
    assert all("give each its own" in each for each in refused)


def test_a_queue_closed_by_another_thread_says_so(queue_path):
    """No append is half done, and none hangs."""
    with penstock.open(queue_path) as queue:
        told, refused = dict[int, str](), list[int]()

        def append():
            try:
                one_by_one(queue, told, "ours", 10**9)
            except penstock.errors.QueueClosedError:
                refused.append(1)

        def close():
            while len(told) < 100:
                pass
            queue.close()

        run_together(append, append, close)
    with penstock.open(queue_path) as again:
        found = {message.sequence: message.payload.decode() for message in again.tailer()}

    assert [1, 1] == refused
    assert told.items() <= found.items()
    assert len(found) - len(told) <= 2
