"""A full disk is an error before anything is written: no crash, no half message, nothing lost."""

import errno
import os
import resource
from pathlib import Path
from typing import NoReturn

import pytest

import penstock
from penstock import clock
from penstock.errors import DiskFullError, PenstockError, SegmentIOError
from tests.crash.processes import in_child, killed
from tests.crash.small_disk import Ballast, on_small_disk

MIB = 1 << 20
PAYLOAD_BYTES = 4000


def payload(sequence: int) -> bytes:
    """Tell the payload of a message."""
    return b"%d " % sequence * (PAYLOAD_BYTES // (len(str(sequence)) + 1))


def append_until_full(queue: penstock.Queue) -> int:
    """Append until there is no room; tell how many messages there are then."""
    with pytest.raises(DiskFullError):
        append_on(queue)
    return queue.next_sequence


def append_on(queue: penstock.Queue) -> NoReturn:
    """Append for ever."""
    while True:
        sequence = queue.next_sequence
        assert queue.append(payload(sequence)) == sequence


def read(queue: penstock.Queue) -> int:
    """Read all messages; tell how many there are."""
    count = 0
    for message in queue.tailer():
        assert message.sequence == count
        assert message.payload == payload(count)
        count += 1
    return count


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Name the folder of a small disk."""
    return tmp_path / "disk"


@pytest.mark.parametrize("segment_bytes", [MIB // 4, 4 * MIB, 64 * MIB])
def test_a_full_disk_is_an_error_and_all_messages_are_there(disk, segment_bytes):
    """Whether a segment cannot grow or the next one cannot be made."""

    def fills() -> None:
        with penstock.open(disk / "queue", segment_bytes=segment_bytes) as queue:
            count = append_until_full(queue)
            assert count > 1000
            assert read(queue) == count
            assert queue.next_sequence == count
            queue.flush()
            assert queue.durable_sequence == count
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


@pytest.mark.parametrize("segment_bytes", [MIB // 4, 64 * MIB])
def test_once_there_is_room_again_appending_goes_on(disk, segment_bytes):
    """The same handle, without a gap."""

    def fills() -> None:
        ballast = Ballast(disk)
        with penstock.open(disk / "queue", segment_bytes=segment_bytes) as queue:
            ballast.fill(left_bytes=4 * MIB)
            count = append_until_full(queue)
            assert append_until_full(queue) == count
            ballast.drop()
            more = append_until_full(queue)
            assert more > count + 500
            assert read(queue) == more
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def test_a_full_disk_loses_nothing_when_the_queue_is_opened_again(disk):
    """In the same boot and in the next."""

    def fills() -> None:
        ballast = Ballast(disk)
        with penstock.open(disk / "queue", segment_bytes=MIB) as queue:
            ballast.fill(left_bytes=4 * MIB)
            count = append_until_full(queue)
        with penstock.open(disk / "queue") as queue:
            assert read(queue) == count
            ballast.fill()
            count = append_until_full(queue)
        clock.boot_id = lambda: b"another boot id."
        with pytest.raises(DiskFullError):
            penstock.open(disk / "queue")
        with penstock.open(disk / "queue", read_only=True) as queue:
            assert read(queue) == count
        ballast.drop()
        with penstock.open(disk / "queue") as queue:
            assert read(queue) == count
            assert queue.append(payload(count)) == count
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def test_an_atomic_append_without_room_leaves_nothing(disk):
    """None of its messages is there, and smaller ones still find their place."""

    def fills() -> None:
        with penstock.open(disk / "queue", segment_bytes=MIB) as queue:
            assert queue.append(payload(0)) == 0
            with pytest.raises(DiskFullError):
                queue.append_many([payload(sequence) for sequence in range(1, 5000)])
            assert (queue.next_sequence, read(queue)) == (1, 1)
            assert queue.append(payload(1)) == 1
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


@pytest.mark.parametrize("left_bytes", [0, 4096, 8192, 12288, 16384, 40960, 69632, 135168])
def test_a_queue_cannot_be_made_on_a_full_disk(disk, left_bytes):
    """It is told in our words, and made once there is room."""

    def makes() -> None:
        ballast = Ballast(disk)
        ballast.fill(left_bytes=left_bytes)
        with pytest.raises(DiskFullError):
            penstock.open(disk / "queue", segment_bytes=MIB)
        ballast.drop()
        with penstock.open(disk / "queue", segment_bytes=MIB) as queue:
            assert queue.append(payload(0)) == 0
            assert read(queue) == 1

    assert 0 == on_small_disk(disk, 8 * MIB, makes)


def test_a_disk_without_inodes_is_full_too(disk):
    """There is room for bytes, and none for another file."""

    def fills() -> None:
        with penstock.open(disk / "queue", segment_bytes=16 << 10) as queue:
            count = append_until_full(queue)
            assert read(queue) == count
            assert append_until_full(queue) == count
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 64 * MIB, fills, ",nr_inodes=40")


def test_nothing_half_made_takes_room_on_a_full_disk(disk):
    """A file that could not be allocated as a whole is taken away again."""

    def fills() -> None:
        with penstock.open(disk / "queue", segment_bytes=2 * MIB) as queue:
            append_until_full(queue)
            queue.close()
            assert [] == sorted(path.name for path in (disk / "queue").glob("*.tmp"))

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def test_two_processes_on_a_full_disk_both_go_on(disk):
    """Each is told, each reads on, and both append once there is room."""

    def fills() -> None:
        ballast = Ballast(disk)
        with penstock.open(disk / "queue", segment_bytes=MIB // 4) as queue:
            ballast.fill(left_bytes=4 * MIB)
            append_until_full(queue)

            def other() -> None:
                with penstock.open(disk / "queue") as theirs:
                    full_at = append_until_full(theirs)
                    assert read(theirs) == full_at
                    ballast.drop()
                    for sequence in range(full_at, full_at + 300):
                        assert theirs.append(payload(sequence)) == sequence

            assert 0 == in_child(other)
            count = append_until_full(queue)
            assert count > 1500
            assert read(queue) == count
            assert queue.verify().ok

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def test_a_process_killed_on_a_full_disk_loses_nothing(disk):
    """What it had appended is there, and can be read on the full disk."""

    def fills() -> None:
        counted = disk / "count"

        def victim() -> None:
            queue = penstock.open(disk / "queue", segment_bytes=MIB)
            counted.write_text("0" * 8)
            count = append_until_full(queue)
            with counted.open("r+") as file:
                file.write(f"{count:08}")
            os.kill(os.getpid(), 9)

        killed(victim)
        count = int(counted.read_text())
        with penstock.open(disk / "queue") as queue:
            assert read(queue) == count
            assert append_until_full(queue) >= count

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def test_a_full_disk_is_told_with_what_is_missing(disk):
    """The sentence says what to do, and that nothing was appended."""

    def fills() -> None:
        with penstock.open(disk / "queue", segment_bytes=MIB) as queue:
            with pytest.raises(DiskFullError, match="append again; nothing was appended") as told:
                append_on(queue)
            assert told.value.needed_bytes >= 4096
            assert told.value.path.is_relative_to(disk)

    assert 0 == on_small_disk(disk, 8 * MIB, fills)


def with_limit(size_bytes: int) -> None:
    """Let no file of this process grow beyond a size."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, resource.RLIM_INFINITY))


def test_a_limit_of_the_file_size_is_as_a_full_disk(queue_path):
    """The process is told, loses nothing, and goes on when the limit is lifted."""

    def fills() -> None:
        with penstock.open(queue_path, segment_bytes=64 * MIB) as queue:
            with_limit(3 * MIB)
            with pytest.raises((DiskFullError, SegmentIOError)) as told:
                append_on(queue)
            count = queue.next_sequence
            assert getattr(told.value, "errno", errno.EFBIG) == errno.EFBIG
            assert read(queue) == count
            assert count > 500
            with_limit(resource.RLIM_INFINITY)
            for sequence in range(count, count + 1000):
                assert queue.append(payload(sequence)) == sequence
            assert read(queue) == count + 1000
            assert queue.verify().ok

    assert 0 == in_child(fills)


@pytest.mark.parametrize("limit", [0, 300, 5000, 40000])
def test_a_limit_of_the_file_size_refuses_a_new_queue(queue_path, limit):
    """Not by SIGXFSZ, and not in words of the system alone."""

    def makes() -> None:
        with_limit(limit)
        with pytest.raises(PenstockError):
            penstock.open(queue_path, segment_bytes=MIB)
        with_limit(resource.RLIM_INFINITY)
        with penstock.open(queue_path, segment_bytes=MIB) as queue:
            assert queue.append(payload(0)) == 0
            assert read(queue) == 1

    assert 0 == in_child(makes)
