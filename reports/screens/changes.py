"""The screen of ``gpuctl report --compare``: what changed from one period to another, by what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import number
from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import clipped, filtered, rows

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Block
    from gpuctl.reports.screens.words import Row

LINES = 45
"""The screen has no more lines."""
_ROWS = 14
_KINDS = ("queue", "account", "user")


def screen(analysis: Analysis) -> Screen:
    """Make the screen of a comparison."""
    every = rows(analysis, "changes")
    before, after = (str(analysis.settings[name]) for name in ("before", "after"))
    clear = [row for row in every if row["verdict"]]
    table = analysis.table("changes")
    blocks: list[Block | None] = [
        filtered(analysis),
        _grid("All jobs", [row for row in every if not _owner(row)]),
        _grid("Clear changes, by owner", [row for row in clear if _owner(row)]),
        None
        if clear
        else Line("Verdict", "no change is clear: each interval includes 0, or a period is too short (10 days)"),
        Line("Chance", str(table.notes[0]) if table is not None else "", lines=5),
        Line("Next", "--table changes, --html FILE, --markdown FILE, --json"),
    ]
    title = f"{clipped(analysis.cluster, 40)}: {clipped(before, 24)} against {clipped(after, 24)}"
    about = "" if table is None else str(table.population)
    return Screen(title, "", tuple(block for block in blocks if block is not None), LINES, (("Changes", about),))


def _owner(row: Row) -> str:
    return next((f"{kind} {row[kind]}" for kind in _KINDS if row[kind] is not None), "")


def _grid(title: str, found: list[Row]) -> Grid | None:
    heads = (
        Head(title, right=False), Head("before"), Head("after"), Head("unit", right=False),
        Head("verdict", right=False), Head("GPU-h"), Head("change"), Head("95 %"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(f"{_owner(row)} {row['metric'].partition('.')[2]}".strip(), 36), shown(row["before"]),
            shown(row["after"]), row["unit"].replace("GPU-h/day", "GPU-h/d").replace("jobs/day", "jobs/d"),
            row["verdict"] or "not clear", "" if row["cost_gpu_hours"] is None else _signed(row["cost_gpu_hours"]),
            _signed(row["change"]),
            "unknown" if row["low"] is None else f"{_signed(row['low'])} to {_signed(row['high'])}",
        )
        for row in found[:_ROWS]
    )  # fmt: skip
    more = "... and {count} more: --table changes"
    return Grid(heads, cells, more, least=5, left_out=max(0, len(found) - _ROWS)) if cells else None


def _signed(value: float) -> str:
    text = number(abs(value))
    return text if text == "0" else f"{'+' if value > 0 else '-'}{text}"
