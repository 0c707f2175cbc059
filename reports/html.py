"""Writes results as one self-contained HTML page: no network, no other file.

Result tables are embedded up to a number of rows; tables with one row per job are not, only the points of the curves
drawn from them. The page's security policy allows its own style and script, by hash, and nothing else; text from logs
is escaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, BinaryIO

import polars as pl

from gpuctl import __version__
from gpuctl.core.file_io import write_atomically
from gpuctl.core.notes import note
from gpuctl.core.results import Column, ResultTable
from gpuctl.core.storable_text import plural
from gpuctl.reports.cell_text import shown, shown_columns, visible
from gpuctl.reports.charts.registry import draw_all
from gpuctl.reports.export.values import json_value
from gpuctl.reports.metrics import in_words, values
from gpuctl.reports.report import against_baseline, compared, failed, file_endings, labelled, summarize, verdict
from gpuctl.reports.standout import rules_applied
from gpuctl.reports.summary import headlines, period_and_size
from gpuctl.reports.units import Units
from gpuctl.reports.why_empty import reasons

if TYPE_CHECKING:
    from collections.abc import Sequence, Set
    from pathlib import Path

    from jinja2 import Environment
    from markupsafe import Markup

    from gpuctl.core.results import Analysis, SourceInfo
    from gpuctl.reports.cell_text import ShownColumn
    from gpuctl.reports.charts.chart import Panel
    from gpuctl.reports.charts.registry import Drawing
    from gpuctl.reports.report import Part
    from gpuctl.reports.why_empty import Reason


TABLE_ROWS = 500
"""Maximum rows of a table on the page …"""

PAGE_CELLS = 10_000
"""… and maximum cells of all tables: beyond that, every table gets fewer rows."""

UNFOLDED = 6
"""Maximum cards that a page of one result shows unfolded; beyond that, each section is one line to unfold."""

FEW_ROWS = 5
"""Maximum rows of a table without a filter."""

LONG_ROWS = 25
"""Maximum rows of a table that is shown whole; of a longer one …"""

FIRST_ROWS = 17
"""… these are shown first (reports/assets/report.css hides the others)."""

LONG_TEXT = 60
"""Text length from which a column is wide."""

_INDENT = re.compile(r"^[ ]+", re.MULTILINE)
_FEWER_ROWS = (TABLE_ROWS, 250, 100, 50, 25)


@dataclass(frozen=True)
class _Figure:
    """A figure; ``file`` is the name of its CSV, without the ending."""

    file: str
    drawing: Drawing


@dataclass(frozen=True)
class _Card:
    """One result table in the page: its figures, its rows, and their definitions.

    ``part`` is the label of its result, empty if the page has only one; ``means`` is the card that defines its columns:
    the first of several results' tables with the same columns. ``leads``: the page begins with figures of it.
    """

    id: str
    part: str
    table: ResultTable
    drawings: tuple[_Figure, ...]
    grid: Grid | None
    means: str
    leads: bool = False

    @property
    def has_place(self) -> bool:
        """Return whether there is something to show: a table of one row per job without a figure has nothing."""
        return self.grid is not None or bool(self.drawings) or self.leads


@dataclass(frozen=True)
class _Section:
    """A group of tables; those of one name, one per result, are side by side."""

    key: str
    title: str
    rows: tuple[tuple[_Card, ...], ...]

    @property
    def content(self) -> str:
        """Return its content in words, for readers who have folded it."""
        cards = [card for row in self.rows for card in row]
        kinds = ((sum(c.grid is not None for c in cards), "table"), (sum(len(c.drawings) for c in cards), "figure"))
        return ", ".join(plural(count, word) for count, word in kinds if count)


def write_html(analysis: Analysis, path: Path) -> None:
    """Write the page of one result.

    Args:
        analysis: the analysis to report.
        path: the file; replaced at the end, or left unchanged.

    Raises:
        UsageError: the file cannot be written.
    """
    write_page(render_html(analysis), path)


def write_page(page: str, path: Path) -> None:
    """Write a page to a file, whole or not at all.

    Raises:
        UsageError: the file cannot be written.
    """
    text = page.encode("utf-8", "backslashreplace")
    write_atomically(path, lambda file: _put(file, text))


def render_html(analysis: Analysis) -> str:
    """Return the page of one result as text; the same result gives the same text."""
    parts = labelled([analysis])
    return render_report(parts, summarize(parts, command=analysis.command), analysis.version)


def render_report(parts: Sequence[Part], summary: Analysis, version: str = __version__) -> str:
    """Return the page of a report as text; the same results give the same text.

    Args:
        parts: the results, at least one.
        summary: the result of `gpuctl.reports.report.summarize`.
        version: version of gpuctl shown in the page.
    """
    several = len(parts) > 1
    limit = _row_limit([t for part in parts for t in part.analysis.tables if not t.detail])
    cards: list[_Card] = []
    undrawn: list[Drawing] = []
    empty: list[tuple[str, list[str]]] = []
    endings = file_endings(parts)
    for number, part in enumerate(parts, 1):
        ending = f"--{number}" if number > 1 else ""
        drawings = draw_all(part.analysis, ending)
        cards += _cards(part, drawings, (ending, endings[number - 1]), limit, label=part.label if several else "")
        if titles := [t.title for t in part.analysis.tables if t.frame.height == 0]:
            empty.append((part.label if several else "", titles))
        names = {t.name for t in part.analysis.tables}
        undrawn += [d for d in drawings if d.missing and d.table not in names and not several]
    lead, cards = ([], cards) if several else _lead(cards)
    cards = _meant_once(cards)
    return render_page(
        "report.html.j2",
        parts=[(part, headlines(part.analysis), part.analysis.warnings) for part in parts],
        sizes=[period_and_size(part.analysis) for part in parts],
        title=summary.cluster,
        command=summary.command,
        version=version,
        lead=lead,
        standouts=_standouts(parts, summary),
        rules_applied=sum(rules_applied(part.analysis) for part in parts),
        checks=None if (checks := summary.table("checks")) is None else _own_card(checks, TABLE_ROWS),
        verdict=verdict(summary),
        failed=failed(summary),
        changes=_against_baseline(summary),
        metrics=_side_by_side(parts, summary),
        sections=_sections(parts, cards),
        folded=several or sum(card.has_place for card in cards) > UNFOLDED,
        undrawn=undrawn,
        empty=empty,
        reasons=_why_empty(parts),
        without_rows=[card for card in cards if card.grid is None],
        sources=_sources_grid(summary.sources, limit),
        totals=_source_totals(summary.sources),
    )


def render_page(template: str, **values: object) -> str:
    """Return a page with the reports' style and scripts, and a security policy that allows only these.

    Args:
        template: a file of ``reports/templates``.
        values: values for the template; all text is escaped.
    """
    style, early = _asset("report.css") + columns_style(), _asset("theme.js")
    script = "".join(map(_asset, ("csv.js", "report.js", "figures.js", "gantt.js")))
    policy = (
        f"default-src 'none'; script-src {_hash(early)} {_hash(script)}; style-src {_hash(style)};"
        " base-uri 'none'; form-action 'none'"
    )
    made = _environment().get_template(template)
    return made.render(policy=policy, style=style, early=early, script=script, **values)


def _put(file: BinaryIO, page: bytes) -> None:
    file.write(page)


def _asset(name: str) -> str:
    return files("gpuctl.reports").joinpath("assets", name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    folder = files("gpuctl.reports").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: _INDENT.sub("", folder.joinpath(name).read_text("utf-8"))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(visible=visible, island=_island, packed=_packed, trusted=Markup, plural=plural)
    environment.tests.update(long=lambda text: len(text) > LONG_TEXT)
    environment.globals.update(few_rows=FEW_ROWS, first_rows=FIRST_ROWS)
    return environment


def _packed(panels: Sequence[Panel]) -> list[dict[str, object]]:
    """Return panels with shared positions stored once: by the number of an earlier curve; times as start and steps.

    Steps are ``[ms, count in a row]``. reports/assets/csv.js reads them.
    """
    places: list[list[float]] = []
    found = []
    for panel in panels:
        curves = []
        for curve in panel["curves"]:
            x: object = curve["x"]
            if curve["x"] in places:
                x = places.index(curve["x"])
            else:
                places.append(curve["x"])
                if panel["scale"] == "time" and curve["x"]:
                    steps = [b - a for a, b in pairwise(curve["x"])]
                    x = {"from": curve["x"][0], "steps": [[step, len(list(some))] for step, some in groupby(steps)]}
            curves.append({**curve, "x": x})
        found.append({**panel, "curves": curves})
    return found


def _island(data: object) -> Markup:
    # JSON inside a script element must not contain anything that looks like the element's end.
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)  # noqa: S704 -- escaped a line above


def _cards(part: Part, drawings: Sequence[Drawing], endings: tuple[str, str], limit: int, *, label: str) -> list[_Card]:
    anchor, file = endings
    units = Units(part.analysis.tables)
    return [
        _Card(
            id=table.name + anchor,
            part=label,
            table=table,
            drawings=tuple(_Figure(d.name.removesuffix(anchor) + file, d) for d in drawings if d.table == table.name),
            grid=None if table.detail else grid(table, limit, table.name + file, units),
            means=table.name + anchor,
        )
        for table in part.analysis.tables
        if table.frame.height
    ]


def _why_empty(parts: Sequence[Part]) -> list[Reason]:
    """Return the reasons for missing figures of all results, without duplicates."""
    return list(dict.fromkeys(reason for part in parts for reason in reasons(part.analysis)))


def _lead(cards: Sequence[_Card]) -> tuple[list[_Figure], list[_Card]]:
    """Return the figures at the start of the page, all of one table, and the cards without them."""
    first = next((card for card in cards if any(f.drawing.lead for f in card.drawings)), None)
    if first is None:
        return [], list(cards)
    lead = [f for f in first.drawings if f.drawing.lead]
    rest = replace(first, drawings=tuple(f for f in first.drawings if not f.drawing.lead), leads=True)
    return lead, [rest if card is first else card for card in cards]


def _meant_once(cards: Sequence[_Card]) -> list[_Card]:
    first: dict[tuple[str, tuple[Column, ...]], str] = {}
    found = []
    for card in cards:
        # A table that is not shown cannot state it.
        if card.has_place:
            key = (card.table.name, tuple(card.table.columns))
            found.append(replace(card, means=first.setdefault(key, card.id)))
        else:
            found.append(card)
    return found


def _own_card(table: ResultTable, limit: int) -> _Card:
    """Return the card of a table of the report itself."""
    return _Card(table.name, "", table, (), grid(table, limit, table.name), table.name)


def _side_by_side(parts: Sequence[Part], summary: Analysis) -> _Card | None:
    table = compared(parts, summary)
    if table is None or table.frame.height == 0:
        return None  # results without any metric
    if len(parts) < 2:
        return _in_units(_own_card(table, TABLE_ROWS), table, set())
    labels = [part.label for part in parts]
    known = {value.key: in_words(value.metric, value.labels) for part in parts for value in values(part.analysis)}
    named = [known.get(key, visible(key)) for key in table.frame["metric"]]
    changes = [c.name for c in table.columns if c.name in {"change", "change_pct"}]
    table = replace(
        table,
        frame=table.frame.insert_column(0, pl.Series("figure", named, dtype=pl.String)),
        columns=(Column("figure", "-", "the metric in words"), *table.columns),
        key_columns=("figure", "unit", *labels, *changes),
    )
    measured = table.frame.select(labels).head(TABLE_ROWS).rows()
    same = tuple(len({value for value in row if value is not None}) < 2 for row in measured)
    card = _own_card(table, TABLE_ROWS)
    if card.grid is not None and not all(same):
        classes = " ".join(name for name in card.grid.classes.split() if name != "long")
        card = replace(card, grid=replace(card.grid, same=same, classes=classes))
    # A column named after a result has that name as its heading. A row's values have the row's unit.
    return _in_units(card, table, set(labels))


def _against_baseline(summary: Analysis) -> _Card | None:
    table = against_baseline(summary)
    return None if table is None else _in_units(_own_card(table, TABLE_ROWS), table, set())


def _in_units(card: _Card, table: ResultTable, labels: Set[str]) -> _Card:
    """Return a card of metrics with values in the unit of their row, and columns headed by the results' names."""
    if card.grid is None:
        return card
    valued = labels or {"value", "baseline"}
    units = table.frame["unit"].to_list()
    columns, places = list(card.grid.columns), [c.name in valued or c.name == "change" for c in card.grid.columns]
    rows = tuple(
        tuple(
            cell(shown(column.values[i], unit), column.values[i]) if is_value else old
            for column, is_value, old in zip(columns, places, row, strict=True)
        )
        for i, (row, unit) in enumerate(zip(card.grid.rows, units, strict=False))
    )
    named = tuple(replace(c, label=visible(c.name)) if c.name in labels else c for c in columns)
    return replace(card, grid=replace(card.grid, columns=named, rows=rows))


