"""The background threads of a writing handle: one works ahead of appenders, one tidies behind."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock import kernel
from penstock.kernel import LAYOUT, Segment
from penstock.log.index import rebuild_if_wrong

if TYPE_CHECKING:
    from penstock.log.log import Log

_logger = logging.getLogger("penstock.keeper")

_SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
_TIDIED = LAYOUT["CONTROL_TIDIED_NUMBER_AT"]
_MAINTENANCE_LOCK = LAYOUT["CONTROL_MAINTENANCE_LOCK_AT"]
# What nobody rings for is looked after this often.
_EVERY_SECONDS = 0.25


class Keeper:
    """Two threads that run until their log is closed.

    What goes wrong in them is logged; appenders meet it themselves. The one that works ahead never
    waits for the disk, for then every append would meet fresh pages.
    """

    def __init__(self, log: Log, flush_bytes: int, flush_interval_ns: int) -> None:
        self._log = log
        self._flush_bytes = flush_bytes
        self._flush_interval_ns = flush_interval_ns
        self._ahead: kernel.Keeper | None = None
        self._ahead_of: Segment | None = None
        self._left: Segment | None = None
        self._unchecked: list[int] | None = None
        self._bell = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), name=f"penstock-{name}", daemon=True)
            for name, work in (("ahead", self._work_ahead), ("behind", self._tidy_behind))
        ]

    def start(self) -> None:
        """Begin to work."""
        for thread in self._threads:
            thread.start()

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is a keeper itself, as when it collects garbage."""
        return threading.current_thread() in self._threads

    def ring(self) -> None:
        """Wake the thread that tidies."""
        self._bell.set()

    def stop(self) -> None:
        """Wait until the threads have noticed that the log is closed."""
        self._bell.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        log = self._log
        while not log.is_closed:
            try:
                work()
            except Exception as error:  # noqa: BLE001, PERF203 - batches go on being flushed.
                # A full disk or a poisoned log is told to whoever appends.
                if not log.is_closed:
                    _logger.warning("%s: %s", type(error).__name__, error)
                    self._bell.wait(_EVERY_SECONDS)
        log.leave_as_keeper()

    def _work_ahead(self) -> None:
        log = self._log
        segment = log.host.active
        assert segment is not None
        assert log.writer is not None
        if self._ahead is None or segment is not self._ahead_of:
            self._ahead_of = segment
            self._ahead = kernel.Keeper(
                log.writer, segment, self._flush_bytes, self._flush_interval_ns
            )
        reason = self._ahead.run(int(_EVERY_SECONDS * 1e9))
        if reason == "rolled":
            # Blocks may have been allocated in it just when another process sealed and cut it.
            self._left = segment
            log.host.attach_active()
            self._bell.set()
        elif reason == "flush":
            log.durability.flush_all()

    def _tidy_behind(self) -> None:
        # It waits first, so that opening a queue does not have to wait for it.
        self._bell.wait(_EVERY_SECONDS)
        self._bell.clear()
        log = self._log
        if not log.is_closed:
            log.control.try_locked(_MAINTENANCE_LOCK, lambda _mend: self._tidy_locked())
            log.durability.flush_sealed()

    def _tidy_locked(self) -> None:
        log = self._log
        bank = log.host.bank()
        log.segments.refresh()
        if bank.messages:
            log.spares.keep_ready(log.settings.segment_bytes, bank.allocated)
        left, self._left = self._left, None
        if left is not None and left.number < bank.number:
            self._tidy(left)
        tidied = log.control.load(_TIDIED)
        for number in range(max(tidied + 1, log.metadata.first_number), bank.number):
            segment = log.segments.readable(number)
            if segment is not None:
                self._tidy(segment)
            log.control.store(_TIDIED, number)
        if self._unchecked is None:
            self._unchecked = [n for n in log.segments.numbers() if n < bank.number]
        elif self._unchecked:
            # One at a time: nobody waits for it, and it reads from the disk.
            older = log.segments.readable(self._unchecked.pop())
            if older is not None:
                self._tidy(older)
        if log.retention is not None:
            log.compact_locked()

    def _tidy(self, segment: Segment) -> None:
        """Give back what a sealed segment does not use, and see that its index is whole."""
        end = self._log.segments.end(segment)
        whole = end.position + _SEAL_BYTES
        # What stands behind a torn end is kept: only a true seal says that there is nothing.
        is_sealed = segment.walk(end.position, end.messages, segment.capacity)[5]
        # Another handle may drop the segment at any moment; then there is nothing to do.
        with contextlib.suppress(FileNotFoundError):
            if is_sealed and segment.file_bytes() > whole:
                os.truncate(segment.path, whole)
            if segment.path.exists() and rebuild_if_wrong(segment, end):
                self._log.segments.reopen(segment.number)
