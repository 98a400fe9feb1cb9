"""The background thread of a writing handle: it works ahead of the appenders and tidies behind."""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock import kernel
from penstock.kernel import LAYOUT, Segment

if TYPE_CHECKING:
    from penstock.log.log import Log

_logger = logging.getLogger("penstock.keeper")

_SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
_TIDIED = LAYOUT["CONTROL_TIDIED_NUMBER_AT"]
_MAINTENANCE_LOCK = LAYOUT["CONTROL_MAINTENANCE_LOCK_AT"]
# Duties that no append rings for are looked after this often.
_DUTIES_EVERY_NS = 250_000_000


class Keeper:
    """Runs until its log is closed; what goes wrong is logged, and the appenders meet it themselves."""

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

    def join(self) -> None:
        """Wait until the thread has noticed that the log is closed."""
        if self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._log.is_closed:
            try:
                if self._work() == "closed":
                    return
            except (PenstockError, OSError) as error:
                # A full disk or a poisoned log is told to whoever appends.
                _logger.warning("%s", error)
                self._log.rest(_DUTIES_EVERY_NS)

    def _work(self) -> str:
        log = self._log
        segment = log.host.active
        assert segment is not None and log.writer is not None
        if self._ahead is None or segment is not self._ahead_of:
            self._ahead_of = segment
            self._ahead = kernel.Keeper(
                log.writer, segment, self._flush_bytes, self._flush_interval_ns
            )
        reason = self._ahead.run(_DUTIES_EVERY_NS)
        if reason == "closed":
            return reason
        if reason == "rolled":
            log.host.attach_active()
        if reason == "flush":
            log.host.flush_older()
        self._see_to_duties(segment)
        return reason

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
            self._cut(seen)
        tidied = log.control.load(_TIDIED)
        for number in range(max(tidied + 1, log.metadata.first_number), bank.number):
            segment = log.segments.readable(number)
            if segment is not None:
                self._cut(segment)
            log.control.store(_TIDIED, number)
        if log.retention is not None:
            log.compact_locked()

    def _cut(self, segment: Segment) -> None:
        """Give back what a sealed segment does not use."""
        end = self._log.segments.end(segment)
        whole = end.position + _SEAL_BYTES
        if segment.word_at(end.position) and segment.file_bytes() > whole:
            os.truncate(segment.path, whole)
