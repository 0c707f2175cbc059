r"""Reads one table of slurmdbd that was written out by itself: ``mariadb -B`` (tabs) or CSV, with its header.

``mariadb -B`` writes NULL as the word, and line ends and tabs as ``\n`` and ``\t``. In CSV a quoted cell may hold
line ends; the columns may be any of the table, in any order.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.line_reader import LINE_LIMIT, Line, RowError, numbered_lines
from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.slurm.dbd_sql import WRONG_WIDTH, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# the columns that a table must have, and those that only another one has
_SIGNS = {
    "_job_table": ({"id_job", "state", "time_submit"}, {"id_step"}),
    "_event_table": ({"node_name", "time_start", "time_end", "state"}, {"id_job", "id_step", "job_db_inx"}),
    "_assoc_table": ({"id_assoc", "user", "acct"}, {"id_job"}),
    "qos_table": ({"id", "name", "preempt"}, {"id_job"}),
    "tres_table": ({"id", "type", "name"}, {"server", "manager"}),
}
# tables of which nothing is read
_UNUSED = {
    "step_table": {"id_step", "nodelist"},
    "suspend_table": {"job_db_inx", "id_assoc", "time_start"},
    "resv_table": {"id_resv", "resv_name"},
    "job_env_table": {"env_hash", "env_vars"},
    "job_script_table": {"script_hash", "batch_script"},
    "usage table": {"id_tres", "alloc_secs"},
    "wckey_table": {"id_wckey", "wckey_name"},
    "last_ran_table": {"hourly_rollup", "daily_rollup"},
    "txn_table": {"action", "actor", "info"},
    "table_defs_table": {"table_name", "definition"},
    "cluster_table": {"control_host", "control_port"},
    "clus_res_table": {"res_id", "cluster"},
    "res_table": {"manager", "server", "count"},
    "federation_table": {"creation_time", "mod_time", "name", "flags"},
    "user_table": {"name", "admin_level"},
    "acct_table": {"name", "organization"},
    "acct_coord_table": {"creation_time", "acct", "user"},
    "convert_version_table": {"mod_time", "version"},
}
_ESCAPE = re.compile(r"\\([0nt\\])")
_ESCAPED = {"0": "\0", "n": "\n", "t": "\t", "\\": "\\"}
_QUOTE_OPEN = "a quoted cell does not end within 1 MiB"


def table_of(head: bytes) -> tuple[str, str] | None:
    """Determine from the beginning of a file which table it is (as the end of a table's name) and its delimiter.

    Returns:
        None if it is none.
    """
    for delimiter, names in _headers(head):
        for table, (needed, barred) in _SIGNS.items():
            if needed.issubset(names) and barred.isdisjoint(names):
                return table, delimiter
    return None


def unused_table(head: bytes) -> str | None:
    """Determine from the beginning of a file which table of slurmdbd it is that nothing is read of; None if none."""
    headers = [names for _, names in _headers(head)]
    return next((table for table, needed in _UNUSED.items() if any(needed.issubset(names) for names in headers)), None)


def _headers(head: bytes) -> Iterator[tuple[str, list[str]]]:
    """The first line as column names, by every delimiter that may stand between them."""
    first = head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].rstrip(b"\r")
    if len(first) > 2**15:
        return
    for delimiter in ("\t", ","):
        names = header(first.decode("utf-8", "replace"), delimiter)
        if len(names) > 1 and all(re.fullmatch(r"[\w$ .:()-]*", name) for name in names):
            yield delimiter, names


def header(line: str, delimiter: str) -> list[str]:
    """Split the first line into column names."""
    return [name.strip().strip('"').lower() for name in line.split(delimiter)]


def rows(stream: BinaryIO, wanted: Mapping[str, frozenset[str]]) -> Iterator[Row]:
    """Yield the rows of the one table in a file, as `gpuctl.ingest.slurm.dbd_sql.rows` does.

    Args:
        stream: decompressed bytes; begins with a header that `table_of` knows.
        wanted: the end of the table's name -> the columns to keep.
    """
    lines = numbered_lines(stream)
    first = next(lines, None)
    known = table_of(first.data) if first is not None else None
    if first is None or known is None:
        raise AssertionError("no table of slurmdbd: call table_of first")
    table, delimiter = known
    names = header(first.data.decode("utf-8", "replace"), delimiter)
    at = [(i, name) for i, name in enumerate(names) if name in wanted[table]]
    for line in lines if delimiter == "\t" else _whole(lines):
        if not line.data.strip():
            continue
        raw = line.data[:RAW_LIMIT]
        try:
            cells = _split(_text(line), delimiter)
        except RowError as bad:
            yield Row(line.line_no, table, {}, str(bad), raw)
            continue
        if len(cells) != len(names):
            yield Row(line.line_no, table, {}, WRONG_WIDTH, raw)
            continue
        yield Row(line.line_no, table, {name: cells[i] for i, name in at}, None, raw)


def _whole(lines: Iterator[Line]) -> Iterator[Line]:
    """Join the lines of records whose quoted cells hold line ends."""
    held: list[Line] = []
    quotes = size = 0
    for line in lines:
        held.append(line)
        quotes += line.data.count(b'"')
        size += len(line.data)
        if quotes % 2 == 0 or size > LINE_LIMIT:
            yield _joined(held, _QUOTE_OPEN if quotes % 2 else None)
            held, quotes, size = [], 0, 0
    if held:
        yield _joined(held, None)


def _joined(held: list[Line], fault: str | None) -> Line:
    data = held[0].data if len(held) == 1 else b"\n".join(line.data for line in held)
    return Line(held[0].line_no, data, next((line.fault for line in held if line.fault), fault))


def _text(line: Line) -> str:
    if line.fault is not None:
        raise RowError(line.fault)
    return line.data.decode("utf-8", "replace")


def _split(text: str, delimiter: str) -> list[str | None]:
    if delimiter == "\t":
        return [None if cell == "NULL" else _ESCAPE.sub(_unescaped, cell) for cell in text.split("\t")]
    try:
        cells = next(csv.reader([text], strict=True), [])
    except csv.Error:
        raise RowError("a quoted cell is not closed, or is too long") from None
    return [None if cell in {"NULL", "\\N"} else cell for cell in cells]


def _unescaped(match: re.Match[str]) -> str:
    return _ESCAPED[match[1]]
