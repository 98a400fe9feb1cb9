"""Arrow: messages as columns, without a Python object for each."""

import gc

import pyarrow as pa
import pytest

from penstock import Priority, RollStrategy
from penstock.errors import QueueClosedError

ALL = ("partition", "sequence", "timestamp", "key", "headers", "priority", "payload")
TYPES = {
    "partition": pa.int32(),
    "sequence": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "key": pa.binary(),
    "headers": pa.map_(pa.string(), pa.string()),
    "priority": pa.int8(),
    "payload": pa.binary(),
}


@pytest.fixture
def mixed(open_queue):
    """Open a queue whose messages carry different things."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    queue.append(b"plain")
    queue.append(b"", key=b"k", headers={"a": "b", "": "ü"}, priority=Priority.HIGH)
    queue.append(b"low", key=b"", headers={}, priority=Priority.LOW)
    queue.append_many([b"x", b"y"], headers={"c": "d"})
    return queue


def batches(tailer, **options):
    """Read batch after batch up to the end."""
    found = []
    while (batch := tailer.read_arrow(**options)) is not None:
        found.append(batch)
    return found


def test_every_column_has_its_type(mixed):
    """They are Spark's schema of a queue."""
    assert TYPES == {
        field.name: field.type for field in mixed.tailer().read_arrow(columns=ALL).schema
    }


def test_the_narrow_columns_come_unasked(mixed):
    """Keys and headers cost something, so they are asked for."""
    expected = ["partition", "sequence", "timestamp", "payload"]

    assert expected == mixed.tailer().read_arrow().schema.names


@pytest.mark.parametrize(
    "columns", [["payload"], ["payload", "sequence"], ["headers", "key"], list(reversed(ALL))]
)
def test_columns_come_in_the_order_that_was_asked(mixed, columns):
    """And no others."""
    assert columns == mixed.tailer().read_arrow(columns=columns).schema.names


def test_columns_say_what_messages_say(mixed):
    """A missing key is null, an empty one is not; headers are pairs."""
    table = pa.Table.from_batches(batches(mixed.tailer(), columns=ALL))
    messages = list(mixed.tailer())

    assert {
        "partition": [0] * 5,
        "sequence": [0, 1, 2, 3, 4],
        "timestamp": [message.timestamp for message in messages],
        "key": [None, b"k", b"", None, None],
        "headers": [[], [("a", "b"), ("", "ü")], [], [("c", "d")], [("c", "d")]],
        "priority": [1, 2, 0, 1, 1],
        "payload": [b"plain", b"", b"low", b"x", b"y"],
    } == table.to_pydict()


def test_null_keys_are_counted(mixed):
    """Consumers go by the count, and look at no bits when it is zero."""
    table = pa.Table.from_batches(batches(mixed.tailer(), columns=["key"]))

    assert 3 == table.column("key").null_count


def test_the_arrays_are_sound(mixed):
    """Arrow itself finds nothing wrong with their buffers."""
    for batch in batches(mixed.tailer(), columns=ALL):
        batch.validate(full=True)

    assert 5 == sum(batch.num_rows for batch in batches(mixed.tailer(), columns=ALL))


def test_there_is_no_batch_of_an_empty_queue(queue):
    """And none behind the last message."""
    tailer = queue.tailer()
    before = tailer.read_arrow()
    queue.append(b"x")

    assert (None, 1, None) == (before, tailer.read_arrow().num_rows, tailer.read_arrow())


def test_empty_payloads_are_rows(queue):
    """A batch of nothing but them has its rows."""
    queue.append_many([b""] * 5)

    assert [b""] * 5 == queue.tailer().read_arrow().column("payload").to_pylist()


@pytest.mark.parametrize(
    ("bytes_max", "expected"),
    [(1, [1] * 6), (100, [1] * 6), (199, [1] * 6), (200, [2] * 3), (350, [3, 3]), (1 << 20, [6])],
)
def test_a_batch_has_so_many_bytes_at_most(queue, bytes_max, expected):
    """But one row at least."""
    queue.append_many([b"x" * 100] * 6)

    assert expected == [batch.num_rows for batch in batches(queue.tailer(), bytes_max=bytes_max)]


