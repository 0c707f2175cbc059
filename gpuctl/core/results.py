"""What an analysis returns and every renderer reads: documented tables, and where they came from."""

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
        name: the column's name in the frame and in every export; ends in its unit where it has one
            (``wait_s``, ``gpu_hours``, ``jobs_pct``).
        unit: ``s``, ``min``, ``h``, ``GPU-h``, ``GPUs``, ``%``, ``jobs`` … or ``-``.
        description: its definition.
    """

    name: str
    unit: str
    description: str


def ends(name: str, unit: str, over: str = "", *, pct: int = 90) -> tuple[Column, Column]:
    """The columns of the ends of an interval.

    Args:
        name: with ``{}`` in the place of ``low`` or ``high``.
        unit: of both.
        over: what it is an interval over, and when it is empty; begins with a comma or a semicolon.
        pct: its level.
    """
    return (
        Column(name.format("low"), unit, f"Lower end of its {pct} % interval{over}."),
        Column(name.format("high"), unit, "Upper end."),
    )


@dataclass(frozen=True)
class ResultTable:
    """One result table; the terminal, JSON, CSV, Parquet and HTML all render this same table.

    Attributes:
        name: its stable name (``status``, ``queue_delays``); file names are made from it.
        section: the group it is shown in (``overview``, ``runtime``, ``queueing`` …).
        title: a heading.
        question: the question it answers, one sentence.
        population: what is counted and what is left out and why, with the numbers of this trace.
        notes: definitions and warnings that hold for this trace (an inferred quota, a clock change).
        columns: one for each column of ``frame``, in order.
        frame: the rows.
        detail: true for tables with one row a job or attempt, and for the points of a curve: exported
            and charted, not printed.
        first_columns: so many of its columns answer the question; a terminal shows no more of them unless the table is
            asked for by name. 0: all of them.
        key_columns: what a page shows of a table with many columns until all of them are asked for. Empty: the first.
        charts: declarations of charts (`gpuctl.core.charts`) of a table that others' SQL made; those of gpuctl's own
            tables go by the table's name.
        sentences: what its columns of sentences hold, each once.
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
    """One row of the ``sources`` ledger: a file that went into the store.

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
    """Everything one ``gpuctl analyze`` found out.

    Attributes:
        cluster: the cluster's name in the store.
        tables: in the order they are to be shown.
        sections: (key, heading) of the groups of tables, in the order they are to be shown.
        sources: what the store was made from.
        settings: the choices that shape the figures, by name (``definition``, ``quotas`` …); a name that is not only of
            our words is a note.
        command: the command line, as the user gave it.
        version: gpuctl's version that found it out.
        warnings: what a reader must know before trusting the figures.
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
        """Return the table of that name, or None where this analysis does not have it."""
        return next((t for t in self.tables if t.name == name), None)
