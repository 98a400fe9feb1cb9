"""Opening and closing: who may come in, what is made, and what is left behind."""

import gc
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import FlushMode, RetentionPolicy, RollStrategy
from penstock.errors import PenstockError, QueueBusyError, QueueNotFoundError
from penstock.kernel import LAYOUT
from penstock.log import directory
from tests.conftest import SEGMENT_BYTES
from tests.unit.looking import base_sequences, data_files, header_word, payloads


class OwnPath:
    """A path of a program's own kind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.mark.parametrize("kind", [str, Path, OwnPath])
def test_a_path_may_be_said_in_any_way(tmp_path, kind):
    """The folder and those above it are made."""
    path = tmp_path / "with spaces" / "ünïcödé"
    with penstock.open(kind(path)) as queue:
        queue.append(b"x")

    assert (path, True) == (queue.path, (path / "metadata.json").is_file())


def test_a_path_may_be_any_bytes(tmp_path):
    """Also such as no text can have; errors can be told all the same."""
    path = tmp_path / os.fsdecode(b"\xff\xfe")
    with penstock.open(path, segment_bytes=SEGMENT_BYTES) as queue:
        queue.append(b"x")
        with pytest.raises(PenstockError) as error:
            penstock.open(path, exclusive=True)

    assert path == vars(error.value)["path"]


def test_a_link_to_the_folder_is_the_same_queue(tmp_path):
    """Whoever comes by it joins those who came without."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with penstock.open(tmp_path / "real") as one, penstock.open(tmp_path / "link") as other:
        appended = [one.append(b"a"), other.append(b"b")]
        found = payloads(one)

    assert ([0, 1], [b"a", b"b"]) == (appended, found)


def test_a_relative_path_is_where_it_was(tmp_path, monkeypatch):
    """A program may go to another folder while the queue is open."""
    monkeypatch.chdir(tmp_path)
    with penstock.open("orders", segment_bytes=SEGMENT_BYTES) as queue:
        monkeypatch.chdir("/")
        queue.append_many([b"x" * 30_000])
        queue.append_many([b"x" * 30_000] * 2)

    assert (tmp_path / "orders", 2) == (queue.path, len(data_files(tmp_path / "orders")))


def test_files_are_for_their_owner_only(queue_path, open_queue):
    """Payloads may be secret."""
    open_queue(roll=RollStrategy.by_count(1)).append_many([b"x"] * 3)
    modes = {
        (path.is_dir(), oct(path.stat().st_mode & 0o777))
        for path in [queue_path, *queue_path.rglob("*")]
    }

    assert {(True, "0o700"), (False, "0o600")} == modes


def test_reopening_goes_on(open_queue, queue_path):
    """Sequences, messages and the segment itself."""
    appended = []
    for number in range(20):
        with open_queue() as queue:
            appended.append(queue.append(b"%d" % number))
    queue = open_queue()

    assert (list(range(20)), [b"%d" % number for number in range(20)], [0]) == (
        appended,
        payloads(queue),
        base_sequences(queue_path),
    )


def test_closing_twice_is_closing(queue):
    """The second time there is nothing to do."""
    queue.close()
    queue.close()

    assert "closed" in repr(queue)


def test_a_with_block_closes(open_queue):
    """However it ends."""
    with pytest.raises(LookupError), open_queue(exclusive=True):
        raise LookupError

    assert 0 == open_queue(exclusive=True).append(b"x")


@pytest.mark.parametrize("second", [{}, {"read_only": True}, {"exclusive": True}])
def test_an_exclusive_handle_refuses_company(open_queue, queue_path, second):
    """Whoever comes is told who has the queue."""
    open_queue(exclusive=True)
    with pytest.raises(QueueBusyError) as error:
        open_queue(**second)

    assert (queue_path, {os.getpid()}) == (error.value.path, {*error.value.pids, os.getpid()})


@pytest.mark.parametrize("first", [{}, {"read_only": True}, {"exclusive": True}])
def test_an_exclusive_handle_wants_to_be_alone(open_queue, first):
    """It does not come where others are, and comes when they are gone."""
    open_queue().close()
    before = open_queue(**first)
    with pytest.raises(QueueBusyError):
        open_queue(exclusive=True)
    before.close()

    assert 0 == open_queue(exclusive=True).append(b"x")


def test_who_is_in_the_way_is_named(open_queue):
    """By the number of its process."""
    open_queue(exclusive=True)
    with pytest.raises(QueueBusyError) as error:
        open_queue()

    assert (os.getpid(),) == error.value.pids


def test_many_handles_share_a_queue(open_queue):
    """Appending, reading and closing in any order."""
    handles = [open_queue() for _ in range(8)]
    for number, handle in enumerate(handles):
        handle.append(b"%d" % number)
    for handle in handles[::2]:
        handle.close()
    for handle in handles[1::2]:
        handle.append(b"more")
    last = handles[-1]

    assert [b"0", b"1", b"2", b"3", b"4", b"5", b"6", b"7", *[b"more"] * 4] == payloads(last)