def test_attributes_count_as_bytes(queue):
    """Large headers make small batches."""
    for _ in range(4):
        queue.append(b"", headers={"name": "v" * 1000})

    assert [1] * 4 == [batch.num_rows for batch in batches(queue.tailer(), bytes_max=1500)]


def test_batches_hold_every_message_of_many_segments(open_queue):
    """Each once and in order."""
    queue = open_queue(roll=RollStrategy.by_count(7))
    contents = [b"%d" % number * (number % 50) for number in range(500)]
    for content in contents:
        queue.append(content)
    table = pa.Table.from_batches(batches(queue.tailer(), bytes_max=300))

    assert (list(range(500)), contents) == (
        table.column("sequence").to_pylist(),
        table.column("payload").to_pylist(),
    )


def test_reading_goes_on_behind_a_batch(queue):
    """Rows and messages are of one place."""
    queue.append_many([b"x" * 100] * 4)
    tailer = queue.tailer()
    rows = tailer.read_arrow(bytes_max=200).num_rows

    assert (2, [2, 3]) == (rows, [message.sequence for message in tailer])


def test_any_reader_of_capsules_takes_a_batch(mixed):
    """The kernel's batch is handed to pyarrow without pyarrow's help."""
    mixed.append(b"z")
    columns = mixed.tailer()._read_columns(1 << 20, list(ALL), 3)
    table = pa.table(columns)
    again = pa.record_batch(columns)

    assert ([3, 3], table) == (
        table.column("partition").to_pylist(),
        pa.Table.from_batches([again]),
    )


def test_a_batch_knows_its_rows(queue):
    """Before anything is made of it."""
    queue.append_many([b"x"] * 5)

    assert 5 == len(queue.tailer()._read_columns(1 << 20, ["payload"], 0))


def test_a_batch_outlives_its_queue(queue):
    """Its buffers are its own."""
    queue.append_many([b"%d" % number for number in range(100)])
    columns = queue.tailer()._read_columns(1 << 20, ["payload"], 0)
    queue.close()
    batch = pa.record_batch(columns)
    del columns
    gc.collect()

    assert [b"%d" % number for number in range(100)] == batch.column("payload").to_pylist()


def test_a_capsule_that_nobody_takes_is_let_go(queue):
    """Asking for a batch a thousand times and taking none leaks nothing that Arrow would miss."""
    queue.append_many([b"x" * 1000] * 10)
    columns = queue.tailer()._read_columns(1 << 20, ["payload"], 0)
    for _ in range(1000):
        columns.__arrow_c_array__()

    assert 10 == pa.record_batch(columns).num_rows


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ["nope"]}, 'no column "nope"; there are partition, sequence'),
        ({"columns": ["key", "key"]}, 'column "key" is asked for twice'),
        ({"bytes_max": 0}, "bytes_max is between 1 and 1 GiB"),
        ({"bytes_max": 1 << 31}, "bytes_max is between 1 and 1 GiB"),
        ({"bytes_max": -1}, "bytes_max"),
    ],
)
def test_what_cannot_be_gathered_is_refused(queue, options, words):
    """The tailer stays where it was."""
    queue.append(b"x")
    tailer = queue.tailer()
    with pytest.raises(ValueError, match=words):
        tailer.read_arrow(**options)

    assert b"x" == tailer.read().payload


def test_no_columns_are_a_count(queue):
    """Rows without any column are still so many rows."""
    queue.append_many([b"x"] * 5)

    assert (5, 0) == (
        (batch := queue.tailer().read_arrow(columns=[])).num_rows,
        batch.num_columns,
    )


def test_a_closed_queue_has_no_batch(queue):
    """It is an error, not an end."""
    tailer = queue.tailer()
    queue.close()
    with pytest.raises(QueueClosedError):
        tailer.read_arrow()
