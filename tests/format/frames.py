"""One segment file as docs/format.md has it: its header, its frames and what they say."""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.format.checksums import CHECKSUMS

MESSAGE, SEAL, MORE, CRITICAL = 1, 2, 1, 0x8000
KEY, HEADER, EXPIRES_AT, DELIVER_AT, PRIORITY, DURABLE = 1, 2, 3, 4, 5, 9


class Message(NamedTuple):
    """What a message's frame says."""

    sequence: int
    timestamp_ns: int
    key: bytes | None
    headers: dict[str, str]
    priority: int
    expires_at_ns: int | None
    deliver_at_ns: int | None
    payload: bytes


class Frame(NamedTuple):
    """What may be a frame, and the ordinal at which it is a true one."""

    ordinal: int
    kind: int
    flags: int
    timestamp: int
    attributes: bytes
    payload: bytes
    check: int
    end: int


class DamageError(Exception):
    """The files are not as the page says."""


def require(is_true: bool, *what: object) -> None:
    """Tell what is not as the page says."""
    if not is_true:
        raise DamageError(*what)


class Segment:
    """One file of messages, its header checked."""

    def __init__(self, path: Path, queue_id: bytes) -> None:
        self.path, self.content = path, path.read_bytes()
        require(len(self.content) >= 4096, path, "it has no header")
        magic, version, kind, queue, self.salt, capacity = self.read("<8sII16sQQ", 0)
        require((magic, version, queue) == (b"PENSTOCK", 1, queue_id), path, "it is another's")
        require(kind in CHECKSUMS, path, "its kind of checksum", kind)
        self.checksum = CHECKSUMS[kind]
        for begin, check_at in ((0, 504), (512, 1016)):
            check = self.checksum(self.content[begin:check_at])
            require(self.read("<Q", check_at) == (check,), path, "damaged header", begin)
        self.number, self.base, self.begun_at = self.read("<QQq", 512)
        self.previous = self.read("<QQQQ", 544)
        require(path.stem.endswith(f"-{self.number:04}"), path, "its name is another's")
        self.limit = min(capacity, len(self.content))

    def read(self, form: str, at: int) -> tuple[Any, ...]:
        """Read some numbers of the file."""
        return struct.unpack_from(form, self.content, at)

    def frame(self, at: int) -> Frame | None:
        """Read what may be a frame: it is true if its ordinal is the one that is due."""
        if at + 24 > self.limit:
            return None
        length, kind, flags, attributes, timestamp = self.read("<IBBHq", at)
        if not 16 + attributes <= length <= 16 + 65535 + 268435456 or kind not in (MESSAGE, SEAL):
            return None
        check_at = at + (length + 7) // 8 * 8
        if check_at + 8 > self.limit:
            return None
        (check,) = self.read("<Q", check_at)
        ordinal = ((self.checksum(self.content[at:check_at]) ^ check) - self.salt) % (1 << 64)
        parted = at + 16 + attributes
        said, payload = self.content[at + 16 : parted], self.content[parted : at + length]
        return Frame(ordinal, kind, flags, timestamp, said, payload, check, check_at + 8)

    def behind(self, at: int, ordinal: int) -> Iterator[Frame]:
        """Find true frames behind bytes that are none."""
        place = at + 8
        while place + 24 <= self.limit:
            frame = self.frame(place)
            if frame and 0 <= frame.ordinal - ordinal <= max(1, (place - at) // 24):
                yield frame
                at, place, ordinal = frame.end - 8, frame.end - 8, frame.ordinal + 1
            place += 8


def attributes_of(frame: Frame) -> Iterator[tuple[int, bytes]]:
    """Part the attributes into tags and values."""
    said = frame.attributes
    while len(said) >= 4:
        tag, length = struct.unpack_from("<HH", said)
        if 4 + length > len(said):
            return
        yield tag, said[4 : 4 + length]
        said = said[4 + length :]


def durable_of(frame: Frame) -> int:
    """Read below which sequence every message was durable."""
    return int.from_bytes(dict(attributes_of(frame)).get(DURABLE, b""), "little")


def message_of(sequence: int, frame: Frame) -> Message:
    """Read the attributes of a message."""
    values: dict[int, bytes] = {}
    headers: dict[str, str] = {}
    for tag, value in attributes_of(frame):
        require(not tag & CRITICAL, sequence, "needs a reader that knows the tag", tag)
        if tag == HEADER:
            name_end = 2 + int.from_bytes(value[:2], "little")
            headers[value[2:name_end].decode()] = value[name_end:].decode()
        values.setdefault(tag, value)
    expires_at, deliver_at = (
        int.from_bytes(values[tag], "little", signed=True) if tag in values else None
        for tag in (EXPIRES_AT, DELIVER_AT)
    )
    priority = values.get(PRIORITY, b"\1")[0]
    key, priority = values.get(KEY), priority if priority <= 2 else 1
    times = (expires_at, deliver_at)
    return Message(sequence, frame.timestamp, key, headers, priority, *times, frame.payload)
