"""The checker: what producers say they appended, held against what is found in the log.

It decides only, so that it can be tested itself; a history is checked in O(n log n).
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

NEVER_NS = 1 << 63
# Of each kind so many are told; the first one is what matters.
TOLD_MAX = 5

Outcome = Literal["ok", "failed", "unknown"]


class Call(NamedTuple):
    """One append of one producer: so many messages that are all there or none."""

    producer: int
    first: int
    """The producer's number for the first of its messages; the others follow."""
    messages: int
    began_ns: int
    outcome: Outcome
    sequence: int = -1
    """What the append returned for its first message, if it did."""
    ended_ns: int = NEVER_NS


class Found(NamedTuple):
    """One message of the log; a payload that is not as any producer made it has producer -1."""

    sequence: int
    producer: int
    number: int
    timestamp_ns: int = 0


class History(NamedTuple):
    """All that is known of one log."""

    calls: Sequence[Call]
    found: Sequence[Found]
    gaps: Sequence[range] = ()
    """The sequences that the headers of segments declare as never used."""
    first: int = 0
    """The oldest sequence that retention has left."""


def violations(history: History) -> list[str]:
    """List what breaks a promise; empty when all are kept."""
    checks = (
        told_intact(history),
        told_dense(history),
        told_called(history),
        told_once(history),
        told_by_outcome(history),
        told_in_producers_order(history),
        told_in_real_time(history),
        told_in_time(history),
    )
    return [fault for check in checks for fault in itertools.islice(check, TOLD_MAX)]


def told_intact(history: History) -> Iterator[str]:
    """Every byte is as its producer made it."""
    for message in history.found:
        if message.producer < 0:
            yield f"altered: message {message.sequence} is not what any producer appended"


def told_dense(history: History) -> Iterator[str]:
    """Sequences begin at the first, none comes twice, and only declared gaps are missing."""
    begins = {gap.start: gap.stop for gap in history.gaps}
    expected = history.first
    for message in history.found:
        while expected != message.sequence and expected in begins:
            expected = begins[expected]
        if message.sequence < expected:
            yield f"sequence {message.sequence} comes again, or out of order"
        elif message.sequence > expected:
            yield f"sequences {expected} to {message.sequence - 1} are missing"
        expected = message.sequence + 1


def told_called(history: History) -> Iterator[str]:
    """There is nothing that nobody appended."""
    numbers = Counter[int]()
    for call in history.calls:
        numbers[call.producer] = max(numbers[call.producer], call.first + call.messages)
    for message in history.found:
        if message.producer >= 0 and message.number >= numbers[message.producer]:
            yield f"nobody called: message {message.sequence} is {name_of(message)}"


def told_once(history: History) -> Iterator[str]:
    """No message is there twice."""
    seen = dict[tuple[int, int], int]()
    for message in history.found:
        if message.producer < 0:
            continue
        key = (message.producer, message.number)
        if key in seen:
            yield f"doubled: {name_of(message)} is {seen[key]} and {message.sequence}"
        seen[key] = message.sequence


def told_by_outcome(history: History) -> Iterator[str]:
    """What was told as appended is there, what failed is not, and each call is there whole."""
    sequences = {(message.producer, message.number): message.sequence for message in history.found}
    for call in history.calls:
        numbers = range(call.first, call.first + call.messages)
        at = [sequences.get((call.producer, number)) for number in numbers]
        there = [sequence for sequence in at if sequence is not None]
        who = f"producer {call.producer}, messages {call.first} to {numbers[-1]}"
        if call.outcome == "ok" and call.sequence < history.first:
            if there:
                yield f"dropped but there: {who} were {call.sequence}, and are at {there}"
        elif call.outcome == "ok":
            if len(there) < call.messages:
                yield f"lost: {who} were appended as {call.sequence}, {len(there)} are there"
            elif at != list(range(call.sequence, call.sequence + call.messages)):
                yield f"misplaced: {who} were told {call.sequence}, and are at {at}"
        elif there and call.outcome == "failed":
            yield f"refused but there: {who} are at {there}"
        elif there and there != list(range(there[0], there[0] + call.messages)):
            yield f"torn: of {who}, which are one append, only {there} are there, or apart"


def told_in_producers_order(history: History) -> Iterator[str]:
    """What one producer appends is in the log in the order in which it did."""
    last = dict[int, int]()
    for message in history.found:
        if message.number < last.get(message.producer, -1) and message.producer >= 0:
            yield f"out of order: {name_of(message)} is behind {last[message.producer]}"
        last[message.producer] = message.number


def told_in_real_time(history: History) -> Iterator[str]:
    """An append that was over before another began has the lower sequence."""
    calls = {(call.producer, call.first): call for call in history.calls}
    earliest, earliest_of = NEVER_NS, None
    for message in reversed(history.found):
        call = calls.get((message.producer, message.number))
        if call is None:
            continue
        if earliest < call.began_ns:
            yield (
                f"against time: {name_of(message)}, message {message.sequence}, began "
                f"{call.began_ns - earliest} ns after {earliest_of} behind it was appended"
            )
        if call.ended_ns < earliest and call.outcome == "ok":
            earliest, earliest_of = call.ended_ns, f"message {message.sequence}"


def told_in_time(history: History) -> Iterator[str]:
    """Timestamps in a log never go back."""
    for before, message in itertools.pairwise(history.found):
        if message.timestamp_ns < before.timestamp_ns:
            yield f"message {message.sequence} has an earlier timestamp than the one before it"


def told_by_readers(history: History, heard: Mapping[str, Sequence[Found]]) -> Iterator[str]:
    """What readers heard while others lived is what there is, but for what was dropped since."""
    known = {
        call.sequence + each: (call.producer, call.first + each)
        for call in history.calls
        if call.outcome == "ok"
        for each in range(call.messages)
    }
    known |= {message.sequence: (message.producer, message.number) for message in history.found}
    there = [message.sequence for message in history.found]
    for who, messages in heard.items():
        yield from itertools.islice(told_by_reader(history.first, known, there, messages, who), 1)


def told_by_reader(
    first: int,
    known: Mapping[int, tuple[int, int]],
    there: Sequence[int],
    heard: Sequence[Found],
    who: str,
) -> Iterator[str]:
    """One reader hears each message as it is, in order, and misses none."""
    last = heard[0].sequence - 1 if heard else 0
    for message in heard:
        # What was dropped since may be one of which no producer lived to tell.
        identity = (message.producer, message.number)
        is_known = message.sequence in known or message.sequence >= first
        if is_known and known.get(message.sequence) != identity:
            yield f"{who} heard {message}, and there is {known.get(message.sequence)}"
        if message.sequence <= last:
            yield f"{who} heard message {message.sequence} after {last}"
        missed = there[bisect_right(there, last) : bisect_left(there, message.sequence)]
        if missed:
            yield f"{who} heard message {message.sequence} after {last}, and missed {missed[0]}"
        last = message.sequence


def longest_ms(calls: Iterable[Call], stops: Sequence[tuple[int, int]]) -> float:
    """Tell the longest call that no stopped process can be blamed for."""
    longest = 0
    for call in calls:
        took = call.ended_ns - call.began_ns
        if call.outcome == "ok" and took > longest:
            blamed = any(began < call.ended_ns and call.began_ns < over for began, over in stops)
            if not blamed:
                longest = took
    return longest / 1e6


def name_of(message: Found) -> str:
    """Say which message it is for its producer."""
    return f"message {message.number} of producer {message.producer}"
