"""A drawn chart (`Sketch`), and helpers for all kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

import numpy as np

from gpuctl.core.numbers import UNITS
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import heading, visible
from gpuctl.reports.charts.svg import FAINT, INK, SERIES, new_figure
from gpuctl.reports.export.values import json_value
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike, NDArray

    from gpuctl.core.results import ResultTable

    Floats = NDArray[np.float64]

Box = tuple[float, float, float, float]
"""Left, top, width and height of a pair of axes, in user units."""

WIDTH = 560
"""Width of every figure, in user units; a page shows it at 340 to 640 pixels."""

DASHES: tuple[tuple[float, ...], ...] = ((), (6, 2), (2, 2), (8, 2, 2, 2), (12, 3), (4, 1, 1, 1, 1, 1), (1, 2), (10, 4))
"""Dash patterns of curves, in addition to colours, for readers who cannot distinguish the colours."""

TOTAL = "all"
"""Name of the row with the total. Bars leave it out; its curve is drawn in ink."""

LABEL_LENGTH = 44
"""Maximum characters of a name in a figure; longer names lose their middle, with a note in the figure."""


class Curve(TypedDict):
    """Points of one curve for the read-out and the CSV: ``s`` is the number of its colour.

    ``raw`` is its name in the table if the figure uses another; ``of`` the column that it shows if that is not its
    panel's; ``low`` and ``high`` the ends of its band, None if there is none.
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
    """A pair of axes for the read-out and the CSV: its position (user units), its scales, its curves.

    ``raw`` is its name in the table if its title differs.
    """

    title: str
    raw: NotRequired[str | None]
    box: Box
    scale: str
    x: tuple[float, float]
    y: tuple[float, float]
    unit: str
    curves: list[Curve]


class Rows(TypedDict):
    """The rows behind bars, for their CSV: JSON values, in the order of ``columns``."""

    columns: list[str]
    rows: list[list[object]]


class Cells(TypedDict):
    """The cells behind a heat map, for its CSV.

    ``x`` are the starts of the periods, in ms since 1970 if ``dated``. A panel has its name and its rows; a row its
    name and, for each value, a text of two characters per period (see `gpuctl.reports.charts.heatmap.packed`), empty if
    all are 0.
    """

    columns: list[str]
    dated: bool
    x: list[float]
    panels: list[tuple[str, list[tuple[str, str, str]]]]


class Lanes(TypedDict):
    """The data behind a Gantt chart, for the read-out and its CSV.

    ``columns`` are those of the CSV, ``names`` all names in it. ``start`` is the origin of times: ms since 1970 if
    ``dated``, else seconds; ``span`` the length of the window in seconds. A panel is its box (user units), its name
    and, for each row of nodes, the name, its top and its height. A bar is [panel, row, what, job, user, queue, GPUs,
    GPUs counted, beside, from, to, its colours, tops and heights of its rectangles]: names by number, -1 for none;
    seconds. ``ways`` are the columns that the digits of the colours represent, each with its values by colour.
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
        label: its text.
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
        keys: its legend; empty if there is only one series.
        description: what it shows, in words.
        remarks: notes on changes to the data.
        panels: for the read-out; empty if there is none.
        columns: of a CSV of the panels: the columns of the panel, of the curve, of x and of y; the first two are empty
            if there is only one.
        data: for a CSV, if there are no panels.
    """

    figure: Figure
    keys: tuple[Key, ...]
    description: str
    remarks: tuple[str, ...] = ()
    panels: tuple[Panel, ...] = ()
    columns: tuple[str, str, str, str] | None = None
    data: Rows | Cells | Lanes | None = None


def add_axes(figure: Figure, box: Box) -> Axes:
    """Add a pair of axes at (left, top, width, height) in user units, with faint grid lines."""
    width, height = _size(figure)
    left, top, w, h = box
    axes = figure.add_axes((left / width, 1 - (top + h) / height, w / width, h / height))
    axes.grid(visible=True, color=FAINT)
    # ids by which the page finds its panels, and the axis that it redraws on zoom
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


def headings(table: ResultTable) -> dict[str, str]:
    """Return the labels of a table's columns, by name."""
    return {column.name: heading(column)[0] for column in table.columns}


