"""States X to Z of docs/durability.md: segments are missing, damaged, cut or grown."""

from pathlib import Path

import pytest

from penstock import RetentionPolicy
from penstock.kernel import LAYOUT
from tests.crash.editing import flip, numbers, positions, segments, write
from tests.crash.states import active, found_in, log_with, sealed

SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
# A place in each of the two parts of a header, and what stands there.
HEADER_PLACES = {
    "magic": LAYOUT["SEGMENT_MAGIC_AT"],
    "kind of checksum": LAYOUT["SEGMENT_CHECKSUM_AT"],
    "queue": LAYOUT["SEGMENT_QUEUE_ID_AT"],
    "salt": LAYOUT["SEGMENT_SALT_AT"],
    "capacity": LAYOUT["SEGMENT_CAPACITY_AT"] + 2,
    "first check": LAYOUT["SEGMENT_PREPARED_CHECK_AT"],
    "number": LAYOUT["SEGMENT_NUMBER_AT"],
    "base": LAYOUT["SEGMENT_BASE_SEQUENCE_AT"] + 3,
    "chain": LAYOUT["SEGMENT_PREVIOUS_END_SEQUENCE_AT"],
    "second check": LAYOUT["SEGMENT_BEGUN_CHECK_AT"],
}


@pytest.fixture(params=["same boot", "other boot"])
def log(request, queue_path, reboot):
    """Leave a log of three sealed segments and an active one, closed; it is damaged in any boot."""
    log_with(queue_path, sealed(10), sealed(10), sealed(10), active(5), closed=True)
    if request.param == "other boot":
        reboot()
    return queue_path


def without(*ranges: tuple[int, int]) -> list[int]:
    """List the sequences of the log but for some."""
    lost = {sequence for begin, end in ranges for sequence in range(begin, end)}
    return [sequence for sequence in range(35) if sequence not in lost]


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("read_only", [False, True])
def test_state_x_a_missing_segment_is_told(log, which, read_only):
    """The first of all too: a log is never shorter in silence."""
    segments(log)[which].unlink()
    found = found_in(log, read_only=read_only)
    lost = (which * 10, which * 10 + 10)

    assert (without(lost), [list(lost)]) == (found.sequences, found.told)
    assert [True] == [f"segment {which + 1} is missing" in fault for fault in found.faults]


def test_state_x_two_missing_segments_are_told(log):
    """Each by its number."""
    segments(log)[1].unlink()
    segments(log)[1].unlink()
    found = found_in(log)

    assert (without((10, 30)), [[10, 30]]) == (found.sequences, found.told)
    assert 2 == len(found.faults)


def test_state_x_a_missing_newest_segment_is_told_and_its_sequences_stay_unused(log):
    """They were once given out again, without a word."""
    segments(log)[3].unlink()
    found = found_in(log)

    assert (without((30, 35)), [[30, 35]]) == (found.sequences, found.told)
    assert found.appended is not None
    assert found.appended >= 35
    assert "message 30 " in found.warnings[0]


def test_state_x_all_segments_missing_is_told(log):
    """What is left is what the queue knows of itself."""
    for path in segments(log):
        path.unlink()
    found = found_in(log)

    assert [] == found.sequences
    assert found.appended is not None
    assert found.appended >= 35


def test_state_x_a_segment_that_retention_dropped_is_not_missing(log):
    """Metadata says from which segment on all must be there."""
    text = (log / "metadata.json").read_text()
    log_with(log, then=lambda queue: queue.compact(RetentionPolicy(segments=2)))
    found = found_in(log)

    assert text != (log / "metadata.json").read_text()
    assert ([], []) == (found.told, found.faults)


@pytest.mark.parametrize("place", ["magic", "salt", "first check", "base", "second check"])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_state_y_a_damaged_header_is_told(log, which, place):
    """All messages of the segment are out of reach, and no others."""
    flip(segments(log)[which], HEADER_PLACES[place], 1)
    found = found_in(log)
    lost = (which * 10, which * 10 + 10)

    assert (without(lost), [], [list(lost)]) == (found.sequences, found.wrong, found.told)
    assert 1 == len(found.faults)
    assert found.appended is not None
    assert found.appended >= 35


@pytest.mark.parametrize("place", HEADER_PLACES)
@pytest.mark.parametrize("read_only", [False, True])
def test_state_y_a_damaged_header_of_the_newest_segment_is_told(log, place, read_only):
    """The log goes on beyond what it can have held."""
    flip(segments(log)[3], HEADER_PLACES[place], 1)
    found = found_in(log, read_only=read_only)

    assert (without((30, 35)), []) == (found.sequences, found.wrong)
    assert [30] == [told[0] for told in found.told]
    assert 1 == len(found.faults)
    assert read_only or (found.appended or 0) >= 35


