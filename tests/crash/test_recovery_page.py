"""States R to T of docs/durability.md: the control page or the lock file is not as it was."""

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.kernel import LAYOUT
from tests.crash.damages import DAMAGES, copied, missing
from tests.crash.editing import Page, fill_with_garbage, flip, write
from tests.crash.states import active, found_in, log_with, sealed

PAGE_WORDS = sorted(
    at
    for name, at in LAYOUT.items()
    if name.startswith("CONTROL_") and name.endswith("_AT") and name != "CONTROL_ALIVE_AT"
)
BITS = (0, 13, 62, 29, 40)
BANK_WORDS = sorted(at for name, at in LAYOUT.items() if name.startswith("BANK_"))


@pytest.mark.parametrize("damage", DAMAGES)
def test_state_r_a_page_that_cannot_be_used_is_made_anew(queue_path, left, damage):
    """The messages are in the segments, and memory holds all of them."""
    left(queue_path)
    damage(Page(queue_path).path)
    found = found_in(queue_path)

    assert (list(range(15)), [], []) == (found.sequences, found.told, found.faults)
    assert found.appended is not None
    assert found.appended >= 15
    assert found.durable_sequence <= found.appended


def test_state_r_the_page_of_another_queue_is_not_believed(queue_path, left, tmp_path):
    """It is whole, and of this boot, and about other messages."""
    log_with(tmp_path / "other", active(90), closed=True)
    left(queue_path)
    write(Page(queue_path).path, 0, Page(tmp_path / "other").path.read_bytes())
    found = found_in(queue_path)

    assert (list(range(15)), [], []) == (found.sequences, found.told, found.faults)
    assert found.durable_sequence <= 15


def test_state_r_a_copy_of_a_queue_is_a_queue_of_its_own(queue_path, left, tmp_path):
    """What the copy's page says is true of the original, and becomes false of the copy."""
    left(queue_path)
    copy = tmp_path / "copy"
    for path in [path for path in queue_path.rglob("*") if path.is_file()]:
        target = copy / path.relative_to(queue_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    log_with(queue_path, active(2))
    found = found_in(copy)

    assert (list(range(15)), [], []) == (found.sequences, found.told, found.faults)
    assert list(range(17)) == found_in(queue_path).sequences


def test_state_r_an_older_page_is_not_believed_against_the_messages(queue_path):
    """A page put back in place once took a whole segment away."""
    log_with(queue_path, active(5))
    old = Page(queue_path).path.read_bytes()
    log_with(queue_path, sealed(5), sealed(5), active(5), closed=True)
    write(Page(queue_path).path, 0, old)
    found = found_in(queue_path)

    assert (list(range(20)), [], []) == (found.sequences, found.wrong, found.told)
    assert found.appended is not None
    assert found.appended >= 20


@pytest.mark.slow
@pytest.mark.parametrize("boots", ["same boot", "other boot"])
def test_state_r_one_flipped_bit_harms_no_message(memory_path, left, boots, reboot):
    """A page is believed as far as it is true of the segments."""
    banks = [LAYOUT["CONTROL_BANKS_AT"] + LAYOUT["CONTROL_BANK_BYTES"] * index for index in (0, 1)]
    words = [*PAGE_WORDS, *(bank + word for bank in banks for word in BANK_WORDS)]
    roots = {word: memory_path / str(word) for word in words}
    for index, (word, root) in enumerate(roots.items()):
        left(root)
        bit = BITS[index % len(BITS)]
        flip(Page(root).path, word + bit // 8, bit % 8)
    if boots == "other boot":
        reboot()
    wrong = {}
    for word, root in roots.items():
        found = found_in(root)
        whole = (None, list(range(15)), list[int](), list[object]())
        as_found = (found.error, found.sequences, found.wrong, found.told)
        goes_on = max(15, found.durable_sequence) <= (found.appended or 0)
        if whole != as_found or not goes_on:
            wrong[word] = found

    assert {} == wrong


def refused_while_open(root: Path, accident: Callable[[], object]) -> tuple[str, list[int]]:
    """Tell what a newcomer hears, and what the one who has the queue open can still do."""
    heard = root.with_name("heard")

    def newcomer() -> None:
        accident()
        heard.write_text(str(found_in(root).error).partition(":")[0])

    found = found_in(root, accident=newcomer)
    return heard.read_text(), [*found.sequences, found.appended or 0]


@pytest.mark.parametrize("damage", [missing, copied])
def test_state_s_a_page_that_is_lost_while_in_use_keeps_newcomers_out(queue_path, damage):
    """Two pages would mean two writers that do not know of each other."""
    log_with(queue_path, active(5))
    heard, sequences = refused_while_open(queue_path, lambda: damage(Page(queue_path).path))

    assert ("ControlLostError", list(range(6))) == (heard, sequences)


def test_state_s_once_it_is_closed_the_queue_opens_again(queue_path):
    """Nothing is lost by it."""
    log_with(queue_path, active(5))
    refused_while_open(queue_path, Page(queue_path).path.unlink)
    found = found_in(queue_path)

    assert (list(range(6)), 6, []) == (found.sequences, found.appended, found.faults)


def test_state_t_a_lock_file_that_is_lost_while_in_use_keeps_newcomers_out(queue_path):
    """The page itself is known to be in use."""
    log_with(queue_path, active(5))
    heard, sequences = refused_while_open(queue_path, (queue_path / ".lock").unlink)

    assert ("ControlLostError", list(range(6))) == (heard, sequences)


@pytest.mark.parametrize("damage", [missing, copied, fill_with_garbage])
def test_state_t_a_lock_file_that_nobody_uses_is_made_anew(queue_path, left, damage):
    """It holds no bytes that count."""
    left(queue_path)
    damage(queue_path / ".lock")
    found = found_in(queue_path)

    assert (list(range(15)), 15) == (found.sequences, found.appended)
    assert ([], []) == (found.told, found.faults)
