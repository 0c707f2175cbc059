"""Draws bars: stacked causes, shares side by side, means by group, values with their intervals."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from gpuctl.core.storable_text import agreeing, plural
from gpuctl.reports.cell_text import shown
from gpuctl.reports.charts.chart import (
    WIDTH,
    Key,
    Sketch,
    add_axes,
    blank_figure,
    counted,
    drawn_rows,
    drawn_unit,
    headings,
    shortened_remark,
    write,
)
from gpuctl.reports.charts.svg import INK, PAPER, SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.charts.chart import Box
    from gpuctl.reports.units import Units

CATEGORIES = 14
"""Maximum number of categories or bars drawn: the largest ones."""

_ROOM_FOR_VALUE = 108.0
_WIDE_LETTER = 10.0  # width of the larger type on a narrow screen, in user units
_LABEL, _BAR, _BETWEEN, _AFTER = 18, 13, 3, 12
_MIDDLE = 24.0
"""Position of an interval's line below its lane's top, in user units: under its name."""
_ROOM_FOR_RANGE = 190.0
"""Space for the numbers to the right of an interval."""


def stacked(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw one bar per category, stacked from those columns of ``chart.y`` that are not all 0.

    Args:
        chart: ``x`` names the categories.
        table: for the headings and the unit of its columns.
        frame: the rows to draw.
    """
    drawn = [c for c in chart.y if c in frame.columns and frame[c].sum()]
    rows, remarks = _heaviest(frame, drawn)
    names = [counted(name, chart.each) for name in rows[chart.x].to_list()]
    heads = headings(table)
    heads |= {c: words for c, words in zip(chart.y, chart.words, strict=True) if words != heads.get(c, "").lower()}
    unit = next(c.unit for c in table.columns if c.name == drawn[0]).removeprefix("-")
    lengths = [[float(v or 0) for v in row] for row in rows.select(drawn).iter_rows()]
    totals = [f"{shown(sum(parts))} {unit}".rstrip() for parts in lengths]
    room = max(_ROOM_FOR_VALUE, *(_WIDE_LETTER * len(text) for text in totals))
    figure, axes, scale = _lanes(len(names), 1, max(map(sum, lengths), default=0.0), room)
    # by the index among all possible parts, so that figures agree
    colours = _colours([chart.y.index(c) for c in drawn])
    for lane, (name, parts) in enumerate(zip(names, lengths, strict=True)):
        top = lane * _pitch(1)
        write(figure, 0, top + 12, name)
        left = 0.0
        for colour, part in zip(colours, parts, strict=True):
            color = SERIES[colour - 1]
            axes.barh(top + _LABEL + _BAR / 2, part, _BAR, left, color=color, edgecolor=PAPER, linewidth=0.8)
            left += part
        write(figure, left * scale + 6, top + _LABEL + _BAR - 2, totals[lane])
    keys = tuple(Key(heads[c], "bar", n) for n, c in zip(colours, drawn, strict=True))
    words = [
        f"{name}: {', '.join(f'{heads[c]} {shown(v)} {unit}'.rstrip() for c, v in zip(drawn, parts, strict=True))}."
        for name, parts in zip(names, lengths, strict=True)
    ]
    data = drawn_rows(rows, (chart.x, *drawn))
    return Sketch(figure, keys, " ".join(words), remarks + shortened_remark(_texts(rows, chart.x)), data=data)


def _colours(places: Sequence[int]) -> tuple[int, ...]:
    """Return the number of each column's colour: that of its index or, if there are too many, a free one."""
    free = iter([n for n in range(len(SERIES)) if n not in places])
    return tuple(1 + (place if place < len(SERIES) else next(free, 0)) for place in places)


