"""What the numbers in Slurm's accounting database stand for, in files of their own.

These are ``tres_table``, ``qos_table`` or ``CLUSTER_assoc_table`` as SQL, tabs (``mariadb -B``) or CSV, and the list
of TRES that a published trace may bring instead (``tres-mapping.txt``: a number and a name on each line). They are
loaded before the jobs, into ``settings`` as ``slurmdbd.tres.1001`` and the like. A row of the ledger is one row of a
table, or one line after the header.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO, cast

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.streams import HeadAgain
from gpuctl.ingest.slurm import dbd_delimited, dbd_sql
from gpuctl.ingest.slurm.dbd_sql import Row
from gpuctl.ingest.slurm.dbd_tables import NAME_TABLES, Names, only_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HEAD = 2**16
_MAPPING_FILE = "tres-mapping.txt"
_MAPPING = re.compile(rb"\W*+(\d{1,9})\W++([A-Za-z][\w/:.-]*+)\W*+")
_SOME_MAPPING = re.compile(rb"\d{1,9}\W++[A-Za-z]")


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read names into ``settings``.

    Raises:
        InputError: this is not such a table.
    """
    head = stream.read(_HEAD)
    again = cast("BinaryIO", HeadAgain(head, stream))
    single = dbd_delimited.table_of(head)
    sql = dbd_sql.tables_in(head)
    if not sql and (single[0] not in NAME_TABLES if single else not _SOME_MAPPING.search(head)):
        raise InputError(
            "neither a table of slurmdbd that names numbers (tres, qos, assoc), nor lines of a number and a name",
            line=1,
        )
    names = Names(sink)
    rows = dbd_sql.rows if sql else dbd_delimited.rows if single else _mapping
    for row in rows(again, NAME_TABLES):
        sink.seen()
        try:
            if row.fault is not None:
                raise RowError(row.fault)
            names.add(next(end for end in NAME_TABLES if row.table.endswith(end)), row.cells)
            sink.loaded()
        except RowError as bad:
            sink.reject(row.line_no, str(bad), row.raw)
    names.store()


def _mapping(stream: BinaryIO, wanted: Mapping[str, frozenset[str]]) -> Iterator[Row]:
    del wanted  # there is one table in it
    for line in numbered_lines(stream):
        match = _MAPPING.fullmatch(line.data)
        if match is None:
            # a header, if it is one, is not a row
            if line.data.strip() and line.line_no > 1:
                yield Row(line.line_no, "tres_table", {}, "not a number and a name", line.data)
            continue
        name = match[2].decode()
        kind, _, rest = f"gres/{name}".partition("/") if name.startswith("gpu") else name.partition("/")
        yield Row(line.line_no, "tres_table", {"id": match[1].decode(), "type": kind, "name": rest}, None, line.data)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header of one of the tables, or the list of TRES under its usual name."""
    if only_names(head):
        return "SQL dump with tables of slurmdbd that name numbers"
    single = dbd_delimited.table_of(head)
    if single and single[0] in NAME_TABLES:
        return f"header of slurmdbd's {single[0].removeprefix('_')}"
    if name == _MAPPING_FILE and _SOME_MAPPING.search(head):
        return "file name, and lines of a number and a name"
    return None


FORMAT = Format(
    name="slurm-dbd-names",
    title="Slurm accounting database: names of TRES, QOS and associations",
    fills=("settings",),
    file_names=("tres_table.tsv", "qos_table.tsv", "assoc_table.tsv", _MAPPING_FILE),
    order=15,
    sniff=sniff,
    load=load,
)
