"""Writes result tables to files: JSON, JSON lines, CSV, TSV, Markdown, LaTeX, Parquet.

All except Markdown and LaTeX carry the exact values: numbers in full precision, times as ISO 8601, missing values
distinct from empty strings. Text is written exactly as in the logs, with two exceptions: on a terminal, control
characters are escaped, and ``spreadsheet`` keeps text from being a formula.
"""

from __future__ import annotations

import io
import json
import os
import re
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal, get_args

from gpuctl.core.errors import UsageError
from gpuctl.core.file_io import write_atomically
from gpuctl.reports.cell_text import visible
from gpuctl.reports.export import values
from gpuctl.reports.export.document import described, document
from gpuctl.reports.export.latex import latex
from gpuctl.reports.export.markdown import markdown
from gpuctl.reports.selection import choose_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpuctl.core.results import Analysis, ResultTable

Format = Literal["table", "json", "jsonl", "csv", "tsv", "markdown", "latex", "parquet"]
DirFormat = Literal["csv", "parquet"]

FORMATS: tuple[str, ...] = get_args(Format)
"""Values of ``--format``."""

_STEERING = re.compile(r"[^\n\t -~]+")
"""Characters that may steer a terminal; `visible` decides which do."""
_FILE_NAME = re.compile(r"[a-z0-9_]{1,100}")


def write_tables(
    analysis: Analysis,
    format: Format,
    file: BinaryIO,
    *,
    names: Sequence[str] | None = None,
    spreadsheet: bool = False,
) -> None:
    """Write tables of an analysis to one byte stream.

    Several tables in CSV or TSV follow each other, each after a line ``# name`` and before an empty line; a single
    table has neither. JSON lines: one object per row; with several tables, ``{"table": name, "row": {...}}``.

    Args:
        analysis: the analysis to write.
        format: one of `FORMATS`.
        file: open for writing bytes.
        names: only these tables, including named detail tables; None: all except the detail tables.
        spreadsheet: for CSV and TSV, as in `values.lines`.

    Raises:
        UsageError: no such format or table, or Parquet was requested for other than one table.
    """
    chosen, left_out = choose_tables(analysis, names)
    match format:
        case "table":
            _write_terminal(analysis, file, names)
        case "json":
            _write_text(file, document(analysis, chosen, left_out if names is None else ()))
        case "jsonl":
            _write_text(file, _json_lines(chosen))
        case "csv":
            _write_text(file, _delimited(chosen, ",", spreadsheet=spreadsheet))
        case "tsv":
            _write_text(file, _delimited(chosen, "\t", spreadsheet=spreadsheet))
        case "markdown":
            _write_text(file, markdown(analysis, chosen))
        case "latex":
            _write_text(file, latex(analysis, chosen))
        case "parquet":
            _write_parquet(analysis, _only(chosen), file)
        case _:
            raise UsageError(f"there is no format {format!r}", hint=f"known: {', '.join(FORMATS)}")


def check_places(files: Mapping[str, Path | None], directories: Mapping[str, Path | None]) -> None:
    """Reject places that are not writable, before any work is done.

    Args:
        files: by option, files to be written into directories that exist.
        directories: by option, directories to be written to, created if absent.

    Raises:
        UsageError: a place is not writable; the message names the option.
    """
    for option, path in files.items():
        if path is not None:
            if path.is_dir():
                raise UsageError(f"{option} {path}: is a directory, expected a file", hint="name a file in it")
            if path.exists() and not path.is_file():
                continue  # a device or a pipe is written to, not replaced
            _check_directory(option, path, path.parent)
    for option, path in directories.items():
        if path is not None:
            if path.exists() and not path.is_dir():
                raise _no_directory(f"{option} {path}")
            # an absent directory is created in the nearest existing one
            _check_directory(option, path, next(p for p in (path, *path.absolute().parents) if p.exists()))


