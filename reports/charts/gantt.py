"""Draws which job held GPUs of which node and when: one panel per policy, one row per node, one bar per allocation.

A bar is as many lanes high as it has GPUs. The chart assigns the lanes: a replay counts a node's GPUs, but does not
number them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.numbers import lasting
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import visible
from gpuctl.reports.charts.chart import (
    WIDTH,
    Lanes,
    Sketch,
    add_axes,
    add_rectangles,
    blank_figure,
    remark_more,
    short,
    shortened_remark,
    write,
)
from gpuctl.reports.charts.curves import elapsed_axis, time_axis
from gpuctl.reports.charts.levels import span_title
from gpuctl.reports.charts.svg import FAINT, INK, SERIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl
    from matplotlib.axes import Axes

    from gpuctl.core.charts import Chart
    from gpuctl.core.results import ResultTable

    Rect = tuple[float, float, float, float]

PANELS = 6
"""Maximum number of panels drawn: the first ones."""

LABEL = 10
"""Maximum characters of a node's name next to its row."""

_RIGHT, _TOP, _BETWEEN, _BOTTOM = 16.0, 26.0, 38.0, 48.0
_CHARACTER = 9.0
"""Width on a phone, in user units."""
_NODES = ("node", "lent")
_TALL, _PITCH = 240.0, (20.0, 64.0)
_THIN = 0.45
"""Opacity for jobs that take turns."""
_OTHERS = 5
_COLORS = tuple(k for k in range(1, len(SERIES) + 1) if k != _OTHERS)


@dataclass(frozen=True)
class Bar:
    """One row of the table in drawing form.

    Attributes:
        what: ``job``, ``loan`` or ``down``.
        node: name.
        job: its name.
        user: its user, or empty.
        queue: its queue, or empty.
        beside: the job whose GPUs it shares, or empty.
        gpus: of the node.
        counted: mean of these that count.
        start: seconds.
        end: seconds.
    """

    what: str
    node: str
    job: str
    user: str
    queue: str
    beside: str
    gpus: int
    counted: float
    start: float
    end: float


def gantt(chart: Chart, _table: ResultTable, frame: pl.DataFrame) -> Sketch:
    """Draw the allocations of a window.

    Args:
        chart: ``x`` and ``end`` are seconds, ``calendar`` the first of them as times; ``series`` names the rows,
            ``facet`` the panels, ``y`` holds `gpuctl.core.charts.GANTT`.
        _table: unused.
        frame: the rows to draw; those of nodes also hold the window.
    """
    facets = frame[chart.facet].unique(maintain_order=True).to_list()
    parts = {str(name): _bars(chart, frame.filter(frame[chart.facet] == name)) for name in facets[:PANELS]}
    every = [bar for bars in parts.values() for bar in bars]
    window = next((bar.start, bar.end) for bar in every if _is_node(bar) and bar.end > bar.start)
    shift, dated = _shift(chart, frame)
    ways = _ways([bar for bar in every if bar.what == "job"])
    nodes = {name: [bar for bar in bars if _is_node(bar)] for name, bars in parts.items()}
    pitch = min(_PITCH[1], max(_PITCH[0], _TALL / max(1, *(len(rows) for rows in nodes.values()))))
    left = 8 + _CHARACTER * max((min(LABEL, len(row.node)) for rows in nodes.values() for row in rows), default=0)
    boxes: list[Rect] = []
    for rows in nodes.values():
        top = boxes[-1][1] + boxes[-1][3] + _BETWEEN if boxes else _TOP
        boxes.append((left, top, WIDTH - left - _RIGHT, pitch * max(1, len(rows))))
    figure = blank_figure(boxes[-1][1] + boxes[-1][3] + _BOTTOM)
    data = Lanes(
        columns=[chart.facet, chart.series, "what", "job", "user", "queue", "gpus", "counted_gpus", "beside",
                 *((chart.calendar, f"{chart.calendar}_end") if dated else (chart.x, chart.end))],
        dated=dated, start=_number(1000 * (window[0] + shift) if dated else window[0]),
        span=(0.0, _number(window[1] - window[0])), names=[], panels=[], bars=[],
        ways=[(way, list(found.items())) for way, found in ways.items()],
    )  # fmt: skip
    numbers: dict[str, int] = {}
    for panel, ((name, bars), box) in enumerate(zip(parts.items(), boxes, strict=True)):
        write(figure, 0, box[1] - 8, short(name), bold=True)
        axes = add_axes(figure, box)
        axes.grid(visible=False)
        (time_axis if dated else elapsed_axis)(axes, window[0] + shift, window[1] + shift)
        axes.tick_params(labelbottom=box is boxes[-1])
        axes.set_yticks([])
        axes.set_ylim(box[3], 0)
        _panel(axes, data, numbers, (panel, name, box, pitch, window), bars, ways)
        for k, row in enumerate(nodes[name]):
            label = visible(row.node)
            write(figure, 0, box[1] + (k + 0.5) * pitch + 4, label if len(label) <= LABEL else f"…{label[1 - LABEL :]}")
    data["names"] += numbers
    write(figure, WIDTH / 2, boxes[-1][1] + boxes[-1][3] + _BOTTOM - 6,
          span_title((window[0] + shift, window[1] + shift), dated=dated), ha="center")  # fmt: skip
    words = " ".join(_in_words(name, bars, len(nodes[name])) for name, bars in parts.items())
    return Sketch(figure, (), words, _remarks(every, len(facets)), data=data)


