"""Makes the report: the figures held against the targets, and all that was measured."""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from plan import CHRONICLE, KERNEL, MACHINE, PARTICIPANTS, WORKLOADS, Key
from targets import ROWS, Figures, Row, Spread

Outcome = dict[str, object]

NONE = "-"
# From here on others take from two cores what a benchmark with a background thread needs.
BUSY_CORES = 0.3
# What is shown beside the first figure of a workload, and what it is called there.
LABELS = {
    "ns": "payload not taken",
    "warm_ns": "on warm pages",
    "p50": "p50",
    "p99": "p99",
    "p999": "p99.9",
    "p9999": "p99.99",
    "max": "at most",
    "roll_max": "worst at a roll",
    "rate": "",
}


def markdown(outcome: Outcome) -> str:
    """The whole report as text."""
    figures = figures_of(outcome)
    parts = [
        "# Benchmarks",
        _machine(outcome),
        "## Against the targets",
        *_judged(figures),
        "## All that was measured",
        "Time for one message, least to most of all rounds in brackets; shorter is better.",
        _everything(outcome, figures),
        "## How each is set up",
        "\n".join(_modes(outcome)),
    ]
    if left_out := list(_left_out(outcome)):
        parts += ["## Not measured", "\n".join(left_out)]
    return "\n\n".join(parts) + "\n"


