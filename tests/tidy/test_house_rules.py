"""Every file of ours keeps the house rules."""

import re
from pathlib import Path

from tests.tidy.rules import BANNED_WORDS, faults_of

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "kernel/src", "tests", "bench", "examples")
SUFFIXES = {".py", ".pyi", ".rs"}


def our_files() -> list[Path]:
    """List the files that people read."""
    found = (path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))
    return sorted(path.relative_to(ROOT) for path in found if path.suffix in SUFFIXES)


def test_the_rules_see_each_kind_of_file():
    """A rule that looks at nothing keeps nothing."""
    seen = {path.suffix for path in our_files()}

    assert seen == SUFFIXES


def test_house_rules_are_kept():
    """Each fault says where it is and what to do."""
    faults = [fault._replace(path=path) for path in our_files() for fault in faults_of(ROOT / path)]

    assert not faults, "\n" + "\n".join(map(str, faults))


def test_glossary_names_each_banned_word():
    """Who is refused a word finds in the glossary which one to use."""
    rows = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").splitlines()
    listed = set(re.findall(r"`(\w+)`", " ".join(row.rpartition("| ")[2] for row in rows)))

    assert listed == set(BANNED_WORDS)
