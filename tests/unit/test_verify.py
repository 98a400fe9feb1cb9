"""Verifying: everything that is not as it was written is told, and nothing is changed."""

import threading
from pathlib import Path

import pytest

import penstock
from penstock import RollStrategy
from penstock.errors import CorruptionError, QueueClosedError
from penstock.kernel import LAYOUT
from tests.unit.looking import HEADER_BYTES, SEAL_BYTES, data_files, flip, sequences, tree

COUNT = 20
PER_SEGMENT = 4


def payload_of(number: int) -> bytes:
    """Make a payload that stands nowhere else in a file."""
    return b"payload-%02d" % number


@pytest.fixture
def written(open_queue, queue_path):
    """Write twenty messages into five segments, and leave them closed."""
    with open_queue(roll=RollStrategy.by_count(PER_SEGMENT), index_every=1) as queue:
        for number in range(COUNT):
            queue.append(payload_of(number), key=b"key-%02d" % number)
    return queue_path


def flip_in_frame(path: Path, needle: bytes, distance: int = 0) -> Path:
    """Damage a byte so far from the one place where these bytes stand."""
    for file in data_files(path):
        at = file.read_bytes().find(needle)
        if at >= 0:
            flip(file, at + distance)
            return file
    pytest.fail(f"{needle!r} is nowhere")


def flip_in_header(path: Path, name: str) -> Path:
    """Damage a word in the header of the third segment."""
    file = data_files(path)[2]
    flip(file, LAYOUT[f"SEGMENT_{name}_AT"])
    return file


def flip_in_seal(path: Path) -> Path:
    """Damage the seal of the third segment: its last bytes but the check."""
    file = data_files(path)[2]
    flip(file, len(file.read_bytes().rstrip(b"\0")) - 12)
    return file


def cut(path: Path, size: int) -> Path:
    """Cut bytes from the end of the third segment."""
    file = data_files(path)[2]
    content = file.read_bytes().rstrip(b"\0")
    file.write_bytes(content[:-size])
    return file


def put_elsewhere(path: Path) -> Path:
    """Put the frame of one message in the place of another: both are true, one is misplaced."""
    file = data_files(path)[2]
    content = bytearray(file.read_bytes())
    one, other = (content.find(payload_of(number)) for number in (9, 10))
    size = other - one
    content[other : other + size] = content[one : one + size]
    file.write_bytes(content)
    return file


def remove(path: Path) -> Path:
    """Delete the third segment."""
    file, following = data_files(path)[2:4]
    file.unlink()
    return following


def exchange(path: Path) -> Path:
    """Put another segment under the name of the third."""
    other, file = data_files(path)[1:3]
    file.write_bytes(other.read_bytes())
    return file


# How each damages the third segment, and the message that is named.
DAMAGES = {
    "payload": (lambda path: flip_in_frame(path, payload_of(9)), 9),
    "key": (lambda path: flip_in_frame(path, b"key-09"), 9),
    "tag": (lambda path: flip_in_frame(path, b"key-09", -4), 9),
    "timestamp": (lambda path: flip_in_frame(path, b"key-09", -12), 9),
    "length": (lambda path: flip_in_frame(path, b"key-09", -20), 9),
    "kind": (lambda path: flip_in_frame(path, b"key-09", -16), 9),
    "flags": (lambda path: flip_in_frame(path, b"key-09", -15), 9),
    "check": (lambda path: flip_in_frame(path, payload_of(9), 18), 9),
    "misplaced": (put_elsewhere, 10),
    "magic": (lambda path: flip_in_header(path, "MAGIC"), None),
    "salt": (lambda path: flip_in_header(path, "SALT"), None),
    "base": (lambda path: flip_in_header(path, "BASE_SEQUENCE"), None),
    "begun": (lambda path: flip_in_header(path, "BEGUN"), None),
    "seal": (flip_in_seal, None),
    "cut_in_seal": (lambda path: cut(path, 8), None),
    "cut_in_frame": (lambda path: cut(path, SEAL_BYTES + 8), 11),
    "missing": (remove, None),
    "exchanged": (exchange, None),
}


def test_a_good_queue_has_no_faults(written):
    """Everything there is was read."""
    with penstock.open(written, read_only=True) as queue:
        report = queue.verify()

    assert (True, (), 5, COUNT, 0) == (
        report.ok,
        report.faults,
        report.segments,
        report.messages,
        report.unindexed,
    )


