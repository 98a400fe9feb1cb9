"""States U to W of docs/durability.md: an index, the metadata or a version is not as it was."""

import json
import zlib
from pathlib import Path

import pytest

import penstock
from penstock.errors import FormatVersionError
from penstock.kernel import LAYOUT
from tests.crash.damages import DAMAGES, cut, missing, of_zeros, zero_length
from tests.crash.editing import fill_with_garbage, numbers, segments, store, write
from tests.crash.processes import in_child
from tests.crash.states import active, found_in, log_with, opened, payload, sealed


def wrong_entries(path: Path) -> None:
    """Let each entry name the place of another message."""
    content = path.read_bytes()
    step = LAYOUT["INDEX_ENTRY_BYTES"]
    entries = [content[at : at + step] for at in range(LAYOUT["INDEX_HEADER_BYTES"], 1000, step)]
    write(path, LAYOUT["INDEX_HEADER_BYTES"], b"".join(reversed(entries)))


def sought(queue: penstock.Queue) -> list[bytes]:
    """Seek each message from another one, and read it."""
    tailer = queue.tailer()
    found = []
    for sequence in reversed(range(queue.next_sequence)):
        tailer.seek(sequence=sequence)
        message = tailer.read()
        found.append(b"" if message is None else message.payload)
    return found[::-1]


@pytest.mark.parametrize("boots", ["same boot", "other boot"])
@pytest.mark.parametrize("damage", [*DAMAGES, wrong_entries])
def test_state_u_a_wrong_index_misleads_nobody(queue_path, damage, boots, reboot):
    """An entry counts only if a true message stands where it says."""
    log_with(queue_path, sealed(60), active(40), index_every=4, closed=True)
    for path in segments(queue_path):
        damage(path.with_suffix(".index"))
    if boots == "other boot":
        reboot()
    found: list[list[bytes]] = []

    def work() -> None:
        with opened(queue_path) as queue:
            found.append(sought(queue))
            assert found[0] == [payload(sequence) for sequence in range(100)]
            assert queue.append(payload(100)) == 100

    assert 0 == in_child(work)


@pytest.mark.parametrize("damage", [missing, of_zeros, wrong_entries])
def test_state_u_a_wrong_index_is_told_by_verifying(queue_path, damage):
    """It is no damage to any message, but it costs time."""
    log_with(queue_path, sealed(60), active(40), index_every=4, closed=True)
    damage(segments(queue_path)[0].with_suffix(".index"))

    def work() -> None:
        report = opened(queue_path, read_only=True).verify()
        assert report.ok
        assert report.unindexed == 1

    assert 0 == in_child(work)


class Changed:
    """Replaces some facts of the metadata, as somebody would who knows its check."""

    def __init__(self, **facts: object) -> None:
        self._facts = facts
        self.__name__ = "_".join(f"{name}_{value}" for name, value in facts.items())

    def __call__(self, path: Path) -> None:
        facts = json.loads(path.read_text()) | self._facts
        del facts["check"]
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
        path.write_text(json.dumps(facts | {"check": f"{zlib.crc32(text.encode()):08x}"}))


def larger_than_any(path: Path) -> None:
    """Put more spaces behind it than anybody needs."""
    path.write_bytes(path.read_bytes() + b" " * (1 << 16))


def deeply_nested(path: Path) -> None:
    """Ask a parser for more than it can."""
    path.write_bytes(b"[" * 60000)


BROKEN_METADATA = [
    *(missing, cut, zero_length, of_zeros, fill_with_garbage, larger_than_any, deeply_nested),
    Changed(queue_id="0" * 32),
    Changed(queue_id="zz"),
    Changed(queue_id=None),
    Changed(first_number=0),
    Changed(first_number="1"),
    Changed(segment_bytes=0),
    Changed(segment_bytes="many"),
    Changed(segment_bytes=1 << 70),
    Changed(index_every=0),
    Changed(index_every=1.5),
    Changed(checksum="md5"),
    Changed(roll=None),
    Changed(roll={"bytes": -1, "interval_us": None, "count": None}),
    Changed(roll={"bytes": None, "interval_us": 1 << 80, "count": None}),
]


