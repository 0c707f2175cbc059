"""Draws one picture for a terminal from one result table, and the text on its scale, unit and range."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from gpuctl.core.numbers import lasting, percent
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import heading, shown
from gpuctl.reports.terminal.gantt import gantt
from gpuctl.reports.terminal.letter_plots import error_bars, profile, scatter
from gpuctl.reports.terminal.text_graphics import (
    UNKNOWN,
    axis,
    bars,
    decades,
    moment,
    phases,
    resampled,
    shares,
    stacked,
    time_ticks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import polars as pl

    from gpuctl.core.charts import Chart
    from gpuctl.core.job_explanation import Explanation, Wait
    from gpuctl.core.results import ResultTable
    from gpuctl.reports.terminal.text_graphics import Signs

ROWS = 12
"""Maximum rows of a picture, besides the total."""
WIDEST = 120
"""Maximum characters of a bar: a curve has only a few hundred points."""
MOST_BINS = 60
"""Maximum bins of a distribution: with fewer values per bin, it would show noise."""
NARROWEST = 12
"""Minimum room for bars; with less there is no picture."""
TOTAL = "all"
"""Name of the row with the total."""

OVER_TIME = ("time", "lines")
_BESIDE = ("stacked", "bars")
_SHORT = 0.1
"""Seconds: lower end of an axis of durations, even if some are shorter."""
_SIZES = ("0", "1", "2-4", "5-8", ">8", "unknown")
_PERCENT_BINS = (100, 50, 25, 20)

Curves = list[tuple[str, list[tuple[float, float]]]]
"""By name, the points of a cumulative distribution: (value, share of values up to it in %)."""

T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """A picture in printable form.

    Attributes:
        title: its heading.
        lines: at most the requested width.
        caption: scale, unit, range and table; to be wrapped.
    """

    title: str
    lines: tuple[str, ...]
    caption: str


@dataclass(frozen=True)
class Scale:
    """The axis of distributions: edges of the bins, ticks as `axis` takes them, and its description."""

    edges: tuple[float, ...]
    ticks: tuple[tuple[int, str], ...]
    words: str


@dataclass(frozen=True)
class _Row:
    # The text before a bar: its name, and numbers for its first and last line.
    label: str
    notes: tuple[str, ...] = ("",)


def draw(rule: Chart, table: ResultTable, width: int, signs: Signs) -> Picture | None:
    """Draw one picture; None if the table lacks the data or the lines are too short.

    Args:
        rule: the chart to draw.
        table: its table.
        width: characters of a line.
        signs: characters to draw with.
    """
    if rule.kind == "gantt":
        chart = None if set(rule.columns) - {*table.frame.columns} else gantt(rule, table.frame, width, signs)
        return chart and Picture(rule.title, *chart)
    frame = rows_of(rule, table)
    if frame is None:
        return None
    rule = _worded(rule, table)
    if rule.kind in OVER_TIME:
        return _over_time(rule, frame, width, signs)
    if rule.kind in _BESIDE:
        return (_stacked if rule.kind == "stacked" else _bars)(rule, frame, width, signs)
    if rule.kind in {"bands", "profile"}:
        drawn = (error_bars if rule.kind == "bands" else profile)(rule, frame, width)
        return drawn and Picture(rule.title, *drawn)
    if rule.kind == "tradeoff":
        drawn = scatter(rule, frame, width)
        return drawn and Picture(rule.title, *drawn)
    kind = durations if rule.scale == "minutes" else _percents
    return kind(rule, curves(rule, frame), width, signs, rule.table)


def _worded(rule: Chart, table: ResultTable) -> Chart:
    """Return the chart with the table's texts for those that its declaration lacks."""
    columns = {column.name: column for column in table.columns}
    names = columns.get(_label(rule))
    unit = next((columns[c].unit.removeprefix("-") for c in rule.y if c in columns), "")
    return replace(
        rule,
        head=rule.head or (heading(names)[0] if names else ""),
        unit=rule.unit or unit,
        zero=rule.zero or "0",
        what=rule.what or ("values" if rule.kind == "cdf" else rule.unit or unit or "total"),
    )


def _label(rule: Chart) -> str:
    """Return the column that names the rows; empty: each of ``y`` is a row."""
    return rule.x if rule.kind in _BESIDE else rule.series


