"""Reads the SQL files of `queries/` and the documentation in their first lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

from gpuctl.core.results import Column

if TYPE_CHECKING:
    from collections.abc import Collection

_FIELD = re.compile(r"-- (title|section|question|population|needs|detail|first_columns|column): (.+)")
_PARAMETER = re.compile(r"\$([a-z_]+)")
_COMMENT = re.compile(r"--[^\n]*")
_SCALAR = re.compile(r"(\(SELECT .+?\)) AS ([a-z_]+),?$", re.MULTILINE | re.DOTALL)


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
        columns: in the order of the SELECT.
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
    columns: tuple[Column, ...]


def base_sql(name: str) -> str:
    """The SQL of ``queries/base/<name>.sql``, which prepares a table that the analyses share."""
    return files("gpuctl.queries").joinpath("base", f"{name}.sql").read_text("utf-8")


def reasons() -> bytes:
    """``queries/reasons.csv``: every reason that Slurm 25.11 knows for waiting or ending, and our category of it."""
    return files("gpuctl.queries").joinpath("reasons.csv").read_bytes()


def parameters(sql: str) -> frozenset[str]:
    """The names of the ``$parameters`` of a statement, comments aside."""
    return frozenset(_PARAMETER.findall(_COMMENT.sub("", sql)))


def uses(sql: str, kind: Literal["base", "unfiltered", "result"]) -> list[str]:
    """The tables that a statement reads, comments aside, each as X.

    Args:
        sql: the statement.
        kind: ``base_X`` and ``unfiltered_X`` are shared tables, the latter of all jobs, whatever the filter chooses;
            ``result_X`` is another result.
    """
    return sorted(set(re.findall(rf"\b{kind}_([a-z0-9_]+)", _COMMENT.sub("", sql))))


def scalars(name: str, wanted: Collection[str]) -> str:
    """The statement of ``queries/base/<name>.sql``, a list of ``(SELECT ...) AS number``, with the wanted ones alone.

    Raises:
        KeyError: it has no such number; a fault of ours that the tests look for.
    """
    known = {key: sql for sql, key in _SCALAR.findall(_COMMENT.sub("", base_sql(name)))}
    return "SELECT " + ", ".join(f"{known[key]} AS {key}" for key in sorted(wanted))


@cache
def load(name: str) -> Query:
    """Read ``queries/<name>.sql`` with its header.

    Raises:
        ValueError: the header lacks a field; a fault of ours that the tests look for.
    """
    sql = files("gpuctl.queries").joinpath(f"{name}.sql").read_text("utf-8")
    fields: dict[str, list[str]] = {}
    for key, value in _FIELD.findall(sql):
        fields.setdefault(key, []).append(value.strip())
    columns = []
    for line in fields.get("column", []):
        parts = [part.strip() for part in line.split("|", 2)]
        if len(parts) != len(("name", "unit", "description")):
            raise ValueError(f"queries/{name}.sql: column line without name | unit | description: {line}")
        columns.append(Column(*parts))
    for key in ("title", "section", "question", "population"):
        if len(fields.get(key, [])) != 1:
            raise ValueError(f"queries/{name}.sql: the header needs one '-- {key}:' line")
    return Query(
        name=name,
        sql=sql,
        parameters=parameters(sql),
        title=fields["title"][0],
        section=fields["section"][0],
        question=fields["question"][0],
        population=fields["population"][0],
        needs=fields.get("needs", [""])[0],
        detail=fields.get("detail", ["no"])[0] == "yes",
        first_columns=int(fields.get("first_columns", ["0"])[0]),
        columns=tuple(columns),
    )
