"""Transactions: several appends that become one, or none."""

from datetime import timedelta

import pytest

from penstock import Priority, RollStrategy
from penstock.errors import QueueClosedError
from tests.unit.looking import base_sequences, payloads

LONG = timedelta(days=1)


def test_messages_of_a_transaction_stand_together(queue):
    """They get the sequences behind the last message."""
    queue.append(b"before")
    with queue.transaction() as together:
        together.append(b"1")
        together.append(b"2")
    queue.append(b"behind")

    assert (range(1, 3), [b"before", b"1", b"2", b"behind"]) == (
        together.sequences,
        payloads(queue),
    )


def test_each_message_of_a_transaction_has_its_own_options(queue):
    """Unlike those of append_many."""
    with queue.transaction() as together:
        together.append(b"1", key=b"k", priority=Priority.LOW)
        together.append(b"2", headers={"x": "y"}, ttl=LONG, deliver_after=LONG)
    one, two = queue.tailer()

    assert (b"k", {}, Priority.LOW, False, None, {"x": "y"}, Priority.MEDIUM, True) == (
        *(one.key, one.headers, one.priority, one.expires_at is not None),
        *(two.key, two.headers, two.priority, two.expires_at == two.deliver_at),
    )


def test_nothing_is_appended_before_the_end(queue):
    """A tailer sees all of it or none."""
    tailer = queue.tailer()
    with queue.transaction() as together:
        together.append(b"1")
        within = (tailer.read(), queue.next_sequence, together.sequences)

    assert ((None, 0, None), [b"1"]) == (within, payloads(tailer))


def test_nothing_is_appended_when_the_block_raises(queue):
    """The caller's error comes through as it was."""
    cause, together = LookupError("no"), queue.transaction()

    def fail() -> None:
        with together:
            together.append(b"1")
            raise cause

    with pytest.raises(LookupError) as error:
        fail()

    assert (cause, None, []) == (error.value, together.sequences, payloads(queue))


def test_an_empty_transaction_appends_nothing(queue):
    """Its sequences are the empty range at the end."""
    queue.append(b"x")
    with queue.transaction() as together:
        pass

    assert (range(1, 1), 1) == (together.sequences, queue.next_sequence)


@pytest.mark.parametrize("kind", [bytearray, lambda content: memoryview(bytearray(content))])
def test_what_a_buffer_becomes_later_changes_nothing(queue, kind):
    """The payload is the one of the moment it was handed in."""
    payload = kind(b"before")
    with queue.transaction() as together:
        together.append(payload)
        payload[:] = b"behind"

    assert [b"before"] == payloads(queue)


def test_a_transaction_can_grow_a_buffer_it_was_given(queue):
    """It holds no export of it, so a bytearray may be resized at once."""
    payload = bytearray(b"1")
    with queue.transaction() as together:
        together.append(payload)
        payload += b"2"
        together.append(payload)

    assert [b"1", b"12"] == payloads(queue)


def test_a_transaction_takes_nothing_before_it_is_entered(queue):
    """What was added then might never be appended."""
    with pytest.raises(RuntimeError, match="append inside a"):
        queue.transaction().append(b"1")

    assert [] == payloads(queue)


def test_a_transaction_that_is_over_takes_no_more(queue):
    """What was added then would never be appended."""
    with queue.transaction() as together:
        together.append(b"1")
    with pytest.raises(RuntimeError, match="append inside a"):
        together.append(b"2")

    assert [b"1"] == payloads(queue)


def test_a_transaction_that_failed_takes_no_more(queue):
    """What was added then would never be appended either."""
    with pytest.raises(LookupError), queue.transaction() as together:
        raise LookupError
    with pytest.raises(RuntimeError, match="append inside a"):
        together.append(b"2")

    assert [] == payloads(queue)


def test_a_transaction_cannot_be_entered_again(queue):
    """Its messages would be appended a second time."""
    with queue.transaction() as together:
        together.append(b"1")
    with pytest.raises(RuntimeError, match="this transaction is over: begin another"), together:
        pass

    assert [b"1"] == payloads(queue)


def test_transactions_may_overlap(queue):
    """Each is appended when its own block ends."""
    with queue.transaction() as outer:
        outer.append(b"outer 1")
        with queue.transaction() as inner:
            inner.append(b"inner")
        outer.append(b"outer 2")

    assert [b"inner", b"outer 1", b"outer 2"] == payloads(queue)


def test_a_transaction_stays_in_one_segment(open_queue, queue_path):
    """Where it does not fit, the segment is rolled before it and not within."""
    queue = open_queue(roll=RollStrategy.by_count(4))
    queue.append_many([b"x"] * 3)
    with queue.transaction() as together:
        for number in range(6):
            together.append(b"%d" % number)

    assert (range(3, 9), [0, 3]) == (together.sequences, base_sequences(queue_path))


def test_a_transaction_may_be_larger_than_a_segment(open_queue, queue_path):
    """It gets one that is large enough."""
    queue = open_queue()
    with queue.transaction() as together:
        for number in range(40):
            together.append(bytes([number]) * 10_000)

    assert ([bytes([number]) * 10_000 for number in range(40)], [0, 0]) == (
        payloads(queue),
        base_sequences(queue_path),
    )


def test_a_transaction_of_a_closed_queue_appends_nothing(open_queue):
    """It says so at its end."""
    queue = open_queue()
    together = queue.transaction()

    def close_within() -> None:
        with together:
            together.append(b"1")
            queue.close()

    with pytest.raises(QueueClosedError):
        close_within()

    assert (None, []) == (together.sequences, payloads(open_queue()))
