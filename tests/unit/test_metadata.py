"""metadata.json: what it says, and what is refused of it."""

import json
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import RollStrategy
from penstock.errors import FormatVersionError, MetadataError
from penstock.kernel import LAYOUT
from penstock.log import directory
from penstock.log import metadata as metadata_file
from penstock.log.metadata import METADATA_BYTES_MAX, Metadata, Settings

DEFAULTS = Settings(1 << 20, 16, RollStrategy(), "xxh3")

ROLLS = st.builds(
    RollStrategy,
    bytes_max=st.none() | st.integers(1, 1 << 50),
    interval=st.none() | st.timedeltas(min_value=timedelta(microseconds=1)),
    count_max=st.none() | st.integers(1, 1 << 50),
)
SETTINGS = st.builds(
    Settings,
    segment_bytes=st.integers(LAYOUT["SEGMENT_BYTES_MIN"], LAYOUT["SEGMENT_BYTES_MAX"]),
    index_every=st.integers(1, (1 << 32) - 1),
    roll=ROLLS,
    checksum=st.sampled_from(["xxh3", "crc64-nvme"]),
)


@given(queue_id=st.binary(min_size=16, max_size=16), number=st.integers(1, 1 << 40), made=SETTINGS)
@settings(
    max_examples=30,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_what_is_written_is_read(tmp_path, queue_id, number, made):
    """Every setting there can be."""
    metadata = Metadata(queue_id, "2026-01-15T00:00:00+00:00", number, made)
    metadata_file.write(tmp_path, metadata)

    assert metadata == metadata_file.read(tmp_path)


def test_a_folder_without_it_has_none(tmp_path):
    """It is not an error yet."""
    assert metadata_file.read(tmp_path) is None


def test_every_queue_has_an_identity_of_its_own():
    """A segment of one is never taken for another's."""
    assert 100 == len({metadata_file.create(DEFAULTS).queue_id for _ in range(100)})


def test_it_is_json_that_a_person_can_read(open_queue, queue_path):
    """Its facts are the settings the queue was created with."""
    roll = RollStrategy.any_of(RollStrategy.by_count(5), RollStrategy.by_time(timedelta(hours=1)))
    open_queue(segment_bytes=1 << 17, index_every=7, checksum="crc64-nvme", roll=roll)
    facts = json.loads((queue_path / "metadata.json").read_text(encoding="utf-8"))
    made = datetime.fromisoformat(facts["created_at"])

    assert (
        {
            "format_version": LAYOUT["FORMAT_VERSION"],
            "first_number": 1,
            "checksum": "crc64-nvme",
            "segment_bytes": 1 << 17,
            "index_every": 7,
            "roll": {"bytes": None, "interval_us": 3_600_000_000, "count": 5},
        },
        32,
        timezone.utc,
    ) == (
        {name: facts[name] for name in facts if name not in {"queue_id", "created_at", "check"}},
        len(facts["queue_id"]),
        made.tzinfo,
    )


def test_it_is_replaced_and_never_written_over(tmp_path):
    """Whoever has it open reads the old one to its end; no leftover stays."""
    metadata_file.write(tmp_path, metadata_file.create(DEFAULTS))
    path = tmp_path / directory.METADATA
    content = path.read_bytes()
    with path.open("rb") as opened:
        metadata_file.write(tmp_path, metadata_file.create(DEFAULTS))
        kept = opened.read()

    assert (content, [path]) == (kept, list(tmp_path.iterdir()))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"5", b"null", b'"text"', b"{}", b"\xff\xfe", b"[" * 30_000],
    ids=["empty", "half", "list", "number", "null", "text", "no_facts", "not_utf8", "deep"],
)
def test_what_is_no_metadata_is_refused(tmp_path, content):
    """The error names the file, and says to bring it back."""
    path = tmp_path / directory.METADATA
    path.write_bytes(content)
    with pytest.raises(MetadataError, match="bring it back from a backup") as error:
        metadata_file.read(tmp_path)

    assert path == error.value.path


def test_a_file_that_fills_the_memory_is_refused(tmp_path):
    """Before more of it is read than metadata can have."""
    (tmp_path / directory.METADATA).write_bytes(b" " * (METADATA_BYTES_MAX + 1))
    with pytest.raises(MetadataError, match="it is larger than"):
        metadata_file.read(tmp_path)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("queue_id", "00"),
        ("queue_id", 5),
        ("first_number", 0),
        ("first_number", "1"),
        ("segment_bytes", 1),
        ("segment_bytes", 65536.0),
        ("index_every", 0),
        ("checksum", "md5"),
        ("roll", None),
        ("roll", {"bytes": 0, "interval_us": None, "count": None}),
        ("roll", {"bytes": None, "interval_us": 1 << 80, "count": None}),
    ],
)
def test_a_fact_that_cannot_be_is_refused(tmp_path, name, fact):
    """Even if its check is right, as a program of another kind may have written it."""
    metadata_file.write(tmp_path, metadata_file.create(DEFAULTS))
    path = tmp_path / directory.METADATA
    facts = json.loads(path.read_bytes()) | {name: fact}
    if "check" in facts:
        facts["check"] = metadata_file._check(facts)
    path.write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(MetadataError):
        metadata_file.read(tmp_path)


@pytest.mark.parametrize("version", [0, 2, "1", None, 1.5])
def test_another_version_is_refused_by_its_name(tmp_path, version):
    """Nothing else in the file is believed."""
    path = tmp_path / directory.METADATA
    path.write_text(json.dumps({"format_version": version}), encoding="utf-8")
    with pytest.raises(FormatVersionError) as error:
        metadata_file.read(tmp_path)

    assert (path, version, LAYOUT["FORMAT_VERSION"]) == (
        error.value.path,
        error.value.got,
        error.value.known,
    )


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"segment_bytes": LAYOUT["SEGMENT_BYTES_MIN"] - 1}, ValueError),
        ({"segment_bytes": LAYOUT["SEGMENT_BYTES_MAX"] + 1}, ValueError),
        ({"segment_bytes": 65536.0}, TypeError),
        ({"segment_bytes": True}, TypeError),
        ({"index_every": 0}, ValueError),
        ({"index_every": 1 << 32}, ValueError),
        ({"index_every": "1"}, TypeError),
        ({"roll": 1 << 20}, TypeError),
        ({"checksum": "md5"}, ValueError),
        ({"checksum": ""}, ValueError),
    ],
)
def test_settings_that_cannot_be_are_refused(wrong, kind):
    """The sentence names the setting."""
    facts = {"segment_bytes": 1 << 20, "index_every": 16, "roll": RollStrategy()}
    with pytest.raises(kind, match=next(iter(wrong))):
        Settings(**{**facts, "checksum": "xxh3", **wrong})
