"""Opening a queue's folder: join the processes that are here, or recover when nobody is."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from penstock import clock
from penstock.errors import (
    ControlLostError,
    MetadataError,
    QueueBusyError,
    QueueNotFoundError,
)
from penstock.kernel import LAYOUT, Control, Segment, lock_byte
from penstock.log import directory, metadata as metadata_file
from penstock.log.locks import LockFile
from penstock.log.metadata import CHECKSUMS, Metadata, Settings
from penstock.log.recover import Beginning, Evidence, evidence_of, recover, remove_leftovers, rescue
from penstock.log.roll import Bank, limits
from penstock.log.scan import Place, scan
from penstock.log.segments import Segments
from penstock.log.spare import SpareMaker, read_header

_log = logging.getLogger("penstock.attach")

CONTROL_BYTES = LAYOUT["CONTROL_BYTES"]
_ALIVE = LAYOUT["CONTROL_ALIVE_AT"]
_SLOTS = range(LAYOUT["LOCK_SLOTS_AT"], LAYOUT["LOCK_SLOTS_AT"] + LAYOUT["CONTROL_SLOTS"])
_NAMED = LAYOUT["CONTROL_NAMED_NUMBER_AT"]
_TIDIED = LAYOUT["CONTROL_TIDIED_NUMBER_AT"]


@dataclass
class Attached:
    """What an open handle of a log holds."""

    root: Path
    metadata: Metadata
    segments: Segments
    lock: LockFile | None
    control: Control | None
    control_fd: int
    """Held to say that this handle lives; its lock goes with it."""

    def close(self) -> None:
        """Let go of the locks."""
        if self.control_fd >= 0:
            os.close(self.control_fd)
            self.control_fd = -1
        if self.lock is not None:
            self.lock.close()


def attach_reader(root: Path, settings_of: Callable[[Settings | None], Settings]) -> Attached:
    """Open for reading only: nothing is made, mended or written."""
    metadata = metadata_file.read(root) if root.is_dir() else None
    if metadata is None and not directory.list_segments(root):
        raise QueueNotFoundError(root)
    if metadata is None:
        metadata = _from_segments(root, settings_of, MetadataError(root, "it is missing"))
    lock = None
    with contextlib.suppress(OSError):
        lock = LockFile(root, read_only=True)
    if lock is not None and not lock.join(exclusive=False):
        lock.close()
        raise QueueBusyError(root, ())
    segments = Segments(root, metadata.queue_id, writable=False)
    control = _control_for_reading(root, metadata, lock)
    return Attached(root, metadata, segments, lock, control, -1)


def _control_for_reading(root: Path, metadata: Metadata, lock: LockFile | None) -> Control | None:
    try:
        fd = os.open(root / directory.CONTROL, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        control = _mapped(fd, -1, 0, writable=False)
        return control if _is_of_now(control, fd, metadata, lock) else None
    finally:
        os.close(fd)


def attach_writer(
    root: Path,
    settings_of: Callable[[Settings | None], Settings],
    *,
    exclusive: bool,
    stall_ns: int,
) -> Attached:
    """Open for appending; one handle at a time, and recovery if nobody is here."""
    directory.make_folder(root)
    lock = LockFile(root, read_only=False)
    try:
        with lock.gate():
            if not lock.join(exclusive=exclusive):
                raise QueueBusyError(root, _pids(root, lock))
            metadata = _metadata(root, settings_of)
            segments = Segments(root, metadata.queue_id, writable=True)
            control, fd = _join_or_recover(root, metadata, segments, lock, stall_ns)
            control.claim_slot(lock.fd, os.getpid())
            return Attached(root, metadata, segments, lock, control, fd)
    except BaseException:
        lock.close()
        raise


def _metadata(root: Path, settings_of: Callable[[Settings | None], Settings]) -> Metadata:
    """Read the queue's identity, make it for a new one, or find it again in its segments."""
    try:
        metadata = metadata_file.read(root)
        if metadata is None and directory.list_segments(root):
            raise MetadataError(root / directory.METADATA, "it is missing")
    except MetadataError as error:
        metadata = _from_segments(root, settings_of, error)
        _log.warning("%s; it was made again from the segments", error)
        broken = root / directory.METADATA
        with contextlib.suppress(FileNotFoundError):
            broken.rename(broken.with_name(broken.name + directory.BROKEN))
        metadata_file.write(root, metadata)
    if metadata is None:
        metadata = metadata_file.create(settings_of(None))
        metadata_file.write(root, metadata)
        directory.flush_folder(root.parent)
    return metadata


