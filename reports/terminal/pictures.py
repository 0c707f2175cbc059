"""Draws the pictures below tables in a terminal, as listed in `gpuctl.reports.figures`.

A picture is drawn from an existing result table, most often a detail table that a terminal does not print; if that
table is missing, empty or not as expected, there is no picture. Scale, unit and range are always shown.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuctl.reports.cell_text import visible
from gpuctl.reports.figures import ANALYSES, called, in_terminal, on
from gpuctl.reports.terminal.picture import curves, draw, durations, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import Analysis
    from gpuctl.reports.report import Part
    from gpuctl.reports.terminal.picture import Curves, Picture
    from gpuctl.reports.terminal.text_graphics import Signs

RESULTS = 6
"""Maximum results of a report with a picture over time."""
_OVER_TIME = ("chart-occupancy", "chart-replay-busy")
_SIDE_BY_SIDE = (
    ("Waits by result", ("chart-wait-cdf", "chart-replay-wait-cdf")),
    ("Job completion times (JCT), by result", ("chart-replay-jct-cdf",)),
)


def drawn_from(names: Iterable[str]) -> list[str]:
    """Return the tables from which the pictures below tables of these names are drawn."""
    wanted = set(names)
    return [chart.table for chart in on(ANALYSES, "terminal") if chart.beside in wanted]


def of_analysis(analysis: Analysis, names: Sequence[str], width: int, signs: Signs) -> dict[str, tuple[Picture, ...]]:
    """Draw the pictures that belong to printed tables.

    Args:
        analysis: the analysis with the tables.
        names: names of the printed tables.
        width: characters of a line.
        signs: characters to draw with.

    Returns:
        Pictures by the name of the table above them.
    """
    found: dict[str, tuple[Picture, ...]] = {}
    for rule in in_terminal(analysis):
        table = analysis.table(rule.table)
        place = next((name for name in (rule.beside, rule.table) if name in names), None)
        if table is None or place is None:
            continue
        picture = draw(rule, table, width, signs)
        if picture is not None:
            found[place] = (*found.get(place, ()), picture)
    return found


def of_results(parts: Sequence[Part], names: Sequence[str], width: int, signs: Signs) -> dict[str, tuple[Picture, ...]]:
    """Draw the common tables of several results on one axis, and each one's GPUs in use over time.

    Args:
        parts: the results of a report.
        names: names of the printed tables; the pictures follow ``metrics``.
        width: characters of a line.
        signs: characters to draw with.
    """
    if "metrics" not in names:
        return {}
    found = []
    for part in parts[:RESULTS]:
        for rule in (called(name, "terminal") for name in _OVER_TIME):
            table = part.analysis.table(rule.table)
            picture = draw(rule, table, width, signs) if table is not None else None
            if picture is not None:
                name = f"{visible(part.label)}: " if len(parts) > 1 else ""
                found.append(replace(picture, title=f"{name}{picture.title}"))
    for title, names_of in _SIDE_BY_SIDE:
        # if each row is a value, those of all gangs are one distribution
        rules = [c if c.y else replace(c, series="") for c in (called(name, "terminal") for name in names_of)]
        there = [rule for rule in rules if any(part.analysis.table(rule.table) is not None for part in parts)]
        if not there:
            continue
        groups = [group for part in parts for rule in there for group in _of_result(part, rule, alone=len(parts) == 1)]
        rule = replace(
            there[-1], title=title, head="result", what=" or ".join(dict.fromkeys(rule.what for rule in there))
        )
        picture = durations(rule, groups, width, signs, " and ".join(rule.table for rule in there))
        if picture is not None:
            found.append(picture)
    return {"metrics": tuple(found)} if found else {}


def _of_result(part: Part, rule: Chart, *, alone: bool) -> Curves:
    table = part.analysis.table(rule.table)
    frame = rows_of(rule, table) if table is not None else None
    if frame is None:
        return []
    label = visible(part.label)
    return [
        (name if name and alone else f"{label}: {name}" if name else label, points)
        for name, points in curves(rule, frame)
    ]
