"""One measurement in a process of its own: prints its figures, or why there are none, as JSON."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from types import ModuleType

from facts import version_of
from measure import Job, quiet
from plan import CHRONICLE, KERNEL, LIMITS, PENSTOCK

PLACES = {
    "append": "workloads",
    "append_many": "workloads",
    "append_threads": "workloads",
    "append_processes": "workloads",
    "sync_one": "workloads",
    "sync_threads": "workloads",
    "iterate": "workloads",
    "iterate_messages": "workloads",
    "read_many": "workloads",
    "read_arrow": "workloads",
    "seek_read": "workloads",
    "seek_rolled": "workloads",
    "append_latency": "latency",
    "spinning": "latency",
    "asleep": "latency",
    "open_after_kill": "crash",
}


def main() -> None:
    if sys.argv[1] == "crash":
        _, _, step, engine_name, job, count = sys.argv
        engine = importlib.import_module(engine_name)
        getattr(importlib.import_module("crash"), step)(engine, Job(**json.loads(job)), int(count))
        return
    try:
        if sys.argv[1] == "about":
            answer = _about(sys.argv[2])
        else:
            _, participant, workload, job = sys.argv
            answer = {"figures": _measure(participant, workload, Job(**json.loads(job)))}
    except Exception as error:  # noqa: BLE001 - whatever it is, it goes into the report.
        traceback.print_exc()
        answer = {"failure": f"{type(error).__name__}: {error}" if str(error) else repr(error)}
    print(json.dumps(answer))


def _measure(participant: str, workload: str, job: Job) -> dict[str, float]:
    if participant in LIMITS:
        return getattr(importlib.import_module("limits"), workload)(job)
    engine = _engine(participant)
    if participant == CHRONICLE:
        return engine.measure(workload, job)
    function = getattr(importlib.import_module(PLACES[workload]), workload)
    quiet()
    return function(engine, job)


def _about(participant: str) -> dict[str, str]:
    """Import it, which may fail, and say how it is set up and in which version."""
    if participant in (KERNEL, PENSTOCK):
        importlib.import_module("ours")
    if participant in LIMITS:
        return {"mode": importlib.import_module("limits").MODES[participant], "version": ""}
    return {"mode": _engine(participant).MODE, "version": version_of(participant)}


def _engine(participant: str) -> ModuleType:
    if participant == PENSTOCK:
        return importlib.import_module("ours")
    return importlib.import_module("peers").engine(participant)


if __name__ == "__main__":
    main()
