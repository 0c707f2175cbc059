"""Rows of CSV files and the numbers in them, with errors that name the faulty line."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, TypeVar

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import MOST_TABLE, read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


Row = TypeVar("Row")


def read_rows(path: Path, needed: Sequence[str], row_of: Callable[[dict[str, str], int], Row], hint: str) -> list[Row]:
    """Read a CSV with a header.

    Args:
        path: of the file.
        needed: required columns; others are allowed.
        row_of: parses a row from its cells by column and its number from 1; raises ValueError for a fault.
        hint: expected format.

    Raises:
        InputError: it is not such a table, or a row is wrong; with its line.
    """
    try:
        text = read_whole(path, most=MOST_TABLE, hint=hint).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8 text", path=str(path), hint=hint) from error
    rows = csv.DictReader(io.StringIO(text, newline=""), restval="")
    found: list[Row] = []
    try:
        missing = [column for column in needed if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"lacks the columns {', '.join(missing)}", path=str(path), line=1, hint=hint)
        for row in rows:
            if row.get(None) is not None:
                raise ValueError("has more cells than the header")
            found.append(row_of(row, len(found) + 1))
    except (ValueError, csv.Error) as error:
        raise InputError(str(error), path=str(path), line=max(rows.line_num, 1), hint=hint) from error
    if not found:
        raise InputError("has a header but no rows", path=str(path), hint=hint)
    return found


MOST = 1e11
"""No number in a table is beyond it: keys of requests are counted in millionths of microseconds, in 64 bits."""


def number(row: dict[str, str], column: str, *, above: float | None = None, least: float | None = None) -> float:
    """Return a number of a row.

    Raises:
        ValueError: it is not a number, not finite, or out of bounds.
    """
    text = row[column].strip()
    try:
        found = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text[:30]!r}, expected a number") from None
    if not math.isfinite(found) or "_" in text:
        raise ValueError(f"{column} is {text[:30]!r}, expected a number")
    if abs(found) > MOST:
        raise ValueError(f"{column} is {text[:30]}, expected at most {MOST:g}")
    if above is not None and not found > above:
        raise ValueError(f"{column} is {text[:30]}, expected more than {above:g}")
    if least is not None and not found >= least:
        raise ValueError(f"{column} is {text[:30]}, expected at least {least:g}")
    return found


def name(row: dict[str, str], column: str) -> str:
    """Return the text of a cell that must not be empty.

    Raises:
        ValueError: it is.
    """
    found = row[column].strip()
    if not found:
        raise ValueError(f"{column} is empty")
    return found
