"""Draws a Gantt chart for a terminal: one line per node, each character the job that held most of it then."""

from __future__ import annotations

import math
from collections import defaultdict
from string import ascii_letters
from typing import TYPE_CHECKING

from gpuctl.core.numbers import lasting
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import visible
from gpuctl.reports.terminal.text_graphics import BLOCKS, axis, moment, time_ticks

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from gpuctl.core.charts import Chart
    from gpuctl.reports.terminal.text_graphics import Signs

    Row = tuple[str, str, str, str, float, float, float]

LINES = 24
"""Maximum number of nodes over all policies."""
NAMED = 8
"""Number of letters in the legend: the jobs with the most GPU time."""
NAME = 24
"""Maximum characters of a node's name."""
NARROWEST = 12
_FREE = "."


def gantt(rule: Chart, frame: pl.DataFrame, width: int, signs: Signs) -> tuple[tuple[str, ...], str] | None:
    """Return lines and caption; None if there is nothing to draw, or the lines are too short.

    Args:
        rule: as for `gpuctl.reports.charts.gantt`.
        frame: the rows of its table.
        width: characters of a line.
        signs: characters to draw with.
    """
    what, job, _, _, _, counted, _ = rule.y
    columns = (rule.facet, rule.series, what, job, counted, rule.x, rule.end)
    if not all(frame[name].dtype.is_numeric() for name in columns[4:]):
        return None
    every: list[Row] = [
        (*("" if text is None else str(text) for text in row[:4]), row[4] or 0.0, *row[5:])
        for row in frame.select(columns).drop_nulls([rule.x, rule.end]).iter_rows()
        if all(math.isfinite(number or 0.0) for number in row[4:])
    ]
    from rich.cells import cell_len

    there = [row for row in every if row[2] in {"node", "lent"}]
    borrowed = {row[:2] for row in every if row[2] in {"loan", "job"}}
    nodes = [row for row in there if row[2] == "node" or row[:2] in borrowed]
    if not nodes:
        return None
    low, high = nodes[0][5:]
    policies = list(dict.fromkeys(row[0] for row in nodes))
    each = max(1, (LINES - len(policies)) // len(policies))
    names = min(NAME, max(cell_len(visible(row[1])) for row in nodes)) + 2
    room = width - names - 2
    if room < NARROWEST or not 0 < high - low < math.inf:
        return None
    held = {(row[0], row[1]): _slots(_of(every, row), low, high, room) for row in nodes}
    letters, legend = _letters(held.values())
    lines: list[str] = []
    left_out, idle = 0, len(there) - len(nodes)
    for policy in policies:
        mine = [row for row in nodes if row[0] == policy]
        left_out += len(mine[each:])
        lines.append(_name(policy, width, signs).rstrip())
        for _, node, *_ in mine[:each]:
            drawn = "".join(letters[max(s, key=lambda name: s[name])] if s else _FREE for s in held[policy, node])
            lines.append(f"  {_name(node, names - 2, signs)}{signs.edge}{drawn}{signs.edge}")
    first = frame[rule.calendar].drop_nulls() if rule.calendar else None
    shift = 0.0 if first is None or not len(first) else first.dt.epoch("ms")[0] / 1000 - float(frame[rule.x][0])
    dated = first is not None and len(first) == frame.height
    below = axis(time_ticks(low + shift, high + shift, room, calendar=dated), room + 1, signs).rstrip()
    lines.append(f"{' ' * (names + 1)}{below}")
    caption = (
        f"{moment(low + shift, calendar=dated)} to {moment(high + shift, calendar=dated)}; each character is "
        f"{lasting((high - low) / room)} of a node, marked by the job that held the most GPU time: {legend}; "
        f"{_FREE} nothing. " + (f"{plural(left_out, 'more node')} not drawn. " if left_out else "")
        + (f"{plural(idle, 'row')} of nodes that were not on loan left out. " if idle else "")
    )  # fmt: skip
    return tuple(line for line in lines if line.strip()), f"{caption}From {rule.table}."


def _name(text: str, cells: int, signs: Signs) -> str:
    """Return a name in a number of characters; a cut name ends in an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    plain = visible(text)
    if cell_len(plain) <= cells:
        return set_cell_size(plain, cells)
    cut = "\u2026" if signs.edge == BLOCKS.edge else "..."
    return set_cell_size(plain, cells - len(cut)) + cut


def _of(rows: Iterable[Row], node: Row) -> list[Row]:
    return [row for row in rows if row[:2] == node[:2] and row[2] == "job"]


def _slots(rows: Iterable[Row], low: float, high: float, room: int) -> list[dict[str, float]]:
    """Return the GPU-seconds of each job in each of `room` equal periods."""
    slots: list[dict[str, float]] = [defaultdict(float) for _ in range(room)]
    wide = (high - low) / room
    for *_, job, gpus, start, end in rows:
        begin, until = max(start, low), min(end, high)
        for k in range(int((begin - low) / wide), min(room, int((until - low) / wide) + 1)):
            there = min(until, low + (k + 1) * wide) - max(begin, low + k * wide)
            if there > 0:
                slots[k][job] += gpus * there
    return slots


def _letters(nodes: Iterable[list[dict[str, float]]]) -> tuple[dict[str, str], str]:
    """Return the letter of each job, in order of time, and the meaning of the most important ones."""
    total: dict[str, float] = defaultdict(float)
    first: dict[str, int] = {}
    for slots in nodes:
        for k, slot in enumerate(slots):
            for job, seconds in slot.items():
                total[job] += seconds
                first[job] = min(k, first.get(job, k))
    order = sorted(first, key=lambda job: (first[job], job))
    letters = {job: ascii_letters[k % len(ascii_letters)] for k, job in enumerate(order)}
    most = sorted(order, key=lambda job: -total[job])[:NAMED]
    listed = ", ".join(f"{letters[job]} {visible(job)}" for job in sorted(most, key=order.index))
    listed += ", …" if len(order) > NAMED else ""
    return letters, listed + (" (letters repeat)" if len(order) > len(ascii_letters) else "")
