"""Draws what is had at the price of what in a terminal: a letter for each point, panels side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.text import plural
from gpuctl.reports.text import shown, visible

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.charts import Chart

HEIGHT, WIDEST, LEAST = 9, 44, 24
"""Lines of a panel; its characters, at most and at least."""
MARKS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SEVERAL = "*"
"""Where points of several series lie."""


def scatter(rule: Chart, frame: pl.DataFrame, width: int) -> tuple[tuple[str, ...], str] | None:
    """Draw points; None where lines are too short.

    Args:
        rule: ``x`` and ``y`` are numbers, ``series`` the names, ``facet`` what tells panels apart.
        frame: the rows; those without a value are not drawn.
        width: characters of a line.

    Returns:
        The lines, and a caption that says which letter is which series.
    """
    (column,) = rule.y
    rows = frame.filter(frame[rule.x].is_finite() & frame[column].is_finite())
    names = rows[rule.series].unique(maintain_order=True).to_list()
    marks = dict(zip(names, MARKS, strict=False))
    facets = rows[rule.facet].unique(maintain_order=True).to_list() if rule.facet else [None]
    beside = min(len(facets), max(1, width // (LEAST + 3)), 2)
    wide = min(WIDEST, width // beside - 3)
    if wide < LEAST or not rows.height:
        return None
    panels = []
    for facet in facets:
        part = rows.filter(rows[rule.facet] == facet) if rule.facet else rows
        points = [(row[rule.x], row[column], marks[row[rule.series]]) for row in part.iter_rows(named=True)
                  if row[rule.series] in marks]  # fmt: skip
        panels.append(_panel("" if facet is None else visible(str(facet)), points, wide))
    lines = []
    for k in range(0, len(panels), beside):
        if k:
            lines.append("")
        lines += ["   ".join(parts).rstrip() for parts in zip(*panels[k : k + beside], strict=True)]
    keys = ", ".join(f"{mark} {visible(str(name))}" for name, mark in marks.items())
    more = f" {plural(len(names) - len(marks), 'more row')} not drawn." if len(names) > len(marks) else ""
    unit = f" ({rule.unit})" if rule.unit else ""
    across, up = (name.removesuffix("_h").replace("_", " ") for name in (rule.x, column))
    return tuple(lines), (
        f"{up}{unit}, upward, over {across}{unit}: {keys}; {SEVERAL} several.{more} From {rule.table}."
    )


def _panel(title: str, points: list[tuple[float, float, str]], wide: int) -> list[str]:
    """One panel, its title above and its axis below; all lines have the same length."""
    right, top = (max((float(point[k]) for point in points), default=0.0) or 1.0 for k in (0, 1))
    highest = shown(top)
    before = len(highest) + 1
    inner = wide - before - 1
    cells = [[" "] * inner for _ in range(HEIGHT)]
    for x, y, mark in points:
        line, place = round((HEIGHT - 1) * (1 - y / top)), round((inner - 1) * x / right)
        cells[line][place] = mark if cells[line][place] in {" ", mark} else SEVERAL
    labels = {0: highest, HEIGHT - 1: "0"}
    lines = [f"{labels.get(k, '').rjust(before - 1)} |{''.join(row)}" for k, row in enumerate(cells)]
    end = shown(right)
    return [
        title.ljust(wide)[:wide], *lines, " " * before + "+" + "-" * inner,
        " " * (before + 1) + "0" + end.rjust(inner - 1),
    ]  # fmt: skip
