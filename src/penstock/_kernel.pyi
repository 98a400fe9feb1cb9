"""The compiled kernel as type checkers see it: what users call, and what the package builds on."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import Final, Literal, Protocol, TypeVar, final

from typing_extensions import Buffer, CapsuleType, Self, disjoint_base

from penstock.message import Priority

__all__ = [
    "COLUMNS",
    "LAYOUT",
    "PROFILE",
    "VERSION",
    "Appender",
    "Batch",
    "Control",
    "Keeper",
    "Message",
    "Segment",
    "Tailer",
    "Writer",
    "allocate",
    "begun_header",
    "encode_attributes",
    "forked",
    "index_header",
    "lock_byte",
    "now_ns",
    "prepared_capacity",
    "prepared_header",
    "segment_bytes_for",
]

_T = TypeVar("_T")

COLUMNS: Final[list[str]]
LAYOUT: Final[dict[str, int]]
PROFILE: Final[Literal["debug", "release"]]
VERSION: Final[str]

class _Host(Protocol):
    """What a writer calls when an append cannot go on alone."""

    def attach_active(self) -> object: ...
    def make_room(self, frames_bytes: int, count: int, /) -> object: ...
    def flush_older(self) -> object: ...
    def reattach(self) -> object: ...

@final
class Message:
    """One message of a queue: immutable, and valid for as long as it is held."""

    @property
    def sequence(self) -> int:
        """Its number in the log."""

    @property
    def timestamp(self) -> datetime:
        """When it was appended: an aware datetime in UTC, cut to microseconds."""

    @property
    def timestamp_ns(self) -> int:
        """When it was appended, in nanoseconds since 1970."""

    @property
    def payload(self) -> bytes:
        """The bytes that were appended."""

    @property
    def view(self) -> memoryview:
        """The payload without a copy: a read-only view of the mapped file, which it keeps alive."""

    @property
    def key(self) -> bytes | None:
        """The key given at append, or None."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers given at append; a new dict each time."""

    @property
    def priority(self) -> Priority:
        """The priority given at append; `Priority.MEDIUM` unless another was."""

    @property
    def expires_at(self) -> datetime | None:
        """When it expires, or None."""

    @property
    def deliver_at(self) -> datetime | None:
        """From when on it is to be delivered, or None."""

@final
class Batch:
    """Messages as one Arrow record batch, for any library that speaks Arrow's PyCapsules.

    >>> pyarrow.record_batch(batch)
    """

    def __len__(self) -> int: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[CapsuleType, CapsuleType]:
        """Hand the batch over as a struct array: its schema, and its data without a copy."""

@disjoint_base
class Appender:
    """Appends messages to a queue; share it among threads."""

    def __new__(cls, writer: Writer | None, *_arguments: object, **_options: object) -> Self: ...
    def append(
        self,
        payload: Buffer,
        *,
        key: Buffer | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
        deliver_after: timedelta | None = None,
        priority: Priority | None = None,
    ) -> int:
        """Append one message and return its sequence.

        The payload is bytes or anything with a buffer. On return the message is published: it
        survives the death of any process, and power loss as the flush mode says.

        >>> queue.append(b"hello", key=b"k", headers={"a": "b"})
        0
        """

    def append_many(
        self,
        payloads: Iterable[Buffer],
        *,
        key: Buffer | None = None,
        headers: Mapping[str, str] | None = None,
        ttl: timedelta | None = None,
        deliver_after: timedelta | None = None,
        priority: Priority | None = None,
    ) -> range:
        """Append all the payloads as one: after any crash either all of them are there or none.

        The options hold for each message. Returns the range of their sequences.

        >>> queue.append_many([b"a", b"b"])
        range(0, 2)
        """

@disjoint_base
class Tailer:
    """Reads a log in order; the Python class over it moves it from segment to segment."""

    def __new__(
        cls, control: Control | None, skip: bool, *_arguments: object, **_options: object
    ) -> Self: ...
    skipped: int
    """Messages passed over because they were damaged."""

    @property
    def next_sequence(self) -> int:
        """The sequence of the message that the next read returns, if none is missing."""

    def read(self) -> Message | None:
        """Return the next message, or None when there is none now.

        >>> queue.tailer().read()
        <Message 0: b'hello' (5 bytes)>
        """

    def read_many(self, count: int = 1000, *, bytes_max: int | None = None) -> list[Message]:
        """Return up to `count` messages that are there now.

        They have at most `bytes_max` payload bytes together, but there is at least one.

        >>> [message.payload for message in queue.tailer().read_many(2)]
        [b'hello', b'world']
        """

    def __iter__(self) -> Self:
        """Read on for as long as there are messages now."""

    def __next__(self) -> Message:
        """Return the next message, or stop when there is none now."""

    def _use(
        self,
        segment: Segment,
        position: int,
        ordinal: int,
        limit: int,
        limit_ordinal: int | None,
    ) -> None: ...
    def _seek_within(self, sequence: object) -> bool: ...
    def _extend(self, limit: int, limit_ordinal: int | None) -> None: ...
    @property
    def _place(self) -> tuple[int, int, int] | None: ...
    @property
    def _is_final(self) -> bool: ...
    def _leave(self) -> None: ...
    def _read_columns(
        self, bytes_max: int, columns: Sequence[str], partition: int
    ) -> Batch | None: ...
    def _watch(self, control: Control | None) -> None: ...
    def _wait(self, slice_ns: int) -> None: ...

