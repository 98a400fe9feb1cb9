"""Runs one measurement after the other, each in a process of its own, and keeps what it says."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

from facts import Busy
from plan import SLOW_PEERS, Key, Run

CHILD = Path(__file__).with_name("child.py")
RUN_SECONDS_MAX = 180
# The sustained appends beside the memory they were warmed with, on the file system of the data.
FREE_BYTES_MIN = 8 << 30

Cell = dict[str, object]


def take_turns(
    runs: Sequence[Run], rounds: int, folder: Path, say: Callable[[str], None]
) -> tuple[dict[Key, Cell], bool]:
    """Measure all, round by round, so that noise hits all alike: the figures, and whether all."""
    cells: dict[Key, Cell] = {run.key: {"rounds": [], "busy": [], "failure": None} for run in runs}
    turns = list(_in_turns(runs, rounds))
    began = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt):
        for number, run in enumerate(turns, start=1):
            cell = cells[run.key]
            if cell["failure"] is not None:
                continue
            before = Busy.now()
            answer = measure(run, folder)
            if "figures" in answer:
                cell["rounds"].append(answer["figures"])
                cell["busy"].append(Busy.now().since(before))
            else:
                cell["failure"] = answer["failure"]
            minutes, seconds = divmod(int(time.monotonic() - began), 60)
            say(f"[{number:3}/{len(turns)} {minutes:2}:{seconds:02}] {run.key}: {_shown(answer)}")
        return cells, True
    say("Stopped: the report holds what was measured so far.")
    return cells, False


def _in_turns(runs: Sequence[Run], rounds: int) -> Iterator[Run]:
    """The participants of a workload stand beside each other, every other round in reverse.

    The slow peers sit those rounds out: they cannot win, and would take a third of the time.
    """
    groups = [list(group) for _, group in groupby(runs, key=lambda run: run.key[:2])]
    for number in range(rounds):
        for group in groups:
            if number % 2:
                yield from (run for run in group[::-1] if run.key.participant not in SLOW_PEERS)
            else:
                yield from group


def measure(run: Run, folder: Path) -> dict[str, object]:
    """Measure once, in an empty directory that is gone afterwards; a failure is an answer too."""
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES_MIN:
        return {"failure": f"only {free >> 20} MiB free in {folder}"}
    directory = folder / "run"
    directory.mkdir()
    # What others left to be written would slow this one down.
    os.sync()
    job = dataclasses.replace(run.job, directory=str(directory))
    try:
        return ask_child(run.key.participant, run.function, json.dumps(vars(job)))
    finally:
        shutil.rmtree(directory)


def ask_child(*arguments: str) -> dict[str, object]:
    """The answer of one child process; it and all it started are gone afterwards."""
    child = subprocess.Popen(
        [sys.executable, str(CHILD), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = child.communicate(timeout=RUN_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return {"failure": f"took longer than {RUN_SECONDS_MAX} s"}
    finally:
        _end_group(child)
    for line in reversed(output.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    last = errors.strip().rpartition("\n")[2]
    return {"failure": f"ended with {child.returncode} and no figures: {last[:200]}"}


def _end_group(child: subprocess.Popen[str]) -> None:
    """The child leads a session of its own, so its number is that of all it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _shown(answer: dict[str, object]) -> str:
    if "figures" not in answer:
        return f"skipped: {answer['failure']}"
    return ", ".join(f"{name} {value:.4g}" for name, value in answer["figures"].items())