def test_state_y_a_segment_of_another_place_is_told(log):
    """A whole file under the name of another is not what belongs there."""
    write(segments(log)[1], 0, segments(log)[2].read_bytes())
    found = found_in(log)

    assert (without((10, 20)), [], [[10, 20]]) == (found.sequences, found.wrong, found.told)


@pytest.mark.parametrize("which", [0, 1, 2, 3])
def test_state_y_a_segment_of_another_queue_is_told(log, which, memory_path):
    """The queue once took over the other one's identity, and with it its messages."""
    other = memory_path / "other"
    log_with(other, sealed(12), sealed(12), sealed(12), active(12), closed=True)
    write(segments(log)[which], 0, segments(other)[which].read_bytes())
    found = found_in(log)
    lost = (which * 10, 35 if which == 3 else which * 10 + 10)

    assert (without(lost), [lost[0]]) == (found.sequences, [told[0] for told in found.told])
    assert found.appended is not None
    assert found.appended >= 35


def test_state_y_the_same_segment_under_two_names_is_read_once(log):
    """Its number is in its header."""
    path = segments(log)[1]
    path.with_name(path.name.replace("0002", "0009")).write_bytes(path.read_bytes())
    found = found_in(log)

    assert ([], sorted(set(found.sequences))) == (found.wrong, found.sequences)
    assert found.appended is not None
    assert found.appended >= 35


def cut_to(path: Path, size: int) -> None:
    """Shorten a file."""
    path.write_bytes(path.read_bytes()[:size])


@pytest.mark.parametrize("size", [0, 100, 512, 4095])
def test_state_z_a_sealed_segment_without_a_header_is_told(log, size):
    """As a damaged header is."""
    cut_to(segments(log)[1], size)
    found = found_in(log)

    assert (without((10, 20)), [], [[10, 20]]) == (found.sequences, found.wrong, found.told)


@pytest.mark.parametrize("size", [4096, 4104, 4120, 4200, 4400])
@pytest.mark.parametrize("which", [0, 2])
def test_state_z_a_sealed_segment_that_was_cut_is_told(log, which, size):
    """What is left of it is read; verifying once died by SIGBUS."""
    path = segments(log)[which]
    base, places = which * 10, positions(path)
    kept = sum(place <= size for place in places) - 1
    cut_to(path, size)
    found = found_in(log)
    lost = (base + kept, base + 10)

    assert (without(lost), [], [list(lost)]) == (found.sequences, found.wrong, found.told)
    assert 1 == len(found.faults)
    assert 35 == found.appended


def test_state_z_a_sealed_segment_without_its_seal_is_whole(log):
    """The next segment's header says the same."""
    path = segments(log)[1]
    cut_to(path, positions(path)[-1])
    found = found_in(log)

    assert (without(), []) == (found.sequences, found.told)


@pytest.mark.parametrize("more", [bytes(8), bytes(5000), bytes(range(1, 200)), b"\1" * 70000])
def test_state_z_bytes_behind_a_seal_do_not_count(log, more):
    """Whatever they are."""
    path = segments(log)[1]
    path.write_bytes(path.read_bytes() + more)
    found = found_in(log)

    assert (without(), [], 35) == (found.sequences, found.told, found.appended)


def test_state_z_messages_behind_a_seal_do_not_count(log):
    """True ones neither: they were not there when the segment was sealed."""
    path = segments(log)[1]
    places = positions(path)
    content = path.read_bytes()
    path.write_bytes(content + content[places[3] : places[7]])
    found = found_in(log)

    assert (without(), [], [1, 2, 3, 4]) == (found.sequences, found.told, numbers(log)[:4])


@pytest.mark.parametrize("size", [4096, 4104, 4300, 8191])
def test_state_z_an_active_segment_that_was_cut_is_told(log, size):
    """It was closed in order, so it is no tear, and no sequence comes again."""
    path = segments(log)[3]
    kept = sum(place <= size for place in positions(path)) - 1
    cut_to(path, size)
    found = found_in(log)
    lost = (30 + kept, 35)

    assert (without(lost), []) == (found.sequences, found.wrong)
    assert [list(lost)] * (kept < 5) == found.told
    assert found.appended is not None
    assert found.appended >= 35


@pytest.mark.parametrize("size", [4096, 4104, 4300])
def test_state_z_who_only_reads_an_active_segment_that_was_cut_is_told(log, size):
    """The process once died by SIGBUS here."""
    path = segments(log)[3]
    kept = sum(place <= size for place in positions(path)) - 1
    cut_to(path, size)
    found = found_in(log, read_only=True)

    assert (without((30 + kept, 35)), []) == (found.sequences, found.wrong)
