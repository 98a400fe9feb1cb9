"""What a message carries, and for how long."""

from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import Priority
from penstock.message import datetime_of, duration_ns, ns_of

LATE = datetime(2200, 1, 1, tzinfo=timezone.utc)
# Payloads beyond this are copied when they are asked for, not when they are read.
LARGE = bytes(range(256)) * 40


def only(queue):
    """Return the first message of a queue."""
    return next(iter(queue.tailer()))


def test_a_plain_message_has_a_payload_and_nothing_else(queue):
    """What was not given is not there."""
    queue.append(b"hello")
    message = only(queue)

    assert (0, b"hello", None, {}, Priority.MEDIUM, None, None) == (
        message.sequence,
        message.payload,
        message.key,
        message.headers,
        message.priority,
        message.expires_at,
        message.deliver_at,
    )


@pytest.mark.parametrize("payload", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_payload_and_view_are_the_bytes_that_were_appended(queue, payload):
    """Both ways to the bytes show the same, whatever their number."""
    queue.append(payload, key=b"k", headers={"a": "b"})
    message = only(queue)

    assert (payload, payload) == (message.payload, bytes(message.view))


def test_a_timestamp_is_said_in_two_ways(queue):
    """The datetime is aware and cut to microseconds; the nanoseconds are exact."""
    queue.append(b"x")
    message = only(queue)

    assert (datetime_of(message.timestamp_ns), timezone.utc) == (
        message.timestamp,
        message.timestamp.tzinfo,
    )


@pytest.mark.parametrize(
    ("option", "fact"), [("ttl", "expires_at"), ("deliver_after", "deliver_at")]
)
def test_a_time_to_come_is_counted_from_the_append(queue, option, fact):
    """Neighbours that carry no time of their own enclose it."""
    duration = timedelta(days=3, seconds=7, microseconds=11)
    queue.append(b"before")
    queue.append(b"timed", **{option: duration})
    queue.append(b"after")
    before, timed, after = queue.tailer()

    assert before.timestamp <= getattr(timed, fact) - duration <= after.timestamp


@pytest.mark.parametrize(
    ("option", "fact"), [("ttl", "expires_at"), ("deliver_after", "deliver_at")]
)
def test_the_longest_duration_ends_in_centuries(queue, option, fact):
    """A duration that no clock can count is not an error but a time far off."""
    queue.append(b"x", **{option: timedelta.max})

    assert LATE < getattr(only(queue), fact)


@pytest.mark.parametrize("priority", Priority)
def test_a_priority_is_kept(queue, priority):
    """It comes back as the member it was."""
    queue.append(b"x", priority=priority)

    assert only(queue).priority is priority


def test_priorities_have_an_order():
    """A program may compare them."""
    assert [Priority.LOW, Priority.MEDIUM, Priority.HIGH] == sorted(Priority)


def test_changing_the_headers_of_a_message_changes_nothing(queue):
    """Each look makes a dict of its own."""
    queue.append(b"x", headers={"a": "b"})
    message = only(queue)
    message.headers.clear()

    assert {"a": "b"} == message.headers


@pytest.mark.parametrize("name", ["payload", "sequence", "timestamp", "key", "anything"])
def test_a_message_cannot_be_changed(queue, name):
    """What was appended stays as it was."""
    queue.append(b"x")
    with pytest.raises(AttributeError):
        setattr(only(queue), name, b"other")


@pytest.mark.parametrize("payload", [b"small", LARGE], ids=["small", "large"])
def test_a_message_outlives_its_queue(queue, payload):
    """All of it can still be read when the queue is closed."""
    queue.append(payload, key=b"k", headers={"a": "b"}, priority=Priority.LOW)
    message = only(queue)
    queue.close()

    assert (payload, b"k", {"a": "b"}, Priority.LOW) == (
        message.payload,
        message.key,
        message.headers,
        message.priority,
    )


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"hello", "<Message 0: b'hello' (5 bytes)>"),
        (b"", "<Message 0: b'' (0 bytes)>"),
        (b"x" * 33, f"<Message 0: b'{'x' * 32}'… (33 bytes)>"),
    ],
)
def test_a_message_shows_its_beginning(queue, payload, expected):
    """A megabyte does not fill the screen."""
    queue.append(payload)

    assert expected == repr(only(queue))


@given(ns=st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_times_come_back_cut_to_microseconds(ns):
    """Python knows no nanoseconds."""
    assert ns // 1000 * 1000 == ns_of(datetime_of(ns))


@given(when=st.datetimes(timezones=st.timezones()))
@settings(max_examples=50, derandomize=True, deadline=None)
def test_the_time_zone_does_not_matter(when):
    """A moment is the same everywhere."""
    assert ns_of(when) == ns_of(when.astimezone(timezone.utc))


def test_a_datetime_without_a_zone_is_refused():
    """Nobody can tell which moment it means."""
    with pytest.raises(ValueError, match="has no time zone: pass an aware datetime"):
        ns_of(datetime(2026, 1, 15))  # noqa: DTZ001


def test_a_duration_counts_in_nanoseconds():
    """Microseconds are the finest that Python says."""
    assert 86_401_000_001_000 == duration_ns("ttl", timedelta(days=1, seconds=1, microseconds=1))


def test_a_negative_duration_is_refused_by_its_name():
    """The sentence says which option was wrong."""
    with pytest.raises(ValueError, match="timeout must not be negative"):
        duration_ns("timeout", timedelta(microseconds=-1))


def test_a_number_is_no_duration():
    """Seconds or milliseconds: a bare number does not tell."""
    with pytest.raises(TypeError, match=r"timeout is a datetime\.timedelta, not 5"):
        duration_ns("timeout", 5)  # type: ignore[arg-type]