def missing_values(chart: Chart, frame: pl.DataFrame) -> str:
    """Return why existing rows cannot be drawn; empty if they can."""
    needed = (chart.x, chart.end, chart.series, chart.facet, chart.y[0])
    lacking = [c for c in needed if frame[c].null_count()]
    if lacking:
        return f"Not every row of the table {chart.table} has {' and '.join(lacking)}."
    nodes = frame.filter(frame[chart.y[0]].is_in(_NODES) & (frame[chart.end] > frame[chart.x]))
    return "" if nodes.height else f"No row of the table {chart.table} is of a node over some time."


def _bars(chart: Chart, part: pl.DataFrame) -> list[Bar]:
    what, job, user, queue, gpus, counted, beside = chart.y
    columns = (what, chart.series, job, user, queue, beside)
    texts = [["" if text is None else str(text) for text in part[column].to_list()] for column in columns]
    numbers = [part[column].fill_null(0).to_list() for column in (gpus, counted, chart.x, chart.end)]
    return [Bar(*row) for row in zip(*texts, *numbers, strict=True)]


def _is_node(bar: Bar) -> bool:
    return bar.what in _NODES


def _shift(chart: Chart, frame: pl.DataFrame) -> tuple[float, bool]:
    """Return the offset from the table's seconds to seconds since 1970, and whether it is known."""
    if not chart.calendar or frame[chart.calendar].null_count():
        return 0.0, False
    return frame[chart.calendar].dt.epoch("ms")[0] / 1000 - float(frame[chart.x][0]), True


def _number(value: float) -> float:
    rounded = round(value, 1)
    return int(rounded) if rounded.is_integer() else rounded


def _ways(bars: list[Bar]) -> dict[str, dict[str, int]]:
    """Return the columns that colour bars, with the value of each colour: jobs in turn, users and queues by bars."""
    found = {"job": {name: _COLORS[k % len(_COLORS)] for k, name in enumerate(dict.fromkeys(b.job for b in bars))}}
    for way in ("user", "queue"):
        names = [getattr(bar, way) for bar in bars]
        known = sorted({name for name in names if name}, key=lambda name: (-names.count(name), name))
        if len(known) > 1:
            found[way] = dict(zip(known, _COLORS, strict=False))
    return found


def _panel(  # noqa: PLR0917 - what all panels share, and what is of this one
    axes: Axes,
    data: Lanes,
    numbers: dict[str, int],
    place: tuple[int, str, Rect, float, tuple[float, float]],
    bars: list[Bar],
    ways: Mapping[str, Mapping[str, int]],
) -> None:
    panel, name, box, pitch, window = place
    left, right = axes.get_xlim()
    scale = (right - left) / (window[1] - window[0])
    rows = [bar for bar in bars if _is_node(bar)]

    def number(text: str) -> int:
        return numbers.setdefault(text, len(numbers)) if text else -1

    def across(bar: Bar) -> tuple[float, float]:
        # a second is as visible as a day
        a, b = (left + (min(max(t, window[0]), window[1]) - window[0]) * scale for t in (bar.start, bar.end))
        return a, max(b, a + (right - left) / 800)

    drawn: dict[tuple[str, bool], list[Rect]] = {}
    remarks = []
    for k, node in enumerate(rows):
        of_it = [bar for bar in bars if bar.node == node.node and not _is_node(bar)]
        top, tall = k * pitch + 1.5, pitch - 3
        remarks.append((number(node.node), _number(box[1] + top), _number(tall)))
        there = [bar for bar in of_it if bar.what == "loan"] if node.what == "lent" else [node]
        _fill(axes, [(*across(bar), top, tall) for bar in there], FAINT, 0.6)
        for bar, tops in _places([bar for bar in of_it if bar.what == "job" and bar.gpus], node.gpus):
            colors = "".join(str(way.get(getattr(bar, key), _OTHERS)) for key, way in ways.items())
            heights = [(top + a * tall, (b - a) * tall) for a, b in tops]
            drawn.setdefault((colors, bar.counted < 0.995 * bar.gpus), []).extend(
                (*across(bar), *one) for one in heights
            )
            data["bars"].append([
                panel, k, number("job"), number(bar.job), number(bar.user), number(bar.queue), bar.gpus,
                _number(bar.counted), number(bar.beside), _number(bar.start - window[0]), _number(bar.end - window[0]),
                colors, *(_number(v) for a, b in heights for v in (box[1] + a, b)),
            ])  # fmt: skip
        for bar in of_it:
            if bar.what != "job":
                data["bars"].append([
                    panel, k, number(bar.what), -1, -1, -1, 0, 0, -1, _number(bar.start - window[0]),
                    _number(bar.end - window[0]), "",
                ])  # fmt: skip
        away = [(*across(bar), top + 0.42 * tall, 0.16 * tall) for bar in of_it if bar.what == "down"]
        _fill(axes, away, INK, 1.0)
    for (colors, thin), rects in sorted(drawn.items()):
        # ids by which the page recolours them
        _fill(axes, rects, SERIES[int(colors[0]) - 1], _THIN if thin else 1.0, gid=f"c{colors}")
    data["panels"].append(([_number(v) for v in box], name, remarks))


