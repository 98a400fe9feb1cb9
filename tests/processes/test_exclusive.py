"""Who opens a queue for itself alone has no company, and death ends its claim at once."""

import pytest

import penstock
from penstock.errors import QueueBusyError

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("access", ["writing", "read_only"])
def test_being_alone_is_refused_while_others_are_there(queue_path, play, access):
    """Readers are company too."""
    penstock.open(queue_path).close()
    play("open_shared", queue_path, access).expect("open")
    with pytest.raises(QueueBusyError) as caught:
        penstock.open(queue_path, exclusive=True)

    assert queue_path == caught.value.path


@pytest.mark.parametrize("read_only", [False, True])
def test_company_is_refused_while_one_is_alone(queue_path, play, read_only):
    """It names the process that has the queue, as far as the caller may know."""
    alone = play("open_exclusive", queue_path)
    alone.expect("alone")
    with pytest.raises(QueueBusyError) as caught:
        penstock.open(queue_path, read_only=read_only)

    assert caught.value.pids in ((alone.pid,), ()) if read_only else (alone.pid,)


def test_a_refused_open_names_who_is_there(queue_path, play):
    """The error says which process to end."""
    alone = play("open_exclusive", queue_path)
    alone.expect("alone")
    with pytest.raises(QueueBusyError) as caught:
        penstock.open(queue_path)

    assert (alone.pid,) == caught.value.pids


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_killed_process_frees_the_queue_at_once(queue_path, play, exclusive):
    """The system lets go of what a dead process held; nothing waits for a timer."""
    alone = play("open_exclusive", queue_path)
    alone.expect("alone")
    alone.kill()
    with penstock.open(queue_path, exclusive=exclusive) as queue:
        sequence = queue.append(b"next")

        assert 1 == sequence
        assert [b"alone", b"next"] == [message.payload for message in queue.tailer()]


def test_a_refused_open_keeps_nothing(queue_path, play):
    """When the company has left, being alone is granted to the same process."""
    shared = play("open_shared", queue_path, "writing")
    shared.expect("open")
    with pytest.raises(QueueBusyError):
        penstock.open(queue_path, exclusive=True)
    shared.say("let go")
    shared.wait()
    with penstock.open(queue_path, exclusive=True) as queue:
        assert 0 == queue.append(b"alone")


def test_a_closed_handle_that_is_still_referred_to_holds_nothing(queue_path):
    """Its mapping kept the file open that said that it lived, so nobody was ever the last."""
    first = penstock.open(queue_path)
    first.append(b"before")
    first._log.control.poison(5, "a flush failed")
    first.close()
    with penstock.open(queue_path) as second:
        assert second.stats().poisoned is None
        assert 1 == second.append(b"after")