def _check_directory(option: str, path: Path, directory: Path) -> None:
    if not directory.is_dir():
        raise UsageError(
            f"{option} {path}: there is no directory {directory}", hint="create it, or choose another path"
        )
    if not os.access(directory, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: {directory} is not writable", hint="choose another path")


def _no_directory(what: str) -> UsageError:
    return UsageError(f"{what}: a file, expected a directory to write tables to", hint="choose another path")


def write_dir(analysis: Analysis, directory: Path, format: DirFormat, *, spreadsheet: bool = False) -> tuple[Path, ...]:
    """Write every table of an analysis, including detail tables, to its own file ``<table>.<format>``.

    Each file appears whole or not at all (written next to its place, then renamed). Files of the same name are
    replaced, all others are untouched.

    Args:
        analysis: the analysis to write.
        directory: created if absent.
        format: ``csv`` or ``parquet``.
        spreadsheet: for CSV, as in `values.lines`.

    Returns:
        The files, in the order of the analysis.

    Raises:
        UsageError: the directory is a file, cannot be created or written to, or the format is unknown.
    """
    if format not in get_args(DirFormat):
        raise UsageError(f"there is no directory format {format!r}", hint="known: csv, parquet")
    if directory.exists() and not directory.is_dir():
        raise _no_directory(str(directory))
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{directory}: cannot be made: {error.strerror}", hint="choose another path") from error
    return tuple(_write_one(analysis, table, directory, format, spreadsheet=spreadsheet) for table in analysis.tables)


def write_rows(batches: Iterator[ResultTable], format: str, file: BinaryIO, *, spreadsheet: bool = False) -> None:
    """Write one table that arrives in batches of rows; each batch is dropped once it is written.

    JSON is a list of the rows. Parquet has the types of the first batch.

    Args:
        batches: tables of the same columns; the first one may be empty.
        format: json, jsonl, csv, tsv or parquet.
        file: open for writing bytes.
        spreadsheet: for CSV and TSV, as in `values.lines`.

    Raises:
        UsageError: there is no such format, or a later batch has values that the first one's types cannot hold.
    """
    match format:
        case "csv" | "tsv":
            separator = "," if format == "csv" else "\t"
            for number, table in enumerate(batches):
                pieces = values.lines(table, separator, spreadsheet=spreadsheet)
                _write_text(file, pieces if number == 0 else islice(pieces, 1, None))
        case "jsonl":
            for table in batches:
                _write_text(file, _json_lines((table,)))
        case "json":
            _write_text(file, _json_list(batches))
        case "parquet":
            _write_parquet_rows(batches, file)
        case _:
            raise UsageError(f"there is no format {format!r}", hint=f"known: {', '.join(FORMATS)}")


def _json_list(batches: Iterator[ResultTable]) -> Iterator[str]:
    before = "["
    for table in batches:
        for lines in values.rows(table):
            yield before + ",\n".join(lines)
            before = ",\n"
    yield "]\n" if before != "[" else "[]\n"


def _write_parquet_rows(batches: Iterator[ResultTable], file: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = next(batches).frame.to_arrow()
    with pq.ParquetWriter(file, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in batches:
            try:
                writer.write_table(table.frame.to_arrow().cast(first.schema))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
                raise UsageError(
                    f"later rows do not have the types of the first {first.num_rows:,}: {error}",
                    hint="cast the column in the SQL, or write CSV",
                ) from error


def _write_one(
    analysis: Analysis, table: ResultTable, directory: Path, extension: DirFormat, *, spreadsheet: bool
) -> Path:
    if not _FILE_NAME.fullmatch(table.name):
        raise ValueError(f"a result table is named {table.name!r}, which is not a file name")
    path = directory / f"{table.name}.{extension}"

    def write(file: BinaryIO) -> None:
        if extension == "csv":
            _write_text(file, _delimited((table,), ",", spreadsheet=spreadsheet))
        else:
            _write_parquet(analysis, table, file)

    write_atomically(path, write)
    return path


def _write_text(file: BinaryIO, pieces: Iterator[str]) -> None:
    on_screen = file.isatty()
    for text in pieces:
        piece = _STEERING.sub(lambda found: visible(found[0]), text) if on_screen else text
        file.write(piece.encode("utf-8", "backslashreplace"))


def _write_terminal(analysis: Analysis, file: BinaryIO, names: Sequence[str] | None) -> None:
    from gpuctl.reports.terminal.printer import print_analysis

    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n", write_through=True)
    try:
        print_analysis(analysis, file=text, names=names)
    finally:
        text.detach()


def _delimited(tables: Sequence[ResultTable], separator: str, *, spreadsheet: bool) -> Iterator[str]:
    for number, table in enumerate(tables):
        if len(tables) > 1:
            yield f"{chr(10) if number else ''}# {table.name}\n"
        yield from values.lines(table, separator, spreadsheet=spreadsheet)


def _json_lines(tables: Sequence[ResultTable]) -> Iterator[str]:
    for table in tables:
        before, after = ("", "") if len(tables) == 1 else (f'{{"table": {json.dumps(table.name)}, "row": ', "}")
        for lines in values.rows(table):
            yield "".join(f"{before}{line}{after}\n" for line in lines)


def _only(tables: Sequence[ResultTable]) -> ResultTable:
    if len(tables) == 1:
        return tables[0]
    raise UsageError(
        f"a Parquet file holds one table, but there are {len(tables)}",
        hint="name one with --table NAME, or write all of them with --parquet DIR",
    )


def _write_parquet(analysis: Analysis, table: ResultTable, file: BinaryIO) -> None:
    import pyarrow.parquet as pq

    arrow = table.frame.select([c.name for c in table.columns]).to_arrow()
    schema = arrow.schema
    for index, column in enumerate(table.columns):
        about = {"unit": column.unit, "description": column.description}
        schema = schema.set(index, schema.field(index).with_metadata(about))
    origin = {
        "gpuctl.version": analysis.version,
        "gpuctl.command": analysis.command,
        "gpuctl.cluster": analysis.cluster,
        "gpuctl.table": json.dumps(described(table)),
    }
    pq.write_table(arrow.cast(schema).replace_schema_metadata(origin), file, compression="zstd")
