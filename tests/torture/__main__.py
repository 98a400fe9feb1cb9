"""Kills, stops, interrupts and damages at random: `python -m tests.torture --help`."""

from __future__ import annotations

import argparse
import importlib.util
import secrets
import sys
import time
from collections.abc import Callable

from tests.torture import kill9, lines, steps
from tests.torture.outcome import Figures

# Seeds of one repetition stay apart from those of the next.
SEEDS_APART = 10_000


def kill_nine(wanted: argparse.Namespace, seed: int) -> Figures:
    """Kill and stop processes at random times."""
    return kill9.torture(seed, wanted.kills, wanted.processes)


def deaths(wanted: argparse.Namespace, seed: int) -> Figures:
    """Kill a process at lines of Python in an open, a roll, a flush and a close."""
    return lines.deaths(seed, wanted.kills * 2, wanted.at)


def interrupts(wanted: argparse.Namespace, seed: int) -> Figures:
    """Raise an exception, as the handler of a signal may, at moments in the same."""
    return lines.interrupts(seed, wanted.kills, wanted.at)


def single_steps(_wanted: argparse.Namespace, seed: int) -> Figures:
    """Step through appends by one machine instruction at a time."""
    return steps.torture(seed)


def rot(wanted: argparse.Namespace, seed: int) -> Figures:
    """Damage files at random."""
    if importlib.util.find_spec("tests.crash.rot") is None:
        return Figures(faults=["tests/crash/rot.py is not there: leave rot out of --parts"])
    from tests.crash.rot import trials

    told = trials(seed, wanted.kills * 2)
    figures = Figures(faults=list(told.failures))
    figures.counts.update(
        trials=told.trials, refused=told.refused, untouched=told.untouched, lost=told.lost_most
    )
    return figures


PARTS: dict[str, Callable[[argparse.Namespace, int], Figures]] = {
    "kill9": kill_nine,
    "deaths": deaths,
    "interrupts": interrupts,
    "steps": single_steps,
    "rot": rot,
}


def asked_for(arguments: list[str]) -> argparse.Namespace:
    """Read what is wanted."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument(
        "--kills",
        type=int,
        default=200,
        help="how many processes kill9 kills; the other parts scale with it (200)",
    )
    parser.add_argument("--seconds", type=float, default=0, help="go on with new seeds for so long")
    parser.add_argument("--seed", type=int, default=None, help="what to choose by (a new one)")
    parser.add_argument("--processes", type=int, default=4, help="that append at once (4)")
    parser.add_argument("--parts", default=",".join(PARTS), help="some of %(default)s")
    parser.add_argument("--at", type=int, default=None, help="the one moment to fail at again")
    wanted = parser.parse_args(arguments)
    if unknown := set(wanted.parts.split(",")) - PARTS.keys():
        parser.error(f"no such part: {', '.join(unknown)}")
    return wanted


def main(arguments: list[str]) -> int:
    """Run the parts, a line each; 1 if a promise was broken."""
    wanted = asked_for(arguments)
    seed = secrets.randbelow(1 << 30) if wanted.seed is None else wanted.seed
    until = time.monotonic() + wanted.seconds
    faults = 0
    while not faults:
        for name in wanted.parts.split(","):
            begun = time.monotonic()
            figures = PARTS[name](wanted, seed)
            took = time.monotonic() - begun
            print(f"{name:10} seed={seed} {figures} seconds={took:.0f}", flush=True)
            for fault in figures.faults:
                print(f"  {fault}", flush=True)
            faults += len(figures.faults)
        seed += SEEDS_APART
        if time.monotonic() >= until:
            break
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
