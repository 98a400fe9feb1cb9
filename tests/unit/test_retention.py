"""Retention: which segments may go, decided by nothing but their numbers, sizes and times."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock import RetentionPolicy
from penstock.log.compact import SealedSegment, segments_to_drop

NOW_NS = 10**18
DAY = timedelta(days=1)
DAY_NS = 86_400 * 10**9


def sealed(*facts):
    """Make sealed segments, numbered from 1, of (bytes, days since they ended)."""
    return [
        SealedSegment(number, size, NOW_NS - days * DAY_NS)
        for number, (size, days) in enumerate(facts, start=1)
    ]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (RetentionPolicy(), []),
        (RetentionPolicy(age=4 * DAY), []),
        (RetentionPolicy(age=3 * DAY), [1]),
        (RetentionPolicy(age=timedelta(seconds=1)), [1, 2, 3]),
        (RetentionPolicy(bytes=70), []),
        (RetentionPolicy(bytes=69), [1]),
        (RetentionPolicy(bytes=60), [1]),
        (RetentionPolicy(bytes=59), [1, 2]),
        (RetentionPolicy(bytes=1), [1, 2, 3]),
        (RetentionPolicy(segments=4), []),
        (RetentionPolicy(segments=3), [1]),
        (RetentionPolicy(segments=1), [1, 2, 3]),
        (RetentionPolicy(segments=1, segments_min=3), [1]),
        (RetentionPolicy(bytes=1, segments_min=9), []),
        (RetentionPolicy(age=3 * DAY, segments=2), [1, 2]),
    ],
)
def test_a_policy_says_what_goes(policy, expected):
    """Three sealed segments of 10, 20 and 30 bytes and an active one of 10."""
    segments = sealed((10, 4), (20, 3), (30, 1))

    assert expected == segments_to_drop(segments, 10, policy, NOW_NS)


SEGMENTS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9)), max_size=8).map(
    lambda facts: sealed(*((size, days) for size, days in facts))
)
POLICIES = st.builds(
    RetentionPolicy,
    age=st.none() | st.integers(1, 9).map(lambda days: days * DAY),
    bytes=st.none() | st.integers(1, 500),
    segments=st.none() | st.integers(1, 9),
    segments_min=st.integers(1, 9),
)


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_only_the_oldest_go(segments, active_bytes, policy):
    """What goes is a beginning of what there is, so that no gap comes to be."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)

    assert [segment.number for segment in segments[: len(dropped)]] == dropped


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_so_many_always_stay(segments, active_bytes, policy):
    """The active one counts, and stays itself."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    left = len(segments) + 1 - len(dropped)

    assert left >= min(policy.segments_min, len(segments) + 1)


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_nothing_goes_without_a_reason(segments, active_bytes, policy):
    """Each that goes was too old, or one too many when it went."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    reasons = []
    for at, segment in enumerate(segments[: len(dropped)]):
        left = segments[at:]
        reasons.append(
            (policy.age is not None and segment.ended_at_ns < NOW_NS - policy.age / DAY * DAY_NS)
            or (policy.segments is not None and len(left) + 1 > policy.segments)
            or (
                policy.bytes is not None
                and sum(each.bytes for each in left) + active_bytes > policy.bytes
            )
        )

    assert [True] * len(dropped) == reasons


@given(segments=SEGMENTS, active_bytes=st.integers(0, 100), policy=POLICIES)
@settings(max_examples=50, derandomize=True, deadline=None)
def test_what_stays_is_allowed_to(segments, active_bytes, policy):
    """The oldest that stays passes no limit, or is needed for the minimum."""
    dropped = segments_to_drop(segments, active_bytes, policy, NOW_NS)
    again = segments_to_drop(segments[len(dropped) :], active_bytes, policy, NOW_NS)

    assert [] == again
