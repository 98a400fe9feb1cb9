"""What must be known of the machine and the versions to understand the figures."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import platform
import resource
import sqlite3
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent


def facts(directory: Path) -> dict[str, object]:
    """The machine, the interpreter, the commit and the hour."""
    return {
        "date": dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds"),
        "commit": _commit(),
        "cpu": _value_of("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "virtual": "hypervisor" in _value_of("/proc/cpuinfo", "flags").split(),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "filesystem": _filesystem(directory),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "penstock": version_of("penstock"),
        "load_before": os.getloadavg()[0],
    }


def version_of(participant: str) -> str:
    """The version of what takes part, as far as this interpreter knows it."""
    if participant == "sqlite3":
        return sqlite3.sqlite_version
    try:
        return importlib.metadata.version(participant)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _commit() -> str:
    try:
        answer = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12"],
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return answer.stdout.strip()


def _value_of(path: str, name: str) -> str:
    """The first value of this name in a file of `name : value` lines."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    for line in lines:
        found, _, value = line.partition(":")
        if found.strip() == name:
            return value.strip()
    return ""


def _filesystem(directory: Path) -> str:
    """The type of the file system that holds the directory: of all mounts above it the longest."""
    place = directory.resolve()
    best, type_ = "", "unknown"
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return type_
    for line in lines:
        _, mounted, found, *_ = line.split()
        if place.is_relative_to(mounted) and len(mounted) >= len(best):
            best, type_ = mounted, found
    return type_


class Busy(NamedTuple):
    """Processor time that all programs, and those of ours that have ended, have used so far."""

    everyone: float
    ours: float
    stolen: float
    clock: float

    @classmethod
    def now(cls) -> Busy:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = ended.ru_utime + ended.ru_stime
        try:
            first = Path("/proc/stat").read_text(encoding="utf-8").partition("\n")[0]
        except OSError:
            return cls(ours, ours, 0.0, time.monotonic())
        ticks = os.sysconf("SC_CLK_TCK")
        user, nice, system, _idle, _wait, irq, softirq, stolen, *_ = map(int, first.split()[1:])
        everyone = (user + nice + system + irq + softirq) / ticks
        return cls(everyone, ours, stolen / ticks, time.monotonic())

    def since(self, before: Busy) -> dict[str, float]:
        """Cores that others kept busy meanwhile, and that the host did not give."""
        seconds = self.clock - before.clock
        others = (self.everyone - before.everyone) - (self.ours - before.ours)
        return {
            "others_cores": max(0.0, others / seconds),
            "stolen_cores": (self.stolen - before.stolen) / seconds,
            "seconds": seconds,
        }
