"""Small CSV files with facts that a site's logs lack: most of them two columns, a name and a value."""

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
        keys: accepted headers of the column of names.
        value: the name of the column of values.

    Raises:
        InputError: it cannot be read, lacks a column or a cell, or has too many rows.
    """
    for line, cells in _read(path, (keys, (value,)), ()):
        key, name = cells.values()
        yield line, (key, name)


def table(path: Path, needed: tuple[str, ...], optional: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the line number and cells of each row by column; a missing optional column yields "".

    Raises:
        InputError: it cannot be read, lacks a column or a cell of those needed, or has too many rows.
    """
    yield from _read(path, tuple((name,) for name in needed), optional)


def _read(
    path: Path, needed: tuple[tuple[str, ...], ...], optional: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    wanted = f"a header with the columns {' and '.join(' or '.join(names) for names in needed)}"
    hint = f"expected a CSV with {wanted}"
    data = read_whole(path, hint=hint)
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), skipinitialspace=True)
        names = [name.strip() for name in reader.fieldnames or []]
        reader.fieldnames = names
        there = [next((name for name in allowed if name in names), "") for allowed in needed]
        if not all(there):
            found = ", ".join(names)[:200] or "(none)"
            raise InputError(f"found the columns {found}, expected {wanted}", path=str(path), line=1)
        for row in reader:
            if reader.line_num > MOST_ROWS:
                raise InputError(f"more than {MOST_ROWS} lines", path=str(path), hint=hint)
            cells = {name: (row.get(name) or "").strip() for name in (*there, *optional)}
            if not all(cells[name] for name in there):
                lacking = " or ".join(f"no {name}" for name in there)
                raise InputError(f"{lacking} in this row", path=str(path), line=reader.line_num)
            yield reader.line_num, cells
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"cannot be read: {error}", path=str(path), hint=hint) from error
