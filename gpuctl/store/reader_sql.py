"""A reader's own SQL: one SELECT with columns that every output can write."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import duckdb

from gpuctl.core.errors import UsageError
from gpuctl.core.storable_text import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

BATCH_ROWS = 50_000
"""Rows of a reader's answer that are in memory at a time."""
_DAY_US = 86_400_000_000
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31, in days since 1970."""
_KINDS = re.compile(
    r"BOOLEAN|U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)|VARCHAR|DATE|TIMESTAMP( WITH TIME ZONE)?"
)
"""Kinds of columns that every output has, and lists of them."""


def as_frame(rows: Any) -> pl.DataFrame:
    """Return Arrow rows as a frame."""
    import polars as pl

    frame = pl.from_arrow(rows)
    return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()


def beyond_years(frame: pl.DataFrame) -> str | None:
    """Return the first column with a date or time outside the years 1 to 9999; None if there is none.

    No output has such dates, and Polars panics on some.
    """
    import polars as pl

    for name, kind in frame.schema.items():
        if isinstance(kind, pl.Datetime):
            numbers, size = frame[name].dt.timestamp("us"), _DAY_US
        elif isinstance(kind, pl.Date):
            numbers, size = frame[name].to_physical(), 1
        else:
            continue
        least, most = cast("int | None", numbers.min()), cast("int | None", numbers.max())
        if least is not None and most is not None and not (least // size >= _FIRST_DAY and most // size <= _LAST_DAY):
            return name
    return None


def in_years(frame: pl.DataFrame) -> pl.DataFrame:
    """Check that all dates and times are in years of four digits.

    Raises:
        UsageError: one is not.
    """
    name = beyond_years(frame)
    if name is not None:
        raise UsageError(
            f"a date in the column {name!r} is not in the years 1 to 9999",
            hint="select it as text: CAST(... AS VARCHAR)",
        )
    return frame


def _common_type(name: str, kind: Any) -> str:
    """Return a column in a type that every output has: seconds for intervals, text for unknown types."""
    column = '"' + name.replace('"', '""') + '"'
    known = _KINDS.fullmatch(str(kind).removesuffix("[]"))
    if str(kind) == "INTERVAL":
        return f"epoch({column}) AS {column}"
    return column if known else f"CAST({column} AS VARCHAR) AS {column}"


def relation(con: duckdb.DuckDBPyConnection, sql: str, params: Mapping[str, Any] | None) -> Any:
    """Plan a reader's own SELECT; its columns get types that every output has.

    Raises:
        UsageError: it is not a statement, several, one that does more than read, or has two columns of one name.
        duckdb.Error: DuckDB cannot plan it.
    """
    statements = duckdb.extract_statements(sql)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:
        raise UsageError(
            f"the SQL holds {plural(len(statements), 'statement')}" if len(statements) != 1 else
            f"the SQL does more than read: {statements[0].type.name}",
            hint="one SELECT, which may begin with WITH; gpuctl tables lists what it can read",
        )  # fmt: skip
    relation = con.sql(sql, params=dict(params)) if params else con.sql(sql)
    twice = [name for k, name in enumerate(relation.columns) if name in relation.columns[:k]]
    if twice:
        raise UsageError(f"the SQL returns two columns {twice[0]!r}", hint="name one of them with AS")
    return relation.project(", ".join(map(_common_type, relation.columns, relation.types)))
