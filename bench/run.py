"""Measures Penstock, what the machine allows, and the other queues: one command for it all."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import limits
import plan
import report
from facts import facts
from peers import chronicle
from turns import ask_child, take_turns

LOCK = Path(__file__).with_name(".lock")
DATA = Path(__file__).with_name(".data")
QUICK_PEERS = ("queuelib", "lmdb")
QUICK_PARTICIPANTS = (*plan.LIMITS, plan.PENSTOCK, *QUICK_PEERS, plan.CHRONICLE)
LOAD_MAX = 0.5
# What a shell says of a program that was interrupted.
STOPPED = 130


def main() -> int:
    """Prepare, measure in turns, and hand the report over."""
    options = _options()
    # Whoever ends this process politely wants the data removed and no child left behind.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    runs = list(plan.runs_of(options.only, options.participants, options.seconds, options.quick))
    if not runs:
        sys.exit("Nothing to run: --only and --participants leave no measurement.")
    with _alone(), _data_folder(options.directory) as folder:
        machine = facts(folder)
        if machine["load_before"] > LOAD_MAX:
            _say(f"The machine is busy (load {machine['load_before']:.2f}): expect worse figures.")
        participants, skipped = _prepare({run.key.participant for run in runs})
        runs = [run for run in runs if run.key.participant not in skipped]
        cells, finished = take_turns(runs, options.rounds, folder, _say)
    outcome = {
        "facts": machine,
        "settings": {name: getattr(options, name) for name in ("rounds", "seconds", "quick")},
        "participants": participants,
        "skipped": skipped,
        "cells": [{**key._asdict(), **cell} for key, cell in cells.items()],
    }
    _hand_over(outcome, options)
    return 0 if finished else STOPPED


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--quick", action="store_true", help="about 2 minutes: fewer peers, sizes and rounds")
    add(
        "--only",
        type=_names_among(plan.NAMES),
        default=plan.NAMES,
        metavar="WORKLOAD[,…]",
        help="of " + ", ".join(plan.NAMES),
    )
    add(
        "--participants",
        type=_names_among(plan.PARTICIPANTS),
        metavar="NAME[,…]",
        help="of " + ", ".join(plan.PARTICIPANTS),
    )
    add("--rounds", type=int, help="how often all is measured (4; quick: 2)")
    add(
        "--seconds",
        type=float,
        default=0.5,
        help="how long a measurement without a fixed amount takes (0.5)",
    )
    add(
        "--directory",
        type=Path,
        default=DATA,
        help="where the data goes, in a folder of its own that is removed (bench/.data)",
    )
    add("--json", type=Path, metavar="FILE", help="keep all figures here")
    add("--plot", type=Path, metavar="FILE", help="draw them here, as PNG")
    options = parser.parse_args()
    if options.participants is None:
        options.participants = QUICK_PARTICIPANTS if options.quick else plan.PARTICIPANTS
    options.rounds = options.rounds or (2 if options.quick else 4)
    return options


def _names_among(known: tuple[str, ...]) -> Callable[[str], tuple[str, ...]]:
    """The type of an option that takes some of these names."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(text.split(","))
        if unknown := set(given).difference(known):
            raise argparse.ArgumentTypeError(
                f"there is no {', '.join(sorted(unknown))}: take of {', '.join(known)}"
            )
        return given

    return names


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Two at once would measure each other."""
    with LOCK.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another benchmark is running (it holds {LOCK}): wait until it has ended.")
        yield


@contextlib.contextmanager
def _data_folder(directory: Path) -> Iterator[Path]:
    """A fresh folder for the data of all runs, gone whatever happens."""
    directory.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=directory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _prepare(names: set[str]) -> tuple[dict[str, dict[str, str]], dict[str, str]]:
    """Build and import what is to be measured: what each says of itself, and who cannot run."""
    found, skipped = {}, {}
    for name in (name for name in plan.PARTICIPANTS if name in names):
        if name == plan.MACHINE and (reason := limits.compile_append_loop(plan.PROGRAM)):
            skipped[name] = reason
        elif name == plan.CHRONICLE:
            _say("chronicle: asking Maven for it, if it is not built")
            if reason := chronicle.build():
                skipped[name] = reason
        if name not in skipped:
            answer = ask_child("about", name)
            if "failure" in answer:
                skipped[name] = answer["failure"]
            else:
                found[name] = answer
        if name in skipped:
            _say(f"{name}: skipped: {skipped[name]}")
    return found, skipped


def _hand_over(outcome: dict[str, object], options: argparse.Namespace) -> None:
    print(report.markdown(outcome), flush=True)
    if options.json:
        report.write_json(outcome, options.json)
        _say(f"The figures are in {options.json}")
    if options.plot:
        # Drawing needs matplotlib, measuring does not.
        import plot

        plot.draw(outcome, options.plot)
        _say(f"The plot is in {options.plot}")


def _say(line: str) -> None:
    """Progress goes beside the report, which may be sent to a file."""
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
