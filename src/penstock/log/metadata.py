"""metadata.json: who a queue is, and the settings it was created with."""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from penstock.errors import FormatVersionError, MetadataError
from penstock.kernel import LAYOUT
from penstock.log import directory
from penstock.options import RollStrategy

CHECKSUMS = {
    "xxh3": LAYOUT["CHECKSUM_XXH3"],
    "crc64-nvme": LAYOUT["CHECKSUM_CRC64_NVME"],
}
SEGMENT_BYTES_MIN = LAYOUT["SEGMENT_BYTES_MIN"]
SEGMENT_BYTES_MAX = LAYOUT["SEGMENT_BYTES_MAX"]
# A file someone else put there must not fill the memory.
METADATA_BYTES_MAX = 1 << 16
QUEUE_ID_BYTES = 16


@dataclass(frozen=True)
class Settings:
    """What the segments of a queue are made with."""

    segment_bytes: int
    index_every: int
    roll: RollStrategy
    checksum: str

    def __post_init__(self) -> None:
        for name, value in (
            ("segment_bytes", self.segment_bytes),
            ("index_every", self.index_every),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} is an int, not {value!r}")
        if not isinstance(self.roll, RollStrategy):
            raise TypeError(f"roll is a RollStrategy, not {self.roll!r}")
        if self.checksum not in CHECKSUMS:
            raise ValueError(f"checksum is one of {', '.join(CHECKSUMS)}, not {self.checksum!r}")
        if not SEGMENT_BYTES_MIN <= self.segment_bytes <= SEGMENT_BYTES_MAX:
            raise ValueError(
                f"segment_bytes is from {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX}, "
                f"not {self.segment_bytes}"
            )
        if not 1 <= self.index_every < 1 << 32:
            raise ValueError(f"index_every is at least 1, not {self.index_every}")


DEFAULTS = Settings(1 << 30, 1024, RollStrategy(), "xxh3")


@dataclass(frozen=True)
class Metadata:
    """A queue's identity, and its settings where an open does not say otherwise."""

    queue_id: bytes
    created_at: str
    first_number: int
    """Segments with a lower number were dropped by retention; any other must be there."""
    settings: Settings


def create(settings: Settings) -> Metadata:
    """Make the facts of a new queue."""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    return Metadata(os.urandom(QUEUE_ID_BYTES), now, 1, settings)


def write(root: Path, metadata: Metadata) -> None:
    """Put metadata.json in place, whole."""
    settings = metadata.settings
    roll = settings.roll
    interval_us = None if roll.interval is None else roll.interval // timedelta(microseconds=1)
    facts = {
        "format_version": LAYOUT["FORMAT_VERSION"],
        "queue_id": metadata.queue_id.hex(),
        "created_at": metadata.created_at,
        "first_number": metadata.first_number,
        "checksum": settings.checksum,
        "segment_bytes": settings.segment_bytes,
        "index_every": settings.index_every,
        "roll": {"bytes": roll.bytes_max, "interval_us": interval_us, "count": roll.count_max},
    }
    whole = facts | {"check": _check(facts)}
    directory.replace(root / directory.METADATA, json.dumps(whole, indent=2).encode() + b"\n")


def _check(facts: dict[str, Any]) -> str:
    """CRC-32 of all facts, sorted and without spaces: a flipped bit must not pass for a setting."""
    others = {name: fact for name, fact in facts.items() if name != "check"}
    text = json.dumps(others, sort_keys=True, separators=(",", ":"))
    return f"{zlib.crc32(text.encode()):08x}"


def read(root: Path) -> Metadata | None:
    """Read metadata.json; None when there is none."""
    path = root / directory.METADATA
    try:
        with path.open("rb") as file:
            content = file.read(METADATA_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    if len(content) > METADATA_BYTES_MAX:
        raise MetadataError(path, f"it is larger than {METADATA_BYTES_MAX} bytes")
    try:
        facts = json.loads(content)
        version = facts["format_version"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MetadataError(path, f"{type(error).__name__}: {error}") from error
    if version != LAYOUT["FORMAT_VERSION"]:
        raise FormatVersionError(path, version, LAYOUT["FORMAT_VERSION"])
    if facts.get("check") != _check(facts):
        raise MetadataError(path, "its check does not match")
    try:
        return _of(facts)
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise MetadataError(path, f"{type(error).__name__}: {error}") from error


def _of(facts: dict[str, Any]) -> Metadata:
    roll, interval_us = facts["roll"], facts["roll"]["interval_us"]
    interval = None if interval_us is None else timedelta(microseconds=interval_us)
    queue_id = bytes.fromhex(facts["queue_id"])
    first_number = facts["first_number"]
    if len(queue_id) != QUEUE_ID_BYTES or not isinstance(first_number, int) or first_number < 1:
        raise ValueError("a fact is not of its form")
    return Metadata(
        queue_id,
        str(facts["created_at"]),
        first_number,
        Settings(
            facts["segment_bytes"],
            facts["index_every"],
            RollStrategy(roll["bytes"], interval, roll["count"]),
            facts["checksum"],
        ),
    )
