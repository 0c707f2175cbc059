"""What an analysis, a replay or a training returns: tables, their definitions, charts, and one screen."""

from __future__ import annotations

import io
import random
from dataclasses import replace
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.library.arguments import path_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from os import PathLike

    import polars as pl

    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.library.figures import Figure
    from gpuctl.reports.charts.paper import Drawable
    from gpuctl.reports.screens.model import Screen

_ROWS_SHOWN = 10


def _import_rich() -> None:
    """Import Rich's styles, which draws a random number, and leave the numbers of the user's program as they are."""
    state = random.getstate()
    import_module("rich.style")
    random.setstate(state)


# every function of the library returns a result of this module or of one that imports it
_import_rich()


def preformatted(text: str) -> str:
    """Return text as HTML for a notebook; nothing of logs is markup in it."""
    return f'<pre style="line-height:1.25;overflow-x:auto">{escape(text)}</pre>'


class Result:
    """Documented tables that answer a question; what the command line prints, as data.

    In a notebook it shows one screen. It holds no open file.

    Example:
        >>> import gpuctl
        >>> result = gpuctl.analyze("sample_data/failures")
        >>> result.cluster, "status" in result.tables
        ('failures', True)
        >>> result.table("status").columns[:3]
        ['state', 'source_state', 'jobs']
        >>> result.columns("status").row(2)
        ('jobs', 'jobs', 'number of jobs')
        >>> result.describe("status").partition(":")[0]
        'Final states of the jobs'
        >>> result.settings["definition"], result.notes[:0]
        ('gpuctl', ())
        >>> "wait-cdf" in result.figures
        True
        >>> result.to_html("page.html")
        >>> result.to_json("result.json")
        >>> result.to_csv("tables")
        >>> result.to_parquet("tables")
        >>> drawn = gpuctl.analyze("sample_data/failures", ["wait_cdf"])
        >>> drawn.figure("wait-cdf").title
        'Queueing delay by job size, all queues'
        >>> [path.suffix for path in drawn.save_figures("figures")]
        ['.svg', '.pdf', '.png', '.csv']
    """

    def __init__(self, analysis: Analysis, screen: Callable[[Analysis], Screen] | None = None) -> None:
        self._analysis = analysis
        self._screen = screen

    @property
    def cluster(self) -> str:
        """Name of the cluster, or of the trace."""
        return str(self._analysis.cluster)

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of its tables, in the order in which the command line prints them."""
        return tuple(each.name for each in self._analysis.tables)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know before trusting the figures: warnings, the most important first."""
        return tuple(map(str, self._analysis.warnings))

    @property
    def settings(self) -> dict[str, str]:
        """The choices that shape the figures, by name."""
        return {key: str(value) for key, value in self._analysis.settings.items()}

    def table(self, name: str) -> pl.DataFrame:
        """Return the rows of a table; `columns` describes them.

        Raises:
            UsageError: this result has no such table.
        """
        return self._table(name).frame

    def columns(self, name: str) -> pl.DataFrame:
        """Return the columns of a table: ``column``, ``unit`` (``-`` for none) and ``definition``.

        Raises:
            UsageError: this result has no such table.
        """
        import polars as pl

        columns = self._table(name).columns
        return pl.DataFrame(
            {
                "column": [each.name for each in columns],
                "unit": [each.unit for each in columns],
                "definition": [each.description for each in columns],
            },
            schema={"column": pl.String, "unit": pl.String, "definition": pl.String},
        )

    def describe(self, name: str) -> str:
        """Return what a table answers, whom it counts, and its notes.

        Raises:
            UsageError: this result has no such table.
        """
        table = self._table(name)
        lines = [f"{table.title}: {table.question}" if table.question else table.title, str(table.population)]
        return "\n".join(line for line in [*lines, *map(str, table.notes)] if line)

    def figure(self, name: str) -> Figure:
        """Return a chart by its name, or the first chart of the table of that name.

        Raises:
            UsageError: this result has no such chart, or it cannot be drawn; the message says why.
        """
        from gpuctl.library.figures import figure_of
        from gpuctl.reports.drawables import missing

        return figure_of(self._drawables(), name, missing(self._analysis))

    @property
    def figures(self) -> tuple[str, ...]:
        """Names of its charts."""
        return tuple(each.name for each in self._drawables())

    def to_html(self, path: str | PathLike[str]) -> None:
        """Write one self-contained page.

        Raises:
            UsageError: the file cannot be written.
        """
        from gpuctl.reports.html import write_html

        write_html(self._analysis, path_of(path))

    def to_json(self, path: str | PathLike[str]) -> None:
        """Write all tables with their definitions as one document, which ``gpuctl report`` reads.

        Raises:
            UsageError: the file cannot be written.
        """
        from functools import partial

        from gpuctl.core.file_io import write_atomically
        from gpuctl.reports.export.files import write_tables

        write_atomically(path_of(path), partial(write_tables, self._analysis, "json", names=list(self.tables)))

    def save_figures(
        self, folder: str | PathLike[str], *, style: Literal["paper", "wide"] = "paper"
    ) -> tuple[Path, ...]:
        """Write every chart that can be drawn as SVG, PDF and PNG, each with its rows as CSV, and return the files.

        Raises:
            UsageError: a file cannot be written.
        """
        from gpuctl.reports.charts.paper import write_all

        return write_all(self._drawables(), path_of(folder), style)

    def to_csv(self, folder: str | PathLike[str]) -> None:
        """Write every table to ``folder/TABLE.csv``.

        Raises:
            UsageError: a file cannot be written.
        """
        from gpuctl.reports.export.files import write_dir

        write_dir(self._analysis, path_of(folder), "csv")

    def to_parquet(self, folder: str | PathLike[str]) -> None:
        """Write every table to ``folder/TABLE.parquet``, with units and definitions in the metadata of its columns.

        Raises:
            UsageError: a file cannot be written.
        """
        from gpuctl.reports.export.files import write_dir

        write_dir(self._analysis, path_of(folder), "parquet")

    def __repr__(self) -> str:
        return f"<gpuctl.Result of {self.cluster}: {len(self.tables)} tables>"

    def __str__(self) -> str:
        """The screen that the command line prints; of a result without one, its first tables."""
        from gpuctl.reports.screens.draw import print_screen
        from gpuctl.reports.terminal.printer import print_analysis

        text = io.StringIO()
        if self._screen is not None:
            print_screen(self._screen(self._analysis), width=100, color=False, file=text)
        else:
            short = [each for each in self._analysis.tables if not each.detail]
            first = tuple(replace(each, frame=each.frame.head(_ROWS_SHOWN)) for each in short[:2])
            print_analysis(replace(self._analysis, tables=first), color=False, file=text, notes=False)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        """One screen, for a notebook."""
        return preformatted(str(self))

    def _drawables(self) -> tuple[Drawable, ...]:
        from gpuctl.reports.drawables import of_analysis

        return of_analysis(self._analysis)

    def _table(self, name: str) -> ResultTable:
        from gpuctl.queries.sections import FORMER_NAMES

        found = self._analysis.table(FORMER_NAMES.get(name, name))
        if found is None:
            raise UsageError(f"this result has no table {name!r}", hint=meant(name, self.tables))
        return found
