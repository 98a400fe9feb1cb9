"""What the library writes is what a reader reads that knows only docs/format.md."""

import itertools
import shutil
from datetime import timedelta
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock import Priority, RollStrategy
from penstock.message import datetime_of
from tests.format.caches import read_index
from tests.format.frames import Message
from tests.format.reader import read_places, read_queue

SEGMENT_BYTES = 1 << 20


@pytest.fixture(params=["xxh3", "crc64-nvme"])
def checksum(request):
    """Name each kind of checksum."""
    return request.param


def told_by_reader(folder: Path) -> list[tuple[Any, ...]]:
    """Read with the second reader."""
    return [
        (*facts, *(None if time is None else datetime_of(time) for time in times), payload)
        for *facts, expires_at, deliver_at, payload in read_queue(folder)
        for times in [(expires_at, deliver_at)]
    ]


def told_by_library(queue: penstock.Queue) -> list[tuple[Any, ...]]:
    """Read with a tailer, in the same shape."""
    return [
        (
            *(message.sequence, message.timestamp_ns, message.key, message.headers),
            *(message.priority, message.expires_at, message.deliver_at, message.payload),
        )
        for message in queue.tailer()
    ]


def payloads_of(folder: Path) -> list[bytes]:
    """Read the payloads with the second reader."""
    return [message.payload for message in read_queue(folder)]


def test_every_option_of_an_append_is_read(queue_path, checksum):
    """Each attribute has its place and its form."""
    with penstock.open(queue_path, segment_bytes=SEGMENT_BYTES, checksum=checksum) as queue:
        queue.append(b"plain")
        queue.append(b"keyed", key=b"\0key")
        queue.append(b"headed", headers={"a": "b", "": "", "ü": "ß" * 300})
        queue.append(b"timed", ttl=timedelta(minutes=5), deliver_after=timedelta(seconds=10))
        queue.append(b"high", key=b"", headers={"a": "b"}, priority=Priority.HIGH)
        queue.append(b"low", ttl=timedelta(0), priority=Priority.LOW)
        expected = told_by_library(queue)

    assert expected == told_by_reader(queue_path)


def test_an_append_without_options_says_nothing_more(queue_path):
    """What was not given is absent, not empty."""
    with penstock.open(queue_path, segment_bytes=SEGMENT_BYTES) as queue:
        queue.append(b"")
        timestamp = next(iter(queue.tailer())).timestamp_ns

    assert [Message(0, timestamp, None, {}, 1, None, None, b"")] == read_queue(queue_path)


def test_payloads_of_every_length_are_read(queue_path, checksum):
    """Both checksums treat short, middle and long bytes in ways of their own."""
    lengths = [*range(300), *range(1000, 1100, 7), 4096, 5000]
    payloads = [bytes(i * length % 251 for i in range(length)) for length in lengths]
    with penstock.open(queue_path, segment_bytes=SEGMENT_BYTES, checksum=checksum) as queue:
        for payload in payloads:
            queue.append(payload)

    assert payloads == payloads_of(queue_path)


def test_atomic_appends_are_read_in_order(queue_path, checksum):
    """Messages that were appended as one stand one after the other."""
    with penstock.open(queue_path, segment_bytes=SEGMENT_BYTES, checksum=checksum) as queue:
        queue.append_many([b"1", b"", b"3"], key=b"k")
        with queue.transaction() as together:
            together.append(b"4")
            together.append(b"5", headers={"x": "y"})
        expected = told_by_library(queue)

    assert expected == told_by_reader(queue_path)


def test_a_log_of_many_segments_is_read(queue_path, checksum):
    """Each segment's header says where the one before it ended."""
    roll = RollStrategy.by_count(3)
    with penstock.open(queue_path, roll=roll, checksum=checksum) as queue:
        payloads = [str(number).encode() for number in range(10)]
        for payload in payloads:
            queue.append(payload)

    assert payloads == payloads_of(queue_path)


def test_an_open_queue_is_read(queue_path, checksum):
    """A reader needs no handle, and no appender waits for it."""
    roll = RollStrategy.by_count(3)
    with penstock.open(queue_path, roll=roll, checksum=checksum) as queue:
        grown = []
        for number in range(5):
            queue.append(b"%d" % number)
            grown.append(payloads_of(queue_path))

    assert [[b"%d" % n for n in range(count)] for count in range(1, 6)] == grown


def test_a_queue_that_was_opened_again_is_read(queue_path, checksum):
    """What a later handle appends follows what an earlier one did."""
    for number in range(3):
        with penstock.open(queue_path, checksum=checksum) as queue:
            queue.append(b"%d" % number)
            queue.flush()
            queue.append(b"marked")

    assert [b"0", b"marked", b"1", b"marked", b"2", b"marked"] == payloads_of(queue_path)


def test_a_copy_of_a_queue_is_read(queue_path, tmp_path):
    """A control page that was copied counts no more, and is not needed."""
    with penstock.open(queue_path, roll=RollStrategy.by_count(2)) as queue:
        queue.append_many([b"1", b"2"])
        queue.append(b"3")
        shutil.copytree(queue_path, tmp_path / "copy", ignore=shutil.ignore_patterns(".spare*"))

    assert [b"1", b"2", b"3"] == payloads_of(tmp_path / "copy")


def test_an_empty_queue_is_read(queue_path):
    """Nothing is what is there."""
    penstock.open(queue_path).close()

    assert [] == read_queue(queue_path)


def test_the_index_tells_where_frames_begin(queue_path, checksum):
    """An entry for every so many messages, in the order of the messages."""
    roll = RollStrategy.by_count(10)
    with penstock.open(queue_path, index_every=4, roll=roll, checksum=checksum) as queue:
        for number in range(25):
            queue.append(bytes(number))
    places = [
        (placed.path, placed.message.sequence, placed.position)
        for placed in read_places(queue_path)
    ]
    due = [place for place in places if place[1] % 10 % 4 == 0]
    paths = sorted({path for path, _, _ in places})

    assert due == [(path, *entry) for path in paths for entry in read_index(path)]


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.binary(max_size=40),
        "headers": st.dictionaries(st.text(max_size=20), st.text(max_size=20), max_size=4),
        "ttl": st.timedeltas(timedelta(0), timedelta(days=400)),
        "deliver_after": st.timedeltas(timedelta(0), timedelta(days=400)),
        "priority": st.sampled_from(Priority),
    },
)
APPENDS = st.lists(st.tuples(st.lists(st.binary(max_size=600), max_size=4), OPTIONS), max_size=12)


@pytest.mark.slow
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(appends=APPENDS, count=st.integers(1, 8), kind=st.sampled_from(["xxh3", "crc64-nvme"]))
def test_whatever_is_written_is_read(queue_path, appends, count, kind):
    """Any payloads with any options, in segments of any count."""
    folder = Path(mkdtemp(dir=queue_path.parent))
    roll = RollStrategy.by_count(count)
    with penstock.open(folder, roll=roll, checksum=kind, index_every=count) as queue:
        for payloads, options in appends:
            queue.append_many(payloads, **options)
        expected = told_by_library(queue)
        while_open = told_by_reader(folder)
    appended = list(itertools.chain.from_iterable(payloads for payloads, _ in appends))

    assert appended == [row[-1] for row in expected]
    assert expected == while_open
    assert told_by_reader(folder) == expected
