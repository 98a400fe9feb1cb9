"""The segments of a log in order: which one holds a sequence or a time, and where each ends."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from penstock.errors import CorruptionError, PenstockError, SegmentIOError
from penstock.kernel import LAYOUT, Segment
from penstock.log import directory
from penstock.log.roll import NEVER
from penstock.log.scan import HEADER_BYTES, Place, Scan, scan, torn_at, unfinished_at

_PREVIOUS_NUMBER = LAYOUT["SEGMENT_PREVIOUS_NUMBER_AT"]
_PREVIOUS_END_POSITION = LAYOUT["SEGMENT_PREVIOUS_END_POSITION_AT"]
_PREVIOUS_END_SEQUENCE = LAYOUT["SEGMENT_PREVIOUS_END_SEQUENCE_AT"]
_DURABLE = LAYOUT["SEGMENT_DURABLE_SEQUENCE_AT"]
_BOOT_ID = LAYOUT["SEGMENT_BOOT_ID_AT"]
_QUEUE_ID = LAYOUT["SEGMENT_QUEUE_ID_AT"]
# Each open segment takes two file descriptors and address space, and no memory of its own.
OPEN_MAX = 32


class End(NamedTuple):
    """Where the messages of a segment end, and how many there are."""

    position: int
    messages: int
    is_told: bool = True
    """Whether a later segment or the page says so; an end found by looking may still move."""


class Segments:
    """Every segment there is, opened when first needed."""

    def __init__(self, root: Path, queue_id: bytes, *, writable: bool) -> None:
        self._root = root
        self._queue_id = queue_id
        self._writable = writable
        self._lock = threading.RLock()
        self._paths: dict[int, Path] = {}
        self._opened: OrderedDict[int, Segment] = OrderedDict()
        self._ends: dict[int, End] = {}
        # What a page tells of the end of the newest segment, for a reader who may not recover.
        self.known_end: Callable[[Segment, Scan], Place | None] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Look again which segments there are."""
        with self._lock:
            self._paths = directory.list_segments(self._root)
            for number in self._opened.keys() - self._paths.keys():
                del self._opened[number]

    def renew_after_fork(self) -> None:
        """Forget a lock that a thread of the parent may have held."""
        self._lock = threading.RLock()

    def numbers(self) -> list[int]:
        """List the numbers, the oldest first."""
        with self._lock:
            return list(self._paths)

    def path(self, number: int) -> Path | None:
        """Tell the file of a segment; None when there is none."""
        with self._lock:
            if number not in self._paths:
                found = directory.find_segment(self._root, number)
                if found is not None:
                    self._paths = dict(sorted([*self._paths.items(), (number, found)]))
            return self._paths.get(number)

    def after(self, number: int) -> int | None:
        """Tell the segment that follows; None when none does."""
        with self._lock:
            if self.path(number + 1) is not None:
                return number + 1
            self.refresh()
            return min((later for later in self._paths if later > number), default=None)

    def add(self, segment: Segment) -> None:
        """Take in a segment that was just begun."""
        with self._lock:
            self._paths[segment.number] = segment.path
            self._remember(segment)

    def reopen(self, number: int) -> None:
        """Open a segment anew when it is next asked for."""
        with self._lock:
            self._opened.pop(number, None)

    def forget(self, number: int) -> None:
        """Close a segment whose file was removed."""
        with self._lock:
            self._paths.pop(number, None)
            self._opened.pop(number, None)
            self._ends.pop(number, None)

    def open(self, number: int) -> Segment | None:
        """Open a segment; None when it was dropped, CorruptionError when its header is damaged."""
        with self._lock:
            if number in self._opened:
                self._opened.move_to_end(number)
                return self._opened[number]
            path = self.path(number)
            if path is None:
                return None
            try:
                segment = self._open_file(path)
            except FileNotFoundError:
                self.refresh()
                return None
            if segment.number != number or (segment.header_bytes(_QUEUE_ID, 16) != self._queue_id):
                raise CorruptionError(path, 0, None, "it is a segment of another place or queue")
            self._remember(segment)
            return segment

    def _open_file(self, path: Path) -> Segment:
        access = os.O_RDWR if self._writable else os.O_RDONLY
        flags = access | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            data = os.open(path, flags)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise SegmentIOError(path, error.errno or 0) from error
        index = -1
        with contextlib.suppress(OSError):
            index = os.open(directory.index_path(path), flags)
        return Segment(path, data, index, self._writable)

    def _remember(self, segment: Segment) -> None:
        if segment.word_at(HEADER_BYTES) == 0:
            # It may be left of a roll that was cut short, and its file replaced by another.
            return
        self._opened[segment.number] = segment
        while len(self._opened) > OPEN_MAX:
            self._opened.popitem(last=False)

    def readable(self, number: int) -> Segment | None:
        """Open a segment; None when it is gone or its header is damaged."""
        try:
            return self.open(number)
        except PenstockError:
            return None

    def end(self, segment: Segment) -> End:
        """Tell where a segment ends that is not the active one."""
        known = self._ends.get(segment.number)
        if known is None:
            known = self.declared_end(segment.number, segment.base_sequence)
            if known is None:
                # A later segment may still come and say it, so this answer is not kept.
                return self._end_by_scan(segment)
            self._ends[segment.number] = known
        return known

    def declared_end(self, number: int, base_sequence: int) -> End | None:
        """What the next segment's header says of where this one ended."""
        following = self.after(number)
        later = None if following is None else self.readable(following)
        if later is None or later.header_word(_PREVIOUS_NUMBER) != number:
            return None
        messages = later.header_word(_PREVIOUS_END_SEQUENCE) - base_sequence
        return End(later.header_word(_PREVIOUS_END_POSITION), messages)

    def _end_by_scan(self, segment: Segment) -> End:
        """No later segment tells: it ends where opening the log for appending would end it."""
        found = scan(segment, segment.capacity)
        known = None if self.known_end is None else self.known_end(segment, found)
        durable = max(found.marked_sequence, segment.header_word(_DURABLE))
        is_of_now = segment.header_bytes(_BOOT_ID, 16) == clock.boot_id()
        judge = unfinished_at if is_of_now else torn_at
        place = known or judge(segment, found, durable) or found.end
        return End(place.position, place.ordinal, is_told=known is not None)

    def is_successor(self, later: Segment, number: int) -> bool:
        """Tell whether nothing is missing between a segment and a later one."""
        return later.number == number + 1 or later.header_word(_PREVIOUS_NUMBER) == number

    def last_where(self, holds: Callable[[Segment], bool], highest: int = NEVER) -> int | None:
        """Find the last segment of which `holds` is true, as it is of all before it."""
        numbers = [number for number in self.numbers() if number <= highest]
        low, high = 0, len(numbers)
        while low < high:
            middle = (low + high) // 2
            # One whose header is damaged goes with those before it.
            at, segment = middle, None
            while at >= low and (segment := self.readable(numbers[at])) is None:
                at -= 1
            if segment is None or holds(segment):
                low = middle + 1
            else:
                high = at
        while low and self.readable(numbers[low - 1]) is None:
            low -= 1
        return numbers[low - 1] if low else None

    def holding(self, sequence: int) -> int | None:
        """Find the segment that holds a sequence, or the gap before the next one."""
        return self.last_where(lambda segment: segment.base_sequence <= sequence)

    def close(self) -> None:
        """Let go of every segment; messages and views keep what they need."""
        with self._lock:
            self._opened.clear()
