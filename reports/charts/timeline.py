"""Draws when a job waited and ran: one row per attempt, over time."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING

from gpuctl.core.storable_text import plural
from gpuctl.reports.charts.chart import WIDTH, Key, Sketch, add_axes, add_rectangles, blank_figure, short, write
from gpuctl.reports.charts.curves import time_axis
from gpuctl.reports.charts.levels import span_title
from gpuctl.reports.charts.svg import SERIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

ROWS = 40
"""Maximum attempts that are drawn: the first ones."""
_PITCH, _BAR, _BOTTOM, _RIGHT, _CHARACTER = 24.0, 16.0, 48.0, 16.0, 9.0
_COLOURS = {"running": 1, "waiting": 2}


def sketch_spans(rows: Sequence[tuple[str, Sequence[tuple[str, datetime, datetime, str]]]]) -> Sketch:
    """Draw spans of time.

    Args:
        rows: name, and its spans: ``waiting`` or ``running``, begin, end (UTC), in words.
    """
    drawn = rows[:ROWS]
    times = [_second(time) for _, own in drawn for _, *both, _ in own for time in both]
    first, last = min(times), max(times)
    left = 8 + _CHARACTER * max(len(short(name)) for name, _ in drawn)
    height = _PITCH * len(drawn)
    figure = blank_figure(height + _BOTTOM + 8)
    axes = add_axes(figure, (left, 8, WIDTH - left - _RIGHT, height))
    axes.grid(visible=False)
    time_axis(axes, first, last)
    axes.set_yticks([])
    axes.set_ylim(height, 0)
    begin, end = axes.get_xlim()
    scale = (end - begin) / (last - first)
    words = []
    for number, (name, own) in enumerate(drawn):
        top = number * _PITCH + (_PITCH - _BAR) / 2
        write(figure, 0, 8 + number * _PITCH + _PITCH / 2 + 4, short(name))
        for kind, since, until, text in own:
            a, b = (begin + (_second(time) - first) * scale for time in (since, until))
            # a second is as visible as a day
            b = max(b, a + (end - begin) / 800)
            corners = [(a, top, b, top, b, top + _BAR, a, top + _BAR, a, top)]
            add_rectangles(axes, corners, SERIES[_COLOURS[kind] - 1])
            words.append(f"{name} {text}.")
    write(figure, WIDTH / 2, height + _BOTTOM + 2, span_title((first, last), dated=True), ha="center")
    keys = tuple(Key(kind, "bar", colour) for kind, colour in _COLOURS.items())
    left_out = len(rows) - len(drawn)
    remarks = (f"{plural(left_out, 'more attempt')} not drawn.",) if left_out else ()
    return Sketch(figure, keys, " ".join(words), remarks)


def _second(time: datetime) -> float:
    return time.replace(tzinfo=UTC).timestamp()
