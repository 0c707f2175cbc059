"""Converts values into lines of characters: bars, shares, axes. Plain text, readable without colour, or in ASCII."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING

from gpuctl.core.numbers import lasting
from gpuctl.core.relative_time import day_and_time, is_relative

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN = "?"
"""Mark for a value that a bar cannot show: missing, not a number, infinite, or negative."""

DAY = 86400.0
_SHORTEST = 1e-290
_FIRST_DATE, _LAST_DATE = -6e10, 2.5e11
_STEPS = (
    1, 5, 10, 30, 60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY,
    91 * DAY, 182 * DAY, 364 * DAY,
)  # fmt: skip
_TICKS = ((1.0, "1 s"), (10.0, "10 s"), (60.0, "1 min"), (600.0, "10 min"), (3600.0, "1 h"), (36000.0, "10 h"))


@dataclass(frozen=True)
class Signs:
    """The characters of pictures.

    Attributes:
        levels: of a bar within one character, from empty to full.
        fills: of the parts of a stacked bar, in order.
        edge: both ends of a bar, and ticks of the axis.
    """

    levels: str
    fills: str
    edge: str

    @property
    def full(self) -> str:
        """The character of a full bar."""
        return self.levels[-1]

    def fill(self, part: int) -> str:
        """The character of a part of a stacked bar, from 0; parts beyond the last fill share that one."""
        return self.fills[min(part, len(self.fills) - 1)]


BLOCKS = Signs(" ▁▂▃▄▅▆▇█", "█▒░·/x+o%@", "│")
PLAIN = Signs(" .:-=+*#", "#=-./x+o%@", "|")


def signs_of(encoding: str | None) -> Signs:
    """Return block characters if an encoding has them all, else ASCII ones."""
    try:
        "".join((BLOCKS.levels, BLOCKS.fills, BLOCKS.edge)).encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS


def level(value: float | None, top: float, steps: int) -> int | None:
    """Return the height of a bar: 0 for zero only, 1 up to `steps` for equal parts above it.

    Args:
        value: value of the bar.
        top: the value of a full bar, above zero; larger values are also full.
        steps: levels above zero.

    Returns:
        None if the value is missing, not finite or negative.
    """
    if value is None or not math.isfinite(value) or value < 0:
        return None
    if value == 0:
        return 0
    share = value / top if top > 0 else 1.0
    return min(steps, max(1, math.ceil(min(share, 1.0) * steps)))


def bars(values: Sequence[float | None], top: float, signs: Signs, height: int = 1) -> tuple[str, ...]:
    """Draw one vertical bar per character.

    Args:
        values: one per character; see `level`.
        top: the value of a full bar.
        signs: characters to draw with.
        height: lines.

    Returns:
        `height` lines, one character per value, from the top.
    """
    per_line = len(signs.levels) - 1
    found = [level(value, top, per_line * height) for value in values]
    lines = []
    for below in range(per_line * (height - 1), -1, -per_line):
        cells = ("" if n is None else signs.levels[min(per_line, max(0, n - below))] for n in found)
        lines.append("".join(cell or (UNKNOWN if below == 0 else " ") for cell in cells))
    return tuple(lines)


def stacked(parts: Sequence[float | None], width: int, signs: Signs) -> str:
    """Draw the shares of a whole as one horizontal bar.

    Args:
        parts: of the whole, in order; missing, infinite or non-positive ones take no space.
        width: characters of the whole.
        signs: characters to draw with.

    Returns:
        `width` characters, each of the part that its middle falls into; blank if there is no whole.
    """
    sizes = [float(p) if p is not None and math.isfinite(p) and p > 0 else 0.0 for p in parts]
    largest = max(sizes, default=0.0)
    if not largest:
        return " " * width
    ends, total = [], 0.0
    for size in sizes:
        total += size / largest
        ends.append(total)
    last = max(i for i, size in enumerate(sizes) if size)
    found = (min(bisect_right(ends, total * (i + 0.5) / width), last) for i in range(width))
    return "".join(signs.fill(part) for part in found)


def phases(spans: Sequence[tuple[float, float, str]], low: float, high: float, width: int) -> str:
    """Draw states over time.

    Args:
        spans: (from, to, character); if two share a character, the later one in the list wins. Each takes at least one
            character.
        low: start of the range.
        high: its end, above `low`.
        width: characters of the range.
    """
    cells = [" "] * width
    for start, end, sign in spans:
        first = min(width - 1, max(0, math.floor((start - low) / (high - low) * width)))
        last = min(width, max(first + 1, math.ceil((end - low) / (high - low) * width)))
        cells[first:last] = sign * (last - first)
    return "".join(cells)


def resampled(
    spans: Sequence[tuple[float, float, float | None]], low: float, high: float, width: int
) -> list[float | None]:
    """Return means over equal parts of a range, weighted by duration.

    Args:
        spans: (from, to, value), without overlaps; a missing, infinite or NaN value counts as unknown.
        low: start of the range.
        high: its end, above `low`.
        width: number of parts.

    Returns:
        One mean per part, None if no value of it is known.
    """
    step = (high - low) / width
    sums, weights = [0.0] * width, [0.0] * width
    for begin, until, value in spans:
        if value is None or not math.isfinite(value):
            continue
        start, end = max(begin, low), min(until, high)
        at = min(width - 1, max(0, int((start - low) / step)))
        while at < width and low + at * step < end:
            overlap = min(end, low + (at + 1) * step) - max(start, low + at * step)
            if overlap > 0:
                # the weight first: a sum of the largest floats would be infinite
                weights[at] += overlap / step
                sums[at] += value * (overlap / step)
            at += 1
    return [s / w if w > 0 and math.isfinite(s) else None for s, w in zip(sums, weights, strict=True)]


def shares(points: Sequence[tuple[float, float]], edges: Sequence[float]) -> tuple[float, list[float], float]:
    """Return the shares of a cumulative distribution between edges.

    Args:
        points: (value, share of all up to and with it in %); infinite ones are left out.
        edges: ascending.

    Returns:
        The share up to and with the first edge; that above each edge up to and with the next one; and the share of
        all that has a value at all (%).
    """
    known = sorted((x, y) for x, y in points if math.isfinite(x) and math.isfinite(y))
    values = [x for x, _ in known]
    ups = [0.0]
    for _, y in known:
        ups.append(max(ups[-1], y))
    at = [ups[bisect_right(values, edge)] for edge in edges]
    return at[0], [b - a for a, b in pairwise(at)], ups[-1]


def axis(ticks: Sequence[tuple[int, str]], width: int, signs: Signs) -> str:
    """Draw the line below bars: each tick's mark is in its column, followed by its label.

    Args:
        ticks: (column from 0, label), by column; a label without space is left out, as is a mark that falls into
            another label.
        width: characters.
        signs: characters to draw with.
    """
    line = ""
    for column, label in ticks:
        if len(line) <= column < width:
            room = column + 1 + len(label) <= width
            line = line.ljust(column) + signs.edge + (label if room else "")
    return line.ljust(width)


def decades(low: float, high: float) -> tuple[float, float, list[tuple[float, str]]]:
    """Return a range of round durations around others, and rounder ones within it as ticks.

    Args:
        low: seconds, above zero.
        high: seconds, at least `low`.

    Returns:
        The start of the range, below `low`; its end, at or above `high`; and ascending (seconds, label) between them.
    """
    found = list(_TICKS)
    while found[0][0] >= low and found[0][0] > _SHORTEST:
        value = found[0][0] / 10
        found.insert(0, (value, f"{value:g} s"))
    found.append((DAY, "1 d"))
    while found[-1][0] < high:
        value = found[-1][0] * 10
        found.append((value, f"{value / DAY:g} d"))
    values = [value for value, _ in found]
    values += [one * factor for one, after in pairwise(values) for factor in (2, 3, 5) if one * factor < after]
    start = max((value for value in values if value < low), default=low / 10)
    end = min(value for value in values if value >= high)
    return start, end, [(value, label) for value, label in found if start <= value <= end]


def moment(time: float, *, calendar: bool) -> str:
    """Return an instant as text: a date and time, or the time since the start without a calendar.

    Args:
        time: seconds, since 1970 in UTC if `calendar`.
        calendar: whether times have dates.
    """
    if not calendar:
        return lasting(time)
    if is_relative(time):
        return day_and_time(time)
    try:
        return f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M} UTC"
    except (OverflowError, ValueError, OSError):
        return f"{time:g} s after 1970"


def time_ticks(low: float, high: float, width: int, *, calendar: bool) -> list[tuple[int, str]]:
    """Return (column, label) of round times, as many as fit; empty if the range is too short or too long.

    Args:
        low: seconds, since 1970 in UTC if `calendar`.
        high: seconds, above `low`.
        width: characters of the range.
        calendar: dates and times of day instead of durations.
    """
    span = high - low
    calendar = calendar and not is_relative(low)
    if calendar and (low < _FIRST_DATE or high > _LAST_DATE):
        return []
    step = next((s for s in _STEPS if span / s * (_room(s, calendar=calendar) + 1) <= width), None)
    step = step or _STEPS[-1] * math.ceil(span / _STEPS[-1] * (_room(_STEPS[-1], calendar=calendar) + 1) / width)
    if span / step > width:
        return []
    first = math.ceil(low / step)
    count = int(span / step) + 1
    times = (step * (first + i) for i in range(count))
    return [(int((t - low) / span * width), _tick(t, step, calendar=calendar)) for t in times if low <= t < high]


def _room(step: float, *, calendar: bool) -> int:
    # a tick's mark and label; those of dates and times of day have a known length
    return 1 + (10 if step >= 91 * DAY else 5 if step >= 60 else 8) if calendar else 8


def _tick(time: float, step: float, *, calendar: bool) -> str:
    if calendar:
        form = (
            "%Y-%m-%d"
            if step >= 91 * DAY
            else "%m-%d"
            if time % DAY == 0
            else "%H:%M"
            if time % 60 == 0
            else "%H:%M:%S"
        )
        return datetime.fromtimestamp(time, UTC).strftime(form)
    size, unit = next((pair for pair in ((DAY, "d"), (3600.0, "h"), (60.0, "min")) if step >= pair[0]), (1.0, "s"))
    return f"{time / size:g} {unit}"
