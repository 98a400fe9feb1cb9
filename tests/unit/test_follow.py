"""Following: reading what is there and waiting for more, in loops and in tasks."""

import asyncio
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest

import penstock
from penstock import RollStrategy, Tailer
from penstock.errors import QueueClosedError
from tests.conftest import PATIENCE_SECONDS
from tests.unit.looking import payloads, sequences

SHORT = timedelta(milliseconds=20)
PATIENCE = timedelta(seconds=PATIENCE_SECONDS)
LAST = b"that is all"


def followed(tailer, timeout=PATIENCE):
    """Follow up to the last word, and return what came before it."""
    found: list[bytes] = []
    for message in tailer.follow(timeout):
        if message.payload == LAST:
            return found
        found.append(message.payload)
    pytest.fail(f"nothing more came after {found[-3:]}")


def in_time(coroutine):
    """Run a task in a loop of its own, and give it up when patience is over."""
    return asyncio.run(asyncio.wait_for(coroutine, PATIENCE_SECONDS))


def test_following_reads_what_is_there_and_ends(queue):
    """Nothing more comes within the timeout."""
    queue.append_many([b"a", b"b"])

    assert [b"a", b"b"] == payloads(queue.tailer().follow(SHORT))


@pytest.mark.parametrize("timeout", [timedelta(0), timedelta(microseconds=1), SHORT])
def test_following_an_empty_queue_ends(queue, timeout):
    """However short the timeout is."""
    assert [] == payloads(queue.tailer().follow(timeout))


def test_following_can_be_gone_on_with(queue):
    """The tailer stands where the last one ended."""
    tailer = queue.tailer()
    found = []
    for number in range(3):
        queue.append(b"%d" % number)
        found.append(payloads(tailer.follow(timedelta(0))))

    assert [[b"0"], [b"1"], [b"2"]] == found


def test_the_timeout_counts_from_the_last_message(queue, monkeypatch):
    """Messages that come in time keep it going, however long in all."""
    clock = SimpleNamespace(now=0, waits=0)
    monkeypatch.setattr("penstock.read.tailer.time.monotonic_ns", lambda: clock.now)

    def wait(_: Tailer, nanoseconds: int) -> None:
        clock.waits += 1
        if clock.waits > 5:
            clock.now += nanoseconds
        else:
            # Most of the timeout is over when the next one comes.
            clock.now += 15_000_000
            queue.append(b"%d" % clock.waits)

    monkeypatch.setattr(Tailer, "_wait", wait)

    assert [b"1", b"2", b"3", b"4", b"5"] == payloads(queue.tailer().follow(SHORT))


@pytest.mark.parametrize("start", ["start", "end", 0])
def test_a_follower_is_woken_by_another_thread(queue, start):
    """Whatever it started at."""
    tailer = queue.tailer(start)
    with ThreadPoolExecutor() as pool:
        following = pool.submit(followed, tailer)
        queue.append(b"a")
        queue.append_many([b"b", b"c"])
        queue.append(LAST)

    assert [b"a", b"b", b"c"] == following.result()


@pytest.mark.slow
def test_a_follower_is_woken_by_another_process(queue, queue_path, start_python):
    """The appender has only the path."""
    script = """
        import sys, penstock
        with penstock.open(sys.argv[1]) as queue:
            for line in sys.stdin:
                queue.append(line.strip().encode())
    """
    process = start_python(script, queue_path)
    found = []
    following = queue.tailer().follow(PATIENCE)
    for word in ("one", "two", "three"):
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        found.append(next(following).payload)

    assert [b"one", b"two", b"three"] == found


