"""Views: payloads without a copy, and how long they can be held."""

import gc

import pytest

from penstock import RetentionPolicy, RollStrategy
from tests.unit.looking import data_files

SMALL = b"hello"
LARGE = bytes(range(256)) * 64
SIZES = pytest.mark.parametrize("payload", [b"", SMALL, LARGE], ids=["empty", "small", "large"])


def read_one(queue, sequence=0):
    """Read the message of a sequence."""
    return queue.tailer(start=sequence).read()


@SIZES
def test_a_view_shows_the_payload(queue, payload):
    """Its bytes, one by one, and nothing that could be changed."""
    queue.append(payload)
    view = read_one(queue).view

    assert (payload, len(payload), "B", True, True) == (
        bytes(view),
        view.nbytes,
        view.format,
        view.readonly,
        view.c_contiguous,
    )


@SIZES
def test_a_view_outlives_its_message(queue, payload):
    """And the tailer that read it."""
    queue.append(payload)
    view = read_one(queue).view
    gc.collect()

    assert payload == bytes(view)


@SIZES
def test_a_view_outlives_its_queue(queue, payload):
    """Closing gives back what is unused, and never what somebody holds."""
    queue.append(payload)
    view = read_one(queue).view
    queue.close()
    gc.collect()

    assert payload == bytes(view)


@SIZES
def test_a_view_can_be_made_when_the_queue_is_closed(queue, payload):
    """The message keeps all it needs."""
    queue.append(payload)
    message = read_one(queue)
    queue.close()

    assert payload == bytes(message.view)


@SIZES
def test_a_view_outlives_its_file(open_queue, queue_path, payload):
    """Retention takes the name away; the bytes stay for who looks at them."""
    queue = open_queue(roll=RollStrategy.by_count(1))
    for _ in range(4):
        queue.append(payload)
    message = read_one(queue)
    view = message.view
    queue.compact(RetentionPolicy(segments=1))
    queue.append(b"y" * 1000)

    assert (2, payload, payload, payload) == (
        len(data_files(queue_path)),
        bytes(view),
        message.payload,
        bytes(message.view),
    )


def test_views_share_the_bytes_of_the_file(queue):
    """Many views of a large message take no more memory than one."""
    queue.append(LARGE)
    message = read_one(queue)
    views = [message.view for _ in range(10_000)]

    assert {LARGE} == {bytes(views[0]), bytes(views[-1])}


def test_views_are_made_while_the_file_grows(open_queue):
    """A message that was appended after the first look at its segment has one too."""
    queue = open_queue(segment_bytes=8 << 20)
    for number in range(30):
        queue.append(bytes([number]) * 200_000)
        assert bytes([number]) * 200_000 == read_one(queue, number).view

    assert [bytes([number]) * 200_000 for number in range(30)] == [
        bytes(message.view) for message in queue.tailer()
    ]


def test_views_of_a_read_only_handle_are_the_same(open_queue):
    """They are made of the same file."""
    queue, reader = open_queue(), open_queue(read_only=True)
    queue.append(LARGE)

    assert LARGE == bytes(read_one(reader).view)


def test_a_view_can_be_appended(open_queue):
    """Its bytes go from segment to segment without a copy in between."""
    queue = open_queue()
    queue.append(LARGE)
    queue.append(read_one(queue).view)
    queue.append_many([read_one(queue).view] * 5)

    assert [LARGE] * 7 == [message.payload for message in queue.tailer()]