def write_json(outcome: Outcome, path: Path) -> None:
    """All raw figures, and each target with its judgement."""
    figures = figures_of(outcome)
    targets = [
        {
            **row.key()._asdict(),
            "title": row.title,
            "figure": row.figure,
            "penstock": row.ours(figures),
            "machine": figures.spread(row.key(MACHINE), row.figure),
            "kernel": figures.spread(row.key(KERNEL), row.figure),
            "best_peer": figures.best_peer(row),
            "chronicle": figures.spread(row.key(CHRONICLE), row.figure),
            "claims": [
                {"text": claim.text, "ratio": ratio, "met": met}
                for claim in row.claims
                for ratio, met in [claim.judge(figures, row)]
            ],
        }
        for row in ROWS
    ]
    text = json.dumps(outcome | {"targets": targets}, indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def figures_of(outcome: Outcome) -> Figures:
    """The figures by key, as they come from a run or from its JSON file."""
    return Figures({key_of(cell): cell["rounds"] for cell in outcome["cells"]})


def key_of(cell: dict[str, object]) -> Key:
    return Key(cell["workload"], cell["size"], cell["participant"])


def _machine(outcome: Outcome) -> str:
    facts, settings = outcome["facts"], outcome["settings"]
    memory = facts["memory_bytes"] / (1 << 30)
    busy = [one["others_cores"] for cell in outcome["cells"] for one in cell["busy"]]
    lines = [
        f"{facts['cpu']}, {facts['cores']} cores, {memory:.0f} GiB"
        + (", virtual" if facts["virtual"] else ""),
        f"{facts['kernel']}, {facts['filesystem']}, {facts['python']}",
        f"Penstock {facts['penstock'] or '?'}, commit {facts['commit']}, {facts['date']}",
        f"{settings['rounds']} rounds in turns; what is shown is the median"
        + (", quick" if settings["quick"] else ""),
    ]
    if busy:
        middle = statistics.median(busy)
        lines.append(
            f"Meanwhile others, the operating system among them, used {middle:.2f} cores (median of"
            f" all runs), {max(busy):.2f} at most"
        )
        if middle > BUSY_CORES:
            lines.append("**The machine was not quiet: these figures are not to be quoted.**")
    return "\n".join(f"- {line}" for line in lines)


def _judged(figures: Figures) -> Iterator[str]:
    """The table of targets, and how many are met."""
    lines, verdicts = [], []
    for row in ROWS:
        if not figures.tried(row):
            continue
        judged = [(claim, *claim.judge(figures, row)) for claim in row.claims]
        verdicts += [held for _, _, held in judged]
        lines.append(_target_line(figures, row, judged))
    words = {True: "met", False: "fall short", None: "not measured"}
    yield ", ".join(f"{verdicts.count(held)} {word}" for held, word in words.items()) + "."
    yield "\n".join(
        [
            "| | size | Penstock | the machine | best Python peer | Chronicle | target | |",
            "|--|--|--:|--:|--:|--:|--|--|",
            *lines,
        ]
    )


def _target_line(figures: Figures, row: Row, judged: Iterable[tuple]) -> str:
    best = figures.best_peer(row)
    cells = [
        row.title,
        row.size,
        with_range(row.ours(figures), row.higher),
        _limits(figures, row),
        NONE if best is None else f"{best[0]} {_against(figures, row, best[1])}",
        _against(figures, row, figures.spread(row.key(CHRONICLE), row.figure)),
        "<br>".join(claim.text for claim, _, _ in judged) or NONE,
        "<br>".join(_verdict(ratio, held) for _, ratio, held in judged),
    ]
    return f"| {' | '.join(cells)} |"


def _limits(figures: Figures, row: Row) -> str:
    """What the machine allows, and the kernel without Python where that was measured."""
    machine = _against(figures, row, figures.spread(row.key(MACHINE), row.figure))
    kernel = figures.spread(row.key(KERNEL), row.figure)
    return machine if kernel is None else f"{machine}<br>kernel {_against(figures, row, kernel)}"


def _verdict(ratio: str, held: bool | None) -> str:
    word = {True: "met", False: "**falls short**", None: "not measured"}[held]
    return f"{word} ({ratio})" if ratio else word


def _against(figures: Figures, row: Row, other: Spread | None) -> str:
    """Another's figure, and how many times better Penstock is."""
    if other is None:
        return NONE
    advantage = row.advantage(figures, other)
    shown = quantity(other.median, row.higher)
    return shown if advantage is None else f"{shown} ({_significant(advantage)} x)"


def _everything(outcome: Outcome, figures: Figures) -> str:
    main = {workload.name: workload.figure for workload in WORKLOADS}
    lines = ["| | size | | time | further |", "|--|--|--|--:|--|"]
    for cell in outcome["cells"]:
        key, names = key_of(cell), [name for one in cell["rounds"][:1] for name in one]
        if not names:
            continue
        first = main[key.workload]
        others = [
            f"{LABELS[name]} {with_range(figures.spread(key, name), name == 'rate')}".lstrip()
            for name in LABELS
            if name in names and name != first and not (name == "ns" and "us" in names)
        ]
        busy = statistics.median(one["others_cores"] for one in cell["busy"])
        if busy > BUSY_CORES:
            others.append(f"while others used {busy:.1f} cores")
        time = with_range(figures.spread(key, first), higher=False)
        lines.append(
            f"| {key.workload} | {key.size} | {key.participant} | {time} | {', '.join(others)} |"
        )
    return "\n".join(lines)


def _modes(outcome: Outcome) -> Iterator[str]:
    for name in PARTICIPANTS:
        if about := outcome["participants"].get(name):
            version = f" {about['version']}" if about["version"] else ""
            yield f"- **{name}{version}**: {about['mode']}"


def _left_out(outcome: Outcome) -> Iterator[str]:
    for name, reason in outcome["skipped"].items():
        yield f"- **{name}**: {reason}"
    for cell in outcome["cells"]:
        if cell["failure"]:
            yield f"- {key_of(cell)}: {cell['failure']}"


def with_range(spread: Spread | None, higher: bool) -> str:
    """The middle with least and most, all in the unit of the middle."""
    if spread is None:
        return NONE
    factor, unit = _unit(spread.median, higher)
    middle, least, most = (_significant(value / factor) for value in spread)
    return f"{middle} {unit}" if least == most else f"{middle} [{least}-{most}] {unit}"


def quantity(value: float, higher: bool) -> str:
    """A rate in messages a second, or nanoseconds, in the unit that fits."""
    factor, unit = _unit(value, higher)
    return f"{_significant(value / factor)} {unit}"


def _unit(value: float, higher: bool) -> tuple[float, str]:
    if higher:
        steps = ((1e6, "M/s"), (1e3, "k/s"), (1.0, "/s"))
    else:
        steps = ((1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns"))
    return next((step for step in steps if value >= step[0]), steps[-1])


def _significant(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def main() -> None:
    """Make the report, and the plot, anew from the figures a run has kept."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("json", type=Path, help="what `make bench ARGS='--json FILE'` has written")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures here, as PNG")
    options = parser.parse_args()
    outcome = json.loads(options.json.read_text(encoding="utf-8"))
    print(markdown(outcome))
    if options.plot:
        import plot

        plot.draw(outcome, options.plot)


if __name__ == "__main__":
    main()
