"""Chart declarations: one line of text per chart, for the page, the terminal, or both.

    KIND KEY=VALUE ...

A key applies to every medium unless prefixed by ``page.`` or ``terminal.``; values with blanks are quoted.
docs/how-to/add-an-analysis.md lists kinds and keys.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields
from functools import cache

MEDIA = ("page", "terminal")
KINDS = {
    "cdf": MEDIA,
    "time": MEDIA,
    "lines": MEDIA,
    "stacked": MEDIA,
    "bars": MEDIA,
    "grouped": ("page",),
    "heat": ("page",),
    "gantt": MEDIA,
    "ranges": ("page",),
    "bands": MEDIA,
    "profile": MEDIA,
    "tradeoff": MEDIA,
}
"""Kinds of charts, and where each can be drawn."""
SCALES = ("share", "minutes", "ratio")
GANTT = ("what", "job", "user", "queue", "gpus", "counted_gpus", "beside")
"""Contents of the columns ``y`` of a ``gantt``, in order, whatever their names."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,99}")
_UNIT = re.compile(r"(_gpu)?_h$")
_LISTS = ("y", "where")
_FLAGS = ("ranked", "lead", "counts")
_NUMBERS = ("height",)
_NEEDS = {
    "cdf": ("x",),
    "time": ("x", "y"),
    "lines": ("x", "y", "series"),
    "stacked": ("x", "y"),
    "bars": ("x", "y"),
    "grouped": ("x", "y", "series", "weight"),
    "heat": ("x", "y", "series", "facet"),
    "gantt": ("x", "end", "y", "series", "facet"),
    "ranges": ("x", "y"),
    "bands": ("x", "y", "series"),
    "profile": ("x", "y"),
    "tradeoff": ("x", "y", "series"),
}
_MOST_Y = {
    "cdf": (0, 1),
    "grouped": (2, 2),
    "heat": (2, 2),
    "gantt": (len(GANTT), len(GANTT)),
    "ranges": (3, 3),
    "bands": (3, 3),
    "tradeoff": (1, 1),
}


@dataclass(frozen=True)
class Chart:
    """One chart in one medium.

    Attributes:
        name: unique in its medium; ids in the page start with it.
        table: the result table it is drawn from.
        kind: a key of `KINDS`: ``cdf`` (cumulative distributions), ``time`` (levels over time), ``lines`` (levels over
            time, one line per series), ``stacked`` (parts of a whole), ``bars`` (bars side by side), ``grouped`` (means
            by group), ``heat`` (a heat map), ``gantt`` (who held which resource, from when to when), ``ranges`` (values
            with their intervals), ``bands`` (means over a number that varies, with their intervals), ``profile``
            (values over a number, one line per column) or ``tradeoff`` (benefit against cost).
        title: its heading.
        medium: ``page`` or ``terminal``.
        x: the column along the figure: values, times, or names of bars.
        y: the columns of heights, lengths or parts; those of ``stacked`` are left out if the table lacks them. No
            column for a ``cdf`` of a table in which each row is a value of its own.
        words: the terminal's label for each of `y`.
        series: the column that distinguishes curves, lines, or bars of a group.
        facet: the column that distinguishes panels.
        where: only rows in which these columns have one of these values.
        scale: of the ``x`` of a ``cdf``: ``minutes`` and ``ratio`` (logarithmic) or ``share`` (0 to 100 %).
        x_title: the label of the horizontal axis.
        y_title: the label of the vertical axis.
        weight: if there are too many bars, those with the largest values of this column are drawn.
        each: what a value of ``series``, ``facet`` or ``x`` counts, in the singular: ``GPU``.
        calendar: the column with the times of ``x``; if it is empty, ``x`` counts seconds from an arbitrary start.
        end: the column with the end of each span; empty: the start of the next one.
        limit: a column that is the limit of the first of ``y``, or of the last one's panel.
        unit: of ``y``; by default that of its column.
        beside: a terminal draws it below this table; below its own if that table alone is printed.
        head: heading above the names, in a terminal.
        ranked: the i-th of n points of a ``cdf``, from 0, has a share of i / (n - 1), so that the lowest has none; each
            is counted with its own share, the points being all values.
        zero: the terminal's label for the share of a ``cdf`` that is 0.
        height: lines of a bar over time in a terminal.
        what: the terminal's label for what a ``cdf`` counts, or for what is shared.
        lead: a page of one result begins with it.
        band: what the bands of ``bands`` are, in words; empty: 95 % intervals.
        counts: the ``y`` of ``lines`` are counts of each period, not means: periods drawn as one point are summed.
    """

    name: str
    table: str
    kind: str
    title: str
    medium: str = "page"
    x: str = ""
    y: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    series: str = ""
    facet: str = ""
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()
    scale: str = "share"
    x_title: str = ""
    y_title: str = ""
    weight: str = ""
    each: str = ""
    calendar: str = ""
    end: str = ""
    limit: str = ""
    unit: str = ""
    beside: str = ""
    head: str = ""
    ranked: bool = False
    zero: str = ""
    height: int = 1
    what: str = ""
    lead: bool = False
    band: str = ""
    counts: bool = False

    @property
    def optional(self) -> tuple[str, ...]:
        """Return the columns of ``y`` that the table may lack."""
        return self.y if self.kind == "stacked" else ()

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the columns of ``y``; for levels over time, with the limit after the first of them."""
        if self.kind != "time" or not self.limit:
            return self.y
        return (self.y[0], self.limit, *self.y[1:])

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns that the table must have."""
        filters = (column for column, _ in self.where)
        named = (self.x, *self.levels, self.series, self.facet, self.weight, self.calendar, self.limit, *filters)
        return tuple(dict.fromkeys(c for c in named if c and c not in self.optional))


