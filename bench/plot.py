"""Draws the figures: a panel for each workload, a bar for each participant, shorter is better."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from plan import CHRONICLE, LIMITS, PENSTOCK, WORKLOADS
from report import Outcome, figures_of, key_of, quantity
from targets import Figures, Spread

TITLES = {
    "append": "append, one thread, {size}",
    "append_many": "append_many of 100, {size}",
    "append_threads": "append, 8 threads, {size}",
    "append_processes": "append, 2 processes, {size}",
    "sync_one": "append, durable, one thread",
    "sync_threads": "append, durable, 8 threads",
    "iterate": "iterate, payload taken, {size}",
    "seek_read": "random seek and read, {size}",
    "append_latency": "p99.9 of one append, {size}",
    "spinning": "to a reader that spins, p50",
    "asleep": "to a reader asleep, p50",
    "open_after_kill": "open after kill -9, {size}",
}
COLOURS = {PENSTOCK: "#d1495b", CHRONICLE: "#2e5e8c"}
PEER, LIMIT, INK = "#8ea4b8", "#d9d9d4", "#2b2b2b"
LIMIT_NAMES = {"machine": "the machine", "python": "a Python call", "kernel": "our kernel alone"}
COLUMNS = 3
BAR_INCHES = 0.26
# A bar on a logarithmic axis has no natural beginning: they all begin a decade below the least.
DECADE = 10


def draw(outcome: Outcome, path: Path) -> None:
    """All panels in one picture."""
    figures = figures_of(outcome)
    panels = _panels(outcome, figures)
    if not panels:
        return
    rows = [panels[at : at + COLUMNS] for at in range(0, len(panels), COLUMNS)]
    heights = [max(len(bars) for _, bars in row) + 2.2 for row in rows]
    figure = Figure(figsize=(15, BAR_INCHES * sum(heights) + 1.1), layout="constrained")
    axes = figure.subplots(
        len(rows), COLUMNS, squeeze=False, gridspec_kw={"height_ratios": heights}
    )
    for row, line in zip(rows, axes, strict=True):
        for axis in line[len(row) :]:
            axis.axis("off")
        for (title, bars), axis in zip(row, line, strict=False):
            _panel(axis, title, bars, max(len(bars) for _, bars in row))
    facts = outcome["facts"]
    figure.suptitle(
        f"Time for one message; shorter is better (logarithmic)\n"
        f"{facts['cpu']}, {facts['cores']} cores, {facts['kernel']}, {facts['filesystem']}, "
        f"{facts['python']}, Penstock at {facts['commit']}, {str(facts['date'])[:10]}",
        fontsize=11,
        color=INK,
    )
    figure.savefig(path, dpi=110, facecolor="white")


def _panels(outcome: Outcome, figures: Figures) -> list[tuple[str, list[tuple[str, Spread]]]]:
    """What there is to compare, the best on top."""
    panels = []
    for workload in WORKLOADS:
        for size in workload.sizes:
            bars = [
                (key.participant, spread)
                for key in map(key_of, outcome["cells"])
                if key[:2] == (workload.name, size)
                and (spread := figures.spread(key, workload.figure)) is not None
            ]
            if len(bars) > 1 and workload.name in TITLES:
                title = TITLES[workload.name].format(size=size)
                panels.append((title, sorted(bars, key=lambda bar: bar[1].median)))
    return panels


def _panel(axis: Axes, title: str, bars: list[tuple[str, Spread]], places: int) -> None:
    least = bars[0][1].median / DECADE**0.5
    most = max(spread.most for _, spread in bars)
    for place, (name, spread) in enumerate(bars):
        colour = COLOURS.get(name, LIMIT if name in LIMITS else PEER)
        axis.barh(place, spread.median - least, left=least, height=0.74, color=colour)
        axis.plot([spread.least, spread.most], [place, place], color=INK, linewidth=1, alpha=0.6)
        axis.annotate(
            quantity(spread.median, higher=False),
            (max(spread.median, spread.most), place),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8.5,
            color=INK,
            fontweight="bold" if name == PENSTOCK else "normal",
        )
    axis.set_xscale("log")
    # Room on the right for the figure beside the longest bar.
    axis.set_xlim(least, most * (most / least) ** 0.28)
    axis.set_ylim(places - 0.4, -0.6)
    axis.set_yticks(range(len(bars)), [LIMIT_NAMES.get(name, name) for name, _ in bars], fontsize=9)
    for label, (name, _) in zip(axis.get_yticklabels(), bars, strict=True):
        label.set_fontweight("bold" if name == PENSTOCK else "normal")
    axis.set_title(title, fontsize=10, loc="left", color=INK, fontweight="bold")
    axis.xaxis.set_visible(False)
    axis.tick_params(axis="y", length=0)
    for side in axis.spines.values():
        side.set_visible(False)
