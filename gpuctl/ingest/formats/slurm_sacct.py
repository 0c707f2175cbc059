"""What ``sacct -P`` and ``sacct -p`` print: any fields in any order, any delimiter, with or without a header.

A row of the ledger is a record: a job, an attempt of a job (``-D``) or a step. ``-P`` escapes nothing, so a record may
stand on several lines or have stray delimiters; it is repaired if only one reading fits its fields' shapes (the
job's quirk ``mended``) and rejected otherwise. Bytes that are no UTF-8 are replaced (quirk ``not_utf8``). Tables for
people, whose columns are cut off, and times relative to the day of the export are refused.
"""

from __future__ import annotations

import logging
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.slurm.layout import (
    RECIPE,
    SINCE_26_05,
    Layout,
    delimiter_of,
    fits,
    from_columns,
    from_header,
    from_rows,
    is_headless_record,
    is_table,
    named_fields,
)
from gpuctl.ingest.slurm.records import Records
from gpuctl.ingest.slurm.sacct_text import Parsed, Text
from gpuctl.slurm.times import instants

if TYPE_CHECKING:
    import polars as pl

HEAD = 64 << 10
AHEAD = 6
"""Pieces of text that are parsed before they are wanted, in the time that the store takes for a batch."""
_SHOWN = 8
_TIMES = ("Submit", "Eligible", "Start", "End")
_log = logging.getLogger(__name__)


def load(stream: BinaryIO, sink: Sink, columns: str | None = None, delimiter: bytes | None = None) -> None:
    """Read accounting text into jobs, attempts, placements and queues; see `Records` for what becomes of a record.

    Args:
        stream: the text.
        sink: takes the rows.
        columns: the names of the columns of a text without a header, commas between.
        delimiter: what stands between its columns; None: it is found.

    Raises:
        InputError: it is a table for people, has no header and is in no known order, or its times cannot be read.
    """
    head, layout, first_line = _start(stream, columns, delimiter)
    unknown = layout.unknown()
    if unknown:
        shown = ", ".join(repr(name) for name in unknown[:_SHOWN]) + (" …" if len(unknown) > _SHOWN else "")
        _log.warning("columns that no release of sacct has are not read: %s", shown)
    records = Records(sink, folded_exit_codes=SINCE_26_05.isdisjoint(layout.fields))
    pieces = Text(layout).pieces(stream, head, first_line)
    checked = replaced = 0
    # the next batch is parsed while the store takes in this one
    with ThreadPoolExecutor(1) as ahead:
        coming = deque(ahead.submit(next, pieces, None) for _ in range(AHEAD))
        while (parsed := coming.popleft().result()) is not None:
            coming.append(ahead.submit(next, pieces, None))
            for frame, lines in parsed.frames:
                if not checked:
                    _check_times(frame, sink.timezone)
                checked += frame.height
                records.add(frame, lines)
            replaced += parsed.replaced
            _reject(sink, parsed)
    if replaced:
        _log.warning("%d records have bytes that are no UTF-8; they were replaced", replaced)
    records.finish()


def _start(stream: BinaryIO, columns: str | None, delimiter: bytes | None) -> tuple[bytes, Layout, int]:
    """Find the layout; return the bytes below the header that were read for it, and the number of their first line."""
    head = stream.read(HEAD).removeprefix(b"\xef\xbb\xbf")
    while b"\n" not in head and (more := stream.read(HEAD)) and len(head) < HEAD << 4:
        head += more
    skipped = len(head) - len(head.lstrip(b"\r\n"))
    first_line = 1 + head[:skipped].count(b"\n")
    head = head[skipped:]
    if is_table(head):
        raise InputError(
            "a table that sacct made for people: columns are cut off (a + at the end of a word), so jobs, states "
            "and nodes are unclear",
            line=1,
            hint=f"export it again: {RECIPE} > sacct.txt",
        )
    line = head.split(b"\n", 1)[0].rstrip(b"\r")
    layout = from_header(line)
    if layout is not None:
        return head[len(line) :].removeprefix(b"\r").removeprefix(b"\n"), layout, first_line + 1
    layout = from_columns(columns, line, delimiter) if columns else from_rows(head)
    if layout is None:
        raise InputError(
            "records of sacct without a header, in an order that is not Open XDMoD's",
            line=first_line,
            hint="name the columns in their order, e.g. --columns JobIDRaw,User,State,Submit,Start,End (and "
            "--delimiter '~' if no tab, comma, semicolon or | stands between them), or export "
            f"with a header: {RECIPE} > sacct.txt",
        )
    return head, layout, first_line


def _check_times(frame: pl.DataFrame, timezone: str) -> None:
    """Refuse a text of which no time can be read.

    Raises:
        InputError: the first records have times, and none of them is one.
    """
    there = [name for name in _TIMES if name in frame.columns]
    reads = {name: instants(frame[name].head(1000), timezone) for name in there}
    if any(read.utc.count() for read in reads.values()):
        return
    for name, read in reads.items():
        if read.bad.any():
            example = frame[name].head(1000).filter(read.bad)[0]
            raise InputError(
                f"{name} {example!r} is not a time that can be read: neither YYYY-MM-DDTHH:MM:SS nor seconds since the "
                "epoch (SLURM_TIME_FORMAT=relative loses the date)",
                hint=f"export it again: {RECIPE} > sacct.txt",
            )


def _reject(sink: Sink, parsed: Parsed) -> None:
    for line, reason, text in parsed.rejects:
        sink.seen()
        sink.reject(line, reason, text)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, the order of Open XDMoD, records without a header, and the tables that are refused."""
    del name
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    line = head.split(b"\n", 1)[0].rstrip(b"\r")
    layout = from_header(line)
    if layout is not None:
        return f"header of sacct with {len([n for n in layout.fields if n])} fields"
    if is_table(head):
        return "table of sacct for people, which cannot be read; sacct -P can"
    if from_rows(head) is not None:
        return "records in the order of Open XDMoD"
    return "records of sacct without a header" if is_headless_record(line) else None


FORMAT = Format(
    name="slurm-sacct",
    title="Slurm accounting: what sacct -P or -p prints, and the logs of Open XDMoD",
    fills=("jobs", "attempts", "placements", "queues"),
    file_names=("sacct.txt",),
    order=20,
    parser_version=2,
    sniff=sniff,
    load=load,
    alone=True,
)


def with_columns(columns: str, delimiter: str | None = None) -> Format:
    r"""Return the format of texts without a header whose columns are these, commas between.

    Args:
        columns: names as given to ``sacct -o``.
        delimiter: what stands between columns, with ``\t`` and ``\x1f`` as in a shell; None: it is found.

    Raises:
        UsageError: the delimiter is none.
        InputError: one is not a field of sacct, or the job id is not among them.
    """
    named_fields(columns)
    between = None if delimiter is None else delimiter_of(delimiter)

    def read(stream: BinaryIO, sink: Sink) -> None:
        load(stream, sink, columns, between)

    def recognise(name: str, head: bytes) -> str | None:
        line = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n").split(b"\n", 1)[0].rstrip(b"\r")
        found = sniff(name, head)
        return found or ("records of sacct in the order of --columns" if fits(columns, line, between) else None)

    return replace(FORMAT, load=read, sniff=recognise)
