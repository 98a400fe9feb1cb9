"""A queue that was open at a fork serves both processes, and neither keeps the other's locks."""

import os

import pytest

import penstock
from penstock import RollStrategy
from penstock.kernel import LAYOUT, lock_byte
from tests.processes.children import files_of, state_of, until

pytestmark = pytest.mark.slow

ROLL = RollStrategy.by_count(100)
GATE_AT, ALIVE_AT = LAYOUT["LOCK_GATE_AT"], LAYOUT["CONTROL_ALIVE_AT"]


def test_a_forked_child_appends_and_reads(queue_path, play):
    """What is inherited works in the child as in the parent."""
    parent = play("fork_and_use", queue_path)

    assert ["child", ["before", "child"]] == parent.hear_json()
    assert [0, ["child", "parent"]] == parent.hear_json()


def test_a_forked_child_keeps_the_promise_of_the_flush_mode(queue_path, play):
    """SYNC waits in the child too, and a child that appends has a thread that flushes."""
    parent = play("fork_and_flush", queue_path)

    assert ["sync", 0] == parent.hear_json()
    assert ["batch", 0] == parent.hear_json()


@pytest.mark.parametrize("lock", ["append", "flush", "maintenance"])
def test_the_death_of_a_parent_is_seen_while_its_child_lives(queue_path, play, lock):
    """The child of a fork gives up what belongs to the parent, so that its locks go with it."""
    parent = play("fork_and_die", queue_path, lock)
    parent.expect("child lives")
    until(lambda: state_of(parent.pid) == "T", "the parent's halt")
    parent.kill()
    with penstock.open(queue_path, flush=penstock.FlushMode.SYNC) as queue:
        sequence = queue.append(b"after")
        queue.flush()
        queue.compact()

        assert 0 == sequence
        assert 1 <= queue.stats().takeovers


@pytest.mark.parametrize(
    ("how", "payloads"),
    [
        ("end", ["before", "after"]),
        ("close", ["before", "after"]),
        ("close after use", ["before", "child", "after"]),
        ("exit", ["before", "after"]),
        ("exit after use", ["before", "child", "after"]),
    ],
)
def test_the_end_of_a_child_leaves_the_parent_as_it_was(queue_path, play, how, payloads):
    """Whatever the child does at its end, the parent still has its place and appends."""
    parent = play("fork_and_end", queue_path, how)

    assert [0, True, payloads] == parent.hear_json()


def test_closing_in_the_child_closes_there_only(queue_path, play):
    """Each process has a handle of its own after the fork."""
    parent = play("fork_and_close_in_child", queue_path)

    assert "closed in the child" == parent.hear()
    assert [0, ["parent"]] == parent.hear_json()


def test_processes_of_the_fork_context_share_a_queue(queue_path, play):
    """A queue may be handed to multiprocessing.Process."""
    count = 200
    parent = play("fork_by_multiprocessing", queue_path, count)

    assert [0, 0, 0, 0] == parent.hear_json()
    with penstock.open(queue_path) as queue:
        found = sorted(message.payload for message in queue.tailer())
    assert sorted(f"worker {w} {n}".encode() for w in range(4) for n in range(count)) == found


def test_a_fork_while_other_threads_append_loses_nothing(queue_path, play):
    """A thread that is inside an append at the moment of the fork is not there in the child."""
    forks, count = 10, 30
    with penstock.open(queue_path, segment_bytes=1 << 20, roll=ROLL):
        parent = play("fork_while_appending", queue_path, forks, count)
        statuses, (small, big) = parent.hear_json()
    with penstock.open(queue_path) as queue:
        found = [bytes(message.payload[:20]) for message in queue.tailer()]

    assert [0] * forks == statuses
    assert (small, big) == (found.count(b"small"), found.count(b"x" * 20))
    for number in range(forks):
        name = f"child {number}"
        told = [payload for payload in found if payload.startswith(f"{name} ".encode())]
        assert [f"{name} {each}".encode() for each in range(count)] == told


def test_a_fork_during_open_keeps_no_lock_alive(queue_path, play):
    """A handle that another thread was just opening belongs to the parent too."""
    parent = play("fork_during_open", queue_path)
    parent.expect("child lives")
    until(lambda: state_of(parent.pid) == "T", "the parent's halt")
    parent.kill()
    with penstock.open(queue_path) as queue:
        sequence = queue.append(b"after")

        assert 0 == sequence


def test_a_child_that_takes_its_place_waits_for_who_is_opening(queue_path, play):
    """While another process judges alone whether to recover, nobody may begin to append."""
    parent = play("fork_and_use_later", queue_path)
    child = int(parent.hear())
    control, lock = (os.open(queue_path / name, os.O_RDWR) for name in (".control", ".lock"))
    try:
        until(lambda: lock_byte(control, ALIVE_AT, "exclusive"), "being alone")
        until(lambda: lock_byte(lock, GATE_AT, "exclusive"), "having the gate")
        parent.say("go on")
        until(lambda: ".lock" in files_of(child) and state_of(child) == "S", "the child's wait")
        lock_byte(control, ALIVE_AT, "none")
        lock_byte(lock, GATE_AT, "none")
        heard = parent.hear_json()
        is_known_to_live = not lock_byte(control, ALIVE_AT, "exclusive")
    finally:
        os.close(control)
        os.close(lock)

    assert [1, ["before", "child"]] == heard
    assert is_known_to_live