@final
class Writer:
    """One handle's way into the log: lock, put, publish, and flush if that is waited for."""

    def __new__(cls, control: Control, host: _Host, sync: bool) -> Self: ...
    def use_segment(self, segment: Segment) -> None: ...
    def mend(self) -> bool: ...
    def flush(self, segment: Segment) -> None: ...
    def append_pairs(self, pairs: Sequence[tuple[Buffer, bytes]]) -> range: ...
    def append_loop(self, payload: bytes, count: int) -> int: ...
    def close(self) -> None: ...

@final
class Keeper:
    """Works ahead of the appenders of one segment, for as long as it is the active one."""

    def __new__(
        cls, writer: Writer, segment: Segment, flush_bytes: int, flush_interval_ns: int
    ) -> Self: ...
    def run(self, timeout_ns: int) -> Literal["rolled", "flush", "due", "closed"]: ...

@final
class Control:
    """The pages that the processes of a queue share."""

    def __new__(cls, fd: int, writable: bool, lock_fd: int, stall_ns: int) -> Self: ...
    def initialise(self, queue_id: bytes, boot_id: bytes, inode: int, lock_inode: int) -> None: ...
    def identity(self) -> tuple[bytes, bytes, int, int] | None: ...
    def claim_slot(self, lock_fd: int, pid: int) -> int: ...
    def leave(self) -> None: ...
    def pids(self) -> list[int]: ...
    def load(self, at: int) -> int: ...
    def store(self, at: int, value: int) -> None: ...
    def locked(self, at: int, work: Callable[[bool], _T]) -> _T: ...
    def try_locked(self, at: int, work: Callable[[bool], object]) -> bool: ...
    def bank(self) -> list[int]: ...
    def set_bank_word(self, which: int, value: int) -> None: ...
    def begin_bank(self, words: Sequence[int]) -> None: ...
    def wake(self) -> None: ...
    def poison(self, errno: int, text: str) -> None: ...
    def poisoned(self) -> tuple[int, str] | None: ...
    def raise_durable(self, sequence: int, number: int) -> None: ...
    def set_clean(self, number: int, position: int, sequence: int, timestamp: int) -> None: ...
    def clear_clean(self) -> None: ...
    def clean(self) -> tuple[int, int, int] | None: ...

@final
class Segment:
    """One segment file, mapped; it takes over its descriptors, even when it raises."""

    def __new__(cls, path: str | PathLike[str], data: int, index: int, writable: bool) -> Self: ...
    @property
    def path(self) -> Path: ...
    @property
    def number(self) -> int: ...
    @property
    def base_sequence(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def index_every(self) -> int: ...
    def header_word(self, at: int) -> int: ...
    def header_bytes(self, at: int, length: int) -> bytes: ...
    def walk(
        self, position: int, ordinal: int, limit: int
    ) -> tuple[int, int, int, int, int, bool, str | None, int, int]: ...
    def resync(self, position: int, ordinal: int, limit: int) -> tuple[int, int] | None: ...
    def locate(self, sequence: int, limit: int) -> tuple[int, int]: ...
    def locate_time(self, time: int, limit: int, count: int) -> tuple[int, int]: ...
    def indexed_before(self, ordinal: int, limit: int) -> tuple[int, int]: ...
    def index_is_whole(self, count: int, limit: int) -> bool: ...
    def index_entries(self, limit: int) -> bytes: ...
    def seal(
        self, position: int, count: int, first_timestamp: int, last_timestamp: int
    ) -> None: ...
    def word_at(self, position: int) -> int: ...
    def allocate(self, from_: int, to: int) -> None: ...
    def flush(self) -> None: ...
    def file_bytes(self) -> int: ...

def forked() -> None: ...
def lock_byte(fd: int, at: int, kind: Literal["shared", "exclusive", "none"]) -> bool: ...
def allocate(fd: int, from_: int, to: int) -> None: ...
def now_ns() -> int: ...
def prepared_header(
    checksum: int,
    queue_id: bytes,
    salt: int,
    capacity: int,
    index_every: int,
    created_at: int,
    boot_id: bytes,
) -> bytes: ...
def begun_header(
    checksum: int,
    number: int,
    base_sequence: int,
    begun_at: int,
    reason: int,
    previous_number: int,
    previous_end_position: int,
    previous_end_sequence: int,
    previous_check: int,
    durable_sequence: int,
) -> bytes: ...
def index_header(
    checksum: int,
    queue_id: bytes,
    number: int,
    base_sequence: int,
    salt: int,
    index_every: int,
) -> bytes: ...
def prepared_capacity(path: str | PathLike[str], header: bytes) -> int: ...
def encode_attributes(
    payload: Buffer,
    *,
    key: Buffer | None = None,
    headers: Mapping[str, str] | None = None,
    ttl: timedelta | None = None,
    deliver_after: timedelta | None = None,
    priority: Priority | None = None,
) -> bytes: ...
def segment_bytes_for(frames_bytes: int) -> int: ...