def rows_of(rule: Chart, table: ResultTable) -> pl.DataFrame | None:
    """Return the rows of a picture; None if there are none, columns are missing, or there are no numbers."""
    import polars as pl

    frame = table.frame
    wanted = [name for name in (rule.series, rule.x, rule.end, rule.limit) if name]
    wanted += [name for name, _ in rule.where]
    wanted += [name for name in rule.y if name not in rule.optional]
    parts = [name for name in rule.optional if name in frame.columns]
    if any(name not in frame.columns or frame[name].dtype.is_nested() for name in wanted):
        return None
    texts = {_label(rule), *(column for column, _ in rule.where)}
    numbers = [name for name in (*wanted, *parts) if name not in texts and frame[name].dtype.is_numeric()]
    if any(name not in texts and name not in numbers and not frame[name].dtype.is_temporal() for name in wanted):
        return None
    for column, values in rule.where:
        frame = frame.filter(pl.col(column).cast(pl.String).is_in(values))
    return frame.with_columns(pl.col(numbers).cast(pl.Float64)) if frame.height else None


def _groups(rule: Chart, frame: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    """Return the rows of each name, in the order of the table, sizes by size; all rows if the rule has no label."""
    label = rule.series
    if not label:
        return [("", frame)]
    parts = frame.partition_by(label, maintain_order=True)
    if label == "size_bucket":
        parts.sort(key=lambda part: _SIZES.index(size) if (size := part[label][0]) in _SIZES else len(_SIZES))
    return [(shown(part[label][0]), part) for part in parts]


def _fewer(rows: Sequence[tuple[str, T]]) -> tuple[list[tuple[str, T]], str]:
    # The total stays if rows must be dropped.
    if len(rows) <= ROWS + 1:
        return list(rows), ""
    drawn_rows = [row for row in rows if row[0] != TOTAL][:ROWS]
    drawn_rows += [row for row in rows if row[0] == TOTAL]
    return drawn_rows, f"{plural(len(rows) - len(drawn_rows), 'more row')} not drawn. "


def _room(rows: Sequence[_Row], heads: tuple[str, str], width: int) -> tuple[int, int, int]:
    """Return the characters for names, notes and bars; two blanks follow the names, one the notes, edges enclose bars.

    Names take at most a third of the line: longer ones are folded.
    """
    from rich.cells import cell_len

    names = max(cell_len(text) for text in (heads[0], *(row.label for row in rows)))
    names = min(names, width // 3)
    notes = max(len(text) for text in (heads[1], *(note for row in rows for note in row.notes)))
    left = names + (2 + notes if notes else 0) + 1
    return names, notes, min(WIDEST, width - left - 2)


def _assembled(
    rows: Sequence[tuple[_Row, Sequence[str]]],
    heads: tuple[str, str],
    room: tuple[int, int, int],
    signs: Signs,
    ticks: Sequence[tuple[int, str]] = (),
) -> tuple[str, ...]:
    from rich.cells import chop_cells, set_cell_size

    names, notes, bar = room

    def before(label: str, note: str) -> str:
        return set_cell_size(label, names) + (f"  {note.rjust(notes)}" if notes else "") + " "

    lines = []
    if any(heads):
        lines.append(before(set_cell_size(heads[0], min(names, len(heads[0]))), heads[1]).rstrip())
    for row, drawn in rows:
        labels = chop_cells(row.label, names) if row.label else [""]
        count = max(len(labels), len(drawn))
        texts = ["", *[""] * (len(drawn) - 1)]
        texts[0], texts[len(drawn) - 1] = row.notes[0], row.notes[-1]
        for i in range(count):
            label = labels[i] if i < len(labels) else ""
            cells = f"{signs.edge}{drawn[i]}{signs.edge}" if i < len(drawn) else ""
            lines.append((before(label, texts[i] if i < len(texts) else "") + cells).rstrip())
    below = axis(ticks, bar + 1, signs).rstrip()
    if below:
        lines.append(f"{before('', '')} {below}")
    return tuple(lines)


def attempts(found: Explanation, width: int, signs: Signs) -> Picture | None:
    """Draw when each attempt of a job waited and ran; None for a single attempt without a wait, or without times.

    Args:
        found: the explanation of the job.
        width: characters of a line.
        signs: characters to draw with.
    """
    waiting, running = signs.fill(2), signs.full
    every: list[tuple[str, list[tuple[float, float, str]]]] = []
    for number, wait, start, end in _tries(found):
        spans = []
        if wait is not None and wait.queued_ts is not None and wait.seconds:
            queued = _seconds(wait.queued_ts, 0.0)
            spans.append((queued, queued + wait.seconds, waiting))
        if start is not None and end is not None and end > start:
            spans.append((_seconds(start, 0.0), _seconds(end, 0.0), running))
        every.append((number, spans))
    series, left_out = _fewer(every)
    times = [time for _, spans in series for start_s, end_s, _ in spans for time in (start_s, end_s)]
    low, high = min(times, default=0.0), max(times, default=0.0)
    signs_used = {sign for _, spans in series for _, _, sign in spans}
    rows = [_Row(name) for name, _ in series]
    room = _room(rows, ("", ""), width) if rows else (0, 0, 0)
    if high <= low or room[2] < NARROWEST or (len(every) < 2 and waiting not in signs_used):
        return None
    drawn = [(row, (phases(spans, low, high, room[2]),)) for row, (_, spans) in zip(rows, series, strict=True)]
    caption = (
        f"{waiting} waiting, {running} running; {moment(low, calendar=True)} to {moment(high, calendar=True)}; each "
        f"character is {lasting((high - low) / room[2])}, the shortest interval shown. {left_out}"
    ).rstrip()
    ticks = time_ticks(low, high, room[2], calendar=True)
    return Picture("When it waited and ran", _assembled(drawn, ("", ""), room, signs, ticks), caption)


def _tries(found: Explanation) -> Iterable[tuple[str, Wait | None, datetime | None, datetime | None]]:
    if found.never_started is not None:
        yield "no attempt", found.never_started, None, None
    for tried in found.attempts:
        yield f"attempt {tried.number}", tried.wait, tried.start_ts, tried.end_ts


def _over_time(rule: Chart, frame: pl.DataFrame, width: int, signs: Signs) -> Picture | None:
    shift, calendar = _clock(rule, frame)
    every = [
        (name or words, (column, _spans(rule, part, column, shift)))
        for name, part in _groups(rule, frame)
        for column, words in zip(rule.y, rule.words, strict=True)
    ]
    series, left_out = _fewer(every)
    edges = [time for _, (_, spans) in series for start, end, _ in spans for time in (start, end)]
    low, high = min(edges, default=0.0), max(edges, default=0.0)
    if not (math.isfinite(high - low) and high > low):
        return None
    tops = {c: _most(v for _, (column, spans) in series if column == c for _, _, v in spans) for c in rule.y}
    if rule.limit:
        tops[rule.y[0]] = _most(frame[rule.limit].to_list()) or tops[rule.y[0]]
    tall = rule.height > 1
    rows = [
        _Row(name, (shown(tops[column]), "0") if tall else (shown(_most(v for _, _, v in spans)),))
        for name, (column, spans) in series
    ]
    heads = (rule.head, "" if tall else "most")
    room = _room(rows, heads, width)
    if room[2] < NARROWEST or not any(tops.values()):
        return None
    drawn = [
        (row, bars(resampled(spans, low, high, room[2]), tops[column], signs, rule.height))
        for row, (_, (column, spans)) in zip(rows, series, strict=True)
    ]
    full = f"a full bar ({signs.full}) is {shown(tops[rule.y[0]])} {rule.unit}"
    unknown = f"{UNKNOWN}: not known. " if any(UNKNOWN in lines[-1] for _, lines in drawn) else ""
    caption = (
        f"{moment(low, calendar=calendar)} to {moment(high, calendar=calendar)}; each character is a mean of "
        f"{lasting((high - low) / room[2])}; {'bars range from 0 to the number at the top' if tall else full}. "
        f"{left_out}{unknown}From {rule.table}."
    )
    ticks = time_ticks(low, high, room[2], calendar=calendar)
    return Picture(rule.title, _assembled(drawn, heads, room, signs, ticks), caption)


def _clock(rule: Chart, frame: pl.DataFrame) -> tuple[float, bool]:
    """Return the offset from the seconds of a column to seconds since 1970, and whether it is known."""
    if rule.x == "ts":
        return 0.0, True
    first = frame["ts"][0] if "ts" in frame.columns else None
    start = frame[rule.x][0]
    if isinstance(first, datetime) and start is not None:
        return _seconds(first, 0.0) - start, True
    return 0.0, False


def _spans(rule: Chart, frame: pl.DataFrame, column: str, shift: float) -> list[tuple[float, float, float | None]]:
    values = frame[column].to_list()
    starts = [_seconds(time, shift) for time in frame[rule.x].to_list()]
    if rule.end:
        ends = [_seconds(time, shift) for time in frame[rule.end].to_list()]
    else:
        # the last one is assumed to last as long as the one before
        ends = starts[1:] + ([2 * starts[-1] - starts[-2]] if len(starts) > 1 else [])
    found = zip(starts, ends, values, strict=False)
    return [(start, end, value) for start, end, value in found if math.isfinite(start) and math.isfinite(end - start)]


def _seconds(time: object, shift: float) -> float:
    if isinstance(time, datetime):
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return float(time) + shift if isinstance(time, int | float) else math.nan


def _most(values: Iterable[float | None]) -> float:
    return max((v for v in values if v is not None and math.isfinite(v) and v >= 0), default=0.0)


def _between(values: Sequence[float]) -> str:
    low, high = percent(min(values)), percent(max(values))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def curves(rule: Chart, frame: pl.DataFrame) -> Curves:
    """Return the distribution of each name, in the order of the table."""
    import polars as pl

    groups = []
    for name, rows in _groups(rule, frame):
        part = rows.filter(pl.col(rule.x).is_finite())
        if not rule.y:
            part = part.group_by(rule.x).len().sort(rule.x)
            ups = (part["len"].cum_sum() * 100 / max(part["len"].sum(), 1)).to_list()
        else:
            [share] = rule.y
            part = part.filter(pl.col(share).is_finite())
            ups = part[share].to_list()
        if rule.ranked:
            ups = [(up * (len(ups) - 1) + 100) / len(ups) for up in ups]
        if ups:
            groups.append((name, list(zip(part[rule.x].to_list(), ups, strict=True))))
    return groups


def durations(rule: Chart, every: Curves, width: int, signs: Signs, table: str) -> Picture | None:
    """Draw distributions of minutes above a logarithmic axis.

    Args:
        rule: title and words.
        every: the values, one row per name.
        width: characters of a line.
        signs: characters to draw with.
        table: origin of the values, for the caption.
    """
    groups, left_out = _fewer(every)
    names, notes, most = _room_of_shares(rule, groups, width)
    room = names, notes, min(most, MOST_BINS)
    times = [60 * minutes for _, points in groups for minutes, _ in points if 0 < 60 * minutes < math.inf]
    if not times or room[2] < NARROWEST:
        return None
    # the rounding error of a sum of floats would stretch the axis by decades
    shortest = max(min(times), min(_SHORT, max(times) / 1e4))
    start, end, ticks = decades(shortest, max(times))
    low, high = math.log(start), math.log(end)
    inner = (math.exp(low + i / room[2] * (high - low)) / 60 for i in range(1, room[2]))
    scale = Scale(
        # a value above 0 is in a bin: the first one starts there
        (0.0, *inner, end / 60),
        tuple((round((math.log(time) - low) / (high - low) * room[2]), label) for time, label in ticks),
        f"{lasting(start)} to {lasting(end)}, logarithmic"
        + (", shorter ones in the first character" if min(times) < start else ""),
    )
    return _distributions(rule, groups, room, signs, scale, f"{left_out}From {table}.")


def _percents(rule: Chart, every: Curves, width: int, signs: Signs, table: str) -> Picture | None:
    groups, left_out = _fewer(every)
    names, notes, most = _room_of_shares(rule, groups, width)
    # whole percents, as most telemetry has them: other bins would hold unequal numbers of them
    bins = next((n for n in _PERCENT_BINS if n <= most), None)
    if bins is None:
        return None
    scale = Scale(
        tuple(100 * i / bins for i in range(bins + 1)),
        tuple((bins * tick // 100, f"{tick} %") for tick in range(0, 101, 20)),
        f"0 to 100 %, each character {100 // bins} %",
    )
    return _distributions(rule, groups, (names, notes, bins), signs, scale, f"{left_out}From {table}.")


def _room_of_shares(rule: Chart, groups: Curves, width: int) -> tuple[int, int, int]:
    some = any(x <= 0 for _, points in groups for x, _ in points)
    notes = [percent(shares(points, [0.0])[0]) if some else "" for _, points in groups]
    rows = [_Row(name, (note,)) for (name, _), note in zip(groups, notes, strict=True)]
    return _room(rows, (rule.head, rule.zero if some else ""), width)


def _distributions(  # noqa: PLR0917 - as its callers have them
    rule: Chart, groups: Curves, room: tuple[int, int, int], signs: Signs, scale: Scale, end: str
) -> Picture | None:
    found = [(name, shares(points, scale.edges)) for name, points in groups]
    top = max((value for _, (_, values, _) in found for value in values), default=0.0)
    if top <= 0:
        return None
    drawn = [
        (_Row(name, (percent(zero) if room[1] else "",)), bars(values, top, signs)) for name, (zero, values, _) in found
    ]
    rest = [f"{name} {percent(100 - total)}" for name, (_, _, total) in found if total < 99.95]
    never = f"Without a value: {', '.join(rest)}. " if rest else ""
    zeros = f"'{rule.zero}' and the bars" if room[1] else "the bars"
    caption = (
        f"{scale.words}; in each row, {zeros} are 100 % of its {rule.what}; a full bar ({signs.full}) is "
        f"{percent(top)}. {never}{end}"
    )
    heads = (rule.head, rule.zero if room[1] else "")
    return Picture(rule.title, _assembled(drawn, heads, room, signs, scale.ticks), caption)


def _bars(rule: Chart, frame: pl.DataFrame, width: int, signs: Signs) -> Picture | None:
    several = len(rule.y) > 1
    every = [
        (f"{shown(row[rule.x])}, {words}" if several else shown(row[rule.x]), row[column])
        for row in frame.iter_rows(named=True)
        if row[rule.x] != TOTAL
        for column, words in zip(rule.y, rule.words, strict=True)
    ]
    groups, left_out = _fewer(every)
    top = _most(value for _, value in groups)
    rows = [_Row(name, (shown(value, rule.unit) if value is not None else UNKNOWN,)) for name, value in groups]
    heads = (rule.head, "" if several else rule.words[0])
    room = _room(rows, heads, width) if rows else (0, 0, 0)
    if room[2] < NARROWEST or top <= 0:
        return None
    lengths = [round(room[2] * _most([value]) / top) for _, value in groups]
    drawn = [(row, ((signs.full * n).ljust(room[2]),)) for row, n in zip(rows, lengths, strict=True)]
    full = f"{shown(top, rule.unit)} {rule.unit}".rstrip()
    caption = f"a full bar is {full}. {left_out}From {rule.table}."
    return Picture(rule.title, _assembled(drawn, heads, room, signs), caption)


def _stacked(rule: Chart, frame: pl.DataFrame, width: int, signs: Signs) -> Picture | None:
    there = [
        (c, words)
        for c, words in zip(rule.y, rule.words, strict=True)
        if c in frame.columns and frame[c].dtype.is_numeric()
    ]
    used = [(c, words) for c, words in there if _most(frame[c].to_list()) > 0]
    every = [(shown(row[rule.x]), [_most([row[c]]) for c, _ in used]) for row in frame.iter_rows(named=True)]
    groups, left_out = _fewer(every)
    notes = [shown(math.fsum(values), rule.unit) for _, values in groups]
    rows = [_Row(name, (note,)) for (name, _), note in zip(groups, notes, strict=True)]
    heads = (rule.head, rule.what)
    room = _room(rows, heads, width)
    if room[2] < NARROWEST or not used:
        return None
    drawn = [(row, (stacked(values, room[2], signs),)) for row, (_, values) in zip(rows, groups, strict=True)]
    whole = next((values for name, values in every if name == TOTAL and any(values)), None)
    if whole:
        parts = [f"{percent(100 * value / math.fsum(whole))} of all" for value in whole]
    else:
        split = [[100 * value / math.fsum(values) for value in values] for _, values in every if any(values)]
        parts = [_between(found) for found in zip(*split, strict=True)]
    keys = (f"{signs.fill(i)} {words} ({part})" for i, ((_, words), part) in enumerate(zip(used, parts, strict=True)))
    caption = f"{', '.join(keys)}; each bar is 100 % of the {rule.what} next to it. {left_out}From {rule.table}."
    return Picture(rule.title, _assembled(drawn, heads, room, signs), caption)
