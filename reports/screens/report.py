"""The screen of ``gpuctl report``: checks, findings, and the first figures of each result."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.reports.cell_text import shown
from gpuctl.reports.report import BY_CHANCE
from gpuctl.reports.screens.model import Grid, Head, Line, Screen, Sentences
from gpuctl.reports.screens.words import briefly, clipped, count, filtered, rows
from gpuctl.reports.summary import headlines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis
    from gpuctl.reports.report import Part
    from gpuctl.reports.screens.model import Block

LINES = 45
"""The screen has no more lines."""
_RESULTS = 6
_CHECKS = 10
_CHANGES = 5
_SENTENCES = 8
_WORKLOAD = "workload."


def screen(parts: Sequence[Part], summary: Analysis) -> Screen:
    """Return the screen of a report.

    Args:
        parts: the results.
        summary: the result of `gpuctl.reports.report.summarize`.
    """
    standout = rows(summary, "standout")
    several = len(parts) > 1
    texts = [f"{clipped(row['result'])}: {row['finding']}" if several else str(row["finding"]) for row in standout]
    changes = _changes(summary)
    blocks: list[Block | None] = [
        *_filters(parts),
        _checks(summary),
        Sentences("What stands out", tuple(texts[:_SENTENCES])),
        changes,
        Line("Chance", BY_CHANCE) if changes else None,
        _workloads(parts, summary),
        *(_figures(part) for part in parts[:_RESULTS]),
        briefly(summary.warnings),
        Line("Next", "--table metrics, --html FILE, --fail-if CONDITION, --baseline FILE, --all"),
    ]
    names = ", ".join(clipped(part.label) for part in parts[:_RESULTS])
    more = f" and {len(parts) - _RESULTS} more" if len(parts) > _RESULTS else ""
    title = f"Report of {count(len(parts), 'result')}: {names}{more}"
    return Screen(title, "", tuple(block for block in blocks if block is not None), LINES, _notes(summary))


def _filters(parts: Sequence[Part]) -> list[Line | None]:
    """Return the filters of the results: once if they are all the same."""
    lines = [filtered(part.analysis, _of_all(part)) for part in parts[:_RESULTS]]
    if len(set(lines)) == 1:
        return lines[:1]
    named = zip(lines, parts, strict=False)
    return [replace(line, label=f"Filter, {clipped(part.label, 20)}") for line, part in named if line is not None]


def _of_all(part: Part) -> str:
    return "" if part.analysis.table("overview") is None else "; GPUs allocated covers all jobs"


def _checks(summary: Analysis) -> Grid | None:
    checks = sorted(rows(summary, "checks"), key=lambda row: not row["failed"])
    if not checks:
        return None
    failed = sum(1 for row in checks if row["failed"])
    heads = (
        Head(f"Checks: {failed} of {len(checks)} failed", right=False), Head("verdict", right=False), Head("value"),
        Head("limit"), Head("result", right=False),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["condition"], 38), "failed" if row["failed"] else "passed",
            _with_unit(row["value"], row["unit"]), shown(row["limit"]), clipped(row["result"] or "", 20),
        )
        for row in checks[:_CHECKS]
    )  # fmt: skip
    more = "... and {count} more: --table checks"
    return Grid(heads, cells, more, least=3, left_out=max(0, len(checks) - _CHECKS))


def _with_unit(value: float | None, unit: str | None) -> str:
    return f"{shown(value)} {clipped(unit, 8)}" if value is not None and unit and unit != "-" else shown(value)


def _changes(summary: Analysis) -> Grid | None:
    """Return the metrics that changed most against the baseline, relative to their value before."""
    changed = [
        row
        for row in rows(summary, "metrics")
        if row.get("change_pct") is not None and math.isfinite(row["change_pct"]) and row["change_pct"]
    ]
    top = sorted(changed, key=lambda row: -abs(row["change_pct"]))[:_CHANGES]
    heads = (
        Head("Largest changes", right=False), Head("before"), Head("now"), Head("unit", right=False),
        Head("change %"), Head("result", right=False),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(row["metric"], 40), shown(row["baseline"]), shown(row["value"]), clipped(row["unit"], 8),
            f"{row['change_pct']:+,.1f}", clipped(row["result"], 20),
        )
        for row in top
    )  # fmt: skip
    return Grid(heads, cells) if cells else None


def _workloads(parts: Sequence[Part], summary: Analysis) -> Grid | None:
    """Return the workloads of several results side by side, to compare them."""
    found: dict[tuple[str, str], dict[str, float | None]] = {}
    for row in rows(summary, "metrics"):
        if row["metric"].startswith(_WORKLOAD) and "{" not in row["metric"]:
            found.setdefault((row["metric"], row["unit"]), {})[row["result"]] = row["value"]
    names = [part.label for part in parts if any(part.label in values for values in found.values())][:_RESULTS]
    if len(names) < 2:
        return None
    heads = (Head("Workloads", right=False), *(Head(clipped(name, 14)) for name in names), Head("unit", right=False))
    cells = tuple(
        (
            metric.removeprefix(_WORKLOAD), *(shown(values.get(name)) for name in names),
            "" if unit == "-" else clipped(unit, 8),
        )
        for (metric, unit), values in found.items()
    )  # fmt: skip
    return Grid(heads, cells, "... and {count} more: --table metrics", least=3)


def _figures(part: Part) -> Line | None:
    figures = headlines(part.analysis)
    text = ", ".join(f"{one.label} {one.value}{chr(0xA0) + one.unit if one.unit else ''}" for one in figures)
    return Line(clipped(part.label, 40), text, lines=2) if text else None


def _notes(summary: Analysis) -> tuple[tuple[str, str], ...]:
    notes: list[tuple[str, str]] = [("Caveat", text) for text in summary.warnings]
    notes += [
        (f"{table.title} (table {table.name})", " ".join((table.population, *table.notes)))
        for table in summary.tables
        if table.frame.height
    ]
    notes += [(f"Why this stands out (table {row['table']})", str(row["rule"])) for row in rows(summary, "standout")]
    return tuple(notes)
