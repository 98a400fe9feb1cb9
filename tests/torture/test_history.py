"""The checker of histories finds what it is there for: each kind of damage is refused."""

import random
from collections.abc import Callable

import pytest

from tests.torture.history import (
    NEVER_NS,
    Call,
    Found,
    History,
    longest_ms,
    told_by_readers,
    violations,
)

PRODUCERS = 3


def healthy(seed: int, calls: int = 60) -> History:
    """Make the history of a log that keeps every promise, with calls of each outcome."""
    rng = random.Random(seed)
    made, found = list[Call](), list[Found]()
    numbers, now = [0] * PRODUCERS, 0
    for _ in range(calls):
        producer, count = rng.randrange(PRODUCERS), rng.choice([1, 1, 1, 4])
        outcome = rng.choice(["ok"] * 6 + ["failed", "unknown"])
        first, now = numbers[producer], now + 10
        numbers[producer] += count
        is_there = outcome == "ok" or (outcome == "unknown" and rng.random() < 0.5)
        sequence = len(found)
        if is_there:
            found += [
                Found(sequence + each, producer, first + each, now + 1) for each in range(count)
            ]
        if outcome == "ok":
            made.append(Call(producer, first, count, now, "ok", sequence, now + 2))
        elif outcome == "failed":
            made.append(Call(producer, first, count, now, "failed", -1, now + 2))
        else:
            made.append(Call(producer, first, count, now, "unknown"))
    return History(made, found)


def known(history: History, *, count: int = 0) -> Call:
    """Pick an append in the middle of which it is known that it was made."""
    calls = [
        call
        for call in history.calls
        if call.outcome == "ok" and call.messages > count and 5 < call.sequence
    ]
    return calls[len(calls) // 2]


def renumbered(found: list[Found]) -> list[Found]:
    """Give messages sequences without a gap, as a log that hides a loss would have them."""
    return [message._replace(sequence=sequence) for sequence, message in enumerate(found)]


def dropped(history: History) -> History:
    """Lose one message of which its producer was told."""
    lost = known(history).sequence
    return history._replace(found=[m for m in history.found if m.sequence != lost])


def dropped_and_hidden(history: History) -> History:
    """Lose a message, and move the others up."""
    return dropped(history)._replace(found=renumbered(list(dropped(history).found)))


def doubled(history: History) -> History:
    """Have one message twice."""
    at = known(history).sequence
    found = list(history.found)
    return history._replace(found=renumbered([*found[:at], found[at], *found[at:]]))


def doubled_at_the_end(history: History) -> History:
    """Have an old message come back behind all others."""
    old = history.found[3]._replace(timestamp_ns=history.found[-1].timestamp_ns)
    return history._replace(found=renumbered([*history.found, old]))


def swapped(history: History) -> History:
    """Have two messages change places."""
    found = list(history.found)
    at = known(history).sequence
    other = next(
        each for each in range(at + 1, len(found)) if found[each].producer != found[at].producer
    )
    found[at], found[other] = found[other], found[at]
    return history._replace(found=renumbered(found))


def swapped_with_its_successor(history: History) -> History:
    """Have two messages of one producer change places."""
    found = list(history.found)
    at = known(history, count=1).sequence
    found[at], found[at + 1] = found[at + 1], found[at]
    return history._replace(found=renumbered(found))


def altered(history: History) -> History:
    """Have a byte of one message changed."""
    found = list(history.found)
    found[7] = found[7]._replace(producer=-1)
    return history._replace(found=found)


def torn(history: History) -> History:
    """Have an append of several messages there without its last one, as nobody was told of it."""
    call = known(history, count=1)
    calls = [
        each._replace(outcome="unknown", sequence=-1, ended_ns=NEVER_NS) if each == call else each
        for each in history.calls
    ]
    lost = call.sequence + call.messages - 1
    found = renumbered([m for m in history.found if m.sequence != lost])
    return History(calls, found)


def invented(history: History) -> History:
    """Have a message that nobody appended."""
    last = history.found[-1]
    return history._replace(
        found=[*history.found, Found(last.sequence + 1, 1, 9999, last.timestamp_ns)]
    )


def refused_but_there(history: History) -> History:
    """Have a message there whose append failed."""
    at = next(index for index, call in enumerate(history.calls) if call.sequence > 5)
    calls = list(history.calls)
    calls[at] = calls[at]._replace(outcome="failed", sequence=-1)
    return history._replace(calls=calls)


def told_another_sequence(history: History) -> History:
    """Have a producer told a sequence that is not its message's."""
    call = known(history)
    calls = [
        each._replace(sequence=each.sequence + 1) if each == call else each
        for each in history.calls
    ]
    return history._replace(calls=calls)


def against_time(history: History) -> History:
    """Have an append that began when a later one was over, as a stale reader of the end makes."""
    call = known(history)
    calls = [
        each._replace(began_ns=NEVER_NS - 2, ended_ns=NEVER_NS - 1) if each == call else each
        for each in history.calls
    ]
    return history._replace(calls=calls)


def with_a_gap(history: History) -> History:
    """Have sequences missing that no header declares."""
    found = [m._replace(sequence=m.sequence + 5 * (m.sequence > 9)) for m in history.found]
    calls = [
        call._replace(sequence=call.sequence + 5 * (call.sequence > 9)) for call in history.calls
    ]
    return History(calls, found)


def back_in_time(history: History) -> History:
    """Have a timestamp that is before the one of the message before."""
    found = list(history.found)
    found[8] = found[8]._replace(timestamp_ns=0)
    return history._replace(found=found)


DAMAGES: list[tuple[Callable[[History], History], str]] = [
    (dropped, "lost"),
    (dropped_and_hidden, "lost"),
    (doubled, "doubled"),
    (doubled_at_the_end, "doubled"),
    (swapped, "misplaced"),
    (swapped_with_its_successor, "out of order"),
    (altered, "altered"),
    (torn, "torn"),
    (invented, "nobody called"),
    (refused_but_there, "refused but there"),
    (told_another_sequence, "misplaced"),
    (against_time, "against time"),
    (with_a_gap, "missing"),
    (back_in_time, "timestamp"),
]


@pytest.mark.parametrize("seed", range(5))
def test_a_healthy_history_is_accepted(seed):
    """No promise is broken where none is."""
    assert [] == violations(healthy(seed))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("damage", "word"), DAMAGES, ids=[d.__name__ for d, _ in DAMAGES])
