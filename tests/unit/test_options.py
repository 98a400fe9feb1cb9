"""What a queue can be told, and what it refuses to be told."""

import dataclasses
from datetime import timedelta

import pytest

from penstock import FlushMode, RetentionPolicy, RollStrategy

SECOND = timedelta(seconds=1)
NOT_POSITIVE = [0, -1]
NOT_INTEGERS = [1.5, "1", True, SECOND]
NOT_LASTING = [timedelta(0), -SECOND]
NOT_DURATIONS = [1, 1.5, "1s"]

COUNTED = {
    "by_size": RollStrategy.by_size,
    "by_count": RollStrategy.by_count,
    "batch": lambda number: FlushMode.batch(bytes=number),
    "bytes": lambda number: RetentionPolicy(bytes=number),
    "segments": lambda number: RetentionPolicy(segments=number),
    "segments_min": lambda number: RetentionPolicy(segments_min=number),
}
TIMED = {
    "by_time": RollStrategy.by_time,
    "batch": lambda duration: FlushMode.batch(interval=duration),
    "age": lambda duration: RetentionPolicy(age=duration),
}


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (RollStrategy.by_size(5), (5, None, None)),
        (RollStrategy.by_time(SECOND), (None, SECOND, None)),
        (RollStrategy.by_count(7), (None, None, 7)),
        (RollStrategy.any_of(), (None, None, None)),
    ],
)
def test_a_roll_strategy_says_one_thing(strategy, expected):
    """What was not said stays open."""
    assert expected == dataclasses.astuple(strategy)


def test_any_of_takes_the_least_of_each():
    """The first limit that is reached rolls."""
    strategies = [
        RollStrategy.by_size(9),
        RollStrategy.by_size(5),
        RollStrategy.by_time(2 * SECOND),
        RollStrategy.by_time(SECOND),
        RollStrategy.any_of(RollStrategy.by_count(3), RollStrategy.by_count(4)),
    ]

    assert RollStrategy(5, SECOND, 3) == RollStrategy.any_of(*strategies)


@pytest.mark.parametrize("number", NOT_POSITIVE)
@pytest.mark.parametrize("option", COUNTED)
def test_sizes_and_counts_are_at_least_one(option, number):
    """A limit of nothing can never be kept."""
    with pytest.raises(ValueError, match=f"is at least 1, not {number}"):
        COUNTED[option](number)


@pytest.mark.parametrize("number", NOT_INTEGERS)
@pytest.mark.parametrize("option", COUNTED)
def test_sizes_and_counts_are_integers(option, number):
    """A fraction of a byte or a message is a mistake."""
    with pytest.raises(TypeError, match="is an int, not"):
        COUNTED[option](number)


@pytest.mark.parametrize("duration", NOT_LASTING)
@pytest.mark.parametrize("option", TIMED)
def test_durations_are_longer_than_zero(option, duration):
    """What lasts no time cannot be waited for."""
    with pytest.raises(ValueError, match="is longer than zero, not"):
        TIMED[option](duration)


@pytest.mark.parametrize("duration", NOT_DURATIONS)
@pytest.mark.parametrize("option", TIMED)
def test_durations_are_timedeltas(option, duration):
    """A bare number does not say whether it means seconds."""
    with pytest.raises(TypeError, match=r"is a datetime\.timedelta, not"):
        TIMED[option](duration)


def test_flush_modes_are_three():
    """ASYNC flushes never by itself, SYNC each append, batch after a while."""
    batch = FlushMode.batch(bytes=10, interval=SECOND)

    assert [(None, None, False), (None, None, True), (10, SECOND, False)] == [
        dataclasses.astuple(mode) for mode in (FlushMode.ASYNC, FlushMode.SYNC, batch)
    ]


@pytest.mark.parametrize(
    "options",
    [RollStrategy.by_count(1), FlushMode.batch(), RetentionPolicy(segments=1)],
)
def test_options_do_not_change(options):
    """What a queue was told cannot be changed behind its back, and may be a key."""
    name = dataclasses.fields(options)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options, name, None)

    assert {options} == {dataclasses.replace(options)}
