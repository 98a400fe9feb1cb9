"""What the processes of these tests do, a function each: `python -m tests.processes.roles ROLE`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import penstock
from penstock import FlushMode, RollStrategy, clock
from penstock.kernel import LAYOUT
from penstock.log import appender, directory
from penstock.log.roll import Bank
from penstock.log.spare import SpareMaker
from tests.processes.children import BOOT_ID

LOCKS = {
    "append": LAYOUT["CONTROL_APPEND_LOCK_AT"],
    "flush": LAYOUT["CONTROL_FLUSH_LOCK_AT"],
    "maintenance": LAYOUT["CONTROL_MAINTENANCE_LOCK_AT"],
}
MODES = {"async": FlushMode.ASYNC, "sync": FlushMode.SYNC, "batch": FlushMode.batch()}
MANY = 7


def tell(line: str) -> None:
    """Say something to the test, in one write."""
    os.write(1, f"{line}\n".encode())


def tell_json(facts: Any) -> None:
    """Say something with a form."""
    tell(json.dumps(facts))


def hear() -> str:
    """Wait for the test to say something; it has ended if that is empty."""
    return sys.stdin.readline().rstrip("\n")


def meet() -> None:
    """Wait until every process is ready, so that they begin at once."""
    tell("ready")
    hear()


def append(path: str, name: str, count: str, flush: str = "async") -> None:
    """Append messages one by one and several at once; tell the sequence each one was given."""
    with penstock.open(path, flush=MODES[flush]) as queue:
        meet()
        given: list[int] = []
        while (left := int(count) - len(given)) > 0:
            number = len(given)
            if number % 3:
                given.append(queue.append(f"{name} {number}".encode()))
            else:
                together = range(number, number + min(left, MANY))
                given += queue.append_many([f"{name} {each}".encode() for each in together])
    tell_json(given)


def open_and_close(path: str, name: str, count: str) -> None:
    """Open, append one message and close, again and again."""
    meet()
    given = []
    for number in range(int(count)):
        with penstock.open(path) as queue:
            given.append(queue.append(f"{name} {number}".encode()))
    tell_json(given)


def create(path: str, count: str) -> None:
    """Make a queue that rolls after so many messages."""
    penstock.open(path, roll=RollStrategy.by_count(int(count))).close()


def open_first(path: str) -> None:
    """Open a queue that is not there yet, at the same time as others."""
    meet()
    with penstock.open(path) as queue:
        sequence = queue.append(b"first")
        tell_json([queue._log.metadata.queue_id.hex(), sequence])
        hear()


def hold(path: str, lock: str) -> None:
    """Take a lock word, and let go of it when told to."""

    def work(_mend: bool) -> None:
        tell("held")
        hear()

    with penstock.open(path) as queue:
        queue._log.control.locked(LOCKS[lock], work)
        tell("let go")
        hear()


def die_holding(path: str, lock: str) -> None:
    """Take a lock word and be killed."""
    with penstock.open(path) as queue:
        queue._log.control.locked(LOCKS[lock], lambda _mend: os.kill(os.getpid(), signal.SIGKILL))


def append_partly(path: str, stage: str, *payloads: str) -> None:
    """Be killed in the middle of an append, so that only the stores before this stage are done."""
    be_in_append(path, stage, payloads, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stay_in_append(path: str, stage: str, *payloads: str) -> None:
    """Stand still in the middle of an append, until told to go on."""

    def wait() -> None:
        tell("within")
        hear()

    be_in_append(path, stage, payloads, wait)
    tell("done")
    hear()


def be_in_append(
    path: str, stage: str, payloads: tuple[str, ...], work: Callable[[], None]
) -> None:
    """Append as one, then take back under the lock what is stored after `stage`, and work there.

    The stages in their order: "written", "published", "counted". What a finished append has
    stored beyond is put in place again afterwards.
    """
    with penstock.open(path) as queue:
        control, before = queue._log.control, queue._log.host.bank()
        queue.append_many([payload.encode() for payload in payloads])
        after = queue._log.host.bank()
        segment = queue._log.host.active
        assert segment is not None
        assert segment.number == after.number == before.number

        def within(_mend: bool) -> None:
            take_back(control, before, after, stage, os.fspath(segment.path))
            work()
            put_back(control, after)

        control.locked(LOCKS["append"], within)


def take_back(control: Any, before: Bank, after: Bank, stage: str, data: str) -> None:
    """Undo the last stores of an append."""
    control.set_bank_word(LAYOUT["BANK_INTENT_END"], after.position)
    control.set_bank_word(LAYOUT["BANK_POSITION"], before.position)
    if stage == "counted":
        return
    control.set_bank_word(LAYOUT["BANK_NEXT_SEQUENCE"], before.next_sequence)
    control.set_bank_word(LAYOUT["BANK_LAST_CHECK"], before.last_check)
    if stage == "written":
        fd = os.open(data, os.O_RDWR)
        os.pwrite(fd, bytes(8), before.position)
        os.close(fd)


def put_back(control: Any, after: Bank) -> None:
    """Do the stores of the bank that were undone."""
    control.set_bank_word(LAYOUT["BANK_LAST_CHECK"], after.last_check)
    control.set_bank_word(LAYOUT["BANK_NEXT_SEQUENCE"], after.next_sequence)
    control.set_bank_word(LAYOUT["BANK_POSITION"], after.position)


def roll_when_told(path: str, payload: str) -> None:
    """Append a message that makes the queue roll, and stand still in the middle of the roll."""
    begin = SpareMaker.begin

    def begin_when_told(*arguments: Any) -> Any:
        tell("rolling")
        hear()
        return begin(*arguments)

    with penstock.open(path) as queue:
        SpareMaker.begin = begin_when_told  # type: ignore[method-assign, assignment]
        tell_json(queue.append(payload.encode()))
        hear()


def die_in_roll(path: str, payload: str) -> None:
    """Append a message that makes the queue roll; be killed when the new segment has its name."""
    with penstock.open(path) as queue:
        namespace: Any = appender
        namespace.bank_of = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        queue.append(payload.encode())


def die_in_compact(path: str, segments: str) -> None:
    """Drop all but so many segments; be killed when the first of their files is to go."""
    with penstock.open(path) as queue:
        namespace: Any = directory
        namespace.remove_segment = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        queue.compact(penstock.RetentionPolicy(segments=int(segments)))


def append_when_told(path: str, payload: str, stall_ms: str, flush: str = "async") -> None:
    """Append a message, and tell its sequence or the error."""
    stall = timedelta(milliseconds=int(stall_ms))
    with penstock.open(path, stall=stall, flush=MODES[flush]) as queue:
        meet()
        tell("appending")
        try:
            tell_json(queue.append(payload.encode()))
        except penstock.errors.PenstockError as error:
            tell_json(repr(error))
        hear()


def follow(path: str, read_only: str, start: str, timeout_ms: str = "") -> None:
    """Tell every message there is and that comes; with a timeout, tell when the wait is over."""
    timeout = timedelta(milliseconds=int(timeout_ms)) if timeout_ms else None
    with penstock.open(path, read_only=read_only == "read_only") as queue:
        tailer = queue.tailer("end" if start == "end" else "start")
        tell("ready")
        for message in tailer.follow(timeout):
            tell(message.payload.decode())
        tell("over")


def open_exclusive(path: str) -> None:
    """Have a queue alone until told to let go."""
    with penstock.open(path, exclusive=True) as queue:
        queue.append(b"alone")
        tell("alone")
        hear()


def open_shared(path: str, read_only: str) -> None:
    """Have a queue open until told to let go."""
    with penstock.open(path, read_only=read_only == "read_only"):
        tell("open")
        hear()


def main() -> None:
    """Play the role that is asked for."""
    from tests.processes import fork_roles

    if boot_id := os.environ.get(BOOT_ID):
        clock.boot_id = lambda: bytes.fromhex(boot_id)
    role, *arguments = sys.argv[1:]
    play: Callable[..., None] = getattr(fork_roles, role, None) or globals()[role]
    play(*arguments)


if __name__ == "__main__":
    main()
