"""Handles that only read: what they see, and that they change nothing."""

import shutil

import pytest

import penstock
from penstock import RollStrategy
from penstock.errors import QueueNotFoundError, ReadOnlyError
from tests.unit.looking import payloads, sequences, tree

ASKED = 5


@pytest.mark.parametrize("made", ["nothing", "folder", "other"])
def test_where_no_queue_is_none_is_made(queue_path, made):
    """Whoever only reads and mistypes the path is told so."""
    if made != "nothing":
        queue_path.mkdir()
    if made == "other":
        (queue_path / "other").write_bytes(b"x")
    before = tree(queue_path.parent)
    with pytest.raises(QueueNotFoundError) as error:
        penstock.open(queue_path, read_only=True)

    assert (queue_path, before) == (error.value.path, tree(queue_path.parent))


def test_a_reader_sees_everything(open_queue):
    """What was there, and what is appended and rolled while it looks."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    queue.append_many([b"before"] * 2)
    reader = open_queue(read_only=True)
    tailer = reader.tailer()
    found = payloads(tailer)
    for number in range(ASKED):
        queue.append(b"%d" % number)
        found += payloads(tailer)
    queue.flush()

    assert ([b"before"] * 2 + [b"%d" % number for number in range(ASKED)], 0, 7, 7) == (
        found,
        *(reader.first_sequence, reader.next_sequence, reader.durable_sequence),
    )


def test_a_reader_sees_a_queue_that_nobody_has_open(open_queue):
    """It needs no writer."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        queue.append_many([b"x"] * 2)
        queue.append(b"y")
    reader = open_queue(read_only=True)

    assert ([b"x", b"x", b"y"], 3, True) == (
        payloads(reader),
        reader.next_sequence,
        reader.verify().ok,
    )


def test_readers_may_be_many(open_queue):
    """Also in one process."""
    open_queue().append(b"x")

    assert [[b"x"]] * 8 == [payloads(open_queue(read_only=True)) for _ in range(8)]


def use_everything(reader):
    """Read in every way there is."""
    tailer = reader.tailer()
    list(tailer)
    tailer.seek(sequence=1)
    tailer.read_many(2)
    tailer.seek(time=tailer.read().timestamp)
    tailer.read_arrow()
    [message.view for message in reader.tailer()]
    reader.read_from(0)
    reader.stats()
    reader.verify()
    with pytest.raises(ReadOnlyError):
        reader.append(b"x")


def test_a_reader_never_writes_a_byte(open_queue, queue_path):
    """No file is another one, and none is younger."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        for _ in range(ASKED):
            queue.append(b"x")
    before = tree(queue_path)
    with open_queue(read_only=True) as reader:
        use_everything(reader)

    assert before == tree(queue_path)


@pytest.mark.slow
@pytest.mark.parametrize("with_control", [True, False])
def test_a_reader_works_where_nothing_may_be_written(
    open_queue, queue_path, tmp_path, run_python, with_control
):
    """A copy on a read-only disk, or one that belongs to somebody else."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        for number in range(ASKED):
            queue.append(b"%d" % number)
    copied = tmp_path / "copied"
    shutil.copytree(queue_path, copied)
    if not with_control:
        for name in (".control", ".lock"):
            (copied / name).unlink()
    for path in [copied, *copied.rglob("*")]:
        path.chmod(0o500 if path.is_dir() else 0o400)
    script = """
        import ctypes, struct, sys
        from datetime import timedelta
        import penstock

        # The superuser may write what nobody may, unless it gives up that right.
        version = struct.pack("Ii", 0x20080522, 0)
        assert ctypes.CDLL(None).capset(version, bytes(24)) == 0
        try:
            open(sys.argv[1] + "/metadata.json", "ab")
        except PermissionError:
            print("may not write")
        with penstock.open(sys.argv[1], read_only=True) as queue:
            print([message.payload.decode() for message in queue.tailer()])
            print([bytes(message.view).decode() for message in queue.tailer()])
            print([message.sequence for message in queue.tailer(3).follow(timedelta(0))])
            print(queue.first_sequence, queue.next_sequence, queue.verify().ok)
    """
    words = str([str(number) for number in range(ASKED)])
    lines = ["may not write", words, words, "[3, 4]", "0 5 True"]

    assert lines == run_python(script, copied).splitlines()


def test_a_copy_can_be_opened_for_writing(open_queue, queue_path, tmp_path):
    """It is a queue of its own, and loses nothing."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        for number in range(ASKED):
            queue.append(b"%d" % number)
    shutil.copytree(queue_path, tmp_path / "copied")
    with penstock.open(tmp_path / "copied") as copied:
        appended = copied.append(b"new")
        found = sequences(copied.tailer())

    assert (ASKED, list(range(ASKED + 1)), ASKED) == (
        appended,
        found,
        open_queue().next_sequence,
    )


def test_a_queue_can_be_moved(open_queue, queue_path, tmp_path):
    """No file says where it was."""
    with open_queue(roll=RollStrategy.by_count(2)) as queue:
        for number in range(ASKED):
            queue.append(b"%d" % number)
    queue_path.rename(tmp_path / "moved")
    with penstock.open(tmp_path / "moved") as moved:
        appended = moved.append(b"new")
        found = sequences(moved.tailer())

    assert (ASKED, list(range(ASKED + 1))) == (appended, found)
