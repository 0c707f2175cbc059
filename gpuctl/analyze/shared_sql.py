"""Reads the SQL of `queries/base/`, and determines the dependencies of statements."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection

_COMMENT = re.compile(r"--[^\n]*")
_SCALAR = re.compile(r"(\(SELECT .+?\)) AS ([a-z_]+),?$", re.MULTILINE | re.DOTALL)


@cache
def base_sql(name: str) -> str:
    """Return the SQL of ``queries/base/<name>.sql``, which prepares a shared table."""
    return files("gpuctl.queries").joinpath("base", f"{name}.sql").read_text("utf-8")


def reasons() -> bytes:
    """Return ``queries/reasons.csv``: every reason of Slurm 25.11 for waiting or ending, with gpuctl's category."""
    return files("gpuctl.queries").joinpath("reasons.csv").read_bytes()


@cache
def uses(sql: str, kind: Literal["base", "unfiltered", "result"]) -> tuple[str, ...]:
    """Return the tables that a statement reads, comments aside, each as X.

    Args:
        sql: the statement.
        kind: ``base_X`` and ``unfiltered_X`` are shared tables, the latter of all jobs, regardless of the filter;
            ``result_X`` is another result.
    """
    return tuple(sorted(set(re.findall(rf"\b{kind}_([a-z0-9_]+)", _COMMENT.sub("", sql)))))


@cache
def words(sql: str) -> frozenset[str]:
    """Return the words of a statement, comments aside: these include every column that it names."""
    return frozenset(re.findall(r"\w+", _COMMENT.sub("", sql)))


def numbers(name: str) -> frozenset[str]:
    """Return the names of the numbers of ``queries/base/<name>.sql``, a list of ``(SELECT ...) AS number``."""
    return frozenset(_scalars(name))


@cache
def _scalars(name: str) -> dict[str, str]:
    return {key: sql for sql, key in _SCALAR.findall(_COMMENT.sub("", base_sql(name)))}


@cache
def reads(name: str) -> dict[str, frozenset[str]]:
    """Return, by number of ``queries/base/<name>.sql``, the shared tables that it reads."""
    return {key: frozenset({*uses(sql, "base"), *uses(sql, "unfiltered")}) for key, sql in _scalars(name).items()}


def scalars(name: str, wanted: Collection[str]) -> str:
    """Return the statement for the wanted numbers of ``queries/base/<name>.sql``: rows of a value and its name.

    One row each, as DuckDB joins subqueries in a row: with nine to eleven numbers, planning these joins takes ten times
    as long as counting.

    Raises:
        KeyError: it has no such number; a bug that the tests detect.
    """
    known = _scalars(name)
    return " UNION ALL ".join(f"SELECT {known[key]} AS value, '{key}' AS name" for key in sorted(wanted))
