"""Draws curves: cumulative distributions, and levels over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.numbers import lasting, percent
from gpuctl.core.relative_time import DAY_S, is_relative
from gpuctl.reports.cell_text import shown
from gpuctl.reports.charts.chart import (
    DASHES,
    TOTAL,
    WIDTH,
    Curve,
    Key,
    Panel,
    Sketch,
    add_axes,
    blank_figure,
    brief,
    called,
    counted,
    draw_line,
    headings,
    remark_more,
    remark_without,
    write,
)
from gpuctl.reports.charts.svg import INK, SERIES

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.charts.chart import Box, Floats

CURVE_POINTS = 600
"""Maximum number of points per curve …"""

FIGURE_POINTS = 1800
"""… and per figure."""

_SECOND = 1 / 60
_TIME_TICKS = (
    (_SECOND, "1 s"), (10 * _SECOND, "10 s"), (1.0, "1 min"), (10.0, "10 min"), (60.0, "1 h"), (1440.0, "1 d"),
    (14400.0, "10 d"), (144000.0, "100 d"),
)  # fmt: skip
_RATIO_TICKS = tuple((10.0**k, f"{10.0**k:,g}") for k in range(-3, 9))
_STEPS = (
    (1.0, "1 second"), (10.0, "10 seconds"), (60.0, "1 minute"), (300.0, "5 minutes"), (900.0, "15 minutes"),
    (3600.0, "1 hour"), (3 * 3600.0, "3 hours"), (6 * 3600.0, "6 hours"), (12 * 3600.0, "12 hours"), (86400.0, "1 day"),
    (7 * 86400.0, "7 days"), (28 * 86400.0, "28 days"),
)  # fmt: skip
_LEFT, _TOP, _RIGHT, _BOTTOM = 44, 30, 16, 48


@dataclass(frozen=True)
class _Plan:
    """Properties common to all panels of a CDF chart: the curves' names, points per curve, the range of x."""

    chart: Chart
    names: tuple[object, ...]
    points: int
    low: float
    high: float
    panels: int

    def colour(self, name: object) -> int:
        """Return the number of a curve's colour: 0 (ink) for the total, 1 and up for the others."""
        return 0 if name == TOTAL else 1 + [n for n in self.names if n != TOTAL].index(name)

    def dash(self, name: object) -> tuple[float, ...]:
        """Return a curve's dash pattern."""
        return DASHES[max(0, self.colour(name) - 1)]

    def label(self, name: object) -> str:
        """Return the name of a curve; if there are panels, their titles name the unit of sizes."""
        if name == TOTAL:
            return TOTAL
        return self.chart.title if name is None else counted(name, "" if self.chart.facet else self.chart.each)