def drawn_unit(table: ResultTable, column: str, units: Units | None, unit: str = "") -> tuple[str, float]:
    """Return the unit that a column is drawn in, and the factor into it.

    Args:
        table: of the column.
        column: name.
        units: units of the table's result; None: of the table alone.
        unit: of the values; empty: that of the column.
    """
    unit = unit or next((each.unit for each in table.columns if each.name == column), "")
    scaled = (units or Units([table])).of(table, column)
    return (scaled.name, UNITS[unit].seconds / scaled.seconds) if scaled else (unit, 1.0)


def draw_line(  # noqa: PLR0917 - points, then style
    axes: Axes, x: ArrayLike, y: ArrayLike, s: int, dash: tuple[float, ...], width: float, **style: object
) -> None:
    """Draw a line in the colour of that number (0: ink), with an id for the page."""
    color = SERIES[s - 1] if s else INK
    pattern = (0, dash) if dash else "solid"
    axes.plot(x, y, color=color, linestyle=pattern, linewidth=width, gid=f"k{s}", **style)  # type: ignore[arg-type]


def add_rectangles(axes: Axes, corners: ArrayLike, color: str, strength: float = 1.0, gid: str | None = None) -> None:
    """Fill rectangles as one path: small, and without seams.

    Args:
        axes: axes to draw in.
        corners: x and y of each rectangle's four corners, and of the first again, shape (n, 10).
        color: colour of all of them.
        strength: opacity of the colour, up to 1.
        gid: id for the page.
    """
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = np.asarray(corners, dtype=float).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], len(points) // 5)
    alpha = None if strength == 1 else strength
    patch = PathPatch(Path(points, codes), facecolor=color, alpha=alpha, linewidth=0, clip_on=False)
    patch.set_gid(gid)
    axes.add_patch(patch)


def curve_of(value: object, s: int, x: Iterable[float], y: Iterable[float]) -> Curve:
    """Return the points of the curve of a series.

    Args:
        value: value of the series in the table.
        s: the number of its colour.
        x: x values.
        y: y values.
    """
    label = short(str(value))
    curve = Curve(name=label, s=s, x=[*x], y=[brief(v) for v in y])
    curve.update(called(label, value))  # type: ignore[typeddict-item]
    return curve


def line_keys(names: Iterable[object]) -> tuple[Key, ...]:
    """Return the legend of lines, in the order of their colours."""
    return tuple(Key(short(str(name)), "line", k, DASHES[k - 1]) for k, name in enumerate(names, 1))


def remark_without(rows: int) -> tuple[str, ...]:
    """Return a remark on rows that have no value, if there are any."""
    return (f"{plural(rows, 'row')} without a value not drawn.",) if rows else ()


def remark_more(count: int, noun: str = "line") -> tuple[str, ...]:
    """Return a remark on lines, curves or panels beyond those that are drawn, if there are any."""
    return (f"{plural(count, f'more {noun}')} not drawn; --csv DIR has all.",) if count > 0 else ()


def counted(value: object, each: str) -> str:
    """Return a label for a counted value: ``1 GPU``, ``2-4 GPUs``; only the value if nothing is counted."""
    text = short(str(value))
    return f"{text} {each}{'' if text == '1' else 's'}" if each else text


def short(text: str) -> str:
    """Return a name with its middle cut out if it is too long for a figure."""
    clean = visible(text) or '""'
    if len(clean) <= LABEL_LENGTH:
        return clean
    half = LABEL_LENGTH // 2
    return f"{clean[:half]}\u2026{clean[-half + 1 :]}"


def brief(value: float) -> float:
    """Return a number for the page's data: 4 digits, and at least one decimal."""
    number = round(float(value), 1) if abs(value) >= 1000 else float(f"{value:.4g}")
    return int(number) if number.is_integer() else number


def called(label: str, value: object) -> dict[str, str | None]:
    """Return ``raw`` of a curve or panel if the label differs from the table's value."""
    raw = None if value is None else str(value)
    return {} if raw == label else {"raw": raw}


def drawn_rows(rows: pl.DataFrame, columns: Sequence[str]) -> Rows:
    """Return the rows behind bars."""
    chosen = rows.select(list(dict.fromkeys(columns)))
    return Rows(columns=chosen.columns, rows=[[json_value(v) for v in row] for row in chosen.iter_rows()])


def shortened_remark(names: Sequence[str]) -> tuple[str, ...]:
    """Return a remark if `short` shortened any of these names."""
    if any(short(name) != (visible(name) or '""') for name in names):
        return ("Long names are shortened in the figure; the table shows them in full.",)
    return ()


def _size(figure: Figure) -> tuple[float, float]:
    width, height = figure.get_size_inches()
    return float(width) * 72, float(height) * 72
