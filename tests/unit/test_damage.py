"""Reading past damage: it is told once, or counted, and everything else stays readable."""

import contextlib
import logging

import pytest

from penstock import RollStrategy
from penstock.errors import CorruptionError
from penstock.kernel import LAYOUT
from tests.unit.looking import HEADER_BYTES, data_files, flip, frame_bytes, payloads, sequences

COUNT = 20
PAYLOAD = b"x" * 100
FRAME_BYTES = frame_bytes(PAYLOAD)


@pytest.fixture
def written(open_queue, queue_path):
    """Write twenty messages into four segments of five, and leave them closed."""
    with open_queue(roll=RollStrategy.by_count(5), index_every=2) as queue:
        for _ in range(COUNT):
            queue.append(PAYLOAD)
    return data_files(queue_path)


def flip_message(files, number):
    """Damage the payload of a message."""
    flip(files[number // 5], HEADER_BYTES + number % 5 * FRAME_BYTES + 50)


def flip_header(files, at):
    """Damage the header of a segment."""
    flip(files[at], LAYOUT["SEGMENT_BASE_SEQUENCE_AT"])


def read_on(read):
    """Call until there is nothing more: the sequences that came, and what was told as lost."""
    found: list[int] = []
    told: list[tuple[int | None, int | None]] = []
    is_over = False
    while not is_over:
        with telling(told):
            messages = read()
            found += sequences(messages)
            is_over = not messages
    return found, told


@contextlib.contextmanager
def telling(told):
    """Take down what an error says is lost, and go on."""
    try:
        yield
    except CorruptionError as error:
        told.append((error.sequence, error.next_sequence))


# How each reads on, some messages at a time.
READS = {
    "read": lambda tailer: lambda: [message for message in [tailer.read()] if message],
    "read_many": lambda tailer: lambda: tailer.read_many(3),
    "iterate": lambda tailer: lambda: [message for message in [next(tailer, None)] if message],
}


@pytest.mark.parametrize("how", READS)
@pytest.mark.parametrize("read_only", [True, False])
def test_each_damage_is_told_once(written, open_queue, how, read_only):
    """With what is lost and what comes next; the rest is read."""
    for number in (0, 6, 7, 9, 10, 18):
        flip_message(written, number)
    tailer = open_queue(read_only=read_only).tailer()
    found, told = read_on(READS[how](tailer))
    lost = {0, 6, 7, 9, 10, 18}

    assert (
        [number for number in range(COUNT) if number not in lost],
        [(0, 1), (6, 8), (9, 10), (10, 11), (18, 19)],
    ) == (found, told)


@pytest.mark.parametrize("read_only", [True, False])
def test_damage_may_be_skipped(written, open_queue, caplog, read_only):
    """It is counted and logged, with the sequence for a program to read."""
    for number in (0, 6, 7, 19):
        flip_message(written, number)
    with caplog.at_level(logging.WARNING, logger="penstock.tailer"):
        tailer = open_queue(read_only=read_only).tailer(on_corrupt="skip")
        found = sequences(tailer)
    logged = [
        vars(record)["sequence"] for record in caplog.records if record.name.endswith("tailer")
    ]

    assert ([n for n in range(COUNT) if n not in {0, 6, 7, 19}], 4, [0, 6, 19]) == (
        found,
        tailer.skipped,
        logged,
    )


def test_a_damaged_header_takes_its_segment(written, open_queue):
    """All messages of it are told as one loss."""
    flip_header(written, 1)
    found, told = read_on(READS["read"](open_queue(read_only=True).tailer()))

    assert ([*range(5), *range(10, COUNT)], [(5, 10)]) == (found, told)


@pytest.mark.parametrize("how", ["header", "missing"])
def test_a_lost_segment_may_be_skipped(written, open_queue, how):
    """Its messages are counted as if each had been damaged."""
    if how == "header":
        flip_header(written, 2)
    else:
        written[2].unlink()
    tailer = open_queue(read_only=True).tailer(on_corrupt="skip")

    assert ([*range(10), *range(15, COUNT)], 5) == (sequences(tailer), tailer.skipped)


@pytest.mark.parametrize("number", [0, 4, 7, 19])
def test_damage_is_told_where_reading_begins(written, open_queue, number):
    """Starting at a damaged message is not starting behind it."""
    flip_message(written, number)
    with pytest.raises(CorruptionError) as error:
        open_queue(read_only=True).tailer(start=number).read()

    assert number == error.value.sequence


def test_seeking_goes_around_damage(written, open_queue):
    """Every other message is found by its sequence and by its time."""
    lost = {3, 4, 11}
    with open_queue() as queue:
        times = [message.timestamp for message in queue.tailer()]
    for number in lost:
        flip_message(written, number)
    queue = open_queue(read_only=True)
    good = [number for number in range(COUNT) if number not in lost]
    by_time = []
    for number in good:
        tailer = queue.tailer(start=times[number], on_corrupt="skip")
        by_time.append(next(m.sequence for m in tailer if m.timestamp >= times[number]))

    assert (good, True) == (
        [queue.tailer(start=number).read().sequence for number in good],
        all(found <= number for found, number in zip(by_time, good, strict=True)),
    )


def test_columns_stop_at_damage_and_go_on_behind_it(written, open_queue):
    """What was read before it is handed out first."""
    flip_message(written, 7)
    tailer = open_queue(read_only=True).tailer()
    rows: list[int] = []
    told: list[tuple[int, int]] = []
    batch = True
    while batch is not None:
        with telling(told):
            batch = tailer.read_arrow()
            rows += [] if batch is None else batch.column("sequence").to_pylist()

    assert ([number for number in range(COUNT) if number != 7], [(7, 8)]) == (rows, told)


def test_batches_stop_at_damage_and_go_on_behind_it(written, open_queue):
    """A caller that keeps no tailer asks again behind what was told."""
    flip_message(written, 7)
    queue = open_queue(read_only=True)
    before = queue.read_from(4)
    with pytest.raises(CorruptionError) as error:
        queue.read_from(before.next_sequence)
    behind = queue.read_from(error.value.next_sequence)

    assert ([4, 5, 6], 7, list(range(8, COUNT))) == (
        sequences(before.messages),
        before.next_sequence,
        sequences(behind.messages),
    )


def test_appending_goes_on_behind_damage(written, open_queue):
    """What is damaged stays so, and harms nothing that comes."""
    flip_message(written, 18)
    queue = open_queue(roll=RollStrategy.by_count(5))
    appended = [queue.append(b"new") for _ in range(10)]
    tailer = queue.tailer(on_corrupt="skip")

    assert (list(range(COUNT, COUNT + 10)), [PAYLOAD] * 19 + [b"new"] * 10) == (
        appended,
        payloads(tailer),
    )


def test_damage_in_front_of_a_follower_is_told(open_queue, queue_path):
    """It was written by who knows whom, while the reader stood before it."""
    queue = open_queue()
    tailer = queue.tailer()
    queue.append_many([PAYLOAD] * 3)
    flip_message(data_files(queue_path), 1)
    found, told = read_on(READS["read"](tailer))
    queue.append(PAYLOAD)
    more, _ = read_on(READS["read"](tailer))

    assert ([0, 2], [(1, 2)], [3]) == (found, told, more)
