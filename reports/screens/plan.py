"""The screen of ``gpuctl plan``: the answer, the sizes around it, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.core.numbers import MISSING, timed
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import briefly, clipped, rows
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 40
"""The screen has no more lines."""
_MOST_ROWS = 7


def screen(analysis: Analysis) -> Screen:
    """Return the screen of a plan."""
    found = rows(analysis, "plan")
    first = found[0]["queue"] if found else ""
    blocks: list[Block | None] = [
        *(Line(label, analysis.settings[key], lines=6) for label, key in _answers(analysis)),
        _curve([row for row in rows(analysis, "plan_curve") if row["queue"] == first], Units(analysis.tables).waits()),
        _queues(found, Units(analysis.tables).waits()),
        *(Line(label, analysis.settings[key], lines=lines) for label, key, lines in
          (("Demand", "forecast", 4), ("Policy", "policy", 3), ("Futures", "futures", 4))),
        briefly(analysis.warnings),
        Line("Next", "--by-queue, --remove-nodes N, --prices FILE, --table plan_demand, --html FILE, --json"),
    ]  # fmt: skip
    notes = [("Caveat", text) for text in analysis.warnings]
    notes += [(f"Setting: {key}", value) for key, value in analysis.settings.items()]
    notes += [(f"{table.title} (table {table.name})", table.population) for table in analysis.tables]
    title = f"Plan: {clipped(analysis.cluster, 60)}"
    subtitle = f"{analysis.settings['nodes']}; goal: {analysis.settings['goal']}"
    return Screen(title, subtitle, tuple(block for block in blocks if block is not None), LINES, tuple(notes))


def _answers(analysis: Analysis) -> list[tuple[str, str]]:
    """Labels and settings of the answers, the last time first; those of single queues are in a table."""
    times = [row["time"] for row in rows(analysis, "plan")]
    found: list[tuple[str, str]] = []
    for time in reversed(list(dict.fromkeys(times))):
        label = "Answer" if not found else "Now"
        found.append((label, f"answer {time}"))
        if f"removed {time}" in analysis.settings:
            found.append(("Removed", f"removed {time}"))
    return found


def _curve(found: Sequence[Row], unit: Unit) -> Grid | None:
    if not found:
        return None
    times = list(dict.fromkeys(row["time"] for row in found))
    at = {(row["time"], row["nodes_added"]): row for row in found}
    sizes = _some(list(dict.fromkeys(row["nodes_added"] for row in found)))
    names = ("wait_s", "wait_low_s", "wait_high_s") if "wait_s" in found[0] else (
        "over_pct", "over_low_pct", "over_high_pct")  # fmt: skip
    heads = [Head("Nodes"), Head("GPUs")]
    for time in times:
        heads += [Head(time, unit.name if names[0] == "wait_s" else "%", right=False), Head("met %")]
    cells = []
    for size in sizes:
        cell = [f"{size:+,}" if size else "today", shown(at[times[0], size]["gpus"])]
        for time in times:
            row = at[time, size]
            cell += [_band(row, names, unit), shown(row["met_pct"], "%")]
        cells.append(tuple(cell))
    return Grid(tuple(heads), tuple(cells), "... and {count} more: --table plan_curve", least=4)


def _some(sizes: list[int]) -> list[int]:
    """A few of the sizes, evenly, with that of today."""
    if len(sizes) <= _MOST_ROWS:
        return sizes
    chosen = {round(at * (len(sizes) - 1) / (_MOST_ROWS - 1)) for at in range(_MOST_ROWS)}
    return [size for at, size in enumerate(sizes) if at in chosen or size == 0]


def _queues(found: Sequence[Row], unit: Unit) -> Grid | None:
    last = found[-1]["time"] if found else ""
    mine = [row for row in found if row["time"] == last]
    if len(mine) < 2:
        return None
    names = ("wait_s", "wait_low_s", "wait_high_s") if "wait_s" in mine[0] else (
        "over_pct", "over_low_pct", "over_high_pct")  # fmt: skip
    heads = (
        Head(f"Queue, {last}", right=False),
        Head("today's GPUs", unit.name if names[0] == "wait_s" else "%", right=False),
        Head("met %"), Head("nodes"), Head("verdict", right=False),
    )  # fmt: skip
    cells = tuple(
        (clipped(row["queue"], 20), _band(row, names, unit), shown(row["met_pct"], "%"), _range(row), row["verdict"])
        for row in mine
    )
    return Grid(heads, cells, "... and {count} more: --table plan", least=4)


def _range(row: Row) -> str:
    low, high = row["nodes_low"], row["nodes_high"]
    if high is None:
        return MISSING
    return f"{high:+,}" if low == high else f"{low:+,} to {high:+,}"


def _band(row: Row, names: tuple[str, str, str], unit: Unit) -> str:
    middle, low, high = (_shown(row[name], name, unit) for name in names)
    return f"{middle} ({low} to {high})"


def _shown(value: Any, name: str, unit: Unit) -> str:
    if value is None:
        return "\u221e"
    return timed(value, unit) if name.endswith("_s") else shown(value, "%")
