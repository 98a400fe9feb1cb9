"""Each letter in the table of docs/durability.md has a test, and each test a letter there."""

import re
from pathlib import Path

CRASH = Path(__file__).parent
DURABILITY = CRASH.parents[1] / "docs/durability.md"


def letters_of_the_table() -> list[str]:
    """List the letters of the rows, in their order."""
    return re.findall(r"^\| ([A-Z]) \|", DURABILITY.read_text(encoding="utf-8"), re.MULTILINE)


def letters_of_the_tests() -> set[str]:
    """List the letters in the names of tests."""
    text = "".join(path.read_text(encoding="utf-8") for path in CRASH.glob("test_recovery_*.py"))
    return {
        letter.upper() for letter in re.findall(r"^def test_state_([a-z])_", text, re.MULTILINE)
    }


def test_each_letter_stands_once_and_in_order():
    """A letter names one state."""
    letters = letters_of_the_table()

    assert sorted(set(letters)) == letters


def test_each_state_of_the_table_has_a_test():
    """A row that nobody tests goes false."""
    assert letters_of_the_tests() == set(letters_of_the_table())


def test_the_flush_modes_are_the_table_of_the_promise():
    """The modes that can be asked for are those of which something is promised."""
    rows = re.findall(r"^\| `(?:FlushMode\.)?(\w+)", DURABILITY.read_text("utf-8"), re.MULTILINE)

    assert ["ASYNC", "batch", "SYNC"] * 2 == rows
