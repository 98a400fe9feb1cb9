"""What the README and the docstrings show is what happens."""

import doctest
import re
from datetime import timedelta
from pathlib import Path

import pytest

import penstock
from penstock import kernel
from penstock.log import compact
from penstock.message import datetime_of

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON_BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
EXPLAINED = [
    *(getattr(penstock, name) for name in penstock.__all__ if name != "errors"),
    kernel.Appender,
    kernel.Tailer,
    compact.segments_to_drop,
    datetime_of,
]
# These show the first appends to a new queue; all others find two messages there.
FIRST_APPENDS = ("append", "append_many", "transaction")


def examples() -> list[doctest.DocTest]:
    """Find every docstring of the public names that shows something."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = [test for thing in EXPLAINED for test in finder.find(thing, module=False)]
    return [test for test in found if test.examples]


def test_the_readme_shows_python():
    """A README without examples would pass every test of them."""
    assert len(PYTHON_BLOCKS) >= 4


def test_the_examples_of_the_readme_run(tmp_path, monkeypatch):
    """One after the other in one folder, as a reader would type them."""
    pytest.importorskip("pyarrow", reason="the README reads Arrow batches")
    monkeypatch.chdir(tmp_path)

    for block in PYTHON_BLOCKS:
        exec(compile(block, "README.md", "exec"), {})  # noqa: S102 - running it is the test.


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_the_example_of_a_docstring_runs(example, tmp_path, monkeypatch):
    """What it shows is what the interpreter prints."""
    monkeypatch.chdir(tmp_path)
    with penstock.open("of-the-examples") as queue:
        if not example.name.endswith(FIRST_APPENDS):
            queue.append_many([b"hello", b"world"])
        names = {"penstock": penstock, "queue": queue, "tailer": queue.tailer()}
        example.globs = vars(penstock) | vars(compact) | names | {"datetime_of": datetime_of}
        example.globs |= {"timedelta": timedelta}

        assert doctest.TestResults(0, len(example.examples)) == doctest.DocTestRunner().run(example)
