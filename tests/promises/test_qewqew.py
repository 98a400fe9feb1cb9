"""What QewQew promises of its storage, as far as it is about the log."""

import pytest

from penstock import RollStrategy
from penstock.errors import QueueBusyError
from penstock.log import directory
from tests.unit.looking import data_files, payloads


def written(path):
    """Tell what was written to each file, without what is only allocated."""
    return [file.read_bytes().rstrip(b"\0") for file in data_files(path)]


def test_an_open_queue_is_locked(open_queue):
    """Who asks to be alone is alone."""
    open_queue(exclusive=True)
    with pytest.raises(QueueBusyError):
        open_queue(exclusive=True)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["close", "kill"])
def test_the_lock_goes_with_its_process(open_queue, queue_path, start_python, how):
    """However it ends; no file has to be deleted by hand."""
    script = """
        import sys, penstock
        with penstock.open(sys.argv[1], exclusive=True) as queue:
            print(queue.append(b"x"), flush=True)
            sys.stdin.read()
    """
    process = start_python(script, queue_path)
    process.stdout.readline()
    with pytest.raises(QueueBusyError) as error:
        open_queue(exclusive=True)
    if how == "kill":
        process.kill()
    process.communicate()

    assert ((process.pid,), [b"x"]) == (error.value.pids, payloads(open_queue(exclusive=True)))


def test_messages_come_first_in_first_out(open_queue):
    """Over any number of files, and also when they are read while more are appended."""
    queue = open_queue(roll=RollStrategy.by_count(2))
    tailer = queue.tailer()
    found = []
    for number in range(30):
        queue.append(b"%d" % number)
        if number % 3 == 0:
            found += payloads(tailer.read_many(2))
    found += payloads(tailer)

    assert [b"%d" % number for number in range(30)] == found


@pytest.mark.parametrize("length", [0, 1, 65535, 65536, 70_000])
def test_a_length_is_stored_as_it_is(open_queue, length):
    """65,536 bytes were stored with length 0, and everything behind them was garbage."""
    contents = [b"before", b"x" * length, b"behind"]
    with open_queue() as queue:
        for content in contents:
            queue.append(content)

    assert contents == payloads(open_queue())


def test_a_message_larger_than_a_file_ends(open_queue, queue_path):
    """A loop made files until there were no descriptors left."""
    queue = open_queue()
    queue.append(b"x" * 500_000)

    assert (2, [b"x" * 500_000]) == (len(data_files(queue_path)), payloads(queue))


def test_reading_goes_on_after_a_roll(open_queue):
    """The first read after a roll in the same session failed."""
    queue = open_queue(roll=RollStrategy.by_count(1))
    tailer = queue.tailer()
    queue.append(b"a")
    found = [tailer.read().payload]
    queue.append(b"b")
    found.append(tailer.read().payload)

    assert [b"a", b"b"] == found


def test_reopening_with_another_size_changes_no_file(open_queue, queue_path):
    """A smaller size made the files unreadable, a larger one enlarged them all."""
    with open_queue(segment_bytes=1 << 17, roll=RollStrategy.by_count(2)) as queue:
        for number in range(5):
            queue.append(b"%d" % number)
    before = written(queue_path)
    found = []
    for size in (1 << 14, 1 << 20):
        with open_queue(segment_bytes=size) as queue:
            found.append(payloads(queue))

    assert ([[b"0", b"1", b"2", b"3", b"4"]] * 2, before) == (
        found,
        written(queue_path),
    )


@pytest.mark.usefixtures("tidy_at_once")
def test_new_files_have_their_blocks(open_queue, queue_path, eventually):
    """They were sparse, so that a full disk ended the process in the midst of a write."""
    queue = open_queue(segment_bytes=1 << 20)
    queue.append(b"x")
    spare = queue_path / directory.SPARE
    eventually(spare.exists)
    facts = [path.stat() for path in [spare, *data_files(queue_path)]]

    assert [True, True] == [each.st_blocks * 512 >= each.st_size >= 1 << 20 for each in facts]


def test_closing_an_empty_queue_leaves_little(open_queue, queue_path):
    """No block that nobody needs."""
    open_queue(segment_bytes=1 << 20).close()

    assert directory.disk_bytes(queue_path) < 1 << 17