_TEXTS = tuple(
    f.name for f in fields(Chart) if f.name not in {"table", "kind", "medium", "words", *_LISTS, *_FLAGS, *_NUMBERS}
)


@cache
def declared(table: str, text: str, title: str = "") -> tuple[Chart, ...]:
    """Read the declaration of one chart.

    Args:
        table: the result table that it is drawn from.
        text: ``KIND KEY=VALUE ...``.
        title: its heading if the text has none.

    Returns:
        The chart for each medium that it is declared for.

    Raises:
        ValueError: the text is not such a declaration; the message states why.
    """
    kind, *rest = shlex.split(text) or [""]
    if kind not in KINDS:
        raise ValueError(f"unknown kind of chart: {kind[:40]!r}; expected one of {', '.join(KINDS)}")
    common: dict[str, str] = {}
    own: dict[str, dict[str, str]] = {medium: {} for medium in MEDIA}
    media = KINDS[kind]
    for pair in rest:
        key, equals, value = pair.partition("=")
        medium, dot, name = key.partition(".")
        into = own.get(medium, {}) if dot else common
        name = name if dot else key
        if not equals or (dot and medium not in own):
            raise ValueError(f"{pair[:60]!r} is not KEY=VALUE")
        if name in into:
            raise ValueError(f"{key} is given twice")
        if key == "on":
            media = tuple(value.split(","))
            if not media or not set(media) <= set(KINDS[kind]):
                raise ValueError(f"on={value[:40]}: a chart of kind {kind} can be on {' or '.join(KINDS[kind])}")
        elif name in {*_TEXTS, *_LISTS, *_FLAGS, *_NUMBERS}:
            into[name] = value
        else:
            raise ValueError(f"a chart has no {name[:40]!r}")
    return tuple(_chart(table, kind, medium, {"title": title, **common, **own[medium]}) for medium in media)


def _chart(table: str, kind: str, medium: str, pairs: dict[str, str]) -> Chart:
    lacking = [key for key in _NEEDS[kind] if not pairs.get(key)]
    if lacking:
        raise ValueError(f"a chart of kind {kind} needs {' and '.join(lacking)}")
    items = [item.partition(":") for item in pairs.get("y", "").split(",") if item]
    least, most = _MOST_Y.get(kind, (1, len(items)))
    if not least <= len(items) <= most:
        raise ValueError(f"a chart of kind {kind} has {least} to {most} columns in y, not {len(items)}")
    if kind == "cdf" and medium == "page" and not items:
        raise ValueError("a cdf on a page needs y: the column with the share up to and with x, in %")
    if pairs.get("scale", SCALES[0]) not in SCALES:
        raise ValueError(f"scale: expected {' or '.join(SCALES)}")
    texts = {key: value for key, value in pairs.items() if key in _TEXTS}
    texts.setdefault("name", f"chart-{table.replace('_', '-').lower()}")
    if not _NAME.fullmatch(texts["name"]):
        raise ValueError(f"{texts['name'][:60]!r} is not a name for a chart: small letters, digits and hyphens")
    return Chart(
        table=table,
        kind=kind,
        medium=medium,
        y=tuple(column for column, _, _ in items),
        words=tuple(words or _UNIT.sub("", column).replace("_", " ") for column, _, words in items),
        where=tuple(_filter(item) for item in pairs.get("where", "").split(";") if item),
        ranked=_flag("ranked", pairs),
        lead=_flag("lead", pairs),
        counts=_flag("counts", pairs),
        height=_height(pairs.get("height", "1")),
        **texts,
    )


def _filter(text: str) -> tuple[str, tuple[str, ...]]:
    column, colon, values = text.partition(":")
    if not column or not colon:
        raise ValueError(f"where={text[:60]}: expected COLUMN:VALUE,VALUE")
    return column, tuple(values.split(","))


def _flag(key: str, pairs: dict[str, str]) -> bool:
    text = pairs.get(key, "no")
    if text not in {"yes", "no"}:
        raise ValueError(f"{key}={text[:20]}: expected yes or no")
    return text == "yes"


def _height(text: str) -> int:
    if not re.fullmatch(r"[1-9]", text):
        raise ValueError(f"height={text[:20]}: expected 1 to 9")
    return int(text)