def _standouts(parts: Sequence[Part], summary: Analysis) -> list[dict[str, str]]:
    """Return the rows of the table ``standout``, each with the anchor and the title of its table."""
    table = summary.table("standout")
    known = {part.label: (k, part.analysis) for k, part in enumerate(parts, 1)}
    found = []
    for row in table.frame.iter_rows(named=True) if table is not None else ():
        number, analysis = known[row["result"]]
        own = analysis.table(row["table"])
        ending = f"--{number}" if number > 1 else ""
        found.append({**row, "anchor": row["table"] + ending, "title": row["table"] if own is None else own.title})
    return found


def _row_limit(tables: Sequence[ResultTable]) -> int:
    for limit in _FEWER_ROWS:
        if sum(min(t.frame.height, limit) * len(t.columns) for t in tables) <= PAGE_CELLS:
            return limit
    return _FEWER_ROWS[-1]


def _sections(parts: Sequence[Part], cards: Sequence[_Card]) -> list[_Section]:
    titles: dict[str, str] = {}
    for part in parts:
        for key, title in part.analysis.sections:
            titles.setdefault(key, title)
    for card in cards:
        titles.setdefault(card.table.section, card.table.section.capitalize())
    seen = [card for card in cards if card.has_place]
    found = []
    for key, title in titles.items():
        names = dict.fromkeys(card.table.name for card in seen if card.table.section == key)
        rows = tuple(tuple(c for c in seen if (c.table.section, c.table.name) == (key, name)) for name in names)
        if rows:
            found.append(_Section(key, title, rows))
    return found


