"""The known analyses: the headers of SQL files, and those of gpuctl in display order.

A new analysis is one file next to this one: its header declares its section, position, columns and charts.
Standard library only; files are read on first use.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.charts import Chart, declared
from gpuctl.core.plugins import BUILT_IN
from gpuctl.core.results import Column
from gpuctl.queries.sections import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

LAST = 1000
"""Default position of an analysis in its section."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
_FIELD = re.compile(r"^-- ([a-z_]+): (.+(?:\n--   .+)*)", re.MULTILINE)
_ONCE = ("title", "section", "question", "population", "needs", "detail", "first_columns", "key_columns", "order",
         "reference")  # fmt: skip
_NEEDED = ("title", "section", "question", "population", "column")
_COMMENT = re.compile(r"--[^\n]*")
_PARAMETER = re.compile(r"\$([a-z_]+)")
_NUMBER = re.compile(r"[0-9]{1,4}")
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_DECIMAL = re.compile(r"-?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")


class Setting(NamedTuple):
    """A parameter that a user may set.

    Attributes:
        name: as ``$name`` in the SQL.
        default: its value unless set.
        description: what it means.
    """

    name: str
    default: str | int | float
    description: str


@dataclass(frozen=True)
class Query:
    """One analysis: its SQL and its header.

    Attributes:
        name: the file's name, and the result table's.
        sql: one SELECT.
        parameters: names of the ``$parameters`` in it.
        title: heading of the table.
        section: key of the section it is shown in.
        question: the question that it answers.
        population: the rows counted; ``{name}`` is replaced by a number of this trace.
        needs: what the source must have for it to have rows ('' for only jobs).
        detail: whether it is exported rather than printed.
        first_columns: number of leading columns that answer the question: a terminal shows the others on request; 0:
            all.
        key_columns: the columns of a wide table that a page shows initially; empty: its first ones.
        columns: in the order of the SELECT.
        order: its position in its section, ascending, then by name.
        reference: the key of published values that it prints for comparison, only on request; '' for none.
        settings: parameters that a user may set.
        drawings: the declarations of its charts.
        charts: the same, parsed.
        origin: its origin: built in, a package and its version, or a file.
    """

    name: str
    sql: str
    parameters: frozenset[str]
    title: str
    section: str
    question: str
    population: str
    needs: str
    detail: bool
    first_columns: int
    key_columns: tuple[str, ...]
    columns: tuple[Column, ...]
    order: int
    reference: str
    settings: tuple[Setting, ...]
    drawings: tuple[str, ...]
    charts: tuple[Chart, ...]
    origin: str = BUILT_IN

    @property
    def only_exported(self) -> bool:
        """Return whether no screen or page shows it: a detail table, usually one row per job, that no page draws."""
        return self.detail and all(chart.medium == "terminal" for chart in self.charts)


@cache
def parameters(sql: str) -> frozenset[str]:
    """Return the names of the ``$parameters`` of a statement, comments aside."""
    return frozenset(_PARAMETER.findall(_COMMENT.sub("", sql)))


def read(name: str, sql: str) -> Query:
    """Read the header of an analysis.

    Args:
        name: of its file, without the ending.
        sql: the file's text.

    Raises:
        ValueError: the name or the header is invalid; the message states why.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("the name of an analysis has small letters, digits and underscores, and begins with a letter")
    entries: dict[str, list[str]] = {}
    # prose may separate the fields: other comments
    for key, value in _FIELD.findall(sql):
        entries.setdefault(key, []).append(" ".join(line.removeprefix("--").strip() for line in value.split("\n")))
    for key in _ONCE:
        if len(entries.get(key, ())) > 1:
            raise ValueError(f"the header has several '-- {key}:' lines")
    for key in _NEEDED:
        if key not in entries:
            raise ValueError(f"the header needs a '-- {key}:' line")

    def one(key: str, default: str = "") -> str:
        return entries.get(key, [default])[0]

    for key in ("order", "first_columns"):
        if not _NUMBER.fullmatch(one(key, "0")):
            raise ValueError(f"{key}: expected a number from 0 to 9999")
    if one("section") not in dict(SECTIONS):
        raise ValueError(f"there is no section {one('section')!r}; there are {', '.join(dict(SECTIONS))}")
    columns = tuple(_column(line) for line in entries["column"])
    drawings = tuple(entries.get("chart", ()))
    return Query(
        name=name,
        sql=sql,
        parameters=parameters(sql),
        title=one("title"),
        section=one("section"),
        question=one("question"),
        population=one("population"),
        needs=one("needs"),
        detail=one("detail", "no") == "yes",
        first_columns=int(one("first_columns", "0")),
        key_columns=_keys(one("key_columns"), columns),
        columns=columns,
        order=int(one("order", str(LAST))),
        reference=one("reference"),
        settings=tuple(map(_setting, entries.get("parameter", ()))),
        drawings=drawings,
        charts=_charts(name, drawings, one("title"), columns),
    )


def _keys(text: str, columns: Iterable[Column]) -> tuple[str, ...]:
    keys = tuple(name.strip() for name in text.split(",") if name.strip())
    strange = set(keys) - {column.name for column in columns}
    if strange:
        raise ValueError(f"key_columns: {min(strange)!r} is not one of its columns")
    return keys


def parsed_value(text: str) -> str | int | float:
    """Return a decimal number if a text is one, else the text."""
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text


def _setting(line: str) -> Setting:
    parts = [part.strip() for part in line.split("|")]
    if len(parts) != 3 or not _NAME.fullmatch(parts[0]) or not all(parts):
        raise ValueError(f"parameter: expected 'name | default | definition', found {line!r}")
    return Setting(parts[0], parsed_value(parts[1]), parts[2])


def _column(line: str) -> Column:
    parts = [part.strip() for part in line.split("|", 2)]
    if len(parts) != len(("name", "unit", "description")):
        raise ValueError(f"column line without name | unit | description: {line}")
    return Column(*parts)


def _charts(name: str, drawings: Iterable[str], title: str, columns: Iterable[Column]) -> tuple[Chart, ...]:
    there = {column.name for column in columns}
    found: list[Chart] = []
    for text in drawings:
        for chart in declared(name, text, title):
            strange = [column for column in (*chart.columns, *chart.y) if column not in there]
            if strange:
                raise ValueError(f"its chart is drawn from {strange[0]!r}, which is not one of its columns")
            if any((chart.name, chart.medium) == (other.name, other.medium) for other in found):
                raise ValueError(f"two of its charts are called {chart.name}: give one of them another name=")
            found.append(chart)
    return tuple(found)


@cache
def built_in() -> dict[str, Query]:
    """Return every analysis of gpuctl, by name, in display order.

    Raises:
        ValueError: a header is invalid; a bug that the tests detect.
    """
    from importlib.resources import files

    found = []
    for file in files("gpuctl.queries").iterdir():
        if file.name.endswith(".sql"):
            try:
                found.append(read(file.name.removesuffix(".sql"), file.read_text("utf-8")))
            except ValueError as error:
                raise ValueError(f"queries/{file.name}: {error}") from None
    return {query.name: query for query in in_order(found)}


def in_order(found: Iterable[Query]) -> list[Query]:
    """Sort analyses in display order: by section, by position there, by name."""
    sections = [key for key, _ in SECTIONS]
    return sorted(found, key=lambda query: (sections.index(query.section), query.order, query.name))
