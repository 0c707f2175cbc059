"""Results of an analysis, read by every renderer: documented tables and their origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl import __version__

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.notes import Note


@dataclass(frozen=True)
class Column:
    """One documented column of a result table.

    Attributes:
        name: the column's name in the frame and in every export; ends in its unit if it has one
            (``wait_s``, ``gpu_hours``, ``jobs_pct``).
        unit: ``s``, ``min``, ``h``, ``GPU-h``, ``GPUs``, ``%``, ``jobs`` … or ``-``.
        description: its definition.
    """

    name: str
    unit: str
    description: str


def ends(name: str, unit: str, over: str = "", *, pct: int = 90) -> tuple[Column, Column]:
    """Return the two columns of an interval.

    Args:
        name: with ``{}`` in place of ``low`` or ``high``.
        unit: of both.
        over: what the interval covers, and when it is empty; begins with a comma or a semicolon.
        pct: its level.
    """
    return (
        Column(name.format("low"), unit, f"Lower end of its {pct} % interval{over}."),
        Column(name.format("high"), unit, "Upper end."),
    )


@dataclass(frozen=True)
class ResultTable:
    """One result table, rendered by terminal, JSON, CSV, Parquet and HTML.

    Attributes:
        name: its stable name (``status``, ``queue_delays``); file names are made from it.
        section: the group that it belongs to (``overview``, ``runtime``, ``queueing`` …).
        title: a heading.
        question: the question it answers, one sentence.
        population: which rows are counted, and which are left out and why, with the numbers of this trace.
        notes: definitions and warnings for this trace (an inferred quota, a clock change).
        columns: one for each column of ``frame``, in order.
        frame: the rows.
        detail: true for tables with one row per job or attempt, and for the points of a curve: exported
            and charted, not printed.
        first_columns: number of leading columns that answer the question; a terminal shows the others only if the table
            is requested by name. 0: all of them.
        key_columns: the columns of a wide table that a page shows until the reader expands it. Empty: the first.
        charts: chart declarations (`gpuctl.core.charts`) of a table from third-party SQL; those of gpuctl's own tables
            are found by the table's name.
        sentences: the distinct values of its columns of sentences.
    """

    name: str
    section: str
    title: str
    question: str
    population: Note
    notes: tuple[Note, ...]
    columns: tuple[Column, ...]
    frame: pl.DataFrame
    detail: bool = False
    first_columns: int = 0
    key_columns: tuple[str, ...] = ()
    charts: tuple[str, ...] = ()
    sentences: tuple[Note, ...] = ()


@dataclass(frozen=True)
class SourceInfo:
    """One row of the ``sources`` ledger: a file that was loaded into the store.

    ``rows_in`` = ``rows_loaded`` + ``rows_already_stored`` + ``rows_rejected``, always.
    """

    path: str
    format: str
    sha256: str
    bytes: int
    rows_in: int
    rows_loaded: int
    rows_rejected: int
    rows_already_stored: int = 0


@dataclass(frozen=True)
class Analysis:
    """The complete result of one ``gpuctl analyze``.

    Attributes:
        cluster: the cluster's name in the store.
        tables: in display order.
        sections: (key, heading) of the groups of tables, in the order they are to be shown.
        sources: the files that the store was loaded from.
        settings: the choices that shape the figures, by name (``definition``, ``quotas`` …); a value with names from
            the data is a note.
        command: the command line, as the user gave it.
        version: version of gpuctl that computed it.
        warnings: caveats for the reader of the figures.
    """

    cluster: Note
    tables: tuple[ResultTable, ...]
    sections: tuple[tuple[str, str], ...]
    sources: tuple[SourceInfo, ...]
    settings: dict[str, Note]
    command: str
    version: str = __version__
    warnings: tuple[Note, ...] = ()

    def table(self, name: str) -> ResultTable | None:
        """Return the table of that name; None if this analysis lacks it."""
        return next((t for t in self.tables if t.name == name), None)