@pytest.mark.parametrize("damage", BROKEN_METADATA)
def test_state_v_broken_metadata_is_made_anew_from_the_segments(queue_path, left, damage):
    """The queue's identity stands in each of them."""
    left(queue_path)
    expected = json.loads((queue_path / "metadata.json").read_text())["queue_id"]
    damage(queue_path / "metadata.json")
    found = found_in(queue_path)

    assert (None, list(range(15)), []) == (found.error, found.sequences, found.told)
    assert found.appended is not None
    assert found.appended >= 15
    assert expected == json.loads((queue_path / "metadata.json").read_text())["queue_id"]


@pytest.mark.parametrize("damage", [cut, Changed(queue_id="0" * 32)])
def test_state_v_broken_metadata_is_kept(queue_path, left, damage):
    """Somebody may want to look at it."""
    left(queue_path)
    damage(queue_path / "metadata.json")
    broken = (queue_path / "metadata.json").read_bytes()
    found_in(queue_path)

    assert broken == (queue_path / "metadata.json.broken").read_bytes()


@pytest.mark.parametrize("damage", [missing, cut])
def test_state_v_who_only_reads_reads_without_metadata(queue_path, left, damage):
    """And leaves it as it is."""
    left(queue_path)
    damage(queue_path / "metadata.json")
    found = found_in(queue_path, read_only=True)

    assert (list(range(15)), []) == (found.sequences, found.told)
    assert not (queue_path / "metadata.json.broken").exists()


def test_state_v_broken_metadata_without_segments_is_made_anew(queue_path):
    """There is no message that it could be about."""
    queue_path.mkdir()
    (queue_path / "metadata.json").write_text("{")
    found = found_in(queue_path)

    assert ([], 0) == (found.sequences, found.appended)
    assert "{" == (queue_path / "metadata.json.broken").read_text()


def test_state_v_broken_metadata_with_damaged_segments_is_an_error(queue_path, left):
    """Nothing in the folder tells whose they are, and nothing is guessed."""
    left(queue_path)
    cut(queue_path / "metadata.json")
    for path in segments(queue_path):
        store(path, LAYOUT["SEGMENT_PREPARED_CHECK_AT"], 0)
    before = {path: path.read_bytes() for path in segments(queue_path)}

    assert "MetadataError" == str(found_in(queue_path).error).partition(":")[0]
    assert before == {path: path.read_bytes() for path in segments(queue_path)}


@pytest.mark.parametrize("version", [0, 2, 99, "two", None])
@pytest.mark.parametrize("read_only", [False, True])
def test_state_w_metadata_of_another_version_is_refused(queue_path, left, version, read_only):
    """Whatever that version means by it, nothing is changed."""
    left(queue_path)
    Changed(format_version=version)(queue_path / "metadata.json")
    before = [path.read_bytes() for path in segments(queue_path)]
    error = str(found_in(queue_path, read_only=read_only).error)

    assert f"says format {version}, and this Penstock knows 1" in error
    assert before == [path.read_bytes() for path in segments(queue_path)]


@pytest.mark.parametrize("which", [0, 1])
def test_state_w_a_segment_of_another_version_is_refused_by_name(queue_path, which):
    """Its messages may be whole, so they are called neither damaged nor missing."""
    log_with(queue_path, sealed(10), sealed(10), active(5), closed=True)
    store(segments(queue_path)[which], LAYOUT["SEGMENT_VERSION_AT"], 2, 4)

    def work() -> None:
        with opened(queue_path) as queue:
            read, error = [], None
            try:
                read += [message.sequence for message in queue.tailer(which * 10 - 1 + (not which))]
            except FormatVersionError as refused:
                error = refused
            assert error is not None
            assert (error.got, error.known) == (2, 1)

    assert 0 == in_child(work)


def test_state_w_a_newest_segment_of_another_version_is_not_appended_to(queue_path):
    """A newer Penstock will read it, behind whatever is appended now."""
    log_with(queue_path, sealed(10), active(5), closed=True)
    store(segments(queue_path)[1], LAYOUT["SEGMENT_VERSION_AT"], 2, 4)
    before = segments(queue_path)[1].read_bytes()

    def work() -> None:
        try:
            queue = opened(queue_path)
        except FormatVersionError:
            return
        assert queue.append(b"") >= 15

    assert 0 == in_child(work)
    assert before == segments(queue_path)[1].read_bytes()
    assert [1, 2] == numbers(queue_path)[:2]
