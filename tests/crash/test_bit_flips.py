"""Whatever happens to a file: what is read is what was written, or an error is told."""

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import clock
from penstock.errors import CorruptionError, FormatVersionError, PenstockError
from penstock.kernel import LAYOUT
from tests.crash.editing import flip, positions, segments
from tests.crash.processes import in_child
from tests.crash.rot import trials
from tests.crash.rot_corpus import contents, grow, options_of
from tests.crash.states import READS_MAX, opened, roll

MESSAGES = 14
HEADER_FIELDS = [
    *range(LAYOUT["SEGMENT_MAGIC_AT"], LAYOUT["SEGMENT_BOOT_ID_AT"] + 16),
    *range(LAYOUT["SEGMENT_PREPARED_CHECK_AT"], LAYOUT["SEGMENT_DURABLE_SEQUENCE_AT"] + 8),
    *range(LAYOUT["SEGMENT_BEGUN_CHECK_AT"], LAYOUT["SEGMENT_BEGUN_CHECK_AT"] + 8),
]


@pytest.fixture
def folder(memory_path: Path) -> Path:
    """Name a queue that is opened a thousand times."""
    return memory_path / "queue"


def make(root: Path, checksum: str = "xxh3") -> None:
    """Leave two sealed segments and an active one, closed."""
    with opened(root, segment_bytes=16 << 10, index_every=4, checksum=checksum) as queue:
        for index in range(3):
            if index:
                roll(queue)
            grow(queue, MESSAGES)


def read(queue: penstock.Queue) -> tuple[list[int], list[tuple[int | None, int | None]]]:
    """List the sequences that are read, each with its own bytes, and the damage that is told."""
    found: list[int] = []
    told: list[tuple[int | None, int | None]] = []
    tailer = queue.tailer()
    for _ in range(READS_MAX):
        try:
            message = tailer.read()
        except CorruptionError as error:
            told.append((error.sequence, error.next_sequence))
            continue
        if message is None:
            return found, told
        options = options_of(message.sequence)
        assert message.payload == contents(message.sequence)
        assert message.key == options.get("key")
        assert message.headers == options.get("headers", {})
        found.append(message.sequence)
    raise AssertionError("reading does not come to an end")


def each_flip(path: Path, places: list[int], look: Callable[[int], None], bits: int = 1) -> None:
    """Turn one bit after the other over, look, and turn it back; a crash names the place."""
    note = path.with_name("note")

    def work() -> None:
        for place in places:
            for bit in range(bits):
                flip(path, place, (place + bit) % 8)
                note.write_text(f"bit {(place + bit) % 8} of byte {place} of {path.name}")
                look(place)
                flip(path, place, (place + bit) % 8)

    ended = in_child(work)
    assert ended == 0, f"it ended with {ended} after {note.read_text()} had been turned over"


def test_nothing_is_damaged_before_it_is(folder):
    """What is compared below is all there."""
    make(folder)
    with opened(folder, read_only=True) as queue:
        found, told = read(queue)

    assert (list(range(len(found))), []) == (found, told)
    assert len(found) >= 3 * MESSAGES


@pytest.mark.slow
@pytest.mark.parametrize(
    ("which", "checksum", "step"), [(0, "xxh3", 1), (0, "crc64-nvme", 3), (2, "xxh3", 5)]
)
def test_a_flipped_bit_in_a_frame_costs_that_message_and_no_other(folder, which, checksum, step):
    """Every byte of every frame of a sealed segment, and many of the active one."""
    make(folder, checksum)
    path = segments(folder)[which]
    places = positions(path)
    with opened(folder, read_only=True) as queue:
        everything, _ = read(queue)
    base = int.from_bytes(path.read_bytes()[LAYOUT["SEGMENT_BASE_SEQUENCE_AT"] :][:8], "little")

    def look(place: int) -> None:
        damaged = base + sum(begin <= place for begin in places) - 1
        with opened(folder, read_only=True) as queue:
            found, told = read(queue)
        assert found == [sequence for sequence in everything if sequence != damaged]
        assert [damaged] == [sequence for sequence, _ in told]

    each_flip(path, list(range(places[0], places[-1], step)), look)


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_flipped_bit_in_a_header_is_told(folder, which):
    """Every byte of every field, in the first segment, one between, and the newest."""
    make(folder)
    path = segments(folder)[which]
    with opened(folder, read_only=True) as queue:
        everything, _ = read(queue)
    starts = [int.from_bytes(p.read_bytes()[520:528], "little") for p in segments(folder)]
    first, behind = [*starts, everything[-1] + 1][which : which + 2]

    def look(_place: int) -> None:
        with opened(folder, read_only=True) as queue:
            try:
                found, told = read(queue)
            except FormatVersionError:
                return
            assert found == [s for s in everything if not first <= s < behind]
            assert [first] == [sequence for sequence, _ in told]
            assert not queue.verify().ok

    each_flip(path, HEADER_FIELDS, look, bits=2)


@pytest.mark.slow
def test_a_flipped_bit_behind_the_messages_costs_nothing(folder):
    """The seal repeats what is known, and what is behind it is not looked at."""
    make(folder)
    path = segments(folder)[0]
    with opened(folder, read_only=True) as queue:
        everything, _ = read(queue)

    def look(_place: int) -> None:
        with opened(folder, read_only=True) as queue:
            assert (everything, []) == read(queue)

    end = positions(path)[-1]
    each_flip(path, list(range(end, min(end + 200, path.stat().st_size))), look, bits=2)


