"""Damages queues at random and looks whether a wrong byte is ever read: `trials(seed, count)`.

Each trial says what it did; seed and number make the same one again. Trials run in processes of
their own, so that one that crashes or hangs is seen and named.
"""

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from penstock import clock
from tests.crash.processes import in_child
from tests.crash.rot_corpus import OTHER_BOOT, Specimen, corpus, settle, write_files
from tests.crash.rot_damage import damage
from tests.crash.rot_oracle import Outcome, judge

# No trial takes as long; who waits for ever is ended.
HANGS_AFTER_SECONDS = 20
# Far more than Python and a queue of some pages need, and far less than a damaged length asks for.
MEMORY_BYTES_MAX = 4 << 30
BATCH = 50


class Figures(NamedTuple):
    """What came of many trials."""

    trials: int
    seed: int
    refused: int
    """Opens that raised an error which the documents name."""
    lost_median: int
    """Messages that one trial cost, where it cost any."""
    lost_most: int
    untouched: int
    """Trials that cost no message."""
    damages: dict[str, int]
    """How often each kind of file was damaged."""
    failures: list[str]
    """Each trial that broke the promise: how, its number, and what was done."""


class Plan(NamedTuple):
    """One trial, chosen by its seed and number alone."""

    number: int
    specimen: Specimen
    other: Specimen
    is_same_boot: bool
    rng: random.Random


def planned(seed: int, number: int, specimens: list[Specimen]) -> Plan:
    """Choose what happens to which queue."""
    rng = random.Random(f"rot {seed} {number}")
    specimen, other = rng.choice(specimens), rng.choice(specimens)
    return Plan(number, specimen, other, rng.random() < 0.5, rng)


def trials(seed: int, count: int, first: int = 0) -> Figures:
    """Run trials `first` to `first + count` of a seed."""
    specimens = corpus()
    outcomes: list[Outcome] = []
    number = first
    while number < first + count:
        batch = [planned(seed, n, specimens) for n in range(number, first + count)][:BATCH]
        outcomes += run_batch(batch)
        number = first + len(outcomes)
    return figures_of(seed, outcomes)


def run_batch(batch: list[Plan]) -> list[Outcome]:
    """Run trials in one process until one of them ends it."""
    # On a disk of memory, flushing costs nothing.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    with tempfile.TemporaryDirectory(dir=place) as folder:
        notes = Path(folder) / "notes"
        notes.touch()
        ended = in_child(lambda: run_all(batch, Path(folder), notes))
        lines = [json.loads(line) for line in notes.read_text().splitlines()]
    done = [Outcome(*line) for line in lines if len(line) > 1]
    if ended == 0:
        return done
    assert len(lines[-1]) == 1, f"making a trial ended with {ended}"
    plan, (told,) = batch[len(done)], lines[-1]
    how = f"signal {-ended} ended it" if ended < 0 else f"it ended with {ended}"
    return [*done, Outcome(plan.number, told, [how], 0, 0)]


def run_all(batch: list[Plan], folder: Path, notes: Path) -> None:
    """Run trials, and note each before and after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    own_boot = clock.boot_id()
    with notes.open("a") as file:
        for plan in batch:
            signal.alarm(HANGS_AFTER_SECONDS)
            root = folder / str(plan.number)
            told = prepared(plan, root)
            print(json.dumps([told]), file=file, flush=True)
            boot_id = own_boot if plan.is_same_boot else OTHER_BOOT[::-1]
            clock.boot_id = lambda boot_id=boot_id: boot_id  # type: ignore[misc]
            outcome = judge(plan.number, told, root, plan.specimen)
            print(json.dumps(outcome), file=file, flush=True)
            clock.boot_id = lambda: own_boot
            shutil.rmtree(root)


def prepared(plan: Plan, root: Path) -> str:
    """Put a damaged queue in place, and tell what was done to it."""
    write_files(root, plan.specimen.files)
    settle(root)
    files = dict(plan.specimen.files)
    page = (root / ".control").read_bytes()
    files[".control"] = page
    before = dict(files)
    told = [damage(files, plan.specimen, plan.other, plan.rng)]
    while plan.rng.random() < 0.2 and len(files) > 1:
        told.append(damage(files, plan.specimen, plan.other, plan.rng))
    for name in before.keys() - files.keys():
        (root / name).unlink()
    # In place, so that a file stays the one it was.
    write_files(root, {name: files[name] for name in files if files[name] != before.get(name)})
    boot = "same boot" if plan.is_same_boot else "other boot"
    return f"{plan.specimen.name}, {boot}; " + "; ".join(told)


def figures_of(seed: int, outcomes: list[Outcome]) -> Figures:
    """Sum up."""
    damages = Counter[str]()
    for outcome in outcomes:
        for part in outcome.told.split("; ")[1:]:
            name = part.partition(":")[0]
            damages[name.rpartition(".")[2] if "/" in name else name] += 1
    losses = sorted(outcome.lost for outcome in outcomes if outcome.lost)
    return Figures(
        len(outcomes),
        seed,
        sum(outcome.refused for outcome in outcomes),
        losses[len(losses) // 2] if losses else 0,
        losses[-1] if losses else 0,
        sum(outcome.lost == 0 for outcome in outcomes),
        dict(damages),
        [
            f"{'; '.join(outcome.faults)} (trial {outcome.number} of seed {seed}: {outcome.told})"
            for outcome in outcomes
            if outcome.faults
        ],
    )


def main(arguments: list[str]) -> None:
    """Run as many trials as asked for, `python -m tests.crash.rot SEED COUNT [FIRST]`."""
    numbers: list[Any] = [int(argument) for argument in arguments]
    figures = trials(*numbers)
    with contextlib.suppress(BrokenPipeError):
        print(json.dumps(figures._asdict(), indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
