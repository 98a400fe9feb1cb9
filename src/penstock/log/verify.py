"""Reading everything a queue has on the disk, to tell whether it is as it was written."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from penstock.errors import CorruptionError, FormatVersionError, PenstockError
from penstock.kernel import LAYOUT, Segment
from penstock.log.log import Log
from penstock.log.scan import Place, corruption, scan
from penstock.stats import VerifyReport

_PREVIOUS_CHECK = LAYOUT["SEGMENT_PREVIOUS_CHECK_AT"]
_PREVIOUS_NUMBER = LAYOUT["SEGMENT_PREVIOUS_NUMBER_AT"]
_REASON = LAYOUT["SEGMENT_REASON_AT"]
_ROLL = LAYOUT["REASON_ROLL"]
_SEAL_BYTES = LAYOUT["SEAL_FRAME_BYTES"]
_CHECK_BYTES = LAYOUT["FRAME_CHECK_BYTES"]


class _Verified(NamedTuple):
    number: int
    messages: int
    bytes: int
    faults: list[PenstockError]
    is_indexed: bool = True


def verify(log: Log, progress: Callable[[int, int], None] | None = None) -> VerifyReport:
    """Check every frame, header, chain and index; `progress` hears (segments done, all)."""
    log.segments.refresh()
    bank = log.bank()
    numbers = [n for n in log.segments.numbers() if bank is None or n <= bank.number]
    done: list[_Verified] = []
    # Walking frames needs no interpreter, so threads read as fast as the disk gives.
    with ThreadPoolExecutor(os.cpu_count() or 1, "penstock-verify") as pool:
        for verified in pool.map(lambda number: _verify_segment(log, number), numbers):
            done.append(verified)
            if progress is not None:
                progress(len(done), len(numbers))
    faults = [fault for verified in done for fault in verified.faults]
    faults += _missing(log, numbers)
    messages, size = sum(v.messages for v in done), sum(v.bytes for v in done)
    unindexed = sum(not verified.is_indexed for verified in done)
    return VerifyReport(len(done), messages, size, tuple(faults), unindexed)


def _verify_segment(log: Log, number: int) -> _Verified:
    try:
        segment = log.segments.open(number)
    except (CorruptionError, FormatVersionError) as error:
        return _Verified(number, 0, 0, [error])
    if segment is None:
        # Retention dropped it since it was listed.
        return _Verified(number, 0, 0, [])
    bank = log.bank()
    if bank is not None and bank.number == number:
        position, count, is_active = bank.position, bank.messages, True
    else:
        (position, count, _), is_active = log.segments.end(segment), False
    found = scan(segment, position)
    faults: list[PenstockError] = [corruption(segment, fault) for fault in found.faults]
    if not faults and (found.end.position, found.end.ordinal) != (position, count):
        base, place = segment.base_sequence, found.end
        reason = "it ends before its last message"
        faults.append(
            CorruptionError(
                segment.path, place.position, base + place.ordinal, reason, base + count
            )
        )
    if not faults and not is_active:
        faults += _broken_chain(log, segment, found.end)
    is_indexed = is_active or bool(faults) or segment.index_is_whole(count, position)
    return _Verified(number, found.end.ordinal, position, faults, is_indexed)


def _broken_chain(log: Log, segment: Segment, end: Place) -> list[PenstockError]:
    """The next segment names the check of this one's last message."""
    following = log.segments.after(segment.number)
    later = None if following is None else log.segments.readable(following)
    if later is None or later.header_word(_PREVIOUS_NUMBER) != segment.number:
        return []
    if later.header_word(_PREVIOUS_CHECK) != end.check:
        reason = "its last message is not the one that the next segment follows"
        return [CorruptionError(segment.path, end.position, None, reason)]
    # A power cut may take any part of the seal away, and the next segment says the same; but it
    # changes none of it.
    is_sealed = segment.walk(end.position, end.ordinal, segment.capacity)[5]
    check = segment.word_at(end.position + _SEAL_BYTES - _CHECK_BYTES)
    is_cut = segment.file_bytes() < end.position + _SEAL_BYTES
    is_there = segment.word_at(end.position) != 0 and (check != 0 or is_cut)
    if is_there and not is_sealed and later.header_word(_REASON) == _ROLL:
        return [CorruptionError(segment.path, end.position, None, "its seal is damaged")]
    return []


def _missing(log: Log, numbers: list[int]) -> list[PenstockError]:
    faults: list[PenstockError] = []
    expected = log.first_number()
    for number in numbers:
        segment = log.segments.readable(number)
        if segment is not None and number > expected:
            if segment.header_word(_PREVIOUS_NUMBER) < expected:
                expected = number
            for lost in range(expected, number):
                reason = f"segment {lost} is missing before it"
                faults.append(CorruptionError(segment.path, 0, None, reason))
        expected = number + 1
    return faults
