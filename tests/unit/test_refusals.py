"""What an append refuses: each with a sentence, and with nothing appended."""

import re
from datetime import timedelta
from typing import Any

import pytest

from penstock.errors import QueueClosedError, ReadOnlyError
from tests.unit.looking import payloads
from tests.unit.ways import WAYS, append_last_by

NO_PAYLOADS = {
    "str": "text",
    "empty_str": "",
    "none": None,
    "int": 5,
    "list": [b"a"],
    "object": object(),
}
LONE_SURROGATE = "\ud800"

# The option, what is wrong about it, the error, and the word its sentence must have.
WRONG_OPTIONS: dict[str, tuple[dict[str, Any], Any, str]] = {
    "key_str": ({"key": "k"}, TypeError, "key"),
    "key_int": ({"key": 5}, TypeError, "bytes"),
    "headers_list": ({"headers": [("a", "b")]}, TypeError, "headers is a mapping of str to str"),
    "headers_str": ({"headers": "a=b"}, TypeError, "headers is a mapping of str to str"),
    "header_int": ({"headers": {"a": 1}}, TypeError, "headers is a mapping of str to str"),
    "header_none": ({"headers": {"a": None}}, TypeError, "headers is a mapping of str to str"),
    "header_bytes": ({"headers": {b"a": "b"}}, TypeError, "headers is a mapping of str to str"),
    "header_surrogate": ({"headers": {"a": LONE_SURROGATE}}, (TypeError, ValueError), "header"),
    "ttl_int": ({"ttl": 5}, TypeError, "ttl is a datetime.timedelta"),
    "ttl_negative": ({"ttl": timedelta(seconds=-1)}, ValueError, "ttl must not be negative"),
    "later_float": ({"deliver_after": 1.5}, TypeError, "deliver_after is a datetime.timedelta"),
    "later_negative": (
        {"deliver_after": timedelta(microseconds=-1)},
        ValueError,
        "deliver_after must not be negative",
    ),
    "priority_3": ({"priority": 3}, ValueError, "Priority.LOW, MEDIUM or HIGH"),
    "priority_negative": ({"priority": -1}, (TypeError, ValueError), "Priority.LOW"),
    "priority_str": ({"priority": "high"}, TypeError, "Priority.LOW, MEDIUM or HIGH, not 'high'"),
    "priority_float": ({"priority": 1.0}, TypeError, "Priority.LOW, MEDIUM or HIGH, not 1.0"),
    "unknown": ({"bogus": 1}, TypeError, "bogus"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", NO_PAYLOADS)
def test_what_has_no_bytes_is_no_payload(queue, kind, way):
    """Nothing is turned into bytes by a guess."""
    with pytest.raises(TypeError, match="bytes"):
        append_last_by(queue, way, NO_PAYLOADS[kind])

    assert [] == payloads(queue)


@pytest.mark.parametrize("way", WAYS)
def test_a_str_is_refused_with_the_way_out(queue, way):
    """The encoding is the caller's choice."""
    with pytest.raises(TypeError, match=re.escape(".encode()")):
        append_last_by(queue, way, "text")

    assert 0 == queue.next_sequence


@pytest.mark.parametrize("way", WAYS)
def test_bytes_with_gaps_between_them_are_refused(queue, way):
    """A strided view would have to be copied first, and that is the caller's to say."""
    with pytest.raises(TypeError, match="copy others: bytes"):
        append_last_by(queue, way, memoryview(b"abcdef")[::2])

    assert 0 == queue.next_sequence


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_is_refused_by_its_name(queue, name, way):
    """Whoever misspells or misjudges one is told which."""
    options, kind, words = WRONG_OPTIONS[name]
    with pytest.raises(kind, match=re.escape(words)):
        append_last_by(queue, way, b"x", **options)

    assert [] == payloads(queue)


@pytest.mark.parametrize(
    "payload",
    [b"ab", b"", bytearray(b"ab"), bytearray(), memoryview(b"ab"), "ab", ""],
    ids=["bytes", "no_bytes", "bytearray", "empty", "memoryview", "str", "empty_str"],
)
def test_append_many_refuses_a_single_payload(queue, payload):
    """Its bytes, taken one by one, would not be what anybody wanted."""
    with pytest.raises(TypeError, match="append_many takes several payloads; use append for one"):
        queue.append_many(payload)

    assert 0 == queue.next_sequence


def test_append_many_refuses_what_cannot_be_gone_through(queue):
    """A number is neither a payload nor several."""
    with pytest.raises(TypeError, match="not iterable"):
        queue.append_many(5)

    assert 0 == queue.next_sequence


def test_append_many_appends_nothing_when_its_source_raises(queue):
    """All or nothing holds for the caller's own errors too."""

    def source():
        yield b"a"
        yield b"b"
        raise LookupError

    with pytest.raises(LookupError):
        queue.append_many(source())

    assert [] == payloads(queue)


@pytest.mark.parametrize("make", [list, tuple, iter, set])
def test_append_many_of_nothing_appends_nothing(queue, make):
    """The range says where the next message will be."""
    queue.append(b"x")

    assert (range(1, 1), 1) == (queue.append_many(make([])), queue.next_sequence)


@pytest.mark.parametrize("name", ["append", "append_many", "append_none", "transaction"])
def test_a_closed_queue_takes_nothing(queue, name):
    """Each way to append says that it was closed."""
    appender = queue.appender()
    queue.close()
    ways = {
        "append": lambda: appender.append(b"x"),
        "append_many": lambda: appender.append_many([b"x"]),
        "append_none": lambda: appender.append_many([]),
        "transaction": queue.transaction,
    }
    with pytest.raises(QueueClosedError) as error:
        ways[name]()

    assert "this queue was closed: open it again" == str(error.value)


@pytest.mark.parametrize(
    "name", ["append", "append_many", "append_none", "transaction", "appender"]
)
def test_a_read_only_handle_takes_nothing(open_queue, name):
    """Each way to append says how to open it instead."""
    open_queue().append(b"x")
    reader = open_queue(read_only=True)
    ways = {
        "append": lambda: reader.append(b"y"),
        "append_many": lambda: reader.append_many([b"y"]),
        "append_none": lambda: reader.append_many([]),
        "transaction": reader.transaction,
        "appender": reader.appender,
    }
    with pytest.raises(ReadOnlyError):
        ways[name]()

    assert [b"x"] == payloads(reader)
