"""Queues that were written once are read for ever: by the library, and from the page alone."""

from datetime import timedelta
from pathlib import Path

import pytest

import penstock
from penstock.message import datetime_of
from tests.format.golden import restore, text_of
from tests.format.reader import read_queue

GOLDEN = Path(__file__).parent / "golden"
FIRST_TIMESTAMPS = {"xxh3": 1795125088048322317, "crc64-nvme": 1795125088715166623}
MESSAGES = [
    (0, None, {}, 1, b""),
    (1, b"k", {"a": "b", "\u00fc": ""}, 2, b"hello"),
    (2, None, {}, 0, b"\0\xff"),
    (3, b"both", {}, 1, b"one"),
    (4, b"both", {}, 1, bytes(range(256))),
    (5, b"both", {}, 1, b"three"),
]


@pytest.fixture(params=sorted(FIRST_TIMESTAMPS))
def golden(request, queue_path):
    """Make the files of a golden queue; hands out its first timestamp too."""
    restore((GOLDEN / f"{request.param}.txt").read_text(encoding="utf-8"), queue_path)
    return queue_path, FIRST_TIMESTAMPS[request.param]


def test_the_library_reads_a_golden_queue_and_changes_nothing(golden):
    """Open for reading only, whatever machine the queue was written on."""
    folder, first_timestamp = golden
    before = sorted(folder.rglob("*")), text_of(folder)
    with penstock.open(folder, read_only=True) as queue:
        told = list(queue.tailer())

    assert MESSAGES == [(m.sequence, m.key, m.headers, m.priority, m.payload) for m in told]
    assert first_timestamp == told[0].timestamp_ns
    assert before == (sorted(folder.rglob("*")), text_of(folder))


def test_the_second_reader_reads_a_golden_queue(golden):
    """What the page says today is true of what was written then."""
    folder, first_timestamp = golden
    told = read_queue(folder)
    expires_at, deliver_at = told[2].expires_at_ns, told[2].deliver_at_ns
    assert expires_at is not None
    assert deliver_at is not None

    assert MESSAGES == [(m.sequence, m.key, m.headers, m.priority, m.payload) for m in told]
    assert first_timestamp == told[0].timestamp_ns
    assert timedelta(hours=23) == datetime_of(expires_at) - datetime_of(deliver_at)


def test_the_library_goes_on_with_a_golden_queue(golden):
    """On another machine it is opened as after a crash: nothing is lost, and nothing used twice."""
    folder, _ = golden
    with penstock.open(folder) as queue:
        sequence = queue.append(b"new")
        payloads = [message.payload for message in queue.tailer()]

    assert [*(message[-1] for message in MESSAGES), b"new"] == payloads
    assert sequence > 5


def test_a_golden_text_is_made_again_from_its_files(golden):
    """Nothing of the files is lost on the way through the text."""
    folder, _ = golden
    texts = {path.read_text(encoding="utf-8") for path in GOLDEN.iterdir()}

    assert text_of(folder) in texts
