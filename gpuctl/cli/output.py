"""Where results go: the options that all commands with result tables share, and the printing behind them."""

from __future__ import annotations

import sys
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from gpuctl.cli.common import message
from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.reports.terminal.printer import Painter


class OutputFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


TableOption = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Print only this table (detail tables too); may be given several times."),
]
FormatOption = Annotated[
    OutputFormat | None, typer.Option("--format", help="table on a terminal and tsv into a pipe, unless given.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Short for --format json, with every table.")]
OutputOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Write there instead of to standard output.")]
HtmlOption = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one self-contained HTML page.")]


def chosen_format(
    output_format: OutputFormat | None, *, as_json: bool, output: Path | None, tables: Sequence[str] | None
) -> OutputFormat | None:
    """The format that the options ask for; None for what suits where it goes.

    Raises:
        UsageError: the options contradict each other.
    """
    if as_json and output_format not in {None, OutputFormat.JSON}:
        raise UsageError(f"--json and --format {output_format} contradict each other", hint="give one of them")
    shape = OutputFormat.JSON if as_json else output_format
    if shape is OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes that no terminal shows", hint="add --output FILE")
    if shape is OutputFormat.PARQUET and len(set(tables or ())) != 1:
        raise UsageError("one Parquet file holds one table", hint="name it with --table, or use --parquet DIR")
    return shape


def write_directory(result: Analysis, directory: Path, kind: Literal["csv", "parquet"], given: Settings) -> None:
    """Write every table to a file of its own."""
    from gpuctl.reports.export.files import write_dir

    write_dir(result, directory, kind, spreadsheet=given.spreadsheet)


def print_result(
    result: Analysis, shape: OutputFormat | None, output: Path | None, tables: list[str] | None, given: Settings, *,
    painter: Painter | None = None,
) -> None:  # fmt: skip
    """Print tables to standard output, or write them to a file; a terminal gets pictures too, of `painter` if given."""
    from gpuctl.reports.export.files import write_atomically, write_tables
    from gpuctl.reports.terminal.printer import print_analysis

    if shape is None and output is None and sys.stdout.isatty():
        from gpuctl.reports.terminal.pictures import of_analysis

        print_analysis(
            result,
            color=None if given.color else False,
            names=tables,
            painter=painter or partial(of_analysis, result),
        )
        return
    names = tables
    if shape is OutputFormat.JSON and not tables:
        names = [each.name for each in result.tables]
    kind = shape or OutputFormat.TSV

    def write(file: BinaryIO) -> None:
        write_tables(result, kind.value, file, names=names, spreadsheet=given.spreadsheet)

    if output is not None:
        write_atomically(output, write)
    else:
        write(sys.stdout.buffer)


def tell_written(places: Iterable[Path | None], given: Settings) -> None:
    """Say on stderr what was written."""
    for place in places:
        if place is not None:
            message(f"wrote {place}", quiet=given.quiet)
