"""Which sealed segments may go, and their removal, the oldest first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from penstock.log import directory
from penstock.log import metadata as metadata_file
from penstock.log.metadata import Metadata
from penstock.log.segments import Segments
from penstock.options import RetentionPolicy
from penstock.stats import CompactResult


class SealedSegment(NamedTuple):
    """What retention looks at."""

    number: int
    bytes: int
    ended_at_ns: int
    """When the next segment was begun: no message in this one is younger."""


def segments_to_drop(
    sealed: list[SealedSegment], active_bytes: int, policy: RetentionPolicy, now_ns: int
) -> list[int]:
    """Choose the segments that go; decides only.

    >>> old = SealedSegment(1, 100, 0)
    >>> segments_to_drop([old], 10, RetentionPolicy(segments=1), 5)
    [1]
    """
    dropped: list[int] = []
    left, left_bytes = len(sealed) + 1, sum(segment.bytes for segment in sealed) + active_bytes
    oldest_ns = None
    if policy.age is not None:
        oldest_ns = now_ns - policy.age // timedelta(microseconds=1) * 1000
    for segment in sealed:
        is_over = (
            (oldest_ns is not None and segment.ended_at_ns < oldest_ns)
            or (policy.bytes is not None and left_bytes > policy.bytes)
            or (policy.segments is not None and left > policy.segments)
        )
        if not is_over or left <= policy.segments_min:
            break
        dropped.append(segment.number)
        left -= 1
        left_bytes -= segment.bytes
    return dropped


def finish(metadata: Metadata, segments: Segments) -> None:
    """Remove what was dropped, when whoever did so was stopped before the files were gone."""
    for number in segments.numbers():
        path = segments.path(number)
        if number < metadata.first_number and path is not None:
            directory.remove_segment(path)
            segments.forget(number)


def drop(
    root: Path, metadata: Metadata, segments: Segments, numbers: list[int]
) -> tuple[Metadata, CompactResult]:
    """Remove segments; that they are dropped is on the disk before the first of them is gone."""
    if not numbers:
        return metadata, CompactResult(0, 0)
    metadata = replace(metadata, first_number=max(numbers) + 1)
    metadata_file.write(root, metadata)
    freed = 0
    for number in numbers:
        path = segments.path(number)
        if path is not None:
            freed += directory.remove_segment(path)
        # Only now, or another thread would find the file once more and keep it open.
        segments.forget(number)
    return metadata, CompactResult(len(numbers), freed)
