"""What a chart is once it is drawn (`Sketch`), and what all kinds share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

from gpuctl.reports.charts.svg import FAINT, INK, new_figure
from gpuctl.reports.export.values import json_value
from gpuctl.reports.text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 560
"""Of every figure, in user units; a page shows it at 340 to 640 pixels."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 2), (8, 2, 2, 2), (12, 3), (4, 1, 1, 1, 1, 1), (1, 2), (10, 4))
"""A curve has a dash pattern beside its colour, for those who cannot tell the colours apart."""

TOTAL = "all"
"""In a column of names: the row sums up the others. Bars leave it out, a curve of it is drawn in ink."""

LABEL_LENGTH = 44
"""Characters of a name in a figure; longer ones lose their middle, and the figure says so."""


class Curve(TypedDict):
    """Points of one curve for the read-out and the CSV: ``s`` is the number of its colour.

    ``raw`` is what the table calls it, where the figure says it otherwise; ``of`` the column that it shows, where that
    is not its panel's; ``low`` and ``high`` the ends of its band, None where there is none.
    """

    name: str
    raw: NotRequired[str | None]
    of: NotRequired[str]
    s: int
    x: list[float]
    y: list[float]
    low: NotRequired[list[float | None]]
    high: NotRequired[list[float | None]]


class Panel(TypedDict):
    """One pair of axes for the read-out and the CSV: where it lies (user units), its scales, its curves.

    ``raw`` is what the table calls it, where its title says it otherwise.
    """

    title: str
    raw: NotRequired[str | None]
    box: tuple[float, float, float, float]
    scale: str
    x: tuple[float, float]
    y: tuple[float, float]
    unit: str
    curves: list[Curve]


class Rows(TypedDict):
    """What bars are drawn from, as it goes into their CSV: JSON values, in the order of ``columns``."""

    columns: list[str]
    rows: list[list[object]]


class Cells(TypedDict):
    """What a heat map is drawn from, as it goes into its CSV.

    ``x`` are the starts of the periods, in ms since 1970 where ``dated``. A panel has its name and its rows; a row its
    name and, for each value, a text of two characters a period (see `gpuctl.reports.charts.heatmap.packed`), empty
    where all are 0.
    """

    columns: list[str]
    dated: bool
    x: list[float]
    panels: list[tuple[str, list[tuple[str, str, str]]]]


class Lanes(TypedDict):
    """What a Gantt chart is drawn from, for the read-out and its CSV.

    ``columns`` are those of the CSV, ``names`` all names that stand in it. ``start`` is what times count from: ms since
    1970 where ``dated``, else seconds; ``span`` seconds of the window from there on. A panel is its box (user units),
    its name and, for each row of servers, the name, its top and its height. A bar is [panel, row, what, job, user,
    queue, GPUs, GPUs counted, beside, from, to, its colours, tops and heights of what is drawn of it]: names by number,
    -1 for none; seconds. ``ways`` are the columns that the digits of the colours stand for, each with who has which
    colour.
    """

    columns: list[str]
    dated: bool
    start: float
    span: tuple[float, float]
    names: list[str]
    panels: list[tuple[list[float], str, list[tuple[int, float, float]]]]
    bars: list[list[object]]
    ways: list[tuple[str, list[tuple[str, int]]]]


@dataclass(frozen=True)
class Key:
    """One entry of a legend.

    Attributes:
        label: what it says.
        mark: ``line``, ``area``, ``bar`` or ``tick``.
        s: the number of its colour; 0 is ink.
        dash: the dash pattern of a line.
    """

    label: str
    mark: str
    s: int
    dash: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sketch:
    """A chart that has been drawn.

    Attributes:
        figure: in sentinel colours.
        keys: its legend; none where there is but one thing to see.
        description: what it shows, in words.
        remarks: what was done to the data on the way.
        panels: for the read-out; none where there is nothing to read out.
        columns: of a CSV of the panels: what tells them apart, what tells their curves apart, place, height; the first
            two are empty where there is but one.
        data: for a CSV, where there are no panels.
    """

    figure: Figure
    keys: tuple[Key, ...]
    description: str
    remarks: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: tuple[str, str, str, str] | None = None
    data: Rows | Cells | Lanes | None = None


def add_axes(figure: Figure, box: tuple[float, float, float, float]) -> Axes:
    """Add a pair of axes at (left, top, width, height) in user units, with faint lines behind the data."""
    width, height = _size(figure)
    left, top, w, h = box
    axes = figure.add_axes((left / width, 1 - (top + h) / height, w / width, h / height))
    axes.grid(visible=True, color=FAINT)
    # what the page finds its panels by, and the axis that it draws anew where it zooms
    axes.set_gid(f"p{len(figure.axes) - 1}")
    axes.xaxis.set_gid(f"a{len(figure.axes) - 1}")
    return axes


def write(figure: Figure, x: float, y: float, text: str, *, ha: str = "left", bold: bool = False) -> None:
    """Write text with its base line at (x, y) in user units from the top left corner."""
    width, height = _size(figure)
    weight = "bold" if bold else "normal"
    figure.text(x / width, 1 - y / height, text, ha=ha, va="baseline", color=INK, weight=weight)


def blank_figure(height: float) -> Figure:
    """Return an empty figure `WIDTH` wide."""
    return new_figure(WIDTH, height)


def counted(value: object, each: str) -> str:
    """Return a label for what is counted: ``1 GPU``, ``2-4 GPUs``; just the value where nothing is."""
    text = short(str(value))
    return f"{text} {each}{'' if text == '1' else 's'}" if each else text


def short(text: str) -> str:
    """Return a name without its middle where it is too long for a figure."""
    clean = visible(text) or '""'
    if len(clean) <= LABEL_LENGTH:
        return clean
    half = LABEL_LENGTH // 2
    return f"{clean[:half]}\u2026{clean[-half + 1 :]}"


def brief(value: float) -> float:
    """Return a number for the page's data: 4 digits, and never less than one decimal."""
    number = round(float(value), 1) if abs(value) >= 1000 else float(f"{value:.4g}")
    return int(number) if number.is_integer() else number


def called(label: str, value: object) -> dict[str, str | None]:
    """Return ``raw`` of a curve or panel where the label is not what the table calls it."""
    raw = None if value is None else str(value)
    return {} if raw == label else {"raw": raw}


def drawn_rows(rows: pl.DataFrame, columns: Sequence[str]) -> Rows:
    """Return the rows that bars are drawn from."""
    chosen = rows.select(list(dict.fromkeys(columns)))
    return Rows(columns=chosen.columns, rows=[[json_value(v) for v in row] for row in chosen.iter_rows()])


def shortened_remark(names: Sequence[str]) -> tuple[str, ...]:
    """Return a remark where `short` shortened any of these names."""
    if any(short(name) != (visible(name) or '""') for name in names):
        return ("Long names are shortened in the figure; the table has them in full.",)
    return ()


def _size(figure: Figure) -> tuple[float, float]:
    width, height = figure.get_size_inches()
    return float(width) * 72, float(height) * 72
