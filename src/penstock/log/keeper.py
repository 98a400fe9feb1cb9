"""The background thread of a writing handle: it works ahead of the appenders and tidies behind."""

from __future__ import annotations

import logging
import os
import threading
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
# Duties that no append rings for are looked after this often.
_DUTIES_EVERY_NS = 250_000_000


class Keeper:
    """Runs until its log is closed; what goes wrong is logged, and appenders meet it themselves."""

    def __init__(self, log: Log, flush_bytes: int, flush_interval_ns: int) -> None:
        self._log = log
        self._flush_bytes = flush_bytes
        self._flush_interval_ns = flush_interval_ns
        self._ahead: kernel.Keeper | None = None
        self._ahead_of: Segment | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-keeper", daemon=True)

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    @property
    def is_this_thread(self) -> bool:
        """Whether the caller is the keeper itself, as when it collects garbage."""
        return self._thread is threading.current_thread()

    def join(self) -> None:
        """Wait until the thread has noticed that the log is closed."""
        self._thread.join()

    def _run(self) -> None:
        log = self._log
        while not log.is_closed:
            try:
                self._work()
            except Exception as error:  # noqa: BLE001, PERF203 - without it no batch would be flushed.
                # A full disk or a poisoned log is told to whoever appends.
                if not log.is_closed:
                    _logger.warning("%s: %s", type(error).__name__, error)
                    log.rest(_DUTIES_EVERY_NS)
        log.leave_as_keeper()

    def _work(self) -> None:
        log = self._log
        segment = log.host.active
        assert segment is not None
        assert log.writer is not None
        if self._ahead is None or segment is not self._ahead_of:
            self._ahead_of = segment
            self._ahead = kernel.Keeper(
                log.writer, segment, self._flush_bytes, self._flush_interval_ns
            )
        reason = self._ahead.run(_DUTIES_EVERY_NS)
        if reason == "closed":
            return
        if reason == "rolled":
            log.host.attach_active()
        if reason == "flush":
            log.durability.flush_all()
        self._see_to_duties(segment)

    def _see_to_duties(self, seen: Segment) -> None:
        log = self._log
        log.control.try_locked(_MAINTENANCE_LOCK, lambda _mend: self._duties_locked(seen))
        log.durability.flush_sealed()

    def _duties_locked(self, seen: Segment) -> None:
        log = self._log
        bank = log.host.bank()
        if bank.next_sequence > bank.base_sequence:
            log.spares.keep_ready(log.settings.segment_bytes)
        # Blocks may have been allocated in a segment that was sealed in that moment.
        if seen.number < bank.number:
            self._tidy(seen)
        tidied = log.control.load(_TIDIED)
        for number in range(max(tidied + 1, log.metadata.first_number), bank.number):
            segment = log.segments.readable(number)
            if segment is not None:
                self._tidy(segment)
            log.control.store(_TIDIED, number)
        if log.retention is not None:
            log.compact_locked()

    def _tidy(self, segment: Segment) -> None:
        """Give back what a sealed segment does not use, and see that its index is whole."""
        end = self._log.segments.end(segment)
        whole = end.position + _SEAL_BYTES
        if segment.word_at(end.position) and segment.file_bytes() > whole:
            os.truncate(segment.path, whole)
        if rebuild_if_wrong(segment, end):
            self._log.segments.reopen(segment.number)