def cdf(chart: Chart, _table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw cumulative distributions, one curve per value of ``chart.series``, one panel per value of ``facet``.

    Args:
        chart: ``x`` holds values, ``y`` the per cent of all that are at most as large.
        _table: unused.
        frame: the rows to draw.
    """
    facets = _distinct(frame, chart.facet)
    names = _distinct(frame, chart.series)
    values = frame[chart.x].to_numpy().astype(float)
    shown_names = names[: len(SERIES)]
    points = max(50, min(CURVE_POINTS, FIGURE_POINTS // (len(shown_names) * len(facets))))
    plan = _Plan(chart, shown_names, points, *_limits(chart, values), len(facets))
    boxes, height = _boxes(len(facets), titled=bool(chart.facet))
    figure = blank_figure(height)
    drawn = [_panel(figure, plan, frame, facet, box) for facet, box in zip(facets, boxes, strict=True)]
    write(figure, 0, 14, chart.y_title)
    write(figure, _LEFT + (WIDTH - _LEFT - _RIGHT) / 2, height - 6, chart.x_title, ha="center")
    keys = tuple(Key(plan.label(n), "line", plan.colour(n), plan.dash(n)) for n in shown_names if n is not None)
    remarks = _cdf_remarks(chart, values, plan.low)
    remarks += remark_more(len(names) - len(shown_names), "curve")
    words = " ".join(text for _, text in drawn)
    columns = (chart.facet, chart.series, chart.x, chart.y[0])
    return Sketch(figure, keys, words, remarks, tuple(panel for panel, _ in drawn), columns)


def _distinct(frame: pl.DataFrame, column: str) -> tuple[object, ...]:
    return tuple(frame[column].unique(maintain_order=True).to_list()) if column else (None,)


def _panel(figure: Figure, plan: _Plan, frame: pl.DataFrame, facet: object, box: Box) -> tuple[Panel, str]:
    chart = plan.chart
    part = _only(frame, chart.facet, facet)
    title = counted(facet, chart.each) if chart.facet else ""
    axes = add_axes(figure, box)
    _share_axis(axes)
    _value_axis(axes, plan)
    if title:
        write(figure, box[0], box[1] - 8, title, bold=True)
    curves, words = [], []
    for name in plan.names:
        x, y = _sorted(_only(part, chart.series, name), chart.x, chart.y[0])
        if len(x):
            words.append(f"{title + ', ' if title else ''}{plan.label(name)}: {_in_words(chart, x, y)}.")
            curves.append(_curve(axes, plan, name, x, y))
    span = (plan.low, plan.high)
    panel = Panel(title=title, box=box, scale=chart.scale, x=span, y=(0.0, 100.0), unit="%", curves=curves)
    if chart.facet:
        panel.update(called(title, facet))  # type: ignore[typeddict-item]
    return panel, " ".join(words)


def _only(frame: pl.DataFrame, column: str, value: object) -> pl.DataFrame:
    import polars as pl

    return frame.filter(pl.col(column).eq_missing(pl.lit(value))) if column else frame


def _limits(chart: Chart, values: Floats) -> tuple[float, float]:
    if chart.scale == "share":
        return 0.0, 100.0
    positive = values[values > 0]
    if positive.size == 0:
        return _SECOND, 1.0
    least = float(positive.min())
    if chart.scale == "ratio":
        low = 10.0 ** np.floor(np.log10(least) + 1e-9)
        return float(low), max(float(positive.max()), 10 * low)
    low = max((at for at, _ in _TIME_TICKS if at <= least), default=_SECOND)
    return low, max(float(positive.max()), low * 10)


def _boxes(count: int, *, titled: bool) -> tuple[list[Box], int]:
    if count == 1:
        # a panel's title stands between the title of the axis and the panel
        top = _TOP + 24.0 if titled else float(_TOP)
        return [(_LEFT, top, WIDTH - _LEFT - _RIGHT, 330.0 - _TOP - _BOTTOM)], int(300 + top)
    lanes = (count + 1) // 2
    top, wide, tall, across, down = _TOP + 24.0, (WIDTH - _LEFT - _RIGHT - 52) / 2, 150.0, 52, 60
    boxes = [(_LEFT + (i % 2) * (wide + across), top + (i // 2) * (tall + down), wide, tall) for i in range(count)]
    return boxes, int(top + lanes * (tall + down) - down + _BOTTOM)


def _share_axis(axes: Axes) -> None:
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])


def _value_axis(axes: Axes, plan: _Plan) -> None:
    from matplotlib.ticker import NullLocator

    if plan.chart.scale != "share":
        axes.set_xscale("log")
        known = _TIME_TICKS if plan.chart.scale == "minutes" else _RATIO_TICKS
        ticks = [(at, label) for at, label in known if plan.low * 0.999 <= at <= plan.high * 1.001]
        ticks = ticks[:: 2 if plan.panels > 1 and len(ticks) > 4 else 1]
        axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        marks = [0, 50, 100] if plan.panels > 1 else [0, 20, 40, 60, 80, 100]
        axes.set_xticks(marks, [str(m) for m in marks])
    axes.set_xlim(plan.low, plan.high)


def _sorted(rows: pl.DataFrame, x: str, y: str) -> tuple[Floats, Floats]:
    ordered = rows.select(x, y).drop_nulls().sort(x, y)
    return ordered[x].to_numpy().astype(float), ordered[y].to_numpy().astype(float)


def _curve(axes: Axes, plan: _Plan, name: object, x: Floats, y: Floats) -> Curve:
    at = np.maximum(x, plan.low)
    keep = thin_curve(at if plan.chart.scale == "share" else np.log(at), y, plan.points)
    x, at, y = x[keep], at[keep], y[keep]
    number, dash = plan.colour(name), plan.dash(name)
    # The curve rises from 0 at its first value and stays level after its last.
    places, heights = np.concatenate(([at[0]], at, [plan.high])), np.concatenate(([0.0], y, [y[-1]]))
    draw_line(axes, places, heights, number, dash, 1.8, drawstyle="steps-post", clip_on=False)
    curve = Curve(name=plan.label(name), s=number, x=[brief(v) for v in x], y=[round(float(v), 2) for v in y])
    if plan.chart.series:
        curve.update(called(curve["name"], name))  # type: ignore[typeddict-item]
    return curve


def _in_words(chart: Chart, x: Floats, y: Floats) -> str:
    at = [float(x[min(int(np.searchsorted(y, share)), len(x) - 1)]) for share in (50, 90)]
    format_value = {"minutes": lambda value: lasting(60 * value), "share": percent, "ratio": shown}[chart.scale]
    half, most = (format_value(value) for value in at)
    return f"half are at most {half}, 90 % at most {most}"


def _cdf_remarks(chart: Chart, values: Floats, low: float) -> tuple[str, ...]:
    if chart.scale == "minutes" and bool((values < low).any()):
        return (f"A logarithmic axis has no zero: times below {lasting(low * 60)} are drawn at its left edge.",)
    return ()


def over_time(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw levels over time: the first of ``chart.y`` as an area with its limit, the rest as lines below.

    Args:
        chart: ``x`` holds the times at which the levels change.
        table: for the headings of its columns.
        frame: the rows to draw.
    """
    heads = headings(table)
    known = _common_columns(frame.drop_nulls(chart.x), chart.levels)
    remarks = tuple(f"{heads[c]}: not known." for c in chart.levels if c not in known)
    rows = frame.select(chart.x, *known).drop_nulls().sort(chart.x)
    remarks += remark_without(frame.height - rows.height)
    seconds = rows[chart.x].dt.epoch("ms").to_numpy().astype(float) / 1000
    levels = {c: rows[c].to_numpy().astype(float) for c in known}
    if len(seconds) > CURVE_POINTS:
        edges, step = _edges(float(seconds[0]), float(seconds[-1]))
        levels = {c: mean_by_bin(seconds, v, edges) for c, v in levels.items()}
        seconds = edges[:-1]
        remarks += (f"Each point is the mean over {step}.",)
    span = (float(seconds[0]), max(float(seconds[-1]), float(seconds[0]) + 60))
    # reserve space as if there were a limit
    places = {c: n for n, c in enumerate((chart.y[0], chart.limit, *chart.y[1:]))}
    above = {chart.y[0], chart.limit}
    groups = [group for g in (above, {*chart.y} - above) if (group := [c for c in known if c in g])]
    boxes, height = _stacked_boxes(len(groups))
    figure = blank_figure(height)
    write(figure, 0, 14, chart.y_title)
    panels: list[Panel] = []
    keys: list[Key] = []
    for columns, box in zip(groups, boxes, strict=True):
        axes = add_axes(figure, box)
        top = 1.05 * max(float(levels[c].max()) for c in columns) or 1.0
        axes.set_ylim(0, top)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.locator_params(axis="y", nbins=5 if box is boxes[0] else 3)
        time_axis(axes, *span)
        new = [_level(axes, heads[c], places[c], seconds, levels[c]) for c in columns]
        curves = [_levels_curve(key, c, seconds, levels[c]) for key, c in zip(new, columns, strict=True)]
        keys += new
        across = (span[0] * 1000, span[1] * 1000)
        panels.append(Panel(title="", box=box, scale="time", x=across, y=(0.0, top), unit="", curves=curves))
    write(figure, boxes[0][0] + boxes[0][2] / 2, height - 6, period(*span), ha="center")
    words = [
        f"{c['name']}: between {shown(min(c['y']))} and {shown(max(c['y']))}." for p in panels for c in p["curves"]
    ]
    return Sketch(figure, tuple(keys), " ".join(words), remarks, tuple(panels), ("", "measure", chart.x, "value"))


def _common_columns(frame: pl.DataFrame, columns: tuple[str, ...]) -> list[str]:
    """Return the columns with values in the same rows as the previous ones: a log may lack the total of GPUs."""
    together: list[str] = []
    for column in columns:
        if frame.drop_nulls([*together, column]).height:
            together.append(column)
    return together


def _stacked_boxes(count: int) -> tuple[list[Box], int]:
    # Waiting demand may be many times the supply: on one scale, one curve would flatten the other.
    left, width = _LEFT + 8.0, WIDTH - _LEFT - 8.0 - _RIGHT
    tops, heights = (30.0, 270.0), (200.0 if count > 1 else 250.0, 90.0)
    boxes = [(left, top, width, height) for top, height in zip(tops[:count], heights[:count], strict=True)]
    return boxes, int(boxes[-1][1] + boxes[-1][3] + _BOTTOM)


def _levels_curve(key: Key, column: str, seconds: Floats, values: Floats) -> Curve:
    places: list[float] = [int(t * 1000) for t in seconds]
    return Curve(name=key.label, raw=column, s=key.s, x=places, y=[brief(v) for v in values])


def _edges(first: float, last: float) -> tuple[Floats, str]:
    # Whole minutes, hours or days, counted from midnight UTC.
    step, name = next(
        ((s, n) for s, n in _STEPS if (last - first) / s <= CURVE_POINTS / 2), (_STEPS[-1][0], _STEPS[-1][1])
    )
    inner = np.arange((first // step + 1) * step, last, step)
    return np.concatenate(([first], inner, [last])), name


def _level(axes: Axes, title: str, index: int, seconds: Floats, values: Floats) -> Key:
    days = seconds / 86400
    if index == 0:
        # fill_between would draw a collection, which SVG writes as a reference to a path elsewhere
        outline = np.repeat(days, 2)[1:], np.repeat(values, 2)[:-1]
        axes.fill(
            [days[0], *outline[0], days[-1]], [0, *outline[1], 0], color=SERIES[0], alpha=0.3, linewidth=0, gid="k1"
        )
        axes.plot(days, values, drawstyle="steps-post", color=SERIES[0], linewidth=1.2, gid="k1")
        return Key(title, "area", 1)
    if index == 1:
        axes.plot(days, values, drawstyle="steps-post", color=INK, linewidth=1.2, dashes=(6, 3), gid="k0")
        return Key(title, "line", 0, (6, 3))
    axes.plot(days, values, drawstyle="steps-post", color=SERIES[index - 1], linewidth=1.4, gid=f"k{index}")
    return Key(title, "line", index)


def time_axis(axes: Axes, first: float, last: float) -> None:
    """Set up a time axis that counts days since 1970, with dates or times of day (UTC).

    Args:
        axes: to set up.
        first: seconds since 1970.
        last: seconds since 1970.
    """
    from matplotlib.dates import HOURLY, MINUTELY, MONTHLY, SECONDLY, AutoDateLocator, DateFormatter
    from matplotlib.ticker import MaxNLocator

    if is_relative(first):
        axes.set_xlim(first / DAY_S, last / DAY_S)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.xaxis.set_major_formatter(lambda value, _: f"day {value:,g}")
        return
    axes.set_xlim(first / 86400, last / 86400)
    locator = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
    # a unit's longest step has to reach as far as the next unit's three ticks
    for unit, longest in ((MONTHLY, 12), (HOURLY, 24), (MINUTELY, 60), (SECONDLY, 60)):
        locator.intervald[unit] = [*locator.intervald[unit], longest]
    axes.xaxis.set_major_locator(locator)
    days = (last - first) / 86400
    pattern = "%b %Y" if days > 300 else "%d %b" if days > 3 else "%d %b %H:%M" if days > 1 else "%H:%M"
    axes.xaxis.set_major_formatter(DateFormatter(pattern, tz=UTC))  # type: ignore[no-untyped-call]


def period(first: float, last: float) -> str:
    """Return the label below a time axis: its first and its last day."""
    if is_relative(first):
        return f"day {first / DAY_S:,.1f} to day {last / DAY_S:,.1f} of the trace, which has no dates"
    days = [datetime.fromtimestamp(second, UTC).date().isoformat() for second in (first, last)]
    return f"{days[0]} to {days[1]}, UTC"


def elapsed_axis(axes: Axes, first: float, last: float) -> float:
    """Set up a time axis without a calendar: ticks in the unit that suits the span.

    Args:
        axes: to set up.
        first: seconds.
        last: seconds.

    Returns:
        Seconds of that unit, in which the axis counts.
    """
    from matplotlib.ticker import MaxNLocator

    units = ((86400, "d"), (3600, "h"), (60, "min"))
    size, unit = next(((s, u) for s, u in units if last - first >= 3 * s), (1, "s"))
    axes.set_xlim(first / size, last / size)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g} {unit}")
    return float(size)


def thin_curve(x: Floats, y: Floats, limit: int) -> NDArray[np.intp]:
    """Select points of an ascending curve so that gaps between neighbours are narrow, in both directions.

    Args:
        x: ascending positions as drawn (logarithms on a logarithmic axis), shape (n,).
        y: ascending heights, shape (n,).
        limit: most points; at least 2.

    Returns:
        Indices of the points to keep, rising, first and last among them. The length of the curve in units of the
        figure's width and height is at most 2, so neighbours are at most 2/(limit - 1) apart, except at the curve's own
        jumps.
    """
    count = len(x)
    if count <= limit:
        return np.arange(count)
    length = np.concatenate(([0.0], np.cumsum(_share_of_range(x) + _share_of_range(y))))
    marks = np.linspace(0.0, length[-1], limit)
    return np.unique(np.minimum(np.searchsorted(length, marks, side="left"), count - 1))


def _share_of_range(values: Floats) -> Floats:
    steps = np.abs(np.diff(values))
    total = float(steps.sum())
    return steps / total if total > 0 else steps


def mean_by_bin(at: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean over time of a step function, one per bin.

    Args:
        at: ascending times at which the function takes a new value, shape (n,).
        values: the values, each held until the next time, shape (n,).
        edges: ascending bin edges within the first and last time, shape (m + 1,).

    Returns:
        Means, shape (m,).
    """
    area = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(at))))
    return np.diff(np.interp(edges, at, area)) / np.diff(edges)
