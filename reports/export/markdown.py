"""Writes tables as GitHub-flavoured Markdown, rounded for reading; log strings cannot become markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.file_io import write_atomically
from gpuctl.reports.cell_text import shown_columns, visible
from gpuctl.reports.units import Units

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.reports.cell_text import ShownColumn

_MARKUP = re.compile(r"([\\`*_\[\]<>|~#!$&])")
_MENTION = re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9])")
"""User mentions of GitHub and GitLab, which notify that user; a backslash does not prevent this."""
_ADDRESS = re.compile(
    r"(?<=\w)@(?=[\w-]+\.)|:(?=//)|(?<=mailto):|(?<=xmpp):|(?<=www)\.|(?<=\bGH)-(?=\d)", re.IGNORECASE
)
"""Places to break up automatic links: web and mail addresses, numbers of issues."""


def escaped(text: str) -> str:
    """Return text that Markdown shows literally: control characters and markup escaped, without mentions.

    Web and mail addresses do not become links.
    """
    marked = _MARKUP.sub(r"\\\1", visible(text))
    return _ADDRESS.sub(r"\g<0><!-- -->", _MENTION.sub("@<!-- -->", marked))


def markdown(analysis: Analysis, tables: Sequence[ResultTable]) -> Iterator[str]:
    """Yield a Markdown document: warnings, then each table with its question, population and notes."""
    yield f"# {escaped(analysis.cluster)}\n\n"
    for warning in analysis.warnings:
        yield f"> **Warning:** {escaped(warning)}\n\n"
    units = Units(analysis.tables)
    for table in tables:
        yield f"## {escaped(table.title)}\n\n{escaped(table.question)}\n\n"
        yield from _grid(shown_columns(table, units=units))
        yield f"\n{escaped(table.population)}\n\n"
        yield from (f"- {escaped(note)}\n" for note in table.notes)
        yield "\n" if table.notes else ""


def write(analysis: Analysis, path: Path) -> None:
    """Write all tables as a Markdown document.

    Raises:
        UsageError: the file cannot be written.
    """
    text = "".join(markdown(analysis, analysis.tables)).encode("utf-8", "backslashreplace")
    write_atomically(path, lambda file: _put(file, text))


def _put(file: BinaryIO, text: bytes) -> None:
    file.write(text)


def _grid(columns: Sequence[ShownColumn]) -> Iterator[str]:
    yield _line([escaped(f"{c.label} ({c.unit})" if c.unit else c.label) for c in columns])
    yield _line(["---:" if c.numeric else "---" for c in columns])
    for cells in zip(*(c.cells for c in columns), strict=True):
        yield _line([escaped(cell) for cell in cells])


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
