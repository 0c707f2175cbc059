"""Tables with one row a job, read by a declaration of what their columns are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Literal

from gpuctl.core.states import State
from gpuctl.ingest.read import delimited
from gpuctl.ingest.read.delimited import Delimited, header
from gpuctl.ingest.traces.jobs import LINE, RAW, Jobs
from gpuctl.slurm.times import instants

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from gpuctl.ingest.core.format import Sink

MOST = 1e9
"""Counts from here on are none that a job could have."""
_TIME_FORMS = "expected YYYY-MM-DD HH:MM:SS, with or without an offset"


@dataclass(frozen=True)
class Column:
    """One column of a source.

    Attributes:
        to: the column of ``jobs`` that it fills, or a name of its own for what only `JobTable.quirks` looks at.
        kind: ``text``; ``number``, 0 or more; ``whole``, the same without a fraction; ``time``, a local stamp or one
            with an offset from UTC.
        needed: whether a row in which it is empty is rejected.
    """

    to: str
    kind: Literal["text", "number", "whole", "time"] = "text"
    needed: bool = False


@dataclass(frozen=True)
class JobTable:
    """What a table of jobs is.

    Attributes:
        what: names such a file, for messages.
        columns: what each column is, by its name in the header; a file must have all of them.
        states: the source's words; any other is an unknown state.
        unread: further columns of the header, of which nothing is read.
        quirks: words for rows that need care, and where they hold, over the names of `Column.to`.
    """

    what: str
    columns: Mapping[str, Column]
    states: Mapping[str, State]
    unread: frozenset[str] = frozenset()
    quirks: Mapping[str, Callable[[], pl.Expr]] = field(default_factory=dict)

    def sniff(self, _name: str, head: bytes) -> str | None:
        """Recognise the header: these columns and no others, in any order."""
        found = header(head.split(b"\n", 1)[0])
        if len(found) == len(set(found)) and set(found) == {*self.columns, *self.unread}:
            return f"header {','.join(found)}"
        return None

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file into jobs, attempts and queues; see `Jobs` for what becomes of a job told twice.

        Raises:
            InputError: the header lacks a column.
        """
        table = Delimited(stream, tuple(self.columns), self.what)
        jobs = Jobs(sink)
        for piece in table.pieces():
            sink.seen(piece.rows.height + len(piece.rejects))
            typed = self._typed(piece.rows, table.columns, sink.timezone)
            bad = typed.filter(typed[_FAULT].is_not_null()).select(LINE, _FAULT, RAW)
            for number, reason, raw in sorted([*piece.rejects, *bad.iter_rows()]):
                sink.reject(number, reason, raw)
            jobs.add(typed.filter(typed[_FAULT].is_null()).drop(_FAULT))
        jobs.finish()

    def _typed(self, rows: pl.DataFrame, header: list[str], timezone: str) -> pl.DataFrame:
        """Give the cells their types, and name the first fault of each row in the column `_FAULT`."""
        import polars as pl

        made: list[pl.Series] = []
        faults: list[pl.Expr] = []
        for name, column in self.columns.items():
            cells = rows[name].str.strip_chars().replace("", None)
            values, bad = _READERS[column.kind](cells, timezone)
            made.append(values.alias(column.to))
            if bad.any():
                faults.append(pl.when(bad).then(pl.lit(f"{name} is not {_KINDS[column.kind]}")))
            if column.needed and cells.null_count():
                faults.append(pl.when(cells.is_null()).then(pl.lit(f"{name} is empty")))
        words = pl.col("source_state").str.to_uppercase()
        states = {word: state.value for word, state in self.states.items()}
        typed = pl.DataFrame(made).with_columns(
            state=words.replace_strict(states, default=State.UNKNOWN.value, return_dtype=pl.String)
        )
        marks = [pl.when(where()).then(pl.lit(word)) for word, where in self.quirks.items()]
        return typed.with_columns(
            rows[delimited.LINE].alias(LINE),
            rows.select(pl.concat_str(pl.col(header).fill_null(""), separator=",")).to_series().alias(RAW),
            quirks=pl.concat_list(marks).list.drop_nulls() if marks else pl.lit([], pl.List(pl.String)),
            **{_FAULT: pl.coalesce(faults) if faults else pl.lit(None, pl.String)},
        )


_FAULT = "fault"
_KINDS = {
    "text": "printable",
    "number": "a number, 0 or more",
    "whole": "a whole number, 0 or more",
    "time": f"a time: {_TIME_FORMS}",
}


def _text(cells: pl.Series, _timezone: str) -> tuple[pl.Series, pl.Series]:
    return cells, cells.str.contains(r"\p{Cc}").fill_null(value=False)


def _number(cells: pl.Series, _timezone: str) -> tuple[pl.Series, pl.Series]:
    import polars as pl

    values = cells.cast(pl.Float64, strict=False)
    sound = values.is_between(0, MOST).fill_null(value=False)
    return values, cells.is_not_null() & ~sound


def _whole(cells: pl.Series, timezone: str) -> tuple[pl.Series, pl.Series]:
    import polars as pl

    values, bad = _number(cells, timezone)
    bad |= (values != values.floor()).fill_null(value=False)
    return values.cast(pl.Int64, strict=False), bad


def _time(cells: pl.Series, timezone: str) -> tuple[pl.Series, pl.Series]:
    read = instants(cells.str.replace(" ", "T", literal=True), timezone)
    return read.utc, read.bad


_READERS = {"text": _text, "number": _number, "whole": _whole, "time": _time}