def _places(bars: list[Bar], gpus: int) -> Iterator[tuple[Bar, list[tuple[float, float]]]]:
    """Return the position of each bar in a node's row: from and to, as parts of its height."""
    own = sorted((bar for bar in bars if not bar.beside), key=lambda bar: (bar.start, -bar.end))
    steps = sorted([(bar.start, 1, bar.gpus) for bar in own] + [(bar.end, 0, -bar.gpus) for bar in own])
    most = int(np.cumsum([change for _, _, change in steps]).max()) if steps else 0
    lanes = max(gpus, most, 1)
    until = np.full(lanes, -np.inf)
    taken: list[tuple[Bar, list[int]]] = []
    for bar in own:
        free = np.flatnonzero(until <= bar.start).tolist()
        # adjacent if possible
        first = next(
            (i for i in range(len(free) - bar.gpus + 1) if free[i + bar.gpus - 1] - free[i] == bar.gpus - 1), 0
        )
        mine = free[first : first + bar.gpus]
        until[mine] = bar.end
        taken.append((bar, mine))
        yield bar, [(a / lanes, b / lanes) for a, b in _runs(mine)]
    for bar in bars:
        if bar.beside:
            hosts = [m for b, m in taken if b.job == bar.beside and b.start <= bar.start < b.end] or [
                [*range(bar.gpus)]
            ]
            # the lower half of its host
            yield bar, [((a + b) / 2 / lanes, b / lanes) for a, b in _runs(hosts[0][: bar.gpus])]


def _runs(lanes: list[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for lane in lanes:
        if found and found[-1][1] == lane:
            found[-1] = (found[-1][0], lane + 1)
        else:
            found.append((lane, lane + 1))
    return found


def _fill(axes: Axes, rects: list[Rect], color: str, strength: float, *, gid: str | None = None) -> None:
    if rects:
        corners = [(a, y, b, y, b, y + h, a, y + h, a, y) for a, b, y, h in rects]
        add_rectangles(axes, corners, color, strength, gid)


def _in_words(name: str, bars: list[Bar], nodes: int) -> str:
    jobs = [bar for bar in bars if bar.what == "job"]
    longest = max(jobs, key=lambda bar: bar.end - bar.start, default=None)
    text = f"{short(name)}: {plural(len(jobs), 'allocation')} of {plural(len({b.job for b in jobs}), 'job')}"
    text += f" on {plural(nodes, 'node')}"
    if longest is not None:
        text += f", the longest {lasting(longest.end - longest.start)} of {short(longest.job)}"
    return text + "."


def _remarks(bars: list[Bar], facets: int) -> tuple[str, ...]:
    remarks = ["The height of a bar is its number of GPUs; which GPUs of a node they are is unknown."]
    if any(bar.what == "job" and bar.counted < 0.995 * bar.gpus for bar in bars):
        remarks.append("Pale: jobs that took turns on a node with fewer GPUs than they requested.")
    if any(bar.beside for bar in bars):
        remarks.append("Lower half of a bar: a job packed on the same GPUs.")
    if any(bar.what == "lent" for bar in bars):
        remarks.append("A row with gaps is a node that is present only while on loan.")
    if any(bar.what == "down" for bar in bars):
        remarks.append("Line: the node was down.")
    if unknown := sum(bar.what == "job" and not bar.gpus for bar in bars):
        remarks.append(f"{plural(unknown, 'row')} without GPUs not drawn.")
    remarks += remark_more(facets - PANELS, "panel")
    return tuple(remarks) + shortened_remark([name for bar in bars for name in (bar.node,) if len(name) > LABEL])