@pytest.mark.slow
def test_a_flipped_bit_in_an_index_costs_nothing(folder):
    """Seeking finds the same message, however it is misled."""
    make(folder)
    path = segments(folder)[0].with_suffix(".index")

    def look(_place: int) -> None:
        with opened(folder, read_only=True) as queue:
            for sequence in (13, 4, 9, 0, 15):
                message = queue.tailer(sequence).read()
                assert message is not None
                assert (sequence, contents(sequence)) == (message.sequence, message.payload)

    each_flip(path, list(range(path.stat().st_size)), look, bits=2)


@pytest.mark.slow
@pytest.mark.parametrize("read_only", [False, True])
def test_a_flipped_bit_in_the_metadata_costs_no_message(folder, read_only):
    """It is made anew from the segments, unless it says to be of another version."""
    make(folder)
    with opened(folder, read_only=True) as queue:
        everything, _ = read(queue)
    path = folder / "metadata.json"
    whole = path.read_bytes()

    def look(_place: int) -> None:
        try:
            with opened(folder, read_only=read_only) as queue:
                assert (everything, []) == read(queue)
                assert queue.next_sequence > everything[-1]
        except FormatVersionError:
            pass
        if not read_only:
            # What was made anew is put back as it was; the flip is undone on these bytes.
            path.write_bytes(whole)
            flip(path, _place, _place % 8)

    each_flip(path, list(range(len(whole))), look)


@pytest.mark.slow
def test_a_flipped_bit_in_the_spare_is_in_nobodys_way(folder):
    """A spare that is not as it was made is not used, or used and checked as any segment."""
    make(folder)
    spare = folder / ".spare"

    def work() -> None:
        queue = opened(folder, segment_bytes=16 << 10)
        made = queue._log.spares.take(16 << 10)
        whole = made.read_bytes()
        made.unlink()
        for place in [*HEADER_FIELDS[:96], *range(4096, 4140)]:
            content = bytearray(whole)
            content[place] ^= 1 << place % 8
            spare.write_bytes(content)
            roll(queue)
            first = queue.next_sequence
            assert queue.append(contents(first)) == first, f"byte {place}"
            message = queue.tailer(first).read()
            assert message is not None
            assert message.payload == contents(first), f"byte {place}"

    assert 0 == in_child(work)


@pytest.mark.slow
def test_a_flipped_bit_in_a_live_segment_is_told_and_appending_goes_on(folder):
    """Somebody has the queue open while it happens."""
    make(folder)

    def work() -> None:
        with opened(folder) as queue:
            path = segments(folder)[-1]
            for place in positions(path)[1:-1]:
                before, _ = read(queue)
                flip(path, place + 20, 3)
                found, told = read(queue)
                flip(path, place + 20, 3)
                assert 1 == len(told)
                assert len(found) == len(before) - 1
                first = queue.next_sequence
                assert queue.append(contents(first), **options_of(first)) == first

    assert 0 == in_child(work)


@pytest.mark.slow
def test_damage_is_told_in_columns_too(folder):
    """Arrow batches hold the messages that a tailer reads, and no others."""
    pytest.importorskip("pyarrow")
    make(folder)
    path = segments(folder)[1]
    flip(path, positions(path)[3] + 17)

    def work() -> None:
        with opened(folder, read_only=True) as queue:
            found, told = read(queue)
            tailer = queue.tailer(on_corrupt="skip")
            rows: list[tuple[int, bytes]] = []
            while (batch := tailer.read_arrow()) is not None:
                columns = batch.to_pydict()
                rows += zip(columns["sequence"], columns["payload"], strict=True)
            assert rows == [(sequence, contents(sequence)) for sequence in found]
            assert tailer.skipped == len(told) == 1
            with pytest.raises(CorruptionError):
                list(iter(queue.tailer().read_arrow, None))

    assert 0 == in_child(work)


@pytest.mark.slow
@pytest.mark.parametrize("boots", ["same boot", "other boot"])
def test_a_flipped_bit_in_the_page_costs_no_message(folder, boots):
    """Every seventh byte of what is not zero by rule, with the queue closed in between."""
    make(folder)
    own = clock.boot_id()
    page = folder / ".control"
    places = [*range(0, LAYOUT["CONTROL_POISON_TEXT_AT"] + 8, 7)]

    def work() -> None:
        boot = 0
        with opened(folder) as queue:
            everything, _ = read(queue)
        for place in places:
            flip(page, place, place % 8)
            if boots == "other boot":
                boot += 1
                boot_id = own[:8] + boot.to_bytes(8, "little")
                clock.boot_id = lambda boot_id=boot_id: boot_id  # type: ignore[misc]
            try:
                queue = opened(folder)
            except PenstockError as error:
                raise AssertionError(f"bit {place % 8} of byte {place}: {error}") from error
            with queue:
                found, told = read(queue)
                assert (everything, []) == (found, told), f"bit {place % 8} of byte {place}"
                first = queue.next_sequence
                assert first > everything[-1], f"bit {place % 8} of byte {place}"
                assert queue.durable_sequence <= first, f"bit {place % 8} of byte {place}"
                queue.append(contents(first), **options_of(first))
                everything.append(first)

    assert 0 == in_child(work)


@pytest.mark.slow
def test_no_damage_at_random_is_ever_silent():
    """A slice of what a torture run does for longer; see rot.py."""
    assert [] == trials(seed=20261119, count=150).failures