def test_a_damaged_history_is_refused(damage, word, seed):
    """Each kind of damage is called by its name."""
    faults = violations(damage(healthy(seed, calls=200)))

    assert any(word in fault for fault in faults), faults


def test_a_declared_gap_is_accepted():
    """Sequences that a header gives up are not missing."""
    history = with_a_gap(healthy(1))

    assert [] == violations(history._replace(gaps=[range(10, 15)]))


def without_the_oldest(history: History, first: int) -> History:
    """Have retention drop what is before a sequence."""
    return history._replace(found=[m for m in history.found if m.sequence >= first], first=first)


def test_what_retention_dropped_is_not_lost():
    """Only what is before the first message may be missing, and not a part of one append."""
    history = healthy(1)
    first = known(history).sequence
    dropped_more = without_the_oldest(history, first)._replace(first=first - 2)

    assert [] == violations(without_the_oldest(history, first))
    assert [] != violations(dropped_more)


def test_a_reader_is_held_against_the_log():
    """It may begin anywhere, and must not miss, double or change a message."""
    history = healthy(1)
    heard = list(history.found[5:20])
    readers = {
        "whole": heard,
        "without one": heard[:4] + heard[5:],
        "one twice": heard[:4] + heard[3:],
        "changed": [*heard[:4], heard[4]._replace(number=999), *heard[5:]],
    }
    faults = list(told_by_readers(history, readers))

    assert ["without one", "one twice", "changed"] == [
        each.partition(" heard")[0] for each in faults
    ]


def test_a_reader_may_have_heard_what_was_dropped_since():
    """It may also have been too slow for what was dropped, and for nothing else."""
    history = without_the_oldest(healthy(1), 12)
    heard = list(healthy(1).found[5:20])
    slow, too_slow = heard[:2] + heard[7:], heard[:2] + heard[8:]
    faults = list(told_by_readers(history, {"all": heard, "slow": slow, "too slow": too_slow}))

    assert ["too slow"] == [each.partition(" heard")[0] for each in faults]


def test_the_longest_call_is_not_one_that_waited_for_a_stopped_process():
    """A wait counts only if nobody stood still meanwhile."""
    calls = [
        Call(1, 0, 1, 0, "ok", 0, 2_000_000),
        Call(1, 1, 1, 10_000_000, "ok", 1, 90_000_000),
        Call(1, 2, 1, 100_000_000, "unknown"),
    ]

    assert (80.0, 2.0) == (longest_ms(calls, []), longest_ms(calls, [(9_000_000, 11_000_000)]))