def _sources_grid(sources: Sequence[SourceInfo], limit: int) -> Grid:
    columns = (
        Column("path", "-", "The file, path of the file; members of archives as archive!member."),
        Column("format", "-", "The format as which it was read."),
        Column("rows_in", "-", "Rows read: loaded, already in the store, or rejected."),
        Column("rows_loaded", "-", "Rows loaded into the store."),
        Column("rows_already_stored", "-", "Rows already in the store with the same content."),
        Column("rows_rejected", "-", "Rows that could not be read; the store keeps each with its reason."),
        Column("bytes", "-", "Decompressed size."),
        Column("sha256", "-", "Of its bytes."),
    )
    names = [c.name for c in columns]
    schema = {n: pl.Int64 if n.startswith(("rows", "bytes")) else pl.String for n in names}
    frame = pl.DataFrame([[getattr(s, n) for n in names] for s in sources], schema=schema, orient="row")
    table = ResultTable("sources", "provenance", "Sources", "", note(""), (), columns, frame)
    return grid(table, limit // 2, table.name)


def _source_totals(sources: Sequence[SourceInfo]) -> dict[str, int]:
    return {
        n: sum(getattr(s, n) for s in sources)
        for n in ("rows_in", "rows_loaded", "rows_already_stored", "rows_rejected")
    }


MANY_COLUMNS = 11
"""Maximum columns in print; rows of a wider table become blocks of named values."""

NARROW_COLUMNS = 6
"""Maximum columns of a table that fits half the width of a printed page."""

FEW_COLUMNS = 8
"""Maximum columns shown until the reader expands the table."""

STYLED_COLUMNS = 80
"""Number of columns that the style sheet can format; later ones look like text and are always shown."""

_BARE = re.compile(r"[\w.:+-]+", re.ASCII)


@dataclass(frozen=True)
class Cell:
    """The text of a cell, and its exact value if that differs (``v`` a number or time, ``j`` JSON)."""

    text: str
    v: str = ""
    j: str = ""


@dataclass(frozen=True)
class Grid:
    """The embedded rows of a table; ``file`` is the name of its CSV, without the ending.

    ``classes`` mark columns for the style sheet: numbers, times, and initially hidden ones. ``same`` marks the
    initially hidden rows of results side by side, in which the results do not differ.
    """

    file: str
    title: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    few: int
    classes: str
    same: tuple[bool, ...] = ()


def grid(table: ResultTable, limit: int, file: str, units: Units | None = None) -> Grid:
    """Return the first rows of a table, at most ``limit``, in the units of its result; ``file`` names its CSV."""
    columns = shown_columns(table, limit, units)
    rows = tuple(zip(*(tuple(map(cell, column.cells, column.values)) for column in columns), strict=True))
    few = _initial_columns(table)
    places = list(enumerate(columns, 1))[:STYLED_COLUMNS]
    classes = ["few"] if len(few) < len(columns) else []
    classes += ["long"] if len(rows) > LONG_ROWS else []
    classes += ["wide"] if len(few) > NARROW_COLUMNS else []
    classes += ["many"] if len(columns) > MANY_COLUMNS else []
    classes += [f"n{k}" if c.numeric else f"t{k}" for k, c in places if c.numeric or c.kind == "time"]
    classes += [f"h{k}" for k, c in places if c.name not in few]
    return Grid(file, table.title, columns, rows, table.frame.height, len(few), " ".join(classes))


def _initial_columns(table: ResultTable) -> tuple[str, ...]:
    """Return the columns that a table initially shows."""
    names = tuple(column.name for column in table.columns)
    most = len(names) if len(names) <= FEW_COLUMNS else min(table.first_columns or FEW_COLUMNS, FEW_COLUMNS)
    if not table.key_columns:
        return names[:most]
    filled = tuple(name for name in table.key_columns if table.frame[name].count())
    return filled if len(filled) > 1 else table.key_columns


def cell(text: str, value: object) -> Cell:
    """Return a cell with a text for a value."""
    if isinstance(value, str):
        return Cell(text, j="" if text == value else json.dumps(value))
    exact = json_value(value)
    if exact is None or isinstance(exact, bool):
        return Cell(text, j=json.dumps(exact))
    plain = exact if isinstance(exact, str) else json.dumps(exact)
    # a number or a time is stored in its attribute without quotes
    return Cell(text, v="" if plain == text else plain) if _BARE.fullmatch(plain) else Cell(text, j=json.dumps(exact))


@cache
def columns_style() -> str:
    """Return style rules for the columns of tables by number: a class per table is smaller than one per cell."""
    return "\n".join(
        f".n{k} td:nth-child({k}){{text-align:right}}.t{k} td:nth-child({k}){{white-space:nowrap}}"
        f".scripted .few.h{k} tr>:nth-child({k}){{display:none}}"
        for k in range(1, STYLED_COLUMNS + 1)
    )