def test_settings_are_those_of_creation(queue_path):
    """What a later open leaves out is not set back."""
    given: dict[str, Any] = {"segment_bytes": 1 << 17, "index_every": 3, "checksum": "crc64-nvme"}
    with penstock.open(queue_path, roll=RollStrategy.by_count(2), **given) as queue:
        queue.append(b"x")
    with penstock.open(queue_path) as queue:
        for _ in range(4):
            queue.append(b"x")

    assert [(0, 1 << 17, 3), (2, 1 << 17, 3), (4, 1 << 17, 3)] == [
        (
            header_word(file, "BASE_SEQUENCE"),
            header_word(file, "CAPACITY"),
            header_word(file, "INDEX_EVERY"),
        )
        for file in data_files(queue_path)
    ]


def test_other_settings_hold_for_new_segments(open_queue, queue_path):
    """The one that was begun before stays what it is."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        queue.append(b"x")
    given = {"segment_bytes": 1 << 17, "index_every": 3, "checksum": "crc64-nvme"}
    with open_queue(roll=RollStrategy.by_count(3), **given) as queue:
        for _ in range(7):
            queue.append(b"x")
    files = data_files(queue_path)

    assert ([0, 2, 5], [1, 2, 2], [SEGMENT_BYTES, 1 << 17, 1 << 17], 8) == (
        base_sequences(queue_path),
        [header_word(file, "CHECKSUM") & 0xFFFFFFFF for file in files],
        [header_word(file, "CAPACITY") for file in files],
        len(payloads(open_queue())),
    )


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no_bytes": ({"segment_bytes": 0}, ValueError, "segment_bytes"),
    "few_bytes": ({"segment_bytes": LAYOUT["SEGMENT_BYTES_MIN"] - 1}, ValueError, "segment_bytes"),
    "half_bytes": ({"segment_bytes": 65536.0}, TypeError, "segment_bytes"),
    "index": ({"index_every": 0}, ValueError, "index_every"),
    "checksum": ({"checksum": "md5"}, ValueError, "checksum is one of"),
    "no_checksum": ({"checksum": ""}, ValueError, "checksum is one of"),
    "roll": ({"roll": 1 << 20}, TypeError, "roll"),
    "flush": ({"flush": "sync"}, TypeError, "flush"),
    "no_flush": ({"flush": None}, TypeError, "flush"),
    "retention": ({"retention": timedelta(days=1)}, TypeError, "retention"),
    "compression": ({"compression": "zstd"}, ValueError, "compression"),
    "stall": ({"stall": 10}, TypeError, "stall"),
    "both": ({"read_only": True, "exclusive": True}, ValueError, "exclusive"),
    "unknown": ({"bogus": 1}, TypeError, "bogus"),
}


@pytest.mark.parametrize("name", WRONG)
def test_settings_that_make_no_sense_are_refused_before_anything_is_made(queue_path, name):
    """The sentence names the setting, and the next open finds nothing in its way."""
    options, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        penstock.open(queue_path, **options)
    left = queue_path.exists()
    with penstock.open(queue_path, exclusive=True) as queue:
        appended = queue.append(b"x")

    assert (False, 0) == (left, appended)


@pytest.mark.parametrize("name", [name for name in WRONG if name != "both"])
def test_settings_that_make_no_sense_are_refused_by_a_queue_that_is_there(open_queue, name):
    """Nothing stays locked by the attempt."""
    open_queue().close()
    options, kind, words = WRONG[name]
    with pytest.raises(kind, match=words):
        open_queue(**options)

    assert 0 == open_queue(exclusive=True).append(b"x")


def test_a_flush_mode_is_made_whole():
    """Bytes without an interval would never flush what is less."""
    with pytest.raises(ValueError, match=r"FlushMode\.batch"):
        FlushMode(bytes=1)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_is_no_queue(tmp_path, read_only):
    """It is left as it is."""
    path = tmp_path / "file"
    path.write_bytes(b"precious")
    with pytest.raises(QueueNotFoundError if read_only else (OSError, PenstockError)):
        penstock.open(path, read_only=read_only)

    assert b"precious" == path.read_bytes()


def test_other_files_in_the_folder_are_left_alone(queue_path, open_queue):
    """A queue may be made where something is already."""
    queue_path.mkdir()
    (queue_path / "2026").mkdir()
    (queue_path / "2026" / "notes.data").write_bytes(b"precious")
    with open_queue(roll=RollStrategy.by_count(1)) as queue:
        queue.append_many([b"x"])
        queue.append_many([b"x"])
        queue.compact(RetentionPolicy(segments=1))

    assert b"precious" == (queue_path / "2026" / "notes.data").read_bytes()


def test_first_sequence_is_next_sequence_when_there_is_no_message(open_queue, reboot):
    """Also behind a gap that a loss of power left."""
    with open_queue() as queue:
        before = (queue.first_sequence, queue.next_sequence)
    (queue.path / directory.CONTROL).unlink()
    reboot()
    queue = open_queue()

    assert ((0, 0), queue.next_sequence) == (before, queue.first_sequence)


def test_a_closed_queue_leaves_no_thread_and_no_file_open(queue_path):
    """A program may open and close it all day."""

    def held() -> tuple[int, int]:
        gc.collect()
        return threading.active_count(), len(list(Path("/proc/self/fd").iterdir()))

    def use() -> None:
        with penstock.open(queue_path, segment_bytes=SEGMENT_BYTES) as queue:
            queue.append_many([b"x" * 30_000])
            list(queue.tailer())

    use()
    before = held()
    for _ in range(10):
        use()

    assert before == held()