@pytest.mark.parametrize("access", ["writer", "reader"])
def test_a_follower_goes_over_rolls(open_queue, access):
    """It hears of each message once and in order, while segments are begun and sealed."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    follower = queue if access == "writer" else open_queue(read_only=True)
    contents = [b"%d" % number for number in range(100)]
    with ThreadPoolExecutor() as pool:
        following = pool.submit(followed, follower.tailer())
        for content in contents:
            queue.append(content)
        queue.append(LAST)

    assert contents == following.result()


def test_many_followers_are_all_woken(open_queue):
    """Each has its own place."""
    queue = open_queue(roll=RollStrategy.by_count(5))
    contents = [b"%d" % number for number in range(50)]
    with ThreadPoolExecutor(8) as pool:
        following = [pool.submit(followed, queue.tailer()) for _ in range(8)]
        for content in contents:
            queue.append(content)
        queue.append(LAST)

    assert [contents] * 8 == [each.result() for each in following]


def test_closing_the_queue_ends_a_follower(queue, eventually):
    """It would wait for ever otherwise."""
    begun = threading.Event()

    def follow() -> None:
        for _ in queue.tailer().follow():
            begun.set()

    queue.append(b"x")
    with ThreadPoolExecutor() as pool:
        following = pool.submit(follow)
        begun.wait(PATIENCE_SECONDS)
        queue.close()
        eventually(following.done)

    assert QueueClosedError is type(following.exception())


def test_following_a_copy_ends_after_the_timeout(queue, queue_path, tmp_path):
    """A copied queue has no control page that counts."""
    queue.append(b"x")
    queue.close()
    shutil.copytree(queue_path, tmp_path / "copy")
    with penstock.open(tmp_path / "copy", read_only=True) as copied:
        found = payloads(copied.tailer().follow(SHORT))

    assert [b"x"] == found


@pytest.mark.parametrize(
    ("timeout", "kind"), [(timedelta(seconds=-1), ValueError), (5, TypeError), (0.5, TypeError)]
)
def test_a_timeout_that_is_none_is_refused(queue, timeout, kind):
    """A bare number does not say whether it means seconds."""
    with pytest.raises(kind, match="timeout"):
        next(queue.tailer().follow(timeout))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["follow", "read", "iterate", "async"])
def test_an_interrupt_ends_a_reader(queue, queue_path, start_python, what):
    """It need not wait for the next message, and it is the interrupt that comes through."""
    script = """
        import asyncio, sys, penstock
        tailer = penstock.open(sys.argv[1]).tailer()

        async def go():
            async for message in tailer:
                print(message.payload.decode(), flush=True)

        def follow():
            for message in tailer.follow():
                print(message.payload.decode(), flush=True)

        def read():
            print(tailer.read().payload.decode(), flush=True)
            while tailer.read() is None:
                pass

        def iterate():
            for message in tailer:
                print(message.payload.decode(), flush=True)
            while True:
                tailer.seek(sequence=0)
                list(tailer)

        try:
            asyncio.run(go()) if sys.argv[2] == "async" else globals()[sys.argv[2]]()
        except KeyboardInterrupt:
            print("interrupted")
    """
    queue.append(b"hello")
    process = start_python(script, queue_path, what)
    greeting = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=PATIENCE_SECONDS)

    assert ("hello\n", "interrupted\n", "") == (greeting, rest, errors)


async def first(tailer, count):
    """Read so many messages in a task."""
    found = []
    async for message in tailer:
        found.append(message)
        if len(found) == count:
            break
    return found


def test_a_task_reads_what_is_there(open_queue):
    """In order, and over every segment."""
    queue = open_queue(roll=RollStrategy.by_count(3))
    for number in range(10):
        queue.append(b"%d" % number)

    assert list(range(10)) == sequences(in_time(first(queue.tailer(), 10)))


def test_a_task_waits_for_more(queue):
    """Other tasks run meanwhile, and one of them appends."""

    async def both() -> list[bytes]:
        reading = asyncio.create_task(first(queue.tailer(), 3))
        for payload in (b"a", b"b", b"c"):
            await asyncio.sleep(0)
            queue.append(payload)
        return payloads(await reading)

    assert [b"a", b"b", b"c"] == in_time(both())


def test_tasks_with_tailers_of_their_own_all_read(queue):
    """More of them than there are threads to wait in."""

    async def all_of_them() -> list[list[bytes]]:
        reading = [asyncio.create_task(first(queue.tailer(), 2)) for _ in range(100)]
        await asyncio.sleep(0)
        queue.append_many([b"a", b"b"])
        return [payloads(each) for each in await asyncio.gather(*reading)]

    assert [[b"a", b"b"]] * 100 == in_time(all_of_them())


def test_a_cancelled_wait_loses_nothing(queue):
    """The message that comes afterwards is read by whoever reads next."""

    async def cancel_then_read() -> list[bytes]:
        tailer = queue.tailer()
        waiting = asyncio.create_task(first(tailer, 1))
        await asyncio.sleep(0)
        waiting.cancel()
        outcome = await asyncio.gather(waiting, return_exceptions=True)
        assert [asyncio.CancelledError] == [type(each) for each in outcome]
        queue.append_many([b"a", b"b"])
        return payloads(await first(tailer, 2))

    assert [b"a", b"b"] == in_time(cancel_then_read())


def test_a_wait_may_have_a_timeout(queue):
    """Again and again, with one tailer."""

    async def give_up() -> list[bytes]:
        tailer = queue.tailer()
        for _ in range(3):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(first(tailer, 1), 0.001)
        queue.append(b"x")
        return payloads(await first(tailer, 1))

    assert [b"x"] == in_time(give_up())


def test_a_cancelled_wait_does_not_tie_the_tailer_to_its_loop(queue):
    """A program may run one loop after the other."""
    tailer = queue.tailer()
    loops = [asyncio.new_event_loop() for _ in range(2)]
    try:
        with pytest.raises(asyncio.TimeoutError):
            loops[0].run_until_complete(asyncio.wait_for(first(tailer, 1), 0.001))
        queue.append(b"x")
        found = loops[1].run_until_complete(first(tailer, 1))
    finally:
        for loop in loops:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    assert [b"x"] == payloads(found)


def test_closing_the_queue_ends_a_task(queue):
    """It would wait for ever otherwise."""

    async def close_then_wait() -> None:
        reading = asyncio.create_task(first(queue.tailer(), 1))
        await asyncio.sleep(0)
        queue.close()
        await reading

    with pytest.raises(QueueClosedError):
        in_time(close_then_wait())
