"""Draws curves: cumulative distributions, and levels over time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.reports.drawing import (
    DASHES,
    WIDTH,
    Chart,
    Curve,
    Key,
    Panel,
    Sketch,
    add_axes,
    blank_figure,
    counted,
    write,
)
from gpuctl.reports.svg import INK, SERIES
from gpuctl.reports.text import shown
from gpuctl.reports.thin import mean_by_bin, thin_curve

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from gpuctl.core.results import ResultTable
    from gpuctl.reports.thin import Floats

CURVE_POINTS = 800
"""At most so many points a curve …"""

FIGURE_POINTS = 2400
"""… and a figure."""

_SECOND = 1 / 60
_TIME_TICKS = (
    (_SECOND, "1 s"), (10 * _SECOND, "10 s"), (1.0, "1 min"), (10.0, "10 min"), (60.0, "1 h"), (1440.0, "1 d"),
    (14400.0, "10 d"), (144000.0, "100 d"),
)  # fmt: skip
_LEFT, _TOP, _RIGHT, _BOTTOM = 48, 30, 16, 52


def cdf(chart: Chart, _table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw cumulative distributions, one curve a value of ``chart.series``, one panel a value of ``facet``.

    Args:
        chart: ``x`` holds values, ``y`` the per cent of all that are at most as large.
        _table: not needed.
        frame: the rows to draw.
    """
    facets = frame[chart.facet].unique(maintain_order=True).to_list() if chart.facet else [None]
    names = frame[chart.series].unique(maintain_order=True).to_list() if chart.series else [None]
    drawn, more = names[: len(SERIES)], names[len(SERIES) :]
    limit = max(50, min(CURVE_POINTS, FIGURE_POINTS // (len(drawn) * len(facets))))
    low, high = _limits(chart, frame[chart.x].to_numpy().astype(float))
    boxes, height = _boxes(len(facets))
    figure = blank_figure(height)
    panels, words = [], []
    for facet, box in zip(facets, boxes, strict=True):
        import polars as pl

        part = frame if facet is None else frame.filter(pl.col(chart.facet) == facet)
        title = "" if facet is None else counted(facet, chart.each)
        axes = add_axes(figure, box)
        _share_axis(axes)
        _value_axis(axes, chart, low, high, few=len(facets) > 1)
        if title:
            write(figure, box[0], box[1] - 8, title, bold=True)
        curves = []
        for index, name in enumerate(drawn):
            rows = part if name is None else part.filter(pl.col(chart.series) == name)
            if rows.height == 0:
                continue
            label = chart.title if name is None else counted(name, "" if chart.facet else chart.each)
            x, y = _sorted(rows, chart.x, chart.y[0])
            words.append(f"{title + ', ' if title else ''}{label}: {_in_words(chart, x, y)}.")
            curves.append(_curve(axes, label, index, np.maximum(x, low), y, limit, chart.scale == "minutes"))
        panels.append(
            Panel(title=title, box=box, scale=chart.scale, x=(low, high), y=(0.0, 100.0), unit="%", curves=curves)
        )
    if len(facets) == 1:
        write(figure, 0, 14, chart.y_title)
    write(figure, _LEFT + (WIDTH - _LEFT - _RIGHT) / 2, height - 6, chart.x_title, ha="center")
    keys = tuple(
        Key(counted(name, "" if chart.facet else chart.each), "line", i + 1, DASHES[i])
        for i, name in enumerate(drawn)
        if name is not None
    )
    remarks = _cdf_remarks(chart, frame[chart.x].to_numpy().astype(float), low)
    if more:
        remarks += (f"{len(more)} more curves are not drawn; --csv DIR has them.",)
    return Sketch(figure, keys, " ".join(words), remarks, tuple(panels))


def _limits(chart: Chart, values: Floats) -> tuple[float, float]:
    if chart.scale == "share":
        return 0.0, 100.0
    positive = values[values > 0]
    if positive.size == 0:
        return _SECOND, 1.0
    low = max(_SECOND, float(positive.min()))
    return low, max(float(positive.max()), low * 10)


def _boxes(count: int) -> tuple[list[tuple[float, float, float, float]], int]:
    if count == 1:
        height = 330
        return [(_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, height - _TOP - _BOTTOM)], height
    lanes = (count + 1) // 2
    wide, tall, gap = (WIDTH - _LEFT - _RIGHT - 44) / 2, 150, 58
    boxes = [(_LEFT + (i % 2) * (wide + 44), _TOP + (i // 2) * (tall + gap), wide, tall) for i in range(count)]
    return [(x, float(y), w, float(h)) for x, y, w, h in boxes], _TOP + lanes * (tall + gap) - gap + _BOTTOM


def _share_axis(axes: Axes) -> None:
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100 %"])


def _value_axis(axes: Axes, chart: Chart, low: float, high: float, *, few: bool) -> None:
    from matplotlib.ticker import NullLocator

    if chart.scale == "minutes":
        axes.set_xscale("log")
        ticks = [(at, label) for at, label in _TIME_TICKS if low * 0.999 <= at <= high * 1.001]
        ticks = ticks[:: 2 if few and len(ticks) > 4 else 1]
        axes.set_xticks([at for at, _ in ticks], [label for _, label in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        marks = [0, 50, 100] if few else [0, 20, 40, 60, 80, 100]
        axes.set_xticks(marks, [f"{m} %" if m == 100 else str(m) for m in marks])
    axes.set_xlim(low, high)


def _sorted(rows: pl.DataFrame, x: str, y: str) -> tuple[Floats, Floats]:
    ordered = rows.select(x, y).drop_nulls().sort(x, y)
    return ordered[x].to_numpy().astype(float), ordered[y].to_numpy().astype(float)


def _curve(axes: Axes, label: str, index: int, x: Floats, y: Floats, limit: int, log: bool) -> Curve:
    keep = thin_curve(np.log(x) if log else x, y, limit)
    x, y = x[keep], y[keep]
    low, high = axes.get_xlim()
    # The curve comes up from 0 at its first value and stays level after its last.
    axes.plot(
        np.concatenate(([x[0]], x, [high])) if len(x) else x,
        np.concatenate(([0.0], y, [y[-1]])) if len(y) else y,
        drawstyle="steps-post",
        color=SERIES[index],
        dashes=DASHES[index] or (None, None),
        linewidth=1.8,
        clip_on=bool(low > x[0]) if len(x) else False,
    )
    return Curve(name=label, s=index + 1, x=[_brief(v) for v in x], y=[round(float(v), 2) for v in y])


def _brief(value: float) -> float:
    number = float(f"{value:.4g}")
    return int(number) if number.is_integer() else number


def _in_words(chart: Chart, x: Floats, y: Floats) -> str:
    if not len(x):
        return "no values"
    unit = " minutes" if chart.scale == "minutes" else " %"
    at = {share: x[min(int(np.searchsorted(y, share)), len(x) - 1)] for share in (50, 90)}
    return f"half are at most {shown(float(at[50]))}{unit}, 90 % at most {shown(float(at[90]))}{unit}"


def _cdf_remarks(chart: Chart, values: Floats, low: float) -> tuple[str, ...]:
    if chart.scale == "minutes" and bool((values < low).any()):
        return (f"A logarithmic axis has no zero: what took less than {shown(low * 60)} s stands at its left edge.",)
    return ()


def over_time(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw levels over time: the first of ``chart.y`` as an area, the second as a limit, the rest as lines.

    Args:
        chart: ``x`` holds the times at which the levels change.
        table: for the names of its columns.
        frame: the rows to draw.
    """
    from gpuctl.reports.text import heading

    columns = [c for c in chart.y if c in frame.columns]
    rows = frame.select(chart.x, *columns).drop_nulls().sort(chart.x)
    seconds = rows[chart.x].dt.epoch("ms").to_numpy().astype(float) / 1000
    levels = {c: rows[c].to_numpy().astype(float) for c in columns}
    remarks: tuple[str, ...] = ()
    if rows.height < frame.height:
        remarks += (f"{frame.height - rows.height} rows without a value are not drawn.",)
    if len(seconds) > CURVE_POINTS:
        edges = np.linspace(seconds[0], seconds[-1], CURVE_POINTS // 2 + 1)
        levels = {c: mean_by_bin(seconds, v, edges) for c, v in levels.items()}
        seconds = edges[:-1]
        remarks += (f"Each point is the mean over {shown((edges[1] - edges[0]) / 60)} minutes.",)
    titles = {c.name: " ".join(heading(c)).strip() for c in table.columns}
    figure = blank_figure(330)
    box = (_LEFT, _TOP, WIDTH - _LEFT - _RIGHT, 330 - _TOP - _BOTTOM)
    axes = add_axes(figure, box)
    top = 1.05 * max((float(v.max()) for v in levels.values() if v.size), default=1.0) or 1.0
    first, last = (seconds[0], seconds[-1]) if len(seconds) > 1 else (seconds[0] - 1800, seconds[0] + 1800)
    _time_axis(axes, float(first), float(last))
    axes.set_ylim(0, top)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    keys, curves, words = [], [], []
    for index, column in enumerate(columns):
        keys.append(_level(axes, titles[column], index, seconds, levels[column]))
        values = levels[column]
        curves.append(
            Curve(
                name=titles[column], s=keys[-1].s, x=[int(v * 1000) for v in seconds], y=[round(float(v), 1) for v in values]
            )
        )
        words.append(f"{titles[column]}: from {shown(float(values.min()))} to {shown(float(values.max()))}.")
    write(figure, 0, 14, chart.y_title)
    write(figure, _LEFT + (WIDTH - _LEFT - _RIGHT) / 2, 324, _period(float(first), float(last)), ha="center")
    panel = Panel(
        title="", box=box, scale="time", x=(float(first) * 1000, float(last) * 1000), y=(0.0, top), unit="", curves=curves
    )
    return Sketch(figure, tuple(keys), " ".join(words), remarks, (panel,))


def _level(axes: Axes, title: str, index: int, seconds: Floats, values: Floats) -> Key:
    days = seconds / 86400
    if index == 0:
        axes.fill_between(days, values, step="post", color=SERIES[0], alpha=0.3, linewidth=0)
        axes.plot(days, values, drawstyle="steps-post", color=SERIES[0], linewidth=1.2)
        return Key(title, "area", 1)
    if index == 1:
        axes.plot(days, values, drawstyle="steps-post", color=INK, linewidth=1.2, dashes=(6, 3))
        return Key(title, "line", 0, (6, 3))
    axes.plot(days, values, drawstyle="steps-post", color=SERIES[index - 1], linewidth=1.4)
    return Key(title, "line", index)


def _time_axis(axes: Axes, first: float, last: float) -> None:
    from matplotlib.dates import AutoDateLocator, DateFormatter

    axes.set_xlim(first / 86400, last / 86400)
    axes.xaxis.set_major_locator(AutoDateLocator(minticks=3, maxticks=6))
    days = (last - first) / 86400
    pattern = "%b %Y" if days > 300 else "%d %b" if days > 3 else "%d %b %H:%M" if days > 1 else "%H:%M"
    axes.xaxis.set_major_formatter(DateFormatter(pattern, tz=UTC))


def _period(first: float, last: float) -> str:
    days = [datetime.fromtimestamp(second, UTC).date().isoformat() for second in (first, last)]
    return f"{days[0]} to {days[1]}, UTC"