def _from_segments(
    root: Path, settings_of: Callable[[Settings | None], Settings], error: MetadataError
) -> Metadata:
    """Take the identity from the newest segment whose header is whole."""
    id_at, checksum_at = LAYOUT["SEGMENT_QUEUE_ID_AT"], LAYOUT["SEGMENT_CHECKSUM_AT"]
    every_at, capacity_at = LAYOUT["SEGMENT_INDEX_EVERY_AT"], LAYOUT["SEGMENT_CAPACITY_AT"]
    listed = directory.list_segments(root)
    for path in reversed(listed.values()):
        header = read_header(path)
        with contextlib.suppress(Exception):
            Segment(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC), -1, writable=False)
            kind = int.from_bytes(header[checksum_at : checksum_at + 4], "little")
            settings = Settings(
                int.from_bytes(header[capacity_at : capacity_at + 8], "little"),
                int.from_bytes(header[every_at : every_at + 8], "little"),
                settings_of(None).roll,
                next(name for name, number in CHECKSUMS.items() if number == kind),
            )
            made = metadata_file.create(settings)
            return replace(made, queue_id=header[id_at : id_at + 16], first_number=min(listed))
    raise error


def _pids(root: Path, lock: LockFile) -> tuple[int, ...]:
    """Who holds the queue, as far as the control page tells."""
    with contextlib.suppress(OSError):
        fd = os.open(root / directory.CONTROL, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return tuple(_mapped(fd, lock.fd, 0, writable=False).pids())
        finally:
            os.close(fd)
    return ()


def _mapped(fd: int, lock_fd: int, stall_ns: int, *, writable: bool) -> Control:
    if os.fstat(fd).st_size != CONTROL_BYTES:
        raise OSError(errno.EINVAL, "not a control file")
    return Control(fd, writable, lock_fd, stall_ns)


def _is_of_now(control: Control, fd: int, metadata: Metadata, lock: LockFile | None) -> bool:
    """Whether a control page belongs to this queue, this file and this boot."""
    identity = control.identity()
    return identity is not None and identity == (
        metadata.queue_id,
        clock.boot_id(),
        os.fstat(fd).st_ino,
        identity[3] if lock is None else lock.inode,
    )


def _join_or_recover(
    root: Path, metadata: Metadata, segments: Segments, lock: LockFile, stall_ns: int
) -> tuple[Control, int]:
    path = root / directory.CONTROL
    control, fd = None, -1
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        control = _mapped(fd, lock.fd, stall_ns, writable=True)
    try:
        alone = fd < 0 or lock_byte(fd, _ALIVE, "exclusive")
        if control is not None and _is_of_now(control, fd, metadata, lock):
            if not alone or _joinable_alone(control, segments, fd):
                lock_byte(fd, _ALIVE, "shared")
                return control, fd
        elif not alone or _somebody_lives(lock):
            raise ControlLostError(path, ())
        control, made = _recovered(root, metadata, segments, lock, stall_ns, control)
    except BaseException:
        if fd >= 0:
            os.close(fd)
        raise
    if fd >= 0:
        os.close(fd)
    return control, made


def _somebody_lives(lock: LockFile) -> bool:
    """Whether any handle holds its slot; asked only when the control page does not tell."""
    held = [at for at in _SLOTS if not lock_byte(lock.fd, at, "exclusive")]
    for at in _SLOTS:
        lock_byte(lock.fd, at, "none")
    return bool(held)


def _joinable_alone(control: Control, segments: Segments, fd: int) -> bool:
    """Whether the page of this boot can be used as it is by the first who comes."""
    if control.poisoned() is not None or not _is_true(control, segments):
        return False
    if control.clean() is not None:
        # The mark must be gone from the disk before an append makes it false.
        control.clear_clean()
        os.fsync(fd)
    return True


def _is_true(control: Control, segments: Segments) -> bool:
    """Hold the page against the frames before its end: a flipped bit in it must not be believed."""
    bank = Bank(*control.bank())
    segment = segments.readable(bank.number)
    if (
        segment is None
        or segments.after(bank.number) not in (None, bank.number + 1)
        or bank.base_sequence != segment.base_sequence
        or bank.capacity != segment.capacity
        or not bank.position <= bank.allocated <= min(segment.file_bytes(), bank.capacity)
        or bank.next_sequence < bank.base_sequence
    ):
        return False
    count = bank.next_sequence - bank.base_sequence
    start = Place(*segment.indexed_before(max(0, count - 1), bank.position))
    end = scan(segment, bank.position, start).end
    if segment.word_at(bank.position) != 0:
        # Published and not counted yet, or sealed: mending counts anew from the frames.
        return end.position == bank.position
    return (end.position, end.count) == (bank.position, count)


def _recovered(
    root: Path,
    metadata: Metadata,
    segments: Segments,
    lock: LockFile,
    stall_ns: int,
    old: Control | None,
) -> tuple[Control, int]:
    """Bring the log in order, begin a segment, and make the page that says so."""
    settings = metadata.settings
    spares = SpareMaker(root, metadata.queue_id, settings.checksum, settings.index_every)
    if old is not None and old.poisoned() is not None and segments.numbers():
        remove_leftovers(root)
        beginning = rescue(segments, spares, old, max(segments.numbers()) + 1)
    else:
        beginning = recover(root, metadata, segments, evidence_of(old, metadata.queue_id))
    begun_at = max(clock.now_ns(), beginning.timestamp)
    made = spares.take(settings.segment_bytes)
    segment = spares.begin(
        made,
        beginning.number,
        beginning.base_sequence,
        begun_at,
        beginning.chain,
        beginning.durable_sequence,
    )
    segments.add(segment)
    return _new_control(root, metadata, segments, lock, stall_ns, segment, begun_at, beginning)


def _new_control(
    root: Path,
    metadata: Metadata,
    segments: Segments,
    lock: LockFile,
    stall_ns: int,
    segment: Segment,
    begun_at: int,
    beginning: Beginning,
) -> tuple[Control, int]:
    path = root / directory.CONTROL
    made = path.with_name(path.name + directory.MAKING)
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    fd = os.open(made, flags, directory.FILE_MODE)
    try:
        directory.write_all(fd, bytes(CONTROL_BYTES), 0)
        lock_byte(fd, _ALIVE, "shared")
        control = _mapped(fd, lock.fd, stall_ns, writable=True)
        control.begin_bank(
            bank_of(segment, metadata.settings, begun_at, beginning.durable_sequence)
        )
        frontier = segments.holding(beginning.durable_sequence) or segment.number
        control.raise_durable(beginning.durable_sequence, frontier)
        control.store(_NAMED, beginning.number - 1)
        control.store(_TIDIED, beginning.number - 1)
        control.initialise(metadata.queue_id, clock.boot_id(), os.fstat(fd).st_ino, lock.inode)
        made.replace(path)
    except BaseException:
        os.close(fd)
        raise
    return control, fd


def bank_of(segment: Segment, settings: Settings, begun_at: int, durable: int) -> list[int]:
    """The words of a bank for a segment that was just begun."""
    base = segment.base_sequence
    end = limits(settings.roll, segment.capacity, base, begun_at)
    return list(
        Bank(
            number=segment.number,
            base_sequence=base,
            position=LAYOUT["SEGMENT_HEADER_BYTES"],
            next_sequence=base,
            last_timestamp=begun_at,
            intent_end=0,
            last_check=0,
            marked_sequence=durable,
            allocated=min(segment.file_bytes(), segment.capacity),
            capacity=segment.capacity,
            roll_position=end.position,
            roll_sequence=end.sequence,
            roll_time=end.time_ns,
            index_every=segment.index_every,
            first_timestamp=0,
        )
    )
