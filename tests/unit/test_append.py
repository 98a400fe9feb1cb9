"""Appending: what may be appended, and what comes back."""

import array
import ctypes
import mmap
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock import Priority, RollStrategy
from penstock.errors import AttributesTooLargeError, PayloadTooLargeError, QueueClosedError
from penstock.kernel import LAYOUT
from tests.unit.looking import payloads, sequences
from tests.unit.ways import WAYS, append_by, append_last_by

ATTRIBUTES_BYTES_MAX = LAYOUT["ATTRIBUTES_BYTES_MAX"]
ATTRIBUTE_BYTES = LAYOUT["ATTRIBUTE_HEAD_BYTES"]
PAYLOAD_BYTES_MAX = LAYOUT["PAYLOAD_BYTES_MAX"]
THREADS = 4
PER_THREAD = 500


class OwnBytes(bytes):
    """Bytes of a program's own kind."""


def mapped(content: bytes) -> mmap.mmap:
    """Put bytes into anonymous memory."""
    memory = mmap.mmap(-1, len(content))
    memory[:] = content
    return memory


KINDS = {
    "bytes": lambda content: content,
    "bytes_of_a_subclass": OwnBytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "memoryview_of_a_part": lambda content: memoryview(b"<" + content + b">")[1:-1],
    "memoryview_of_two_dimensions": lambda content: memoryview(content).cast("B", [2, 4]),
    "memoryview_of_words": lambda content: memoryview(content).cast("I"),
    "array": lambda content: array.array("I", content),
    "ctypes": lambda content: (ctypes.c_char * 8)(*content),
    "mmap": mapped,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_anything_with_a_buffer_is_a_payload(queue, kind, way):
    """What comes back are its bytes."""
    append_by(queue, way, KINDS[kind](b"\0\1abcd\xfe\xff"))

    assert [b"\0\1abcd\xfe\xff"] == payloads(queue)


def test_sequences_count_from_zero(queue):
    """Each append says which message it made."""
    appended = [queue.append(b"a"), *queue.append_many([b"b", b"c"]), queue.append(b"d")]

    assert ([0, 1, 2, 3], 4) == (appended, queue.next_sequence)


def test_an_empty_payload_is_a_message(queue):
    """It has a sequence, and what follows it is there."""
    queue.append(b"")
    queue.append_many([b"", b"x", b""])

    assert [b"", b"", b"x", b""] == payloads(queue)


@given(contents=st.lists(st.binary(max_size=300), max_size=12))
@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_bytes_come_back(queue, contents):
    """One by one or together, in their order."""
    begin = queue.next_sequence
    for content in contents:
        queue.append(content)
    queue.append_many(contents)

    assert contents * 2 == payloads(queue.tailer(start=begin))


@pytest.mark.slow
def test_a_payload_of_64_mib_comes_back(open_queue):
    """It gets a segment of its own, and those before and behind stay as they are."""
    queue = open_queue()
    payload = bytes(range(256)) * (1 << 18)
    for content in (b"before", payload, b"behind"):
        queue.append(content)
    before, large, behind = queue.tailer()

    assert (b"before", True, b"behind") == (
        before.payload,
        large.view == payload,
        behind.payload,
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_payload_beyond_the_limit_is_refused(queue, way):
    """The error says its size and the limit, and nothing is appended."""
    with (
        mmap.mmap(-1, PAYLOAD_BYTES_MAX + 1) as payload,
        pytest.raises(PayloadTooLargeError) as error,
    ):
        append_last_by(queue, way, payload)

    assert (PAYLOAD_BYTES_MAX + 1, PAYLOAD_BYTES_MAX, 0) == (
        error.value.size_bytes,
        error.value.limit_bytes,
        queue.next_sequence,
    )


def test_every_option_is_kept(queue):
    """Key, headers and priority come back beside the payload."""
    queue.append(b"x", key=b"\0key", headers={"a": "b", "c": ""}, priority=Priority.HIGH)
    message = queue.tailer().read()

    assert (b"\0key", {"a": "b", "c": ""}, Priority.HIGH) == (
        message.key,
        message.headers,
        message.priority,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_anything_with_a_buffer_is_a_key(queue, kind):
    """Keys are bytes just as payloads are."""
    queue.append(b"x", key=KINDS[kind](b"customer"))

    assert b"customer" == queue.tailer().read().key


def test_an_empty_key_is_a_key(queue):
    """It is not the same as none."""
    queue.append(b"x", key=b"")

    assert b"" == queue.tailer().read().key


@given(headers=st.dictionaries(st.text(max_size=40), st.text(max_size=40), max_size=6))
@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_headers_come_back(queue, headers):
    """Names and values may be any text, the empty one too."""
    sequence = queue.append(b"x", headers=headers)

    assert headers == queue.tailer(start=sequence).read().headers


def test_options_of_append_many_hold_for_each(queue):
    """All messages of the call carry the same."""
    queue.append_many([b"a", b"b"], key=b"k", headers={"a": "b"}, priority=Priority.LOW)

    assert [(b"k", {"a": "b"}, Priority.LOW)] * 2 == [
        (message.key, message.headers, message.priority) for message in queue.tailer()
    ]


def test_messages_of_one_call_have_one_time(queue):
    """They were appended as one."""
    queue.append_many([b"a", b"b", b"c"])

    assert 1 == len({message.timestamp_ns for message in queue.tailer()})


def test_the_largest_attributes_come_back(queue):
    """At the limit, and with the durable mark that the first append behind a flush carries."""
    key = b"k" * (ATTRIBUTES_BYTES_MAX - ATTRIBUTE_BYTES)
    queue.append(b"x", key=key)
    queue.flush()
    queue.append(b"y", key=key)

    assert [(b"x", key), (b"y", key)] == [
        (message.payload, message.key) for message in queue.tailer()
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"key": b"k" * (ATTRIBUTES_BYTES_MAX - ATTRIBUTE_BYTES + 1)},
        {"key": b"k" * (1 << 20)},
        {"headers": {"name": "v" * ATTRIBUTES_BYTES_MAX}},
        {"headers": {"n" * (1 << 16): "value"}},
        {"headers": {str(number): "v" * 1000 for number in range(70)}},
        {"key": b"k" * 40_000, "headers": {"name": "v" * 40_000}},
    ],
    ids=["key", "huge_key", "value", "name", "many", "both"],
)
@pytest.mark.parametrize("way", WAYS)
def test_attributes_beyond_the_limit_are_refused(queue, options, way):
    """The error says their size and the limit, and nothing is appended."""
    with pytest.raises(AttributesTooLargeError) as error:
        append_last_by(queue, way, b"x", **options)

    assert (ATTRIBUTES_BYTES_MAX, True, 0) == (
        error.value.limit_bytes,
        error.value.size_bytes > ATTRIBUTES_BYTES_MAX,
        queue.next_sequence,
    )


def test_what_a_payload_becomes_later_changes_nothing(queue):
    """Its bytes are copied when it is appended."""
    payload = bytearray(b"before")
    queue.append(payload)
    payload[:] = b"behind"

    assert [b"before"] == payloads(queue)


@pytest.mark.parametrize("shared", [True, False], ids=["one_appender", "one_each"])
def test_threads_get_the_sequences_of_their_own_messages(open_queue, shared):
    """What an append returned is where its message is found."""
    queue = open_queue()
    only = queue.appender()

    def work(name: int) -> dict[int, bytes]:
        appender = only if shared else queue.appender()
        numbered = (b"%d/%d" % (name, number) for number in range(PER_THREAD))
        return {appender.append(payload): payload for payload in numbered}

    with ThreadPoolExecutor(THREADS) as pool:
        appended = {k: v for part in pool.map(work, range(THREADS)) for k, v in part.items()}

    assert appended == {message.sequence: message.payload for message in queue.tailer()}


def test_threads_that_append_many_do_not_mix(open_queue):
    """The messages of one call stand together."""
    queue = open_queue()

    def work(name: int) -> list[tuple[range, list[bytes]]]:
        calls = [[b"%d/%d" % (name, call)] * 7 for call in range(100)]
        return [(queue.append_many(call), call) for call in calls]

    with ThreadPoolExecutor(THREADS) as pool:
        calls = sorted((c for part in pool.map(work, range(THREADS)) for c in part), key=str)
    there = {message.sequence: message.payload for message in queue.tailer()}

    assert [call for _, call in calls] == [[there[s] for s in range_] for range_, _ in calls]


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("count", [5, 100])
@pytest.mark.parametrize("shared", [True, False], ids=["one_handle", "one_each"])
def test_every_thread_gets_its_turn_while_segments_roll(open_queue, count, shared):
    """One thread appended for ten seconds, and the others were told that it had stopped."""
    options = {"roll": RollStrategy.by_count(count), "stall": timedelta(seconds=2)}
    handles = [open_queue(**options) for _ in range(1 if shared else THREADS)] * THREADS
    counts = [0] * THREADS
    is_over = threading.Event()

    def work(name: int) -> None:
        try:
            while min(counts) < 3 * count and not is_over.is_set():
                handles[name].append(b"x")
                counts[name] += 1
        finally:
            is_over.set()

    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = [pool.submit(work, name) for name in range(THREADS)]

    assert [None] * THREADS == [each.exception() for each in outcomes]


def test_closing_ends_every_appender(open_queue):
    """Each thread hears of it, and what it was promised is there."""
    queue = open_queue()
    appended: list[int] = []
    refused: list[QueueClosedError] = []

    def work() -> None:
        try:
            while True:
                appended.append(queue.append(b"x"))
        except QueueClosedError as error:
            refused.append(error)

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    while not appended:
        pass
    queue.close()
    for thread in threads:
        thread.join()

    assert (THREADS, sorted(appended)) == (len(refused), sequences(open_queue().tailer()))


def test_an_appender_can_only_append(queue):
    """Who is handed one can neither read nor close."""
    names = {name for name in dir(queue.appender()) if not name.startswith("_")}

    assert {"append", "append_many"} == names


@pytest.mark.parametrize("option", ["ttl", "deliver_after"])
def test_no_time_at_all_is_a_duration(queue, option):
    """Zero is allowed, less is not."""
    assert 0 == queue.append(b"x", **{option: timedelta(0)})


def test_every_handle_appends_to_one_log(queue_path, open_queue):
    """Two handles of one process see each other at once."""
    with open_queue() as one, penstock.open(queue_path) as other:
        appended = [one.append(b"a"), other.append(b"b"), one.append(b"c")]
        seen = (payloads(one), payloads(other))

    assert ([0, 1, 2], ([b"a", b"b", b"c"],) * 2) == (appended, seen)
