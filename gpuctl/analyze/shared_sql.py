"""Reads the SQL of `queries/base/`, and tells what a statement needs."""

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
    """The SQL of ``queries/base/<name>.sql``, which prepares a table that the analyses share."""
    return files("gpuctl.queries").joinpath("base", f"{name}.sql").read_text("utf-8")


def reasons() -> bytes:
    """``queries/reasons.csv``: every reason that Slurm 25.11 knows for waiting or ending, and our category of it."""
    return files("gpuctl.queries").joinpath("reasons.csv").read_bytes()


@cache
def uses(sql: str, kind: Literal["base", "unfiltered", "result"]) -> tuple[str, ...]:
    """The tables that a statement reads, comments aside, each as X.

    Args:
        sql: the statement.
        kind: ``base_X`` and ``unfiltered_X`` are shared tables, the latter of all jobs, whatever the filter chooses;
            ``result_X`` is another result.
    """
    return tuple(sorted(set(re.findall(rf"\b{kind}_([a-z0-9_]+)", _COMMENT.sub("", sql)))))


@cache
def words(sql: str) -> frozenset[str]:
    """The words of a statement, comments aside: every column that it names is among them."""
    return frozenset(re.findall(r"\w+", _COMMENT.sub("", sql)))


def numbers(name: str) -> frozenset[str]:
    """The names of the numbers of ``queries/base/<name>.sql``, a list of ``(SELECT ...) AS number``."""
    return frozenset(_scalars(name))


@cache
def _scalars(name: str) -> dict[str, str]:
    return {key: sql for sql, key in _SCALAR.findall(_COMMENT.sub("", base_sql(name)))}


@cache
def reads(name: str) -> dict[str, frozenset[str]]:
    """Of each number of ``queries/base/<name>.sql`` the shared tables that it is counted in."""
    return {key: frozenset({*uses(sql, "base"), *uses(sql, "unfiltered")}) for key, sql in _scalars(name).items()}


def scalars(name: str, wanted: Collection[str]) -> str:
    """The statement that asks for the wanted numbers of ``queries/base/<name>.sql``: rows of a value and its name.

    A row each, as DuckDB joins what stands side by side in a row: with nine to eleven numbers it takes ten times as
    long to find an order for these joins as to count.

    Raises:
        KeyError: it has no such number; a fault of ours that the tests look for.
    """
    known = _scalars(name)
    return " UNION ALL ".join(f"SELECT {known[key]} AS value, '{key}' AS name" for key in sorted(wanted))
