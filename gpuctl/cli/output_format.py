"""The formats in which a result is printed."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class OutputFormat(StrEnum):
    """How results are written."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    TSV = "tsv"
    MARKDOWN = "markdown"
    LATEX = "latex"
    PARQUET = "parquet"


def chosen_format(
    output_format: OutputFormat | None, *, as_json: bool, output: Path | None, tables: Sequence[str] | None
) -> OutputFormat | None:
    """The format that the options ask for; None for what suits where it goes.

    Raises:
        UsageError: the options contradict each other.
    """
    if as_json and output_format not in {None, OutputFormat.JSON}:
        raise UsageError(f"--json and --format {output_format} contradict each other", hint="give only one")
    shape = OutputFormat.JSON if as_json else output_format
    if shape is OutputFormat.PARQUET and output is None and sys.stdout.isatty():
        raise UsageError("--format parquet writes bytes that no terminal shows", hint="add --output FILE")
    if shape is OutputFormat.PARQUET and len(set(tables or ())) != 1:
        raise UsageError("one Parquet file holds one table", hint="choose it with --table, or use --parquet DIR")
    return shape
