"""A reader that may write nothing follows a log that other processes write."""

import pytest

import penstock
from penstock import RollStrategy, clock
from penstock.log.segments import Segments
from tests.processes.children import naps_of, until

pytestmark = pytest.mark.slow

EARLIER_BOOT = "0123456789abcdef" * 2
COUNT = 3
ROLL = RollStrategy.by_count(COUNT)
PAGE = [pytest.param("read_only", id="read_only"), pytest.param("writing", id="writing")]


def hear_all(reader, count):
    """Hear so many messages."""
    return [reader.hear() for _ in range(count)]


@pytest.mark.parametrize("access", PAGE)
def test_a_reader_follows_a_living_writer_over_rolls(queue_path, play, access):
    """It hears every message in order, from the first on."""
    with penstock.open(queue_path, roll=ROLL) as queue:
        queue.append(b"0")
        reader = play("follow", queue_path, access, "start")
        reader.expect("ready")
        for number in range(1, 20):
            queue.append(f"{number}".encode())

        assert [f"{number}" for number in range(20)] == hear_all(reader, 20)


def test_a_reader_follows_from_one_writer_to_the_next(queue_path, play):
    """Writers come and go, and die, while it stays."""
    with penstock.open(queue_path, roll=ROLL) as queue:
        queue.append(b"first")
    reader = play("follow", queue_path, "read_only", "start")
    heard = [reader.hear(), reader.hear()]
    for _ in range(2):
        play("append_partly", queue_path, "counted", "killed").wait()
        with penstock.open(queue_path) as queue:
            queue.append(b"closed")
        heard += hear_all(reader, 2)

    assert ["ready", "first", "killed", "closed", "killed", "closed"] == heard


def test_a_reader_that_came_before_the_first_writer_of_a_boot_sees_what_follows(queue_path, play):
    """There is no control page of this boot when it opens; it goes by the files."""
    play("create", queue_path, COUNT).wait()
    earlier = play("append", queue_path, "earlier", 5, boot_id=EARLIER_BOOT)
    earlier.expect("ready")
    earlier.say("go")
    earlier.wait()
    reader = play("follow", queue_path, "read_only", "start")
    reader.expect("ready")
    heard = hear_all(reader, 5)
    with penstock.open(queue_path) as queue:
        for number in range(10):
            queue.append(f"later {number}".encode())
        heard += hear_all(reader, 10)

    assert [f"earlier {n}" for n in range(5)] + [f"later {n}" for n in range(10)] == heard


def test_a_reader_without_a_page_looks_at_a_segment_while_it_is_sealed(
    queue_path, play, monkeypatch
):
    """It had looked for the end before the messages came, and for the next segment after."""
    play("create", queue_path, COUNT).wait()
    writer = play("append", queue_path, "later", 10)
    writer.expect("ready")
    monkeypatch.setattr(clock, "boot_id", lambda: bytes.fromhex(EARLIER_BOOT))
    end = Segments.end

    def end_before_appends(segments, segment):
        found = end(segments, segment)
        monkeypatch.setattr(Segments, "end", end)
        writer.say("go")
        writer.hear_json()
        return found

    with penstock.open(queue_path, read_only=True) as reader:
        monkeypatch.setattr(Segments, "end", end_before_appends)
        tailer = reader.tailer()
        heard = [*tailer, *tailer]

    assert list(range(10)) == [message.sequence for message in heard]


def test_a_reader_that_sees_a_segment_before_its_page_reads_it(queue_path, play, monkeypatch):
    """What it knew of the end of an earlier boot it took for the end of this segment too."""
    play("create", queue_path, COUNT, boot_id=EARLIER_BOOT).wait()
    with penstock.open(queue_path, read_only=True) as reader:
        tailer = reader.tailer()
        heard = [*tailer]
        with penstock.open(queue_path) as queue, monkeypatch.context() as earlier:
            earlier.setattr(type(reader._log), "follow_page", lambda _: None)
            heard += tailer
            earlier.undo()
            for number in range(3 * COUNT):
                queue.append(f"{number}".encode())
            heard += tailer

    assert [f"{number}".encode() for number in range(3 * COUNT)] == [m.payload for m in heard]


