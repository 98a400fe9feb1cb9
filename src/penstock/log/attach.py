"""Opening a queue's folder: join the processes that are here, or recover when nobody is."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from penstock import clock
from penstock.errors import ControlLostError, MetadataError, QueueBusyError, QueueNotFoundError
from penstock.kernel import LAYOUT, Control, Segment
from penstock.log import directory
from penstock.log import metadata as metadata_file
from penstock.log.compact import finish
from penstock.log.durable import make_name_durable
from penstock.log.evidence import evidence_of
from penstock.log.identity import find_again, identify
from penstock.log.locks import AliveFile, LockFile
from penstock.log.metadata import Metadata, Settings
from penstock.log.recover import recover
from penstock.log.rescue import rescue
from penstock.log.roll import Bank, limits
from penstock.log.scan import Place, scan
from penstock.log.segments import Segments
from penstock.log.spare import FIRST_BYTES, Beginning, SpareMaker, disk_errors

CONTROL_BYTES = LAYOUT["CONTROL_BYTES"]
_HEADER_BYTES = LAYOUT["SEGMENT_HEADER_BYTES"]
_NAMED = LAYOUT["CONTROL_NAMED_NUMBER_AT"]
_TIDIED = LAYOUT["CONTROL_TIDIED_NUMBER_AT"]
_DURABLE = LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"]
_APPEND_LOCK = LAYOUT["CONTROL_APPEND_LOCK_AT"]
# A page is looked at so often while appends of others may be going on.
_LOOKS = 5


@dataclass
class Attached:
    """What an open handle of a log holds."""

    root: Path
    metadata: Metadata
    segments: Segments
    lock: LockFile | None
    control: Control | None
    alive: AliveFile | None

    def close(self) -> None:
        """Let go of the locks."""
        for carrier in (self.alive, self.lock):
            if carrier is not None:
                carrier.close()


def attach_reader(root: Path, settings_of: Callable[[Settings | None], Settings]) -> Attached:
    """Open for reading only: nothing is made, mended or written."""
    if not root.is_dir():
        raise QueueNotFoundError(root)
    try:
        metadata = metadata_file.read(root)
    except MetadataError as error:
        metadata = find_again(root, settings_of, error)
    if metadata is None:
        if not directory.list_segments(root):
            raise QueueNotFoundError(root)
        missing = MetadataError(root / directory.METADATA, "it is missing")
        metadata = find_again(root, settings_of, missing)
    lock = None
    with contextlib.suppress(OSError):
        lock = LockFile(root, read_only=True)
    if lock is not None and not lock.join(exclusive=False):
        lock.close()
        raise QueueBusyError(root, ())
    segments = Segments(root, metadata.queue_id, writable=False)
    control = page_for_reading(root, metadata, segments, lock)
    return Attached(root, metadata, segments, lock, control, None)


def page_for_reading(
    root: Path, metadata: Metadata, segments: Segments, lock: LockFile | None
) -> Control | None:
    """Map the control page if it tells the truth now; without one a reader looks for itself."""
    try:
        fd = os.open(root / directory.CONTROL, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        control = _mapped(fd, -1 if lock is None else lock.fd, 0, writable=False)
        is_of_now = _is_of_now(control, os.fstat(fd).st_ino, metadata, lock)
        if is_of_now and any(_is_true(control, segments) for _ in range(_LOOKS)):
            return control
        evidence = evidence_of(control, metadata, segments, is_of_now=is_of_now)
        segments.known_end = None if evidence.end is None else evidence.end.place
    except OSError:
        # A page that is no page tells nothing.
        pass
    finally:
        os.close(fd)
    return None


def attach_writer(
    root: Path,
    settings_of: Callable[[Settings | None], Settings],
    *,
    exclusive: bool,
    stall_ns: int,
) -> Attached:
    """Open for appending; one handle at a time, and recovery if nobody is here."""
    with contextlib.ExitStack() as undo, disk_errors(root, FIRST_BYTES):
        directory.make_folder(root)
        lock = LockFile(root, read_only=False)
        undo.callback(lock.close)
        with lock.gate():
            if not lock.join(exclusive=exclusive):
                raise QueueBusyError(root, _pids(root, lock))
            metadata = identify(root, settings_of)
            segments = Segments(root, metadata.queue_id, writable=True)
            finish(metadata, segments)
            attached = Attached(root, metadata, segments, lock, None, None)
            undo.callback(attached.close)
            _join_or_recover(attached, lock, stall_ns)
            assert attached.control is not None
            attached.control.claim_slot(lock.fd, os.getpid())
        undo.pop_all()
        return attached


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


def _is_of_now(control: Control, inode: int, metadata: Metadata, lock: LockFile | None) -> bool:
    """Whether a control page belongs to this queue, this file and this boot."""
    identity = control.identity()
    return identity is not None and identity == (
        metadata.queue_id,
        clock.boot_id(),
        inode,
        identity[3] if lock is None else lock.inode,
    )


def _join_or_recover(attached: Attached, lock: LockFile, stall_ns: int) -> None:
    """Fill in the control page: the one that is there if it can be believed, or a new one."""
    control, alive = None, None
    with contextlib.suppress(OSError):
        alive = AliveFile(attached.root)
        control = _mapped(alive.fd, lock.fd, stall_ns, writable=True)
    alone = alive is None or alive.is_alone()
    is_of_now = (
        alive is not None
        and control is not None
        and _is_of_now(control, alive.inode, attached.metadata, lock)
    )
    if not is_of_now and (not alone or lock.somebody_appends()):
        raise ControlLostError(attached.root / directory.CONTROL, ())
    assert alive is not None or not is_of_now
    if is_of_now and control is not None and alive is not None:
        if not alone or _joinable_alone(control, attached.segments, alive):
            alive.join()
            attached.control, attached.alive = control, alive
            return
        if control.poisoned() is not None:
            rescue(attached.root, attached.segments, control.load(_DURABLE))
            # All that memory held is on the disk now, whatever the mark in the page says.
            control.raise_durable(Bank(*control.bank()).next_sequence, 0)
    _recover(attached, lock, stall_ns, control, is_of_now=is_of_now)
    if alive is not None:
        alive.close()


def _joinable_alone(control: Control, segments: Segments, alive: AliveFile) -> bool:
    """Whether the page of this boot can be used as it is by the first who comes."""
    if control.poisoned() is not None or not _is_true(control, segments):
        return False
    if control.clean() is not None:
        # The mark must be gone from the disk before an append makes it false.
        control.clear_clean()
        os.fsync(alive.fd)
    return True


def _is_true(control: Control, segments: Segments) -> bool:
    """Hold the page against the frames before its end: a flipped bit in it must not be believed."""
    bank = Bank(*control.bank())
    segment = segments.readable(bank.number)
    if (
        segment is None
        or bank.position % LAYOUT["FRAME_ALIGNMENT"] != 0
        or bank.base_sequence != segment.base_sequence
        or bank.capacity != segment.capacity
        or bank.index_every != segment.index_every
        or not bank.position <= bank.allocated <= min(segment.file_bytes(), bank.capacity)
        or not bank.base_sequence <= bank.next_sequence
        or not bank.marked_sequence <= control.load(_DURABLE) <= bank.next_sequence
        or not _is_last(segments, bank.number)
    ):
        return False
    start = Place(*segment.indexed_before(max(0, bank.messages - 1), bank.position))
    end = scan(segment, bank.position, start).end
    if segment.word_at(bank.position) == 0:
        return (end.position, end.ordinal) == (bank.position, bank.messages)
    # A seal, or a message that was published and not counted yet: that is for mending, and true
    # only if somebody died there, who then still holds the lock.
    is_sealed = segment.walk(end.position, end.ordinal, segment.capacity)[5]
    is_held = control.load(_APPEND_LOCK) & 0xFFFFFFFF != 0
    return end.position == bank.position and (is_sealed or is_held)


def _is_last(segments: Segments, number: int) -> bool:
    """Whether no later segment holds a message; an empty one may be left of a roll cut short."""
    following = segments.after(number)
    later = None if following is None else segments.readable(following)
    return following is None or (
        later is not None
        and later.number == number + 1
        and later.word_at(_HEADER_BYTES) == 0
        and segments.after(later.number) is None
    )


def _recover(
    attached: Attached, lock: LockFile, stall_ns: int, old: Control | None, *, is_of_now: bool
) -> None:
    """Bring the log in order, begin a segment, and make the page that says so."""
    root, metadata, segments = attached.root, attached.metadata, attached.segments
    settings = metadata.settings
    spares = SpareMaker(root, metadata.queue_id, settings.checksum, settings.index_every)
    evidence = evidence_of(old, metadata, segments, is_of_now=is_of_now)
    beginning = recover(root, metadata, segments, evidence)
    begun_at = max(clock.now_ns(), beginning.timestamp)
    made = spares.take(settings.segment_bytes)
    segment, allocated = spares.begin(made, beginning._replace(timestamp=begun_at))
    segments.add(segment)
    # Before anybody appends to it: a second power cut must not bring back the state of the first,
    # for then the same sequences would be handed out once more.
    make_name_durable(root, segment)
    bank = bank_of(segment, settings, begun_at, allocated, beginning.durable_sequence)
    _new_control(attached, lock, stall_ns, bank, beginning)


def _new_control(
    attached: Attached,
    lock: LockFile,
    stall_ns: int,
    bank: Bank,
    beginning: Beginning,
) -> None:
    root, metadata = attached.root, attached.metadata
    durable = beginning.durable_sequence
    alive = AliveFile(root, directory.CONTROL + directory.MAKING, os.O_CREAT | os.O_TRUNC)
    directory.write_all(alive.fd, bytes(CONTROL_BYTES), 0)
    alive.join()
    control = _mapped(alive.fd, lock.fd, stall_ns, writable=True)
    control.begin_bank(list(bank))
    control.raise_durable(durable, attached.segments.holding(durable) or bank.number)
    control.store(_NAMED, bank.number)
    # The last one from before is looked after as if it had just been sealed.
    control.store(_TIDIED, max(0, beginning.chain.previous_number - 1))
    control.initialise(metadata.queue_id, clock.boot_id(), alive.inode, lock.inode)
    # What an older page says of a clean end must not come back after the next power cut.
    os.fsync(alive.fd)
    alive.path.replace(root / directory.CONTROL)
    directory.flush_folder(root)
    attached.control, attached.alive = control, alive


def bank_of(
    segment: Segment, settings: Settings, begun_at: int, allocated: int, durable: int
) -> Bank:
    """What is true of a segment that was just begun."""
    base = segment.base_sequence
    end = limits(settings.roll, segment.capacity, base, begun_at)
    return Bank(
        number=segment.number,
        base_sequence=base,
        position=_HEADER_BYTES,
        next_sequence=base,
        last_timestamp=begun_at,
        intent_end=0,
        last_check=0,
        marked_sequence=durable,
        allocated=min(allocated, segment.capacity),
        capacity=segment.capacity,
        roll_position=end.position,
        roll_sequence=end.sequence,
        roll_time=end.time_ns,
        index_every=segment.index_every,
        first_timestamp=0,
    )
