"""The house rules a machine can check, each a function from a file to its faults."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FILE_LINES_MAX = 350  # a reader holds one file in mind
FUNCTION_LINES_MAX = 50  # a function fits a screen
COLUMNS_MAX = 100  # two files fit side by side

BANNED_WORDS = {
    "bookmark": "cursor",
    "broker": "queue",
    "chunk": "segment",
    "dequeue": "receive",
    "dlq": "dead letters",
    "enqueue": "append",
    "excerpt": "message",
    "head": "first_sequence",
    "msg": "message",
    "offset": "sequence (which message) or position (which byte)",
    "purge": "compact",
    "rotate": "roll",
    "shard": "partition",
    "subscriber": "tailer",
    "tail": "next_sequence, or tailer for a reader",
    "wal": "log",
}
# Spark's interface and the other systems in the benchmarks have words of their own.
OTHERS_WORDS_FOLDERS = {"spark", "peers", "rivals"}

# Held apart by a tilde, so that this file keeps its own rule.
UNFINISHED_NOTES = "TO~DO|FIX~ME|XX~X|MV~P|for~ now|For~ now".replace("~", "").split("|")
UNFINISHED = re.compile(rf"\b(?:{'|'.join(UNFINISHED_NOTES)})\b")
PICKLERS = {"cloudpickle", "dill", "pickle", "shelve"}
SHAPELESS_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}

RUST_SILENCED = re.compile(
    r"""
      //[^\n]*                                  # a comment to the end of the line
    | /\*.*?\*/                                 # a comment between marks
    | r(?P<hashes>\#*)".*?"(?P=hashes)          # a raw string
    | "(?:\\.|[^"\\])*"                         # a string
    | '(?:\\(?:x..|u\{[^}]*\}|.)|[^'\\])'       # a character, which a lifetime is not
    """,
    re.DOTALL | re.VERBOSE,
)
RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)(?:\[[^\]]*\]|[^;{\[])*\{")


class Fault(NamedTuple):
    """A broken rule: where, and what to do about it."""

    path: Path
    line: int
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.advice}"


def faults_of(path: Path) -> list[Fault]:
    """Hold one Python, stub or Rust file against every rule that speaks of it."""
    text = path.read_text(encoding="utf-8")
    faults = [
        *shapeless_name(path),
        *too_long_file(path, text),
        *too_wide_lines(path, text),
        *unfinished_business(path, text),
    ]
    if path.suffix == ".rs":
        faults += [*rust_opening(path, text), *too_long_rust_functions(path, text)]
    else:
        tree = ast.parse(text, filename=str(path))
        faults += [
            *python_opening(path, tree),
            *too_long_python_functions(path, tree),
            *banned_words(path, tree),
            *picklers(path, tree),
        ]
    return sorted(faults)


def shapeless_name(path: Path) -> Iterator[Fault]:
    """Refuse names that say a file holds whatever was left over."""
    stem = path.stem.strip("_").removeprefix("test_")
    if stem in SHAPELESS_NAMES or stem.rpartition("_")[2] in SHAPELESS_NAMES:
        yield Fault(path, 1, f"'{path.stem}' says nothing: name the file for what it does")


def too_long_file(path: Path, text: str) -> Iterator[Fault]:
    """Refuse files nobody reads to the end."""
    count = len(text.splitlines())
    if count > FILE_LINES_MAX:
        yield Fault(path, count, f"{count} lines, {FILE_LINES_MAX} at most: split by subject")


def too_wide_lines(path: Path, text: str) -> Iterator[Fault]:
    """Refuse lines that do not fit beside another file."""
    for number, line in enumerate(text.splitlines(), start=1):
        if len(line) > COLUMNS_MAX:
            yield Fault(path, number, f"{len(line)} columns, {COLUMNS_MAX} at most")


def unfinished_business(path: Path, text: str) -> Iterator[Fault]:
    """Refuse notes to oneself."""
    for number, line in enumerate(text.splitlines(), start=1):
        if found := UNFINISHED.search(line):
            yield Fault(path, number, f"'{found.group()}': do it, or open an issue")


def python_opening(path: Path, tree: ast.Module) -> Iterator[Fault]:
    """Ask for a docstring whose first line is one sentence."""
    docstring = ast.get_docstring(tree)
    if docstring is None or not is_one_sentence(docstring.partition("\n\n")[0]):
        yield Fault(path, 1, "open with a docstring: one sentence that says what this file is")


def rust_opening(path: Path, text: str) -> Iterator[Fault]:
    """Ask for a `//!` comment whose first paragraph is one sentence."""
    lines = text.splitlines()
    opening: list[str] = []
    for line in lines:
        words = line.removeprefix("//!").strip()
        if not line.startswith("//!") or not words:
            break
        opening.append(words)
    if not is_one_sentence(" ".join(opening)):
        yield Fault(path, 1, "open with `//!`: one sentence that says what this file is")


def is_one_sentence(text: str) -> bool:
    """Tell a sentence from none and from several."""
    return text.endswith(".") and not re.search(r"[.!?]\s+[A-Z]", text)


def too_long_python_functions(path: Path, tree: ast.Module) -> Iterator[Fault]:
    """Refuse functions that do not fit a screen."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            count = (node.end_lineno or node.lineno) - node.lineno + 1
            yield from too_long_function(path, node.lineno, node.name, count)


def too_long_rust_functions(path: Path, text: str) -> Iterator[Fault]:
    """Refuse functions that do not fit a screen, found by their braces."""
    bare = RUST_SILENCED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    for found in RUST_FUNCTION.finditer(bare):
        depth, end = 1, found.end()
        while depth and end < len(bare):
            depth += {"{": 1, "}": -1}.get(bare[end], 0)
            end += 1
        line = bare.count("\n", 0, found.start()) + 1
        count = bare.count("\n", found.start(), end) + 1
        yield from too_long_function(path, line, found.group(1), count)


def too_long_function(path: Path, line: int, name: str, count: int) -> Iterator[Fault]:
    """Compare one function's length with the limit."""
    if count > FUNCTION_LINES_MAX:
        advice = f"{name} has {count} lines, {FUNCTION_LINES_MAX} at most: part it into steps"
        yield Fault(path, line, advice)


def banned_words(path: Path, tree: ast.Module) -> Iterator[Fault]:
    """Refuse words that have another meaning elsewhere, in the names this file gives."""
    if OTHERS_WORDS_FOLDERS.intersection(path.parts):
        return
    for line, name in names_given(tree):
        for word in words_of(name):
            if word in BANNED_WORDS:
                advice = f"'{word}' in '{name}': here it is called {BANNED_WORDS[word]}"
                yield Fault(path, line, advice)


def names_given(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """List what the file itself names: what it merely uses was named by others."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def words_of(name: str) -> list[str]:
    """Part a name into its words, each in the singular."""
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return [word.lower().removesuffix("s") for word in words]


def picklers(path: Path, tree: ast.Module) -> Iterator[Fault]:
    """Refuse modules that run what they read."""
    for line, module in modules_imported(tree):
        if module.partition(".")[0] in PICKLERS:
            yield Fault(path, line, f"{module} runs what it reads: payloads are bytes")


def modules_imported(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """List each module with the line that asks for it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""
