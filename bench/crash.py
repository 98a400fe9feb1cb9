"""How long it takes to open a queue whose writer was killed, and to append the first message."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

from measure import Job, frame_bytes, payloads_of
from workloads import Figures, fill

CHILD = Path(__file__).with_name("child.py")
READY = "ready"


def open_after_kill(engine: ModuleType, job: Job) -> Figures:
    """Build in one process, kill it while it appends, open in a fresh one."""
    count = job.build_bytes // frame_bytes(job.payload_bytes) // 100 * 100
    with _start("build", engine, job, count) as builder:
        line = builder.stdout.readline().strip()
        if line != READY:
            raise RuntimeError(f"the builder said {line!r}")
        time.sleep(0.05)
        os.kill(builder.pid, signal.SIGKILL)
        builder.wait()
    with _start("reopen", engine, job, count) as opener:
        answer, _ = opener.communicate(timeout=60)
    if opener.returncode:
        raise RuntimeError("opening after the kill failed")
    return json.loads(answer)


def build(engine: ModuleType, job: Job, count: int) -> None:
    """Fill the queue, say so, and go on appending until killed."""
    store = engine.open(job.directory)
    payloads = payloads_of(job.payload_bytes)
    fill(store, [payloads[at : at + 100] for at in range(0, 1000, 100)], count)
    print(READY, flush=True)
    for payload in itertools.cycle(payloads):
        store.append(payload)


def reopen(engine: ModuleType, job: Job, count: int) -> None:
    """Time the opening and the first append; the interpreter and the import are not counted."""
    payload = payloads_of(job.payload_bytes)[0]
    began = time.perf_counter_ns()
    store = engine.open(job.directory)
    sequence = store.append(payload)
    taken = time.perf_counter_ns() - began
    if engine.NAME == "penstock" and sequence < count:
        raise RuntimeError(f"{count - sequence} messages are gone")
    store.close()
    print(json.dumps({"ms": taken / 1e6}))


def _start(step: str, engine: ModuleType, job: Job, count: int) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        str(CHILD),
        "crash",
        step,
        engine.__name__,
        json.dumps(vars(job)),
        str(count),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