def test_the_bytes_that_were_read_are_told(written):
    """Headers and frames, of every segment."""
    with penstock.open(written, read_only=True) as queue:
        read = queue.verify().bytes
    used = sum(len(file.read_bytes().rstrip(b"\0")) for file in data_files(written))

    # Seals are read too, but are no messages; the active segment has none.
    assert used - 4 * SEAL_BYTES <= read <= used + 8


def test_an_empty_queue_has_no_faults(queue):
    """There is one segment, and nothing in it."""
    report = queue.verify()

    assert (True, 1, 0, HEADER_BYTES) == (
        report.ok,
        report.segments,
        report.messages,
        report.bytes,
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found(written, damage):
    """The fault names the file, the message if one is known, and why."""
    do, sequence = DAMAGES[damage]
    file = do(written)
    with penstock.open(written, read_only=True) as queue:
        faults = queue.verify().faults
    fault = faults[0]
    assert isinstance(fault, CorruptionError)

    assert (1, file, sequence, True) == (
        len(faults),
        fault.path,
        fault.sequence,
        bool(fault.reason),
    )


def test_damage_of_the_active_segment_is_found(open_queue, queue_path):
    """While it is written to."""
    queue = open_queue()
    for number in range(5):
        queue.append(payload_of(number))
    flip_in_frame(queue_path, payload_of(2))

    assert [2] == [vars(fault)["sequence"] for fault in queue.verify().faults]


def test_every_damage_is_found(written):
    """Each fault says which message is the next good one; neighbours are one damage."""
    for number in (1, 5, 6, 18):
        flip_in_frame(written, payload_of(number))
    with penstock.open(written, read_only=True) as queue:
        faults = queue.verify().faults
    stretches = [
        (fault.sequence, fault.next_sequence)
        for fault in faults
        if isinstance(fault, CorruptionError)
    ]

    assert (3, [(1, 2), (5, 7), (18, 19)]) == (len(faults), stretches)


def test_an_index_is_no_message(written):
    """Without it nothing is lost, so it is told apart from the faults."""
    wrong, missing = sorted(written.rglob("*.index"))[:2]
    flip(wrong, LAYOUT["INDEX_HEADER_BYTES"] + LAYOUT["INDEX_ENTRY_BYTES"])
    missing.unlink()
    with penstock.open(written, read_only=True) as queue:
        report = queue.verify()

    assert (True, 2) == (report.ok, report.unindexed)


def test_progress_is_told_segment_by_segment(written):
    """How many are done, and how many there are."""
    told = []
    with penstock.open(written, read_only=True) as queue:
        queue.verify(lambda done, count: told.append((done, count)))

    assert [(done, 5) for done in range(1, 6)] == told


def test_an_error_of_progress_comes_through(written):
    """That is how a caller ends it early."""

    def stop(_done: int, _count: int) -> None:
        raise InterruptedError

    with penstock.open(written, read_only=True) as queue, pytest.raises(InterruptedError):
        queue.verify(stop)


@pytest.mark.parametrize("damage", ["payload", "magic", "seal", "cut_in_frame"])
def test_verifying_changes_nothing(written, damage):
    """Damage is told, and left as it was found."""
    DAMAGES[damage][0](written)
    before = tree(written)
    with penstock.open(written, read_only=True) as queue:
        queue.verify()

    assert before == tree(written)


def test_verifying_goes_on_beside_appends(open_queue):
    """What is appended meanwhile is never taken for damage."""
    queue = open_queue(roll=RollStrategy.by_count(10))
    is_over = threading.Event()

    def work() -> None:
        while not is_over.is_set():
            queue.append_many([b"x" * 100] * 3)

    thread = threading.Thread(target=work)
    thread.start()
    reports = [queue.verify() for _ in range(10)]
    is_over.set()
    thread.join()

    assert [()] * 10 == [report.faults for report in reports]


def test_opening_may_verify(written):
    """A good queue is opened as ever."""
    with penstock.open(written, verify=True) as queue:
        assert list(range(COUNT)) == sequences(queue.tailer())


@pytest.mark.parametrize("damage", ["payload", "magic", "seal", "missing", "exchanged"])
def test_opening_may_refuse_damage(written, damage):
    """The first fault is raised, and the queue is closed again."""
    file = DAMAGES[damage][0](written)
    with pytest.raises(CorruptionError) as error:
        penstock.open(written, verify=True)
    penstock.open(written, exclusive=True).close()

    assert file == error.value.path


def test_a_closed_queue_cannot_be_verified(queue):
    """It is an error, not a good report."""
    queue.close()
    with pytest.raises(QueueClosedError):
        queue.verify()
