"""What a log goes through between two losses of power, and what must be true of it afterwards."""

import contextlib
import random
import shutil
import sys
from pathlib import Path
from typing import NamedTuple, TextIO

import penstock
from penstock import FlushMode, RetentionPolicy
from tests.crash.points import Points
from tests.crash.processes import die, killed
from tests.crash.states import append_together, found_in, opened, poison, roll

SEGMENT_BYTES = 8 << 10
MODES = [FlushMode.ASYNC, FlushMode.ASYNC, FlushMode.SYNC, FlushMode.batch(bytes=500)]


class Life:
    """What is known of a log: which messages must be there, which may, and which may not."""

    def __init__(self) -> None:
        self.boots = 0
        self.messages = 0
        self.durable = 0
        self.lost = 0
        self.settled: set[int] = set()
        """What was there when this boot began."""
        self.appended: list[int] = []
        """What was appended in this boot, in order."""
        self.asked = range(0)
        """What an append would have got that never returned; its messages may be there or not."""
        self.durable_below = 0
        self.dropped_below = 0
        """Retention may have let go of what is older."""
        self.highest = -1

    @property
    def possible(self) -> set[int]:
        """What may be there: a message that was lost once never is again."""
        return self.settled | set(self.appended) | set(self.asked)

    def begin_boot(self) -> None:
        """Nothing has happened in this boot yet."""
        self.boots += 1
        self.appended, self.asked = [], range(0)

    def hear(self, notes: Path) -> None:
        """Take in what a process has noted."""
        for line in notes.read_text().splitlines():
            what, first, end = line.split()[0], *map(int, line.split()[1:])
            if what == "asks":
                # Who died within its append had published it, or its sequences are given anew.
                self.appended += [s for s in self.asked if self.asked[-1] < first]
                self.asked = range(first, end)
            elif what == "has":
                self.asked = range(0)
                self.appended += range(first, end)
                self.messages += end - first
            elif what == "durable":
                self.durable_below = max(self.durable_below, end)
            elif what == "drops":
                self.dropped_below = max(self.dropped_below, end)
        self.highest = max([self.highest, *self.appended])


def live(root: Path, notes: Path, rng: random.Random, life: Life) -> None:
    """Let a few processes open the log one after the other; the last one is killed."""
    for _ in range(rng.randint(0, 2)):
        one = Process(root, notes, random.Random(rng.random()), point=None)
        with contextlib.suppress(FileNotFoundError):
            notes.unlink()
        notes.touch()
        killed(one.run)
        life.hear(notes)
    notes.write_text("")
    killed(Process(root, notes, random.Random(rng.random()), point=rng.randrange(160)).run)
    life.hear(notes)


class Process(NamedTuple):
    """One process that has the log open, does things to it, and is killed."""

    root: Path
    notes: Path
    rng: random.Random
    point: int | None
    """It is killed before its change of this number, if it gets there."""

    def run(self) -> None:
        """Open, append, flush, roll and close; note before and after what is asked for."""
        if self.point is not None:
            sys.setprofile(Points(self.point))
        rng = self.rng
        mode = rng.choice(MODES)
        with self.notes.open("a") as notes:
            queue = opened(self.root, segment_bytes=SEGMENT_BYTES, flush=mode)
            for _ in range(rng.randint(0, 12)):
                lot = rng.random()
                if lot < 0.02:
                    # What a failed flush does; the next process that opens the log rescues it.
                    poison(queue)
                    die()
                elif lot < 0.07:
                    note(notes, "drops", 0, queue.next_sequence)
                    queue.compact(RetentionPolicy(segments=2))
                elif lot < 0.2:
                    upto = queue.next_sequence
                    queue.flush()
                    note(notes, "durable", 0, upto)
                elif lot < 0.3:
                    roll(queue)
                else:
                    self.append(queue, notes, is_sync=mode == FlushMode.SYNC)
            if rng.random() < 0.4:
                upto = queue.next_sequence
                queue.close()
                note(notes, "durable", 0, upto)
        die()

    def append(self, queue: penstock.Queue, notes: TextIO, *, is_sync: bool) -> None:
        """Append one message or some as one."""
        first = queue.next_sequence
        end = first + self.rng.choice([1, 1, 1, 2, 5, 12])
        note(notes, "asks", first, end)
        append_together(queue, end - first)
        note(notes, "has", first, end)
        if is_sync:
            note(notes, "durable", first, end)


def note(notes: TextIO, what: str, first: int, end: int) -> None:
    """Write a line that the death of this process does not take away."""
    notes.write(f"{what} {first} {end}\n")
    notes.flush()


def look(root: Path, copy: Path, life: Life) -> list[str]:
    """Open a copy of the disk and tell what is not as promised; the log itself stays as it is."""
    shutil.copytree(root, copy)
    found = found_in(copy, segment_bytes=SEGMENT_BYTES)
    if found.error is not None:
        return [f"opening raised {found.error}"]
    there = set(found.sequences)
    # Retention lets go of the oldest only.
    first = min([*there, life.dropped_below])
    must = {s for s in life.appended if s < life.durable_below} | life.settled
    must = {s for s in must if s >= first}
    is_there = [sequence in there for sequence in life.appended if sequence >= first]
    of_last = len(there & set(life.asked))
    highest = max([life.highest, *found.sequences])
    broken = {
        "the messages are not in order": found.sequences != sorted(there),
        f"{sorted(must - there)} were durable and are gone": not must <= there,
        f"{sorted(there - life.possible)} had been lost, or never was": not there <= life.possible,
        f"{found.wrong} are not as they were appended": bool(found.wrong),
        f"only some of {life.asked} are there, one append": 0 < of_last < len(life.asked),
        f"not the end of {life.appended} is gone: {is_there}": not _is_prefix(is_there),
        f"a tear is called damage: {found.told} {found.faults}": bool(found.told or found.faults),
        f"{found.appended} comes again behind {highest}": (found.appended or 0) <= highest,
    }
    life.settled = there
    life.lost += is_there.count(False)
    life.durable += len(must)
    return [fault for fault, is_so in broken.items() if is_so]


def _is_prefix(is_there: list[bool]) -> bool:
    return is_there == sorted(is_there, reverse=True)
