"""One handle's hold on a log, from open to close: everything but the messages themselves."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import threading
import weakref
from pathlib import Path

from penstock import clock, kernel
from penstock.errors import (
    ControlLostError,
    MetadataError,
    PenstockError,
    QueueBusyError,
    QueueClosedError,
    ReadOnlyError,
)
from penstock.kernel import LAYOUT, Control, Writer
from penstock.log import directory
from penstock.log import metadata as metadata_file
from penstock.log.appender import SegmentHost
from penstock.log.attach import Attached, page_for_reading
from penstock.log.compact import SealedSegment, drop, finish, segments_to_drop
from penstock.log.durable import Durability
from penstock.log.keeper import Keeper
from penstock.log.locks import AliveFile, LockFile, let_go_in_child
from penstock.log.metadata import Settings
from penstock.log.roll import Bank
from penstock.log.spare import SpareMaker
from penstock.message import duration_ns
from penstock.options import FlushMode, RetentionPolicy
from penstock.stats import CompactResult

_logger = logging.getLogger("penstock.log")

_INODE = LAYOUT["CONTROL_INODE_AT"]
_MAINTENANCE_LOCK = LAYOUT["CONTROL_MAINTENANCE_LOCK_AT"]
_DURABLE = LAYOUT["CONTROL_DURABLE_SEQUENCE_AT"]
_BEGUN = LAYOUT["SEGMENT_BEGUN_AT"]

_open_logs: weakref.WeakSet[Log] = weakref.WeakSet()


class Log:
    """The files, locks and threads behind one open queue."""

    def __init__(
        self,
        attached: Attached,
        settings: Settings,
        flush: FlushMode,
        retention: RetentionPolicy | None,
        *,
        exclusive: bool,
    ) -> None:
        self.root: Path = attached.root
        self.metadata = attached.metadata
        self.segments = attached.segments
        self.settings = settings
        self.retention = retention
        self.is_closed = False
        self.writer: Writer | None = None
        self.shared_control = attached.control
        self._attached = attached
        self._flush = flush
        self._exclusive = exclusive
        self._guard = threading.RLock()
        self._pid = os.getpid()
        self._keeper: Keeper | None = None
        self._left_to_keeper = False
        self._is_gone = False
        _open_logs.add(self)
        if attached.alive is not None:
            self._begin_to_write()

    @property
    def control(self) -> Control:
        """The shared page of a log that is open for appending."""
        assert self.shared_control is not None
        return self.shared_control

    def _begin_to_write(self) -> None:
        self.spares = SpareMaker(
            self.root, self.metadata.queue_id, self.settings.checksum, self.settings.index_every
        )
        self.durability = Durability(self.root, self.control, self.segments)
        self.host = SegmentHost(
            self.control, self.segments, self.spares, self.durability, self.settings
        )
        self.host.named_bytes_max = self.metadata.settings.segment_bytes
        # What the kernel calls back when an append cannot go on alone.
        self.attach_active = self.host.attach_active
        self.make_room = self.host.make_room
        self.flush_older = self.durability.flush_all
        # The kernel's object must not keep alive what owns it.
        self.writer = Writer(self.control, weakref.proxy(self), self._flush.each)
        self.host.serve(self.writer)
        self._start_keeper()

    def _start_keeper(self) -> None:
        interval = self._flush.interval
        interval_ns = 0 if interval is None else max(1, duration_ns("interval", interval))
        self._keeper = Keeper(self, self._flush.bytes or 0, interval_ns)
        self._keeper.start()

    def bank(self) -> Bank | None:
        """What is true of the active segment; None when no control page tells."""
        control = self.shared_control
        return None if control is None else Bank(*control.bank())

    def first_number(self) -> int:
        """The oldest segment that retention has left, as the disk says it now."""
        with contextlib.suppress(MetadataError):
            return (metadata_file.read(self.root) or self.metadata).first_number
        return self.metadata.first_number

    def first_sequence(self) -> int:
        """The oldest message that is still there."""
        self.segments.refresh()
        following = self.next_sequence()
        bank = self.bank()
        for number in self.segments.numbers():
            segment = self.segments.readable(number)
            if segment is not None:
                is_active = bank is not None and bank.number == number
                if is_active or self.segments.end(segment).messages:
                    return segment.base_sequence
        return following

    def next_sequence(self) -> int:
        """The sequence that the next append gets."""
        bank = self.bank()
        if bank is not None:
            return bank.next_sequence
        self.segments.refresh()
        for number in reversed(self.segments.numbers()):
            segment = self.segments.readable(number)
            if segment is not None:
                return segment.base_sequence + self.segments.end(segment).messages
        return 0

    def durable_sequence(self) -> int:
        """Every message below survives the loss of power."""
        control = self.shared_control
        return self.next_sequence() if control is None else control.load(_DURABLE)

    def check_open(self) -> None:
        """Refuse to go on with a closed handle."""
        if self.is_closed:
            raise QueueClosedError

    def check_writable(self) -> Writer:
        """Hand out the appender's side, if this handle has one."""
        self.check_open()
        if self.writer is None:
            raise ReadOnlyError
        return self.writer

    def flush(self) -> None:
        """Return when everything published before the call is durable."""
        writer = self.check_writable()
        assert self.host.active is not None
        writer.flush(self.host.active)

    def forked(self) -> None:
        """In the child: nobody but this thread is left, whatever lock another one held."""
        self._guard = threading.RLock()
        self.segments.renew_after_fork()
        self._keeper = None

    def reattach(self) -> None:
        """In the child of a fork: take a place of its own among those who append."""
        with self._guard:
            self.check_writable()
            if self._pid == os.getpid():
                return
            lock = LockFile(self.root, read_only=False)
            with lock.gate():
                if not lock.join(exclusive=self._exclusive):
                    raise QueueBusyError(self.root, tuple(self.control.pids()))
                alive = AliveFile(self.root)
                if alive.inode != self.control.load(_INODE):
                    raise ControlLostError(alive.path, ())
                alive.join()
                self.control.claim_slot(lock.fd, os.getpid())
            self._attached.lock, self._attached.alive = lock, alive
            self._pid = os.getpid()
            self._start_keeper()

    def follow_page(self) -> None:
        """Let a reader take the page that is the true one now: an open may put a new one there."""
        if self._attached.alive is None:
            attached = self._attached
            try:
                inode = (self.root / directory.CONTROL).stat().st_ino
            except FileNotFoundError:
                return
            known = self.shared_control
            if known is None or known.load(_INODE) != inode:
                self.shared_control = page_for_reading(
                    self.root, self.metadata, self.segments, attached.lock
                )

    def compact(self, policy: RetentionPolicy | None) -> CompactResult:
        """Drop what a policy lets go, now."""
        self.check_writable()
        done: list[CompactResult] = []
        self.control.locked(
            _MAINTENANCE_LOCK, lambda _mend: done.append(self.compact_locked(policy))
        )
        return done[0]

    def compact_locked(self, policy: RetentionPolicy | None = None) -> CompactResult:
        """Drop what a policy, or the queue's own, lets go; the maintenance lock is held."""
        policy = policy or self.retention
        if policy is None:
            return CompactResult(0, 0)
        current = metadata_file.read(self.root) or self.metadata
        active = self.host.bank().number
        self.segments.refresh()
        finish(current, self.segments)
        numbers = [number for number in self.segments.numbers() if number <= active]
        sealed, ended_at = [], clock.now_ns()
        for number in reversed(numbers):
            path = self.segments.path(number)
            segment = self.segments.readable(number)
            if number != active and path is not None:
                sealed.append(SealedSegment(number, path.stat().st_blocks * 512, ended_at))
            if segment is not None:
                ended_at = segment.header_word(_BEGUN)
        policy_says = segments_to_drop(
            sealed[::-1], self.host.bank().allocated, policy, clock.now_ns()
        )
        if policy_says:
            # The last proof of a sequence on the disk may go only when there is a newer one.
            self.durability.name_all()
        self.metadata, result = drop(self.root, current, self.segments, policy_says)
        return result

    def close(self) -> None:
        """Stop the threads, give back what is unused if nobody else is here, and let go."""
        self.is_closed = True
        _open_logs.discard(self)
        if self.writer is not None:
            self.writer.close()
        keeper = self._keeper
        if keeper is not None and keeper.is_this_thread:
            # Collected as garbage in the midst of its work: it leaves when it is through with it.
            self._left_to_keeper = True
            return
        if keeper is not None:
            keeper.stop()
        self._let_go()

    def abandon(self) -> None:
        """Called when nobody can use the log any more, by whatever thread collected it.

        That thread may be in the midst of anything, so the keeper leaves in its place.
        """
        self.is_closed = True
        if self.writer is None:
            self._attached.close()
            return
        self._left_to_keeper = True
        self.writer.close()
        if self._keeper is not None:
            self._keeper.ring()

    def leave_as_keeper(self) -> None:
        """Called by each keeper at its end; one of them lets go if nobody waits for it."""
        with self._guard:
            left, self._left_to_keeper = self._left_to_keeper, False
        if left:
            assert self._keeper is not None
            self._keeper.stop()
            self._let_go()

    def _let_go(self) -> None:
        """Leave once; what an interrupt cut short is done by the next call."""
        with self._guard:
            if not self._is_gone:
                if self.writer is not None and self._pid == os.getpid():
                    self._leave()
                self.segments.close()
                self._attached.close()
                self._is_gone = True

    def _leave(self) -> None:
        lock = self._attached.lock
        assert lock is not None
        try:
            with lock.gate():
                if self.control.poisoned() is None:
                    self._leave_in_order()
        except (PenstockError, OSError) as error:
            _logger.warning("closing %s: %s", self.root, error)
        finally:
            self.control.leave()

    def _leave_in_order(self) -> None:
        """Keep what the flush mode promised; the last one out leaves no more than messages."""
        alive = self._attached.alive
        assert alive is not None
        is_last = alive.is_alone()
        if is_last or self._flush != FlushMode.ASYNC:
            self.durability.flush_all()
        if is_last:
            self.host.cut_unused()
            self.spares.remove()
            os.fsync(alive.fd)


def _after_fork_in_child() -> None:
    kernel.forked()
    let_go_in_child()
    for log in list(_open_logs):
        log.forked()


def _close_all() -> None:
    """At the end of the program every queue is closed in order."""
    for log in list(_open_logs):
        log.close()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork_in_child)
