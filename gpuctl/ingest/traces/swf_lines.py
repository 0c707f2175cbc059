"""Lines of the Standard Workload Format as columns: 18 numbers, and what extensions put behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gpuctl.core.line_reader import CUT_OFF, LINE_LIMIT, LINE_TOO_LONG, NOT_UTF8
from gpuctl.ingest.read.delimited import Reject
from gpuctl.ingest.read.pieces import LARGE_PIECE, blocks, count_of, has_twice, torn_off, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    import numpy as np
    import polars as pl

CELLS = (
    *("job", "submit", "wait", "run", "procs", "cpu_time", "memory", "asked_procs", "asked_time", "asked_memory"),
    *("status", "user", "group", "application", "queue", "partition", "preceding", "think"),
)
"""https://www.cs.huji.ac.il/labs/parallel/workload/swf.html"""
MORE = tuple(f"more_{k}" for k in range(1, 5))
"""Cells behind these, as text."""
NUMBER, SHORT, LONG = "cell {n} is not a number", "not 18 cells", f"more than {len(CELLS) + len(MORE)} cells"
LINE = "line"
_BLANK, _END = b" \n"
_COMMENT = re.compile(rb"(?m)^[ \t]*[;#].*$")
_KEY = re.compile(r";\s*([A-Za-z]{3,30})\s*:\s*(.*)")
_HEADER = re.compile(rb"(?i)[ \t]*\"?(id|job|jobid|job_id|job_number)\"?[ \t,]+\"?submit")
_TEXTS = ("preceding", *MORE)
"""Alea writes the jobs before one as ``4&5&6``."""


def keys(text: bytes, into: dict[str, list[str]]) -> None:
    """Add the header's ``; Key: value`` of some lines, by their keys in lower case."""
    if b";" not in text:
        return
    for comment in _COMMENT.findall(text):
        if found := _KEY.match(comment.decode("utf-8", "replace").strip()):
            into.setdefault(found[1].lower(), []).append(found[2].strip())


def rows(stream: BinaryIO, header: dict[str, list[str]]) -> Iterator[tuple[pl.DataFrame, list[Reject], bytes, int]]:
    """Yield the rows of a file.

    Args:
        stream: the file.
        header: filled with the header's keys.

    Returns:
        columns `CELLS` (numbers except for ``preceding``) and `MORE` (text, null if there are none), and `LINE`; what
        are no rows; the lines themselves; and the number of the first of them.
    """
    first, header_row = 1, True
    for data, more in whole_lines(stream, b"", LARGE_PIECE):
        whole, torn = (data, b"") if more else torn_off(data, stream)
        whole = whole if not whole or whole.endswith(b"\n") else whole + b"\n"
        keys(whole, header)
        text = whole
        if header_row and text:
            start = next((line for line in text.split(b"\n", 50)[:-1] if line.strip() and line[:1] not in b";#"), b"")
            if _HEADER.match(start):
                text = text.replace(start, b";", 1)
            header_row = not start
        found, rejects = _piece(text, first)
        lines = count_of(whole, b"\n")
        if torn:
            rejects.append(Reject(first + lines, CUT_OFF, torn.decode("utf-8", "replace")))
        yield found, rejects, whole, first
        first += lines


def _piece(data: bytes, first: int) -> tuple[pl.DataFrame, list[Reject]]:
    import numpy as np

    lines = count_of(data, b"\n")
    numbers = np.arange(first, first + lines)
    if b"\r" in data:
        data = data.replace(b"\r", b"")
    if (last := max(data.rfind(b";"), data.rfind(b"#"))) >= 0:
        # most files have them at their beginning alone
        below = data.find(b"\n", last)
        data = _COMMENT.sub(b"", data[:below]) + data[below:]
    data = b"".join(_squeezed(block) for block in blocks(data.replace(b"\t", b" ")))
    if data.startswith(b"\n") or has_twice(data, b"\n"):
        texts = data.split(b"\n")[:-1]
        numbers = numbers[np.array([bool(line) for line in texts], bool)]
        data = b"\n".join([line for line in texts if line] + [b""])
    if not data or data == b"\n":
        return _none(), []
    width = data.split(b"\n", 1)[0].count(b" ") + 1
    if len(CELLS) <= width <= len(CELLS) + len(MORE):
        found = _read(data, width)
        if found is not None and found.height == len(numbers):
            return _numbered(found, numbers), []
    return _by_line(data, numbers.tolist())


