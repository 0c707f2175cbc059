"""Draws values with the intervals that they are sure to: one line a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.numbers import UNITS
from gpuctl.core.text import agreeing, plural
from gpuctl.reports.charts.bars import headings, heaviest, lanes, pitch
from gpuctl.reports.charts.chart import WIDTH, Key, Sketch, counted, drawn_rows, shortened_remark, write
from gpuctl.reports.charts.svg import INK, SERIES
from gpuctl.reports.text import shown
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable

_MIDDLE = 24.0
"""Where a line lies in its lane, in user units below the lane's top: under its name."""

_ROOM = 190.0
"""For the numbers behind a line."""


def ranges(chart: Chart, table: ResultTable, frame: pl.DataFrame, units: Units | None = None) -> Sketch:
    """Draw for each row a line from the lower to the upper end, and a tick at the value.

    The axis starts at 0, or at the least number below it; then a line marks 0.

    Args:
        chart: ``x`` names the rows; ``y`` are the value, the lower and the upper end.
        table: for the headings and the unit of its columns.
        frame: the rows to draw; those without a value are left out, and said so.
        units: of the result that the table is of; None: of the table alone.
    """
    value, lower, upper = chart.y
    known = frame.drop_nulls([value])
    rows, remarks = heaviest(known, (value,))
    if known.height < frame.height:
        empty = frame.height - known.height
        remarks = (f"{empty:,} of {plural(frame.height, 'row')} {agreeing(empty, 'have no value')}.", *remarks)
    names = ["none" if name is None else str(name) for name in rows[chart.x].to_list()]
    heads = headings(table)
    unit = chart.unit or next(c.unit for c in table.columns if c.name == value)
    scaled = (units or Units([table])).of(table, value)
    factor = UNITS[unit].seconds / scaled.seconds if scaled else 1.0
    unit = scaled.name if scaled else unit
    behind = f" {unit}".removesuffix(" -")
    numbers = [
        (factor * v, factor * (v if a is None else a), factor * (v if b is None else b))
        for v, a, b in rows.select(value, lower, upper).iter_rows()
    ]
    certain = [None not in ends for ends in rows.select(lower, upper).iter_rows()]
    longest = max((b for _, _, b in numbers), default=0.0)
    least = min((a for _, a, _ in numbers), default=0.0)
    figure, axes, _ = lanes(len(names), 1, longest, _ROOM)
    if least < 0:
        longest = max(longest, 0.0)
        axes.set_xlim(least, longest)
        axes.vlines(0, 0, len(names) * pitch(1), color=INK, linewidth=0.6)
    words = []
    for lane, (name, (v, a, b)) in enumerate(zip(names, numbers, strict=True)):
        top = lane * pitch(1)
        write(figure, 0, top + 12, counted(name, chart.each))
        axes.hlines(top + _MIDDLE, min(least, 0.0), longest, color=INK, linewidth=0.3)
        if certain[lane]:
            axes.hlines(top + _MIDDLE, a, b, color=SERIES[0], linewidth=6)
        axes.vlines(v, top + _MIDDLE - 7, top + _MIDDLE + 7, color=INK, linewidth=2.4)
        middle, low, high = (shown(number, unit) for number in (v, a, b))
        told = middle + behind + (f" ({low} to {high})" if certain[lane] else "")
        write(figure, WIDTH - _ROOM + 8, top + _MIDDLE + 4, told)
        words.append(f"{counted(name, chart.each)}: {told}.")
    keys = (Key(heads[value], "tick", 0), Key("interval", "bar", 1))
    data = drawn_rows(rows, (chart.x, *chart.y))
    return Sketch(figure, keys, " ".join(words), remarks + shortened_remark(names), data=data)
