"""Small CSV files in which a site says what its logs do not: two columns, a name and a value."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.file_io import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_ROWS = 1_000_000


def rows(path: Path, keys: tuple[str, ...], value: str) -> Iterator[tuple[int, tuple[str, str]]]:
    """Yield the line number, the name and the value of each row.

    Args:
        path: the file.
        keys: names that the column of names may have.
        value: the name of the column of values.

    Raises:
        InputError: it cannot be read, lacks a column or a cell, or has too many rows.
    """
    wanted = f"a header with the columns {' or '.join(keys)} and {value}"
    hint = f"expected a CSV with {wanted}"
    data = read_whole(path, hint=hint)
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        names = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = names
        key = next((k for k in keys if k in names), None)
        if key is None or value not in names:
            found = ", ".join(names)[:200] or "(none)"
            raise InputError(f"found the columns {found}, expected {wanted}", path=str(path), line=1)
        for row in reader:
            if reader.line_num > MOST_ROWS:
                raise InputError(f"more than {MOST_ROWS} lines", path=str(path), hint=hint)
            got = ((row[key] or "").strip(), (row[value] or "").strip())
            if not all(got):
                raise InputError(f"no {key} or no {value} in this row", path=str(path), line=reader.line_num)
            yield reader.line_num, got
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", path=str(path), hint=hint) from error
