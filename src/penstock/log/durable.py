"""Forcing segments to the disk in order: first their names, then their bytes, then the mark."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.errors import FlushError, LogPoisonedError, WriterStalledError
from penstock.kernel import LAYOUT, Control, Segment
from penstock.log import directory
from penstock.log.roll import Bank
from penstock.log.segments import Segments

_FLUSH_LOCK = LAYOUT["CONTROL_FLUSH_LOCK_AT"]
_NAMED = LAYOUT["CONTROL_NAMED_NUMBER_AT"]
_DURABLE_NUMBER = LAYOUT["CONTROL_DURABLE_NUMBER_AT"]
_PART_AT = LAYOUT["SEGMENT_NUMBER_AT"]
_PART_BYTES = LAYOUT["SEGMENT_BEGUN_CHECK_AT"] + 8 - _PART_AT


class Durability:
    """Makes durable what is older than the active segment's newest bytes; the kernel does those.

    A segment's name counts only when its header, its folder and the folders above are on the
    disk, and the durable mark moves into a segment only then. Appenders never wait for this.
    """

    def __init__(self, root: Path, control: Control, segments: Segments) -> None:
        self._root = root
        self._control = control
        self._segments = segments

    def flush_all(self) -> None:
        """Make everything durable that is published now, sealed segments first."""
        try:
            self._control.locked(_FLUSH_LOCK, lambda _mend: self._flush_locked(through_active=True))
        except WriterStalledError:
            # Who flushes was stopped. Two may flush at once, and the mark only ever rises.
            self._flush_locked(through_active=True)

    def flush_sealed(self) -> None:
        """Make the sealed segments durable, and the name of the active one; not if others are."""
        self._control.try_locked(
            _FLUSH_LOCK, lambda _mend: self._flush_locked(through_active=False)
        )

    def name_all(self) -> None:
        """Make the names of all segments durable."""
        self._control.locked(_FLUSH_LOCK, lambda _mend: self._name_locked(self._bank().number))

    def _bank(self) -> Bank:
        return Bank(*self._control.bank())

    def _flush_locked(self, *, through_active: bool) -> None:
        if (poison := self._control.poisoned()) is not None:
            raise LogPoisonedError(*poison)
        bank = self._bank()
        self._name_locked(bank.number)
        number = self._control.load(_DURABLE_NUMBER)
        while number < bank.number:
            following = self._segments.after(number) or bank.number
            later = self._segments.readable(following)
            self._flush_segment(number)
            if later is not None:
                self._control.raise_durable(later.base_sequence, following)
            number = following
        if through_active:
            self._flush_segment(bank.number)
            self._control.raise_durable(bank.next_sequence, bank.number)

    def _flush_segment(self, number: int) -> None:
        segment = self._segments.readable(number)
        # One that retention dropped meanwhile needs no flush.
        if segment is not None:
            try:
                segment.flush()
            except FlushError as error:
                self._poison(error)
                raise

    def _name_locked(self, active: int) -> None:
        number = self._control.load(_NAMED) + 1
        while number <= active:
            segment = self._segments.readable(number)
            if segment is not None:
                self._name(segment)
            self._control.store(_NAMED, number)
            number += 1

    def _name(self, segment: Segment) -> None:
        try:
            make_name_durable(self._root, segment)
        except FileNotFoundError:
            # Another handle dropped it meanwhile, as retention told it to.
            self._segments.forget(segment.number)
        except OSError as error:
            failure = FlushError(segment.path, error.errno or 0)
            self._poison(failure)
            raise failure from error

    def _poison(self, error: FlushError) -> None:
        self._control.poison(error.errno, str(error))


def make_name_durable(root: Path, segment: Segment) -> None:
    """Force a segment's name and header to the disk, and the folders above it.

    The header is written once more, alone: a flush of the file would take all of its bytes.
    """
    fd = os.open(segment.path, os.O_WRONLY | os.O_DSYNC | os.O_CLOEXEC)
    try:
        directory.write_all(fd, segment.header_bytes(_PART_AT, _PART_BYTES), _PART_AT)
    finally:
        os.close(fd)
    folder = segment.path.parent
    directory.flush_folder(folder)
    while folder != root:
        folder = folder.parent
        directory.flush_folder(folder)
