"""Every error: its facts as attributes, its sentence with what to do, its place in the tree."""

import copy
import errno
import inspect
import re
from pathlib import Path

import pytest

from penstock import errors
from penstock.errors import PenstockError

ORDERS = Path("/data/orders")
SEGMENT = ORDERS / "2026/01/15/20260115-0001.data"

# Each error with its facts by their names, and what its sentence says to do.
ERRORS: dict[str, tuple[dict[str, object], str]] = {
    "QueueNotFoundError": ({"path": ORDERS}, "open it for writing once, or correct the path"),
    "QueueBusyError": ({"path": ORDERS, "pids": (12, 345)}, "close it there, or open without"),
    "QueueClosedError": ({}, "open it again"),
    "ReadOnlyError": ({}, "open it without"),
    "MetadataError": (
        {"path": ORDERS / "metadata.json", "reason": "ValueError: no"},
        "bring it back",
    ),
    "ControlLostError": ({"path": ORDERS / ".control", "pids": (12,)}, "close it there first"),
    "FormatVersionError": ({"path": SEGMENT, "got": 7, "known": 1}, "install a Penstock"),
    "SequenceGoneError": ({"sequence": 3, "first_sequence": 10}, "seek there, or read with"),
    "SequenceUnknownError": ({"sequence": 12, "next_sequence": 10}, "start at 'end' to wait"),
    "PayloadTooLargeError": ({"size_bytes": 12, "limit_bytes": 10}, "split it, or keep it in"),
    "AttributesTooLargeError": (
        {"size_bytes": 12, "limit_bytes": 10},
        "put the large ones into the payload",
    ),
    "CorruptionError": (
        {
            "path": SEGMENT,
            "position": 4096,
            "sequence": 7,
            "reason": "its check is wrong",
            "next_sequence": 9,
        },
        "read again to go on behind it, or read with",
    ),
    "WriterStalledError": ({"pid": 12, "waited_seconds": 10.0}, "let it go on (SIGCONT) or end it"),
    "DiskFullError": ({"path": ORDERS, "needed_bytes": 4096}, "free some space, then"),
    "SegmentIOError": ({"path": SEGMENT, "errno": errno.EACCES}, "see to"),
    "FlushError": ({"path": SEGMENT, "errno": errno.EIO}, "close it everywhere, see to the disk"),
    "LogPoisonedError": ({"errno": errno.EIO, "cause": "a flush failed"}, "close it everywhere"),
}


def made(name: str) -> PenstockError:
    """Make an error from its facts."""
    error = getattr(errors, name)(**ERRORS[name][0])
    assert isinstance(error, PenstockError)
    return error


def classes() -> set[str]:
    """Name every class of the module but the root of the tree."""
    found = {
        name
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if kind.__module__ == errors.__name__
    }
    return found - {"PenstockError"}


def test_the_tree_in_the_docstring_is_the_tree_of_classes():
    """Who reads the docstring knows every error there is."""
    drawn = re.findall(r"^[├└]── (\w+) {2,}\S", errors.__doc__ or "", re.MULTILINE)

    assert sorted(classes()) == sorted(drawn)


def test_every_error_is_held_against_these_claims():
    """A new error must say its facts and its advice here."""
    assert classes() == set(ERRORS)


def test_every_error_stands_right_below_the_root():
    """One name catches them all, and no error is taken for another."""
    parents = {getattr(errors, name).__bases__ for name in ERRORS}

    assert {(PenstockError,)} == parents


@pytest.mark.parametrize("name", ERRORS)
def test_facts_are_attributes(name):
    """A program reads the facts, not the sentence."""
    facts, _ = ERRORS[name]

    assert facts == vars(made(name))


@pytest.mark.parametrize("name", ERRORS)
def test_the_sentence_names_each_fact(name):
    """A person reads the sentence, not the attributes."""
    sentence = str(made(name))
    said = {
        "pids": lambda pids: ", ".join(map(str, pids)),
        "errno": lambda number: "" if name == "LogPoisonedError" else f"(errno {number})",
    }
    missing = [
        fact
        for fact, value in ERRORS[name][0].items()
        if said.get(fact, str)(value) not in sentence
    ]

    assert [] == missing


@pytest.mark.parametrize("name", ERRORS)
def test_the_sentence_says_what_to_do(name):
    """Whoever meets an error knows the next step."""
    assert ERRORS[name][1] in str(made(name))


@pytest.mark.parametrize("name", ERRORS)
def test_the_sentence_is_one_line(name):
    """It stands in a log as it is."""
    assert [str(made(name))] == str(made(name)).splitlines()


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_can_be_made_again_from_its_arguments(name):
    """Other processes hand errors around as a class and its arguments."""
    error = made(name)
    again = type(error)(*error.args)

    assert (str(error), vars(error)) == (str(again), vars(again))


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("how", [copy.copy, copy.deepcopy])
def test_a_copy_of_an_error_is_the_same_error(name, how):
    """Test runners and thread pools copy errors."""
    error = made(name)
    copied = how(error)

    assert (type(error), str(error), vars(error)) == (type(copied), str(copied), vars(copied))


def test_damage_of_a_header_is_no_message():
    """Where no message is known, none is named."""
    sentence = str(errors.CorruptionError(SEGMENT, 0, None, "its check is wrong"))

    assert sentence.startswith(f"a header is damaged at byte 0 of {SEGMENT} (its check is wrong): ")


def test_unknown_processes_are_not_named():
    """A sentence never says 'by process' and then nothing."""
    sentences = [
        str(error(ORDERS, ())) for error in (errors.QueueBusyError, errors.ControlLostError)
    ]

    assert [] == [sentence for sentence in sentences if "process" in sentence]
