"""Tables of published traces, read by a declaration of their columns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.states import State
from gpuctl.ingest.core.ranges import LARGEST, out_of_range
from gpuctl.ingest.read import delimited
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import Delimited, header
from gpuctl.ingest.traces.cells import Kind, dtype, expected, is_plain, typed
from gpuctl.ingest.traces.jobs import LINE, Jobs
from gpuctl.ingest.traces.marks import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Sink

_FAULT = "fault"
_LIMITS = {
    **dict.fromkeys(("nodes", "cpus", "attempts", "exit_code", "exit_signal", "gpus_labelled"), LARGEST),
    **dict.fromkeys(("mem_mb", "gpu_mem_mb", "time_limit_s"), 2**62),
}
"""Columns that the store keeps as integers of 32 or 64 bits, and the largest value that is read."""


def _expression(formula: str | Callable[[], pl.Expr]) -> pl.Expr:
    import polars as pl

    return pl.sql_expr(formula) if isinstance(formula, str) else formula()


@dataclass(frozen=True)
class Column:
    """One column of a source.

    Attributes:
        to: the column of the store that it fills, or a name of its own that only formulas use.
        kind: see `gpuctl.ingest.traces.cells.Kind`.
        needed: whether a row is rejected if the cell is empty.
        scale: factor of numbers and seconds.
        missing: texts that stand for an empty cell.
    """

    to: str
    kind: Kind = "text"
    needed: bool = False
    scale: float = 1.0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table of a trace.

    Attributes:
        what: description of such a file, for messages.
        columns: name in the header -> column; a file must have all of them.
        optional: further columns that it may have.
        unread: columns that the header must have and that are not read.
        passed: columns that it may have and that are not read.
        absent: columns that it never has: they are those of another format with the same other columns.
        open_ended: whether it may have columns of any other name.
        names: the columns of a table without a header, in order; a header of these names is allowed.
        file: a part of the name of such a file, if it has no header, or if other files have the same header.
        first_cell: pattern of the first cell of a row, which identifies a file without a header under another name.
        separator: the character between cells.
        states: the source's words in ``source_state``, upper case; any other is an unknown state.
        derive: further columns, or others in their place: formulas over those of `Column.to`.
        faults: reason for which a row is rejected -> formula of the condition, over the same columns.
        quirks: word for rows that need care -> formula of the condition.

    A formula is an expression of SQL as `polars.sql_expr` reads it, or a function that returns one of Polars.
    """

    what: str
    columns: Mapping[str, Column]
    optional: Mapping[str, Column] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    open_ended: bool = False
    names: tuple[str, ...] = ()
    file: str = ""
    first_cell: str = ""
    separator: str = ","
    states: Mapping[str, State] = field(default_factory=dict)
    derive: Mapping[str, str | Callable[[], pl.Expr]] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    quirks: Mapping[str, str] = field(default_factory=dict)

    def sniff(self, name: str, head: bytes) -> str | None:
        """Recognise the header, its columns in any order, or else the name or first cell and the number of cells."""
        if name.endswith(".header") or (self.file and not self.names and self.file not in name):
            return None
        first = first_line(head)
        found = header(first, self.separator)
        there = set(found)
        if len(found) == len(there) and {*self.columns, *self.unread} <= there and self._only(there):
            return f"header {','.join(found)}"
        if not self.names or len(found) != len(self.names):
            return None
        if self.file and self.file in name:
            return f"file name, and a first row of {len(found)} cells (no header)"
        if self.first_cell and re.fullmatch(self.first_cell, found[0]):
            return f"a first row of {len(found)} cells (no header), and what is in the first of them"
        return None

    def _only(self, there: set[str]) -> bool:
        if self.open_ended:
            return not self.absent & there
        return there <= {*self.columns, *self.optional, *self.unread, *self.passed}

    def rows(self, stream: BinaryIO, sink: Sink) -> Iterator[tuple[pl.DataFrame, Callable[[Sequence[int]], list[str]]]]:
        """Yield the rows of a file with typed cells; lines that are no rows, and rows with faults, are rejected.

        Returns:
            columns of `Column.to` and of `derive`, `LINE`, ``state`` if there is a ``source_state``, and ``quirks`` if
            any are declared; and a function that returns the text of lines.

        Raises:
            InputError: the header lacks a column.
        """
        numbers = frozenset(
            name for name, column in {**self.columns, **self.optional}.items() if column.kind not in {"text", "time"}
        )
        table = Delimited(
            stream, tuple(self.columns), self.what, separator=self.separator, names=self.names, numbers=numbers
        )
        for piece in table.pieces():
            rows = self._typed(piece.rows, sink.timezone, plain=is_plain(piece.data, self.separator))
            yield piece.without_faults(rows, sink), piece.raw

    def _typed(self, rows: pl.DataFrame, timezone: str, *, plain: bool) -> pl.DataFrame:
        """Give the cells their types, and name the first fault of each row in the column `_FAULT`."""
        import polars as pl

        made: list[pl.Series] = [rows[delimited.LINE].alias(LINE)]
        faults: list[pl.Expr] = []
        for name, column in {**self.columns, **self.optional}.items():
            if name not in rows.columns:
                made.append(pl.Series(column.to, [None], dtype(column.kind)).new_from_index(0, rows.height))
                continue
            values, bad = typed(rows[name], column.kind, timezone, column.missing, column.scale, plain=plain)
            made.append(values.alias(column.to))
            if bad.any():
                faults.append(pl.when(bad).then(pl.lit(f"{name} is not {expected(column.kind)}")))
            if column.needed and values.null_count():
                faults.append(pl.when(values.is_null() & ~bad).then(pl.lit(f"{name} is empty")))
        return self._made(pl.DataFrame(made), faults)

    def _made(self, rows: pl.DataFrame, faults: list[pl.Expr]) -> pl.DataFrame:
        import polars as pl

        if "source_state" in rows.columns:
            words_of_source = rows["source_state"]
            # per distinct word, not per row
            there = words_of_source.unique().drop_nulls().to_list()
            states = {word: self.states.get(word.upper(), State.UNKNOWN).value for word in there}
            state = words_of_source.replace_strict(states, default=State.UNKNOWN.value, return_dtype=pl.String)
            rows = rows.with_columns(state.alias("state"))
        rows = rows.with_columns(**{name: _expression(formula) for name, formula in self.derive.items()})
        faults += [pl.when(pl.sql_expr(where)).then(pl.lit(reason)) for reason, where in self.faults.items()]
        faults += out_of_range(rows, _LIMITS, "{} is out of range: expected at most {:,}".format)
        fault = pl.coalesce(faults) if faults else pl.lit(None, pl.String)
        marks = {word: pl.sql_expr(where) for word, where in self.quirks.items()}
        marked = {"quirks": words(rows, marks)} if marks else {}
        return rows.with_columns(fault.alias(_FAULT), **marked)


@dataclass(frozen=True)
class JobTable(Table):
    """A table with one row per job."""

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file into jobs, attempts and queues; `Jobs` describes duplicates.

        Raises:
            InputError: the header lacks a column.
        """
        jobs = Jobs(sink)
        for rows, raw in self.rows(stream, sink):
            jobs.add(rows, raw)
        jobs.finish()


@dataclass(frozen=True)
class RowTable(Table):
    """A table whose rows become rows of one table of the store.

    Attributes:
        table: its name.
        keep: the columns of the store that are filled.
        always: further columns, and the text that all rows have there.
        lists: those of `keep` that the store has as lists; here each list has one value.
    """

    table: str = ""
    keep: tuple[str, ...] = ()
    always: Mapping[str, str] = field(default_factory=dict)
    lists: tuple[str, ...] = ()

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file.

        Raises:
            InputError: the header lacks a column.
        """
        import polars as pl

        same = {name: pl.lit(text) for name, text in self.always.items()}
        selected = [pl.concat_list(name) if name in self.lists else pl.col(name) for name in self.keep]
        for rows, _ in self.rows(stream, sink):
            if rows.height:
                sink.insert(self.table, rows.select(*selected, **same))
                sink.loaded(rows.height)
