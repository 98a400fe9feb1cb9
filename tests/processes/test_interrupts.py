"""An exception out of a signal may come in the middle of a roll: the next append makes it good."""

import threading

import pytest

import penstock
from penstock import RollStrategy, kernel
from penstock.kernel import LAYOUT
from penstock.log import appender, locks
from penstock.log.segments import Segments
from penstock.log.spare import SpareMaker

pytestmark = pytest.mark.slow

COUNT = 3
ROLL = RollStrategy.by_count(COUNT)


@pytest.fixture
def full(queue_path):
    """Open a queue whose next append rolls."""
    with penstock.open(queue_path, roll=ROLL) as queue:
        for number in range(COUNT):
            queue.append(f"before {number}".encode())
        yield queue


def interrupt_once(monkeypatch, owner, name, *, after):
    """Raise KeyboardInterrupt out of the next call of a function, before or after its work."""
    work = getattr(owner, name)

    def interrupted(*arguments, **options):
        monkeypatch.setattr(owner, name, work)
        if after:
            work(*arguments, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(owner, name, interrupted)


PLACES = {
    "take": SpareMaker,
    "begin": SpareMaker,
    "add": Segments,
    "bank_of": appender,
    "_seal_locked": appender.SegmentHost,
    "_attach_locked": appender.SegmentHost,
}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("name", PLACES)
def test_a_roll_that_was_interrupted_loses_nothing(full, play, monkeypatch, name, after):
    """Another process rolled anew, and we appended to the file it had deleted."""
    interrupt_once(monkeypatch, PLACES[name], name, after=after)
    with pytest.raises(KeyboardInterrupt):
        full.append(b"interrupted")
    other = play("append", full.path, "other", 1)
    other.expect("ready")
    other.say("go on")
    given = [*other.hear_json(), full.append(b"ours"), full.append(b"ours too")]

    assert [COUNT, COUNT + 1, COUNT + 2] == given
    assert [
        *(f"before {number}".encode() for number in range(COUNT)),
        *(b"other 0", b"ours", b"ours too"),
    ] == [message.payload for message in full.tailer()]
    assert () == full.verify().faults


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_interrupted_read_many_loses_nothing(full, monkeypatch, after):
    """What it had read from one segment was gone when the step to the next one was interrupted."""
    full.append(b"next segment")
    tailer = full.tailer()
    interrupt_once(monkeypatch, penstock.Tailer, "_advance", after=after)
    heard = []
    with pytest.raises(KeyboardInterrupt):
        heard += tailer.read_many(100)
    heard += tailer.read_many(100)

    assert list(range(COUNT + 1)) == [message.sequence for message in heard]


def test_an_append_goes_on_after_an_interrupt_while_its_segment_was_mapped(full, monkeypatch):
    """The handle believed to have the new segment already, and the append never ended."""

    class InterruptedWriter:
        """The writer, as it is when the signal comes."""

        def __init__(self, writer):
            self.writer = writer

        def __getattr__(self, name):
            return getattr(self.writer, name)

        def use_segment(self, _segment):
            """Be interrupted."""
            full._log.host._writer = self.writer
            raise KeyboardInterrupt

    host = full._log.host
    monkeypatch.setattr(host, "_writer", InterruptedWriter(host._writer))
    with pytest.raises(KeyboardInterrupt):
        full.append(b"interrupted")

    assert COUNT == full.append(b"ours")


def test_an_interrupt_at_the_gate_does_not_lock_everybody_out(queue_path, play, monkeypatch):
    """The byte was locked and nobody was left to unlock it, so every open and close hung."""

    def interrupted(fd, at, kind):
        is_mine = kernel.lock_byte(fd, at, kind)
        if at == LAYOUT["LOCK_GATE_AT"] and kind == "exclusive" and is_mine:
            monkeypatch.setattr(locks, "lock_byte", kernel.lock_byte)
            raise KeyboardInterrupt
        return is_mine

    queue = penstock.open(queue_path)
    monkeypatch.setattr(locks, "lock_byte", interrupted)
    with pytest.raises(KeyboardInterrupt):
        queue.close()
    queue.close()

    assert "alone" == play("open_exclusive", queue_path).hear()


@pytest.mark.parametrize("name", ["__new__", "__init__"])
def test_an_interrupt_at_the_end_of_an_open_leaves_nothing_open(queue_path, monkeypatch, name):
    """The background thread had begun, and nobody could end it any more."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(penstock.Queue, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        penstock.open(queue_path)
    monkeypatch.undo()
    with penstock.open(queue_path, exclusive=True) as queue:
        assert 0 == queue.append(b"alone")


@pytest.mark.parametrize("place", ["before", "within"])
def test_an_interrupt_in_a_close_can_be_made_good(queue_path, monkeypatch, place):
    """The second close did nothing, since there had been a first one."""
    queue = penstock.open(queue_path)
    log = queue._log
    if place == "before":
        monkeypatch.setattr(log, "_guard", Interrupted(log._guard, monkeypatch, log))
    else:
        interrupt_once(monkeypatch, type(log), "_leave_in_order", after=False)
    with pytest.raises(KeyboardInterrupt):
        queue.close()
    queue.close()
    with penstock.open(queue_path, exclusive=True) as again:
        assert 0 == again.append(b"alone")


class Interrupted:
    """A lock whose taking is interrupted once."""

    def __init__(self, lock, monkeypatch, log):
        self.lock = lock
        self.put_back = lambda: monkeypatch.setattr(log, "_guard", lock)

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            self.put_back()
            raise KeyboardInterrupt
        return self.lock.__enter__()

    def __exit__(self, *error):
        self.lock.__exit__(*error)
