"""The tables of docs/format.md and the kernel's constants are the same."""

import itertools
import re
from pathlib import Path
from typing import NamedTuple

from penstock.kernel import LAYOUT

PAGE = Path(__file__).parents[2] / "docs/format.md"
COLUMNS: set[tuple[str, ...]] = {
    ("name", "at", "bytes", "meaning"),
    ("name", "value", "bytes", "meaning"),
}
COLUMNS |= {("name", "value", "meaning")}
ROW = re.compile(r"\|(.*)\|")


class Row(NamedTuple):
    """One constant as the page has it."""

    table: int
    name: str
    value: int
    is_place: bool
    bytes: str
    meaning: str


def cells_of(line: str) -> tuple[str, ...]:
    """Part a line of a table into its cells; a line that is none has no cells."""
    found = ROW.fullmatch(line.strip())
    return tuple(cell.strip() for cell in found[1].split("|")) if found else ()


def rows_of(page: str) -> list[Row]:
    """List the rows of every table whose columns say that it holds constants."""
    rows: list[Row] = []
    columns: tuple[str, ...] = ()
    for number, line in enumerate(page.splitlines()):
        cells = cells_of(line)
        if not cells:
            columns = ()
        elif cells in COLUMNS:
            columns, table = cells, number
        elif columns and not set("".join(cells)) <= set("-:"):
            said = dict(zip(columns, cells, strict=True))
            value = said.get("at", said.get("value", ""))
            named = said["name"].strip("`")
            place = "at" in said
            row = Row(table, named, int(value, 0), place, said.get("bytes", ""), said["meaning"])
            rows.append(row)
    return rows


ROWS = rows_of(PAGE.read_text(encoding="utf-8"))


def test_every_constant_stands_in_the_page_with_its_value():
    """No byte is left to be found in the source."""
    told = {row.name: row.value for row in ROWS}

    assert LAYOUT == told


def test_no_constant_stands_in_the_page_twice():
    """Of two rows one would go false unnoticed."""
    names = [row.name for row in ROWS]

    assert sorted(set(names)) == sorted(names)


def test_every_row_says_what_it_means():
    """A number without a meaning helps nobody."""
    mute = [row.name for row in ROWS if not row.meaning]

    assert [] == mute


def test_fields_of_one_table_stand_in_order_and_do_not_overlap():
    """The width of a field is only in the page, so it is held against the next field's place."""
    pairs = itertools.pairwise(row for row in ROWS if row.is_place)
    clashes = [
        (row.name, after.name)
        for row, after in pairs
        if row.table == after.table and row.value + int(row.bytes) > after.value
    ]

    assert [] == clashes


def test_a_false_number_or_a_lost_row_would_be_noticed():
    """A parser that sees no rows would find every page true."""
    page = "| name | at | bytes | meaning |\n|--|--|--|--|\n| `A` | 0x3 | 8 | seal |\n\n| `X` | 4 |"

    assert [Row(0, "A", 3, True, "8", "seal")] == rows_of(page)
