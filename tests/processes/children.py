"""Processes that play a role and talk with a test in lines, and waiting with a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Names the boot that a process shall believe in.
BOOT_ID = "PENSTOCK_TESTS_BOOT_ID"
ROOT = Path(__file__).parents[2]
# Nothing here takes so long on any machine: who waits longer waits for ever.
HANG_SECONDS = 20.0
_LOOK_AGAIN_SECONDS = 0.002


def until(condition: Callable[[], Any], what: str = "it") -> Any:
    """Wait for a condition to be true and return what it says; fail when it never is."""
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not happen in {HANG_SECONDS} s"
        time.sleep(_LOOK_AGAIN_SECONDS)
    return found


class Child:
    """A process that plays a role; whatever it prints is a line for the test."""

    def __init__(self, role: str, *arguments: Any, boot_id: str = "") -> None:
        self.role = role
        command = [sys.executable, "-m", "tests.processes.roles", role, *map(str, arguments)]
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, BOOT_ID: boot_id},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._heard = b""

    @property
    def pid(self) -> int:
        """Which process this is."""
        return self._process.pid

    def hear(self) -> str:
        """Wait for the next line; empty when the process has ended instead."""
        assert self._process.stdout is not None
        stdout = self._process.stdout.fileno()
        deadline = time.monotonic() + HANG_SECONDS
        while b"\n" not in self._heard:
            left = deadline - time.monotonic()
            ready = select.select([stdout], [], [], max(0.0, left))[0]
            assert ready, f"'{self.role}' said nothing for {HANG_SECONDS} s"
            piece = os.read(stdout, 1 << 16)
            if not piece:
                return ""
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    def hear_json(self) -> Any:
        """Wait for a line and take it apart."""
        return json.loads(self.hear())

    def expect(self, line: str) -> None:
        """Wait for this very line."""
        heard = self.hear()
        assert line == heard, f"'{self.role}' said {heard!r} instead of {line!r}"

    def say(self, line: str) -> None:
        """Tell the process something."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    def stop(self) -> None:
        """Stop the process in its tracks, and wait until it is."""
        os.kill(self.pid, signal.SIGSTOP)
        until(lambda: state_of(self.pid) == "T", "SIGSTOP")

    def go_on(self) -> None:
        """Let a stopped process go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """End the process as nothing can be survived."""
        self._process.kill()
        self._process.wait(HANG_SECONDS)

    def wait(self) -> int:
        """Wait until the process has ended, and tell how."""
        return self._process.wait(HANG_SECONDS)

    def let_go(self) -> None:
        """End what is left of the process and close the pipes; its own children see that."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait(HANG_SECONDS)
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def state_of(pid: int) -> str:
    """Tell the state letter of a process: T is stopped, S asleep, Z dead; empty when it is gone."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return facts.rpartition(")")[2].split()[0]


def naps_of(pid: int) -> int:
    """Count how often a process has gone to sleep by itself."""
    facts = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(facts.partition("\nvoluntary_ctxt_switches:")[2].split()[0])


def files_of(pid: int) -> set[str]:
    """List the names of the files that a process has open."""
    return {link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir()}
