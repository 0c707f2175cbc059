"""Which analyses known: the headers of SQL files, and those of gpuctl in the order in which they are shown.

A new analysis is one file beside this one: its header says its section, its place there, its columns and its charts.
Standard library only, and nothing is read before it is asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

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


@dataclass(frozen=True)
class Query:
    """One analysis: its SQL and what its header says.

    Attributes:
        name: the file's name, and the result table's.
        sql: one SELECT.
        parameters: names of the ``$parameters`` in it.
        title: heading of the table.
        section: key of the section it is shown in.
        question: what it answers.
        population: what is counted; ``{name}`` stands for a number of this trace.
        needs: what the source must have for it to have rows ('' for nothing but jobs).
        detail: whether it is exported rather than printed.
        first_columns: so many columns answer the question: a terminal shows no more unless asked; 0: all.
        key_columns: what a page shows of a table with many columns unless asked; empty: its first ones.
        columns: in the order of the SELECT.
        order: its place in its section, the least one first, then by name.
        reference: the key of published values that it prints beside ours, only where asked for; '' for none.
        drawings: the declarations of its charts.
        charts: the same, read.
        origin: where it is from: built in, a package and its version, or a file.
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
    drawings: tuple[str, ...]
    charts: tuple[Chart, ...]
    origin: str = BUILT_IN

    @property
    def only_exported(self) -> bool:
        """Whether no screen and no page shows it: a detail table, most often a row a job, that no page draws."""
        return self.detail and all(chart.medium == "terminal" for chart in self.charts)


@cache
def parameters(sql: str) -> frozenset[str]:
    """The names of the ``$parameters`` of a statement, comments aside."""
    return frozenset(_PARAMETER.findall(_COMMENT.sub("", sql)))


def read(name: str, sql: str) -> Query:
    """Read the header of an analysis.

    Args:
        name: of its file, without the ending.
        sql: the file's text.

    Raises:
        ValueError: it says what is wrong with the name or the header.
    """
    if not _NAME.fullmatch(name):
        raise ValueError("the name of an analysis has small letters, digits and underscores, and begins with a letter")
    entries: dict[str, list[str]] = {}
    # prose may stand between the fields: other comments
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
        drawings=drawings,
        charts=_charts(name, drawings, one("title"), columns),
    )


def _keys(text: str, columns: Iterable[Column]) -> tuple[str, ...]:
    keys = tuple(name.strip() for name in text.split(",") if name.strip())
    strange = set(keys) - {column.name for column in columns}
    if strange:
        raise ValueError(f"key_columns: {min(strange)!r} is not one of its columns")
    return keys


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
    """Every analysis that gpuctl brings, by name, in the order in which they are shown.

    Raises:
        ValueError: a header is not as it should be; a fault of ours that the tests look for.
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
    """Analyses in the order in which they are shown: by section, by place there, by name."""
    sections = [key for key, _ in SECTIONS]
    return sorted(found, key=lambda query: (sections.index(query.section), query.order, query.name))