def _squeezed(data: bytes) -> bytes:
    """Lines with one blank between cells, and none before or behind them."""
    import numpy as np

    cells = np.frombuffer(data, np.uint8)
    blank, end = cells == _BLANK, cells == _END
    # before another blank, or at the end of a line; then what is left at the beginning of one
    odd = blank[:-1] & (blank[1:] | end[1:])
    if odd.any():
        cells = np.append(cells[:-1][~odd], cells[-1:])
    elif not (data.startswith(b" ") or (end[:-1] & blank[1:]).any()):
        return data
    used = cells != _BLANK
    used[1:] |= cells[:-1] != _END
    return bytes(cells[used])


def _read(data: bytes, width: int) -> pl.DataFrame | None:
    """Read lines of one width; None if some are of another, or have something else than numbers."""
    import polars as pl

    names = [*CELLS, *MORE][:width]
    # a file without dependencies has numbers there, too
    schema = {name: pl.String if name in _TEXTS else pl.Float64 for name in names}
    try:
        return pl.read_csv(data, has_header=False, quote_char=None, separator=" ", schema=schema)
    except (pl.exceptions.ComputeError, pl.exceptions.SchemaError):
        return None


def _by_line(data: bytes, numbers: list[int]) -> tuple[pl.DataFrame, list[Reject]]:
    import polars as pl

    groups: dict[int, tuple[list[bytes], list[int]]] = {}
    rejects: list[Reject] = []
    for number, line in zip(numbers, data.split(b"\n"), strict=False):
        width = line.count(b" ") + 1
        fault = _fault(line, width)
        if fault is None:
            lines, at = groups.setdefault(width, ([], []))
            lines.append(line)
            at.append(number)
        else:
            rejects.append(Reject(number, fault, line.decode("utf-8", "replace")))
    made = []
    for width, (lines, at) in groups.items():
        found = _read(b"\n".join([*lines, b""]), width)
        if found is None or found.height != len(lines):
            raise AssertionError("every cell was looked at")
        made.append(_numbered(found, at))
    return (pl.concat(made).sort(LINE) if made else _none()), rejects


def _fault(line: bytes, width: int) -> str | None:
    if len(line) > LINE_LIMIT:
        return LINE_TOO_LONG
    if width < len(CELLS):
        return SHORT
    if width > len(CELLS) + len(MORE):
        return LONG
    try:
        cells = line.decode("utf-8").split(" ")
    except UnicodeDecodeError:
        return NOT_UTF8
    for n, cell in enumerate(cells[: len(CELLS)], 1):
        if CELLS[n - 1] not in _TEXTS and not _NUMBER.fullmatch(cell):
            return NUMBER.format(n=n)
    return None


_NUMBER = re.compile(r"[+-]?(\d++\.?\d*+|\.\d++)([eE][+-]?\d{1,3})?", re.ASCII)


def _numbered(rows: pl.DataFrame, numbers: Sequence[int] | np.ndarray) -> pl.DataFrame:
    import polars as pl

    absent = [pl.lit(None, pl.String).alias(name) for name in MORE if name not in rows.columns]
    return rows.with_columns(pl.Series(LINE, numbers, dtype=pl.Int64), *absent)


def _none() -> pl.DataFrame:
    import polars as pl

    kinds = {name: pl.String if name in _TEXTS else pl.Float64 for name in (*CELLS, *MORE)}
    return pl.DataFrame(schema={**kinds, LINE: pl.Int64})


def is_number(cell: bytes) -> bool:
    """Whether a cell is a number as SWF has it."""
    return _NUMBER.fullmatch(cell.decode("utf-8", "replace")) is not None
