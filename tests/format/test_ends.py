"""Segments end and follow each other as docs/format.md says, after crashes too."""

import shutil
from pathlib import Path

import pytest

import penstock
from penstock import RetentionPolicy, RollStrategy, clock
from penstock.kernel import LAYOUT
from tests.format.checksums import CHECKSUMS
from tests.format.frames import DamageError
from tests.format.reader import read_places, read_queue

BY_TWO = RollStrategy.by_count(2)


def payloads_of(folder: Path) -> list[bytes]:
    """Read the payloads with the second reader."""
    return [message.payload for message in read_queue(folder)]


def is_refused(folder: Path) -> bool:
    """Tell whether the reader notices that something is wrong."""
    try:
        read_queue(folder)
    except DamageError:
        return True
    return False


def data_files(folder: Path) -> list[Path]:
    """List the segments of a queue."""
    return sorted(folder.glob("*/*/*/*.data"))


def word_of(path: Path, at: int) -> int:
    """Read a number of a file."""
    return int.from_bytes(path.read_bytes()[at : at + 8], "little")


def flip_bit(path: Path, position: int) -> None:
    """Damage one bit of a file in its place: it may be mapped."""
    with path.open("r+b") as file:
        file.seek(position)
        (value,) = file.read(1)
        file.seek(position)
        file.write(bytes([value ^ 1]))


