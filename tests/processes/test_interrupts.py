"""An exception out of a signal may come in the middle of a roll: the next append makes it good."""

import pytest

import penstock
from penstock import RollStrategy
from penstock.log import appender
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


PLACES = [
    (SpareMaker, "take"),
    (SpareMaker, "begin"),
    (Segments, "add"),
    (appender, "bank_of"),
    (appender.SegmentHost, "_seal_locked"),
    (appender.SegmentHost, "_attach_locked"),
]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("owner", "name"), PLACES, ids=[name for _, name in PLACES])
def test_a_roll_that_was_interrupted_loses_nothing(full, play, monkeypatch, owner, name, after):
    """Another process rolled anew, and we appended to the file it had deleted."""
    interrupt_once(monkeypatch, owner, name, after=after)
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


def test_an_append_goes_on_after_an_interrupt_while_its_segment_was_mapped(full, monkeypatch):
    """The handle believed to have the new segment already, and the append never ended."""

    class Interrupted:
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
    monkeypatch.setattr(host, "_writer", Interrupted(host._writer))
    with pytest.raises(KeyboardInterrupt):
        full.append(b"interrupted")

    assert COUNT == full.append(b"ours")