def test_a_reader_without_a_page_is_not_misled_by_a_roll_that_was_cut_short(queue_path, play):
    """The next writer begins the same segment anew, and the reader stayed in the deleted one."""
    play("create", queue_path, COUNT).wait()
    earlier = play("append", queue_path, "earlier", 3, boot_id=EARLIER_BOOT)
    earlier.expect("ready")
    earlier.say("go")
    earlier.wait()
    reader = play("follow", queue_path, "read_only", "start")
    reader.expect("ready")
    heard = hear_all(reader, 3)
    with penstock.open(queue_path) as queue:
        queue.append_many([b"1", b"2", b"3"])
        heard += hear_all(reader, 3)
        play("die_in_roll", queue_path, "killed").wait()
        naps = naps_of(reader.pid)
        until(lambda: naps_of(reader.pid) > naps + 10, "looking several times")
        queue.append(b"4")
        heard += hear_all(reader, 1)

    assert [f"earlier {n}" for n in range(3)] + ["1", "2", "3", "4"] == heard


def test_a_reader_without_a_page_ends_before_an_append_that_was_cut_short(queue_path, play):
    """A death in the middle of append_many is no damage, whoever looks first."""
    with penstock.open(queue_path) as queue:
        queue.append(b"before")
    play("append_partly", queue_path, "written", "1", "2", "3").wait()
    (queue_path / ".control").unlink()
    reader = play("follow", queue_path, "read_only", "start", 10)

    assert ["ready", "before", "over"] == hear_all(reader, 3)


def test_following_without_a_control_page_ends_too(queue_path, play):
    """The wait began anew each time it looked, and never ended."""
    with penstock.open(queue_path) as queue:
        queue.append(b"there")
    (queue_path / ".control").unlink()
    reader = play("follow", queue_path, "read_only", "start", 50)

    assert ["ready", "there", "over"] == hear_all(reader, 3)


def test_following_a_queue_without_a_segment_ends_too(queue_path, play):
    """A reader that has no place yet waits as long as any other."""
    with penstock.open(queue_path):
        pass
    for segment in queue_path.rglob("*.data"):
        segment.unlink()
    reader = play("follow", queue_path, "read_only", "start", 50)

    assert ["ready", "over"] == hear_all(reader, 2)


def test_a_reader_follows_onto_a_new_control_page(queue_path, play):
    """After a failed flush the page is made anew, and the reader stayed with the old one."""
    queue = penstock.open(queue_path)
    queue.append(b"before")
    reader = play("follow", queue_path, "read_only", "start")
    reader.expect("ready")
    heard = [reader.hear()]
    queue._log.control.poison(5, "a flush failed")
    queue.close()
    with penstock.open(queue_path) as queue:
        queue.append(b"after")
        heard.append(reader.hear())

    assert ["before", "after"] == heard


def test_a_reader_writes_nothing(queue_path, play):
    """Not one file is younger or another one after it has read all there is."""
    with penstock.open(queue_path, roll=ROLL) as queue:
        queue.append_many([b"1", b"2", b"3", b"4"])
    files = {path: path.stat() for path in queue_path.rglob("*")}
    reader = play("follow", queue_path, "read_only", "start", 1)
    heard = hear_all(reader, 6)
    reader.wait()
    after = {path: path.stat() for path in queue_path.rglob("*")}

    assert ["ready", "1", "2", "3", "4", "over"] == heard
    assert {path: (s.st_mtime_ns, s.st_size, s.st_ino) for path, s in files.items()} == {
        path: (s.st_mtime_ns, s.st_size, s.st_ino) for path, s in after.items()
    }
