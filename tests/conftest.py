"""What any test may ask for."""

import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

import penstock
from penstock import Queue

T = TypeVar("T")

# Small, so that a few messages fill one and making one is cheap.
SEGMENT_BYTES = 1 << 16
PATIENCE_SECONDS = 30.0
LOOK_AGAIN_SECONDS = 0.002


@pytest.fixture
def queue_path(tmp_path: Path) -> Path:
    """Name a directory for a queue that is not there yet."""
    return tmp_path / "queue"


@pytest.fixture
def open_queue(queue_path: Path) -> Iterator[Callable[..., Queue]]:
    """Open the queue with small segments, as often as wanted; the end of the test closes it."""
    opened: list[Queue] = []

    def open_one(**options: Any) -> Queue:
        opened.append(penstock.open(queue_path, **{"segment_bytes": SEGMENT_BYTES, **options}))
        return opened[-1]

    yield open_one
    for queue in opened:
        queue.close()


@pytest.fixture
def queue(open_queue: Callable[..., Queue]) -> Queue:
    """Open an empty queue with small segments."""
    return open_queue()


@pytest.fixture
def eventually() -> Callable[[Callable[[], T]], T]:
    """Ask until the answer is true and return it; fail when patience is over."""

    def ask(question: Callable[[], T]) -> T:
        until = time.monotonic() + PATIENCE_SECONDS
        while not (answer := question()):
            if time.monotonic() > until:
                pytest.fail(f"{question} is still not true after {PATIENCE_SECONDS} seconds")
            time.sleep(LOOK_AGAIN_SECONDS)
        return answer

    return ask


@pytest.fixture
def start_python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a script in another process, with its output to read; the end of the test ends it."""
    started: list[subprocess.Popen[str]] = []

    def start(script: str, *arguments: object, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(script)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(
            [*command, *map(str, arguments)], text=True, **{**pipes, **options}
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run_python(start_python: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """Run a script in another process to its end, and return what it printed."""

    def run(script: str, *arguments: object, **options: Any) -> str:
        process = start_python(script, *arguments, **options)
        output, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert (0, "") == (process.returncode, errors)
        return str(output)

    return run


@pytest.fixture
def reboot(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the machine have another boot id from now on, as after a loss of power."""

    def begin() -> None:
        boot_id = uuid.uuid4().bytes
        monkeypatch.setattr("penstock.clock.boot_id", lambda: boot_id)

    return begin


@pytest.fixture
def tidy_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the threads of queues that are opened from now on see to their duties all the time."""
    monkeypatch.setattr("penstock.log.keeper._EVERY_SECONDS", 0.001)
