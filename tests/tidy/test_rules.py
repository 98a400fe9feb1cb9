"""Each house rule finds a fault planted for it, and leaves good files alone."""

from pathlib import Path

import pytest

from tests.tidy import rules
from tests.tidy.rules import faults_of

OPENING = '"""A file made for a test."""\n'
RUST_OPENING = "//! A file made for a test.\n"


@pytest.fixture
def advice(tmp_path: Path):
    """Write one file and return what the rules say about it, as (line, advice)."""

    def of(text: str, name: str = "segment.py") -> list[tuple[int, str]]:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return [(fault.line, fault.advice) for fault in faults_of(path)]

    return of


def lines(count: int, text: str = "x = 1") -> str:
    """Make so many lines."""
    return f"{text}\n" * count


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.py", OPENING + lines(rules.FILE_LINES_MAX - 1)),
        ("segment.pyi", OPENING),
        ("segment.rs", RUST_OPENING + "//!\n//! And more. Much more.\n"),
        ("frame.rs", "//! A sentence that goes on\n//! in the next line.\nfn new() {}\n"),
        ("tailer.py", OPENING + "tailer = 1\nheaders = overhead = next_sequence = tailer\n"),
        ("position.py", OPENING + "import struct\nx = struct.calcsize('q')  # an offset\n"),
        ("spark/source.py", OPENING + "offset = 1\n"),
        ("base_sequence.py", OPENING),
        ("wide.py", OPENING + "#" * rules.COLUMNS_MAX + "\n"),
    ],
)
def test_a_good_file_has_no_fault(advice, name, text):
    """What is allowed is not refused."""
    assert advice(text, name) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("segment.py", "x = 1\n"),
        ("segment.py", '"""No full stop"""\n'),
        ("segment.py", '"""One sentence. Then another."""\n'),
        ("segment.py", '"""Two sentences.\nIn one paragraph."""\n'),
        ("__init__.py", ""),
        ("segment.rs", "// A sentence, but of no document.\n"),
        ("segment.rs", "//! Two sentences. In one paragraph.\n"),
        ("segment.rs", ""),
    ],
)
def test_a_file_without_its_opening_sentence_is_found(advice, name, text):
    """One sentence says what the file is: neither none nor two."""
    [(line, said)] = advice(text, name)

    assert line == 1
    assert "one sentence that says what this file is" in said


def test_a_file_of_too_many_lines_is_found(advice):
    """One line above the limit is too many."""
    [(line, said)] = advice(OPENING + lines(rules.FILE_LINES_MAX))

    assert line == rules.FILE_LINES_MAX + 1
    assert "split by subject" in said


def test_a_line_of_too_many_columns_is_found(advice):
    """One column above the limit is too many."""
    [(line, said)] = advice(OPENING + "#" * (rules.COLUMNS_MAX + 1))

    assert line == 2
    assert said == "101 columns, 100 at most"


@pytest.mark.parametrize("prefix", ["", "async "])
def test_a_python_function_of_too_many_lines_is_found(advice, prefix):
    """The line with its name counts, and a function just within the limit passes."""
    body = lines(rules.FUNCTION_LINES_MAX - 1, "    x = 1")

    assert advice(f"{OPENING}{prefix}def roll():\n{body}") == []

    [(line, said)] = advice(f"{OPENING}{prefix}def roll():\n{body}    x = 2\n")

    assert line == 2
    assert said.startswith("roll has 51 lines")


def test_a_rust_function_of_too_many_lines_is_found(advice):
    """Braces in strings, characters and comments do not count."""
    tricks = """    let a = "}"; let b = '}'; // }\n    let c = r#"}"}"#; /* } */\n"""
    body = tricks + lines(rules.FUNCTION_LINES_MAX - 4, "    if x { y() }")
    good = f"{RUST_OPENING}fn roll<'a>(x: &'a str) -> [u8; 8] {{\n{body}}}\n"

    assert advice(good, "roll.rs") == []

    bad = f"{RUST_OPENING}\nfn roll(x: [u8; 8]) {{\n{body}    z();\n}}\n"
    [(line, said)] = advice(bad, "roll.rs")

    assert line == 3
    assert said.startswith("roll has 51 lines")


@pytest.mark.parametrize("word", sorted(rules.BANNED_WORDS))
@pytest.mark.parametrize(
    "planted",
    [
        "def read_{}(): ...\n",
        "class {}: ...\n",
        "def read({}_bytes): ...\n",
        "{}s = 1\n",
        "self.last_{} = 1\n",
        "import numbers as {}\n",
        "for {} in (): ...\n",
    ],
)
def test_a_banned_word_in_a_name_is_found(advice, planted, word):
    """Wherever a file gives a name, alone, within a longer one or in the plural."""
    word_as_written = word.capitalize() if planted.startswith("class") else word
    [(line, said)] = advice(OPENING + planted.format(word_as_written))

    assert line == 2
    assert said.startswith(f"'{word}' in ")
    assert said.endswith(f"called {rules.BANNED_WORDS[word]}")


@pytest.mark.parametrize("planted", rules.UNFINISHED_NOTES)
@pytest.mark.parametrize(
    ("name", "opening", "comment"), [("a.py", OPENING, "#"), ("a.rs", RUST_OPENING, "//")]
)
def test_unfinished_business_is_found(advice, planted, name, opening, comment):
    """A note to oneself is found in any language."""
    [(line, said)] = advice(f"{opening}\n{comment} {planted} this will do\n", name)

    assert line == 3
    assert said.startswith(f"'{planted}'")


@pytest.mark.parametrize("module", sorted(rules.PICKLERS))
@pytest.mark.parametrize("planted", ["import {}", "from {} import loads", "import os, {}.x as y"])
def test_a_pickler_is_found(advice, planted, module):
    """However it is imported."""
    [(line, said)] = advice(f"{OPENING}{planted.format(module)}\n")

    assert line == 2
    assert said.startswith(module)


@pytest.mark.parametrize("stem", [*sorted(rules.SHAPELESS_NAMES), "test_utils", "queue_manager"])
@pytest.mark.parametrize(("suffix", "opening"), [("py", OPENING), ("rs", RUST_OPENING)])
def test_a_name_that_says_nothing_is_found(advice, stem, suffix, opening):
    """A file is named for what it does."""
    [(line, said)] = advice(opening, f"{stem}.{suffix}")

    assert line == 1
    assert said.startswith(f"'{stem}' says nothing")