def copy_of(folder: Path) -> Path:
    """Copy a queue that may be open; the spare comes and goes."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns(".spare*"))
    return copy


@pytest.fixture
def crash(queue_path, monkeypatch):
    """Copy an open queue as a loss of power would leave it, and boot anew."""

    def crashed() -> Path:
        copy = copy_of(queue_path)
        monkeypatch.setattr(clock, "boot_id", lambda: bytes(16))
        return copy

    monkeypatch.setattr(clock, "boot_id", lambda: bytes(range(16)))
    return crashed


@pytest.mark.slow
def test_every_damaged_byte_of_a_sealed_segment_is_told(queue_path):
    """The reader is worth something only if it refuses what is not as the page says."""
    with penstock.open(queue_path, roll=BY_TWO) as queue:
        queue.append(b"first", key=b"k")
        queue.append_many([b"second", b"third"])
    sealed, after = data_files(queue_path)
    end = word_of(after, LAYOUT["SEGMENT_PREVIOUS_END_POSITION_AT"])
    told = [*range(80), *range(504, 584), *range(1016, 1024), *range(4096, end)]
    missed = []
    for position in told:
        flip_bit(sealed, position)
        missed += [] if is_refused(queue_path) else [position]
        flip_bit(sealed, position)

    assert [] == missed


def test_a_sealed_segment_ends_at_its_seal(queue_path):
    """Where no next segment tells, the seal does."""
    with penstock.open(queue_path, roll=BY_TWO) as queue:
        queue.append_many([b"1", b"2"])
        queue.append(b"3")
        copy = copy_of(queue_path)
    data_files(copy)[1].unlink()

    assert [b"1", b"2"] == payloads_of(copy)


def test_a_seal_that_says_something_else_is_told(queue_path):
    """A seal whose check is true is still held against what is in the segment."""
    with penstock.open(queue_path, roll=BY_TWO) as queue:
        queue.append_many([b"1", b"2"])
        queue.append(b"3")
    sealed, after = data_files(queue_path)
    end = word_of(after, LAYOUT["SEGMENT_PREVIOUS_END_POSITION_AT"])
    content = bytearray(sealed.read_bytes())
    content[end + 16] += 1
    check = CHECKSUMS[1](bytes(content[end : end + 48])) ^ (word_of(sealed, 32) + 2) % (1 << 64)
    content[end + 48 : end + 56] = check.to_bytes(8, "little")
    sealed.write_bytes(content)

    assert is_refused(queue_path)


def test_a_segment_without_messages_is_sealed_too(queue_path):
    """What does not fit into the first segment begins the second one."""
    with penstock.open(queue_path, segment_bytes=8192) as queue:
        queue.append(bytes(20_000))

    assert [1, 2] == [word_of(path, LAYOUT["SEGMENT_NUMBER_AT"]) for path in data_files(queue_path)]
    assert [bytes(20_000)] == payloads_of(queue_path)


def test_a_missing_segment_is_told(queue_path):
    """Each header says which segment it follows, and metadata.json which one is the oldest."""
    with penstock.open(queue_path, roll=RollStrategy.by_count(1)) as queue:
        for _ in range(3):
            queue.append(b"")
    refused = []
    for path in data_files(queue_path)[:2]:
        aside = path.rename(path.with_suffix(".aside"))
        refused.append(is_refused(queue_path))
        aside.rename(path)

    assert [True, True] == refused


def test_dropped_segments_are_not_missed(queue_path):
    """What retention let go is no damage."""
    with penstock.open(queue_path, roll=RollStrategy.by_count(1)) as queue:
        for number in range(5):
            queue.append(b"%d" % number)
        queue.compact(RetentionPolicy(segments=2))

    assert [b"3", b"4"] == payloads_of(queue_path)


def test_an_append_whose_last_frame_is_missing_is_dropped(queue_path):
    """Of an atomic append all messages are in the log or none is."""
    with penstock.open(queue_path) as queue:
        queue.append(b"alone")
        queue.append_many([b"1", b"2", b"3"])
        copy = copy_of(queue_path)
    last = list(read_places(copy))[-1]
    flip_bit(last.path, last.position)

    assert [b"alone"] == payloads_of(copy)


def test_below_the_published_end_nothing_is_torn(queue_path):
    """The control page of this boot tells damage from an end; without it the end is believed."""
    with penstock.open(queue_path) as queue:
        queue.append_many([b"1", b"2"])
        queue.append(b"3")
        last = list(read_places(queue_path))[-1]
        flip_bit(last.path, last.position + 16)
        copy = copy_of(queue_path)
        refused = is_refused(queue_path)
        flip_bit(last.path, last.position + 16)

    assert refused
    assert [b"1", b"2"] == payloads_of(copy)


def test_below_a_durable_mark_nothing_is_torn(queue_path):
    """What a flush had covered cannot be where a crash tore the log."""
    with penstock.open(queue_path) as queue:
        queue.append(b"1")
        queue.append(b"2")
        queue.flush()
        queue.append(b"3")
        copy = copy_of(queue_path)
    second = list(read_places(copy))[1]
    flip_bit(second.path, second.position + 16)

    assert is_refused(copy)


def test_behind_the_durable_marks_the_first_loss_is_the_end(queue_path):
    """Pages are written in any order: a frame behind a loss may be true, and is no message."""
    with penstock.open(queue_path) as queue:
        for payload in (b"1", b"2", b"3"):
            queue.append(payload)
        copy = copy_of(queue_path)
    second = list(read_places(copy))[1]
    flip_bit(second.path, second.position + 16)

    assert [b"1"] == payloads_of(copy)


def test_after_a_loss_of_power_the_log_goes_on_behind_a_gap(queue_path, crash):
    """The next header says where the torn segment ends, and with which sequence the log goes on."""
    with penstock.open(queue_path) as queue:
        for payload in (b"1", b"2", b"3"):
            queue.append(payload)
        copy = crash()
    second = list(read_places(copy))[1]
    flip_bit(second.path, second.position + 16)
    with penstock.open(copy) as queue:
        queue.append(b"4")
    first, last = read_queue(copy)
    declared = word_of(data_files(copy)[1], LAYOUT["SEGMENT_BASE_SEQUENCE_AT"])

    assert (0, b"1", declared, b"4") == (*first[::7], *last[::7])
    assert declared > 3


def test_after_a_closed_queue_booted_anew_there_is_no_gap(queue_path, crash):
    """Nothing can have been lost."""
    with penstock.open(queue_path) as queue:
        queue.append_many([b"1", b"2"])
    copy = crash()
    with penstock.open(copy) as queue:
        queue.append(b"3")

    assert [0, 1, 2] == [message.sequence for message in read_queue(copy)]


def test_a_segment_whose_beginning_was_lost_is_left_out(queue_path, crash):
    """It has its name, but nothing that was in it can be known."""
    with penstock.open(queue_path, roll=BY_TWO) as queue:
        queue.append_many([b"1", b"2"])
        queue.append(b"3")
        copy = crash()
    half_made = data_files(copy)[1]
    content = bytearray(half_made.read_bytes())
    content[512:1024] = bytes(512)
    half_made.write_bytes(content)
    before = payloads_of(copy)
    with penstock.open(copy) as queue:
        queue.append(b"4")
    chain = [
        (word_of(path, LAYOUT["SEGMENT_NUMBER_AT"]), word_of(path, 544))
        for path in data_files(copy)
    ]

    assert [b"1", b"2"] == before
    assert [(1, 0), (3, 1)] == chain
    assert [b"1", b"2", b"4"] == payloads_of(copy)


def test_what_was_rescued_is_read_once(queue_path):
    """After a failed flush what was not durable stands in two segments, and counts in one."""
    with penstock.open(queue_path, roll=RollStrategy.by_count(3)) as queue:
        queue.append(b"durable")
        queue.flush()
        for payload in (b"1", b"2", b"3", b"4"):
            queue.append(payload)
        queue._log.control.poison(5, "the disk said no")
    with penstock.open(queue_path) as queue:
        queue.append(b"5")
        rescued = [message.payload for message in queue.tailer()]

    assert [b"durable", b"1", b"2", b"3", b"4", b"5"] == rescued
    assert rescued == payloads_of(queue_path)
