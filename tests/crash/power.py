"""Takes power away at random and looks whether the promise held: `trials(library, seed, count)`.

Each trial is a life of several boots. In each boot processes append, flush and roll until one of
them is killed and the power goes with it; then a disk is made up that holds what was forced to it,
and of all else any part. The next boot opens that disk.
"""

import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from penstock import clock
from tests.crash.power_disk import Forced, after_power_loss
from tests.crash.power_life import Life, live, look
from tests.crash.preload import under

BOOTS_MAX = 4
PATIENCE_SECONDS = 600


class Figures(NamedTuple):
    """What came of many trials."""

    seed: int
    trials: int
    boots: int
    messages: int
    """Messages whose append had returned."""
    durable: int
    """Those of them that had been told to be durable."""
    lost: int
    """Those that power took; none of them durable."""
    failures: list[str]
    """Each trial that broke the promise, and how."""


def trials(library: Path, seed: int, count: int, first: int = 0) -> Figures:
    """Run trials of a seed in a process under the library of forced.c."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.power", str(seed), str(count), str(first)],
        env=under(library),
        timeout=PATIENCE_SECONDS,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Figures(**json.loads(done.stdout))


def trial(seed: int, number: int, folder: Path, life: Life) -> list[str]:
    """Live one life; tell what was wrong, at the first boot at which anything was."""
    rng = random.Random(f"power {seed} {number}")
    root = folder / "0"
    for boot in range(rng.randint(1, BOOTS_MAX)):
        boot_id = boot.to_bytes(16, "big")
        clock.boot_id = lambda boot_id=boot_id: boot_id  # type: ignore[misc]
        forced = Forced(folder / f"forced {boot}")
        forced.begin(root)
        life.begin_boot()
        live(root, folder / f"notes {boot}", rng, life)
        forced.end()
        following = folder / str(boot + 1)
        chances = after_power_loss(root, forced, following, rng)
        clock.boot_id = lambda: b"who looks at it."
        faults = look(following, folder / f"copy {boot}", life)
        if faults:
            return [f"boot {boot}, {chances}: {fault}" for fault in faults]
        root = following
    return []


def main(seed: int, count: int, first: int = 0) -> Figures:
    """Run trials in this process, which is under the library already."""
    own_boot_id = clock.boot_id
    figures = Figures(seed, 0, 0, 0, 0, 0, [])
    for number in range(first, first + count):
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            life = Life()
            try:
                faults = trial(seed, number, Path(folder), life)
            except AssertionError as error:
                faults = [str(error)]
        clock.boot_id = own_boot_id
        failures = [f"trial {number} of seed {seed}: {fault}" for fault in faults]
        figures = Figures(
            seed,
            figures.trials + 1,
            figures.boots + life.boots,
            figures.messages + life.messages,
            figures.durable + life.durable,
            figures.lost + life.lost,
            figures.failures + failures,
        )
    return figures


if __name__ == "__main__":
    print(json.dumps(main(*map(int, sys.argv[1:]))._asdict(), indent=1))
