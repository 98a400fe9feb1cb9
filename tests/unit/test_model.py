"""A queue does what a list would do, whatever is asked of it and in which order."""

import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import penstock
from penstock import Queue, RetentionPolicy, RollStrategy, Tailer
from penstock.errors import SequenceGoneError
from tests.unit.looking import payloads

SEGMENT_BYTES = 1 << 14
PAYLOADS = st.binary(max_size=64) | st.integers(0, 5000).map(lambda size: b"z" * size)
FEW = st.lists(PAYLOADS, max_size=5)


def fail() -> None:
    """Be the error of a program that is in the midst of a transaction."""
    raise LookupError


class QueueAsList(RuleBasedStateMachine):
    """Holds what was appended beside the queue, and every tailer's place."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-model-"))
        self.expected: list[bytes] = []
        self.first = 0
        self.handles: list[Queue] = []
        self.readers: list[Queue] = []
        self.tailers: list[tuple[Queue, Tailer, int]] = []

    @initialize(count=st.integers(1, 6))
    def begin(self, count: int) -> None:
        """Make the queue, with a size of segments of its own."""
        self.count = count
        self._open()

    def _of(self, which: int) -> Queue:
        return self.handles[which % len(self.handles)]

    def _open(self) -> Queue:
        options: dict[str, Any] = {"roll": RollStrategy.by_count(self.count), "index_every": 2}
        self.handles.append(
            penstock.open(self.folder / "queue", segment_bytes=SEGMENT_BYTES, **options)
        )
        return self.handles[-1]

    @rule(payload=PAYLOADS, which=st.integers(0))
    def append(self, payload: bytes, which: int) -> None:
        """One message, by any handle."""
        sequence = self._of(which).append(payload)
        assert len(self.expected) == sequence
        self.expected.append(payload)

    @rule(contents=FEW, which=st.integers(0))
    def append_many(self, contents: list[bytes], which: int) -> None:
        """Some messages, or none."""
        appended = self._of(which).append_many(contents)
        assert range(len(self.expected), len(self.expected) + len(contents)) == appended
        self.expected += contents

    @rule(contents=FEW, fails=st.booleans(), which=st.integers(0))
    def transact(self, contents: list[bytes], which: int, *, fails: bool) -> None:
        """Some messages as one, or none if something else fails."""
        with suppress(LookupError), self._of(which).transaction() as together:
            for content in contents:
                together.append(content)
            if fails:
                fail()
        if not fails:
            self.expected += contents

    @rule(which=st.integers(0))
    def flush(self, which: int) -> None:
        """Everything is durable then."""
        queue = self._of(which)
        queue.flush()
        assert len(self.expected) == queue.durable_sequence

    @rule(segments=st.integers(1, 4), which=st.integers(0))
    def compact(self, segments: int, which: int) -> None:
        """The oldest messages may go, and never the newest segment's."""
        queue = self._of(which)
        queue.compact(RetentionPolicy(segments=segments))
        assert self.first <= queue.first_sequence <= len(self.expected)
        assert queue.stats().segments <= segments
        self.first = queue.first_sequence

    @precondition(lambda self: self.expected)
    @rule(which=st.integers(0), place=st.integers(0), size=st.integers(0, 9000))
    def read_from(self, which: int, place: int, size: int) -> None:
        """A batch begins where it was asked to, and says where the next one does."""
        place = self.first + place % (len(self.expected) - self.first + 1)
        handles = self.handles + self.readers
        batch = handles[which % len(handles)].read_from(place, size)
        stop = place + len(batch.messages)
        assert self.expected[place:stop] == payloads(batch.messages)
        assert stop == batch.next_sequence
        assert (stop > place) == (place < len(self.expected))

    @precondition(lambda self: len(self.handles) < 4)
    @rule()
    def open_another(self) -> None:
        """It joins those that are there."""
        self._open()

    @precondition(lambda self: len(self.readers) < 2)
    @rule()
    def open_reader(self) -> None:
        """It stays while those who append come and go."""
        self.readers.append(penstock.open(self.folder / "queue", read_only=True))

    @precondition(lambda self: len(self.handles) > 1)
    @rule(which=st.integers(0))
    def close_one(self, which: int) -> None:
        """The others go on."""
        self._close(self.handles, which)

    @precondition(lambda self: self.readers)
    @rule(which=st.integers(0))
    def close_reader(self, which: int) -> None:
        """Nobody notices."""
        self._close(self.readers, which)

    @rule()
    def reopen(self) -> None:
        """Everything is there again when all have left."""
        while self.handles:
            self._close(self.handles, 0)
        self._open()

    def _close(self, handles: list[Queue], which: int) -> None:
        closed = handles.pop(which % len(handles))
        self.tailers = [each for each in self.tailers if each[0] is not closed]
        closed.close()

    @precondition(lambda self: len(self.tailers) < 4)
    @rule(which=st.integers(0), place=st.integers(0))
    def begin_to_read(self, which: int, place: int) -> None:
        """A tailer may begin anywhere from the first message to the end."""
        place = self.first + place % (len(self.expected) - self.first + 1)
        handles = self.handles + self.readers
        queue = handles[which % len(handles)]
        self.tailers.append((queue, queue.tailer(start=place, on_gone="first"), place))

    @precondition(lambda self: self.tailers)
    @rule(which=st.integers(0), place=st.integers(0))
    def seek(self, which: int, place: int) -> None:
        """It may go anywhere from where it is."""
        queue, tailer, _ = self.tailers.pop(which % len(self.tailers))
        place = self.first + place % (len(self.expected) - self.first + 1)
        tailer.seek(sequence=place)
        self.tailers.append((queue, tailer, place))

    @precondition(lambda self: self.tailers)
    @rule(which=st.integers(0), count=st.integers(0, 8))
    def read(self, which: int, count: int) -> None:
        """What comes next is the message of its place, or the first that is left."""
        queue, tailer, place = self.tailers.pop(which % len(self.tailers))
        for _ in range(count):
            message = tailer.read()
            if message is None:
                assert len(self.expected) == place
                break
            # A tailer still reads to its end the segment that was dropped while it stood in it.
            assert place == message.sequence or place < message.sequence <= self.first
            assert self.expected[message.sequence] == message.payload
            place = message.sequence + 1
        self.tailers.append((queue, tailer, place))

    @precondition(lambda self: self.first > 0)
    @rule(which=st.integers(0), place=st.integers(0))
    def start_at_what_is_gone(self, which: int, place: int) -> None:
        """It is refused, with the first that is left."""
        with pytest.raises(SequenceGoneError) as error:
            self._of(which).tailer(start=place % self.first)
        assert self.first == error.value.first_sequence

    @rule(which=st.integers(0))
    def verify(self, which: int) -> None:
        """Nothing is ever damaged by what is done here."""
        assert () == self._of(which).verify().faults

    @rule(which=st.integers(0), read_only=st.booleans())
    def read_everything(self, which: int, *, read_only: bool) -> None:
        """Every handle sees the same, a reader that comes now too."""
        if read_only:
            with penstock.open(self.folder / "queue", read_only=True) as reader:
                found = payloads(reader)
        else:
            found = payloads(self._of(which))
        assert self.expected[self.first :] == found

    # Not an invariant: to ask is to look, and a handle that did not look must be right, too.
    @rule()
    def sequences_are_those_of_the_list(self) -> None:
        """Every handle says the same at any time."""
        for queue in self.handles + self.readers:
            assert (self.first, len(self.expected)) == (queue.first_sequence, queue.next_sequence)

    def teardown(self) -> None:
        """Leave nothing behind."""
        for queue in self.handles + self.readers:
            queue.close()
        shutil.rmtree(self.folder)


QueueAsList.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, derandomize=True, deadline=None
)
TestQueueAsList = pytest.mark.timeout(600)(pytest.mark.slow(QueueAsList.TestCase))