def paired(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw, for each category, one bar for each column of ``chart.y``, on one scale.

    Args:
        chart: ``x`` names the categories; a ``series`` is appended.
        table: for the headings and units of its columns.
        frame: the rows to draw.
    """
    heads = headings(table)
    units = {c.name: c.unit for c in table.columns}
    known = [c for c in chart.y if frame[c].null_count() < frame.height]
    rows, remarks = _heaviest(frame, known)
    remarks += tuple(f"{heads[c]}: not known." for c in chart.y if c not in known)
    names = _texts(rows, chart.x)
    if chart.series:
        behind = _texts(rows, chart.series)
        names = [a if a.lower() == b.lower() else f"{a} ({b})" for a, b in zip(names, behind, strict=True)]
    labels = [counted(name, "") for name in names]
    values = [[None if v is None else float(v) for v in row] for row in rows.select(known).iter_rows()]
    longest = max((v for row in values for v in row if v is not None), default=0.0)
    figure, axes, scale = _lanes(len(names), len(known), longest)
    for lane, (name, lengths) in enumerate(zip(labels, values, strict=True)):
        top = lane * _pitch(len(known))
        write(figure, 0, top + 12, name)
        for index, (column, length) in enumerate(zip(known, lengths, strict=True)):
            y = top + _LABEL + index * (_BAR + _BETWEEN)
            axes.barh(y + _BAR / 2, length or 0.0, _BAR, color=SERIES[chart.y.index(column)], linewidth=0)
            write(figure, (length or 0.0) * scale + 6, y + _BAR - 2, _measured(length, units[column]))
    keys = tuple(Key(heads[c], "bar", chart.y.index(c) + 1) for c in known)
    words = [
        f"{name}: "
        + ", ".join(f"{_measured(v, units[c])} of {heads[c]}" for c, v in zip(known, lengths, strict=True))
        + "."
        for name, lengths in zip(labels, values, strict=True)
    ]
    data = drawn_rows(rows, tuple(c for c in (chart.x, chart.series, *chart.y) if c))
    return Sketch(figure, keys, " ".join(words), remarks + shortened_remark(names), data=data)


def _measured(value: float | None, unit: str) -> str:
    return "not known" if value is None else f"{shown(value, unit)} {unit}".removesuffix(" -")


def grouped(chart: Chart, table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw upright bars of the first of ``chart.y`` in per cent, with a tick at the second, by group.

    Args:
        chart: ``x`` holds the groups, ``series`` the bars of a group, which get a number below them or, if they are
            words, a colour.
        table: for the headings of its columns.
        frame: the rows to draw, in order.
    """
    bar, tick = chart.y
    heads = headings(table)
    rows, remarks = _weightiest(frame.drop_nulls([chart.x, chart.series, bar]), chart.weight, heads[chart.weight])
    kinds = () if rows[chart.series].dtype.is_numeric() else tuple(dict.fromkeys(_texts(rows, chart.series)))
    figure = blank_figure(320)
    box = (70.0, 30.0, WIDTH - 70.0 - 8, 320.0 - 30 - (30 if kinds else 52))
    at, spans = _positions(rows[chart.x].to_list())
    axes = _upright_axes(figure, box, at)
    for x, row in zip(at, rows.iter_rows(named=True), strict=True):
        color = SERIES[kinds.index(str(row[chart.series])) % len(SERIES) if kinds else 0]
        axes.bar(x, row[bar], 0.78, color=color, linewidth=0)
        if row[tick] is not None:
            axes.hlines(row[tick], x - 0.44, x + 0.44, color=INK, linewidth=2.4)
    line = box[1] + box[3] + 20
    if not kinds:
        numbers = [(str(number), x, x) for number, x in zip(rows[chart.series].to_list(), at, strict=True)]
        _line_below(figure, box, at[-1], y=line, title=heads[chart.series], labels=numbers)
    _line_below(figure, box, at[-1], y=line if kinds else line + 21, title=heads[chart.x], labels=spans)
    write(figure, 0, 14, chart.y_title)
    keys = [Key(f"{heads[bar]}, {kind}", "bar", n) for n, kind in enumerate(kinds, 1)] or [Key(heads[bar], "bar", 1)]
    words = [
        f"{row[chart.x]} {heads[chart.x]}, {heads[chart.series]} {row[chart.series]}:"
        f" {heads[bar]} {shown(row[bar], '%')} %, {heads[tick]} {shown(row[tick], '%')} %."
        for row in rows.iter_rows(named=True)
    ]
    data = drawn_rows(rows, (chart.x, chart.series, bar, tick))
    return Sketch(figure, (*keys, Key(heads[tick], "tick", 0)), " ".join(words), remarks, data=data)


def _weightiest(rows: pl.DataFrame, weight: str, title: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if rows.height <= CATEGORIES:
        return rows, ()
    largest = rows.with_row_index("_row").sort(weight, descending=True).head(CATEGORIES).sort("_row")
    return largest, (f"Of {plural(rows.height, 'bar')}, the {CATEGORIES} with most {title} are drawn.",)


def _upright_axes(figure: Figure, box: Box, at: Sequence[float]) -> Axes:
    axes = add_axes(figure, box)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(0, 100)
    axes.set_yticks([0, 25, 50, 75, 100], ["0", "25", "50", "75", "100"])
    axes.set_xticks([])
    axes.set_xlim(-0.8, at[-1] + 0.8)
    return axes


def _line_below(
    figure: Figure,
    box: Box,
    last: float,
    *,
    y: float,
    title: str,
    labels: Sequence[tuple[str, float, float]],
) -> None:
    # A row of numbers under the bars, with its name to the left; each spans the bars from first to last.
    scale = box[2] / (last + 1.6)
    write(figure, 58, y, title, ha="right")
    for label, begin, end in labels:
        write(figure, box[0] + ((begin + end) / 2 + 0.8) * scale, y, label, ha="center")


def ranges(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """For each row draw a line from the lower to the upper end, and a tick at the value.

    The axis starts at 0, or at the least number below it; then a line marks 0.

    Args:
        chart: ``x`` names the rows; ``y`` are the value, the lower and the upper end.
        table: for the headings and the unit of its columns.
        frame: the rows to draw; those without a value are left out, with a remark.
        units: units of the table's result; None: of the table alone.
    """
    value, lower, upper = chart.y
    known = frame.drop_nulls([value])
    rows, remarks = _heaviest(known, (value,))
    if known.height < frame.height:
        empty = frame.height - known.height
        remarks = (f"{empty:,} of {plural(frame.height, 'row')} {agreeing(empty, 'have no value')}.", *remarks)
    names = _texts(rows, chart.x)
    heads = headings(table)
    unit, factor = drawn_unit(table, value, units, chart.unit)
    behind = f" {unit}".removesuffix(" -")
    numbers = [
        (factor * v, factor * (v if a is None else a), factor * (v if b is None else b))
        for v, a, b in rows.select(value, lower, upper).iter_rows()
    ]
    certain = [None not in ends for ends in rows.select(lower, upper).iter_rows()]
    longest = max((b for _, _, b in numbers), default=0.0)
    least = min((a for _, a, _ in numbers), default=0.0)
    figure, axes, _ = _lanes(len(names), 1, longest, _ROOM_FOR_RANGE)
    if least < 0:
        longest = max(longest, 0.0)
        axes.set_xlim(least, longest)
        axes.vlines(0, 0, len(names) * _pitch(1), color=INK, linewidth=0.6)
    words = []
    for lane, (name, (v, a, b)) in enumerate(zip(names, numbers, strict=True)):
        top = lane * _pitch(1)
        write(figure, 0, top + 12, counted(name, chart.each))
        axes.hlines(top + _MIDDLE, min(least, 0.0), longest, color=INK, linewidth=0.3)
        if certain[lane]:
            axes.hlines(top + _MIDDLE, a, b, color=SERIES[0], linewidth=6)
        axes.vlines(v, top + _MIDDLE - 7, top + _MIDDLE + 7, color=INK, linewidth=2.4)
        middle, low, high = (shown(number, unit) for number in (v, a, b))
        label = middle + behind + (f" ({low} to {high})" if certain[lane] else "")
        write(figure, WIDTH - _ROOM_FOR_RANGE + 8, top + _MIDDLE + 4, label)
        words.append(f"{counted(name, chart.each)}: {label}.")
    keys = (Key(heads[value], "tick", 0), Key("interval", "bar", 1))
    data = drawn_rows(rows, (chart.x, *chart.y))
    return Sketch(figure, keys, " ".join(words), remarks + shortened_remark(names), data=data)


def _texts(frame: pl.DataFrame, column: str) -> list[str]:
    return ["none" if v is None else str(v) for v in frame[column].to_list()]


def _heaviest(frame: pl.DataFrame, columns: Sequence[str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Return the rows with the largest sum of these columns that fit, and a remark on the others."""
    import polars as pl

    if frame.height <= CATEGORIES:
        return frame, ()
    weight = pl.sum_horizontal(pl.col(columns).fill_null(0)).alias("_weight")
    largest = frame.with_row_index("_row").with_columns(weight).sort("_weight", descending=True).head(CATEGORIES)
    return largest.sort("_row"), (
        f"Of {plural(frame.height, 'row')}, the {CATEGORIES} with the longest bars are drawn.",
    )


def _pitch(bars: int) -> int:
    """Return the distance between lanes for this many bars each, in user units."""
    return _LABEL + bars * _BAR + (bars - 1) * _BETWEEN + _AFTER


def _lanes(
    count: int, bars: int, longest: float, room_for_value: float = _ROOM_FOR_VALUE
) -> tuple[Figure, Axes, float]:
    """Return a figure of lanes for bars, its axes, and the user units of 1.

    Args:
        count: number of lanes.
        bars: number of bars per lane.
        longest: longest bar, in its unit.
        room_for_value: user units to the right of the axes.
    """
    # Names stand over their bars: that is readable at any width, and no name is too long for a margin.
    height = max(count, 1) * _pitch(bars) - _AFTER + 2
    figure = blank_figure(height)
    room = WIDTH - room_for_value
    axes = add_axes(figure, (0, 0, room, height))
    axes.set_axis_off()
    axes.set_xlim(0, longest or 1.0)
    axes.set_ylim(height, 0)
    return figure, axes, room / (longest or 1.0)


def _positions(groups: Sequence[object]) -> tuple[list[float], list[tuple[str, float, float]]]:
    at: list[float] = []
    spans: list[tuple[str, float, float]] = []
    place = 0.0
    for label, members in groupby(groups):
        first = place
        for _ in members:
            at.append(place)
            place += 1
        spans.append((str(label), first, place - 1))
        place += 0.7
    return at, spans
