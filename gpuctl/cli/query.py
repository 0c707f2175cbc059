"""``gpuctl query``, ``tables`` and ``analyses``: SQL over a trace store, what it can read, and the SQL there is."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from gpuctl.cli import complete
from gpuctl.cli.common import message, named_to_check, print_json, print_table, print_violations, visible
from gpuctl.cli.options import (
    FormatOption,
    OutputFormat,
    OutputOption,
    PlainJsonOption,
    SetOption,
    chosen_format,
    parameter_values,
)
from gpuctl.cli.output import command_line, for_people, print_result
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, GpuctlError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.queries.catalogue import Query
    from gpuctl.store.views import View


MOST_SHOWN = 10_000
"""Rows of an answer that are shown to a reader; files and pipes get all."""


def query(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    store: Annotated[Path, typer.Argument(metavar="STORE", help="Trace store; opened read-only.")],
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT over the tables that gpuctl tables lists.")],
    values: SetOption = None,
    output_format: FormatOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as a JSON list.")] = False,
    output: OutputOption = None,
    timeout: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.001, max=10**6, help="Stop after this many seconds (exit code 1)."),
    ] = None,
) -> None:
    """Run one read-only SELECT against a trace store (no file or network access)."""
    given = settings(context)
    from gpuctl.analyze.held import provide_held
    from gpuctl.store.database import Store
    from gpuctl.store.views import ask_in_batches

    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=["query"])
    with Store(store) as opened, TimeLimit(timeout, opened.interrupt):
        provide_held(opened, sql)
        found = ask_in_batches(opened, sql, parameter_values(values or ()))
        if for_people(shape, output) or shape in {OutputFormat.MARKDOWN, OutputFormat.LATEX}:
            frame, more = _first_rows(found)
            print_result(_as_result(frame), shape, output, ["query"], given, notes=False, paged=True)
            if more:
                given.tell(f"only the first {MOST_SHOWN:,} rows are shown; --format csv prints all")
            return
        write = partial(_write, found, (shape or OutputFormat.TSV).value, given)
        if output is None:
            write(sys.stdout.buffer)
        else:
            from gpuctl.core.file_io import write_atomically

            write_atomically(output, write)


def _first_rows(found: Iterator[pl.DataFrame]) -> tuple[pl.DataFrame, bool]:
    """The rows that a reader is shown, and whether there are more."""
    import polars as pl

    parts: list[pl.DataFrame] = []
    for batch in found:
        parts.append(batch)
        if sum(part.height for part in parts) > MOST_SHOWN:
            break
    frame = pl.concat(parts, how="vertical_relaxed")
    return frame.head(MOST_SHOWN), frame.height > MOST_SHOWN


def _write(found: Iterator[pl.DataFrame], kind: str, given: Settings, file: BinaryIO) -> None:
    from gpuctl.reports.export.files import write_rows

    batches = (_as_result(frame).tables[0] for frame in found)
    write_rows(batches, kind, file, spreadsheet=given.spreadsheet)


def tables(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            autocompletion=complete.views,
            help="One table: show its columns. Default: list all tables.",
        ),
    ] = None,
    output_format: FormatOption = None,
    as_json: PlainJsonOption = False,
) -> None:
    """List the tables that gpuctl query can read, or the columns of one table."""
    from gpuctl.core.suggestions import meant
    from gpuctl.store.views import VIEWS

    given = settings(context)
    chosen = [view for view in VIEWS if name in {None, view.name}]
    if not chosen:
        raise UsageError(f"there is no table {name!r}", hint=meant(str(name), [view.name for view in VIEWS]))
    shape = chosen_format(output_format, as_json=as_json or given.json, output=None, tables=["query"])
    if shape is OutputFormat.JSON:
        print_json([_described(view) for view in chosen])
    elif shape not in {None, OutputFormat.TABLE}:
        print_result(_as_result(_listed(chosen, whole=name is None)), shape, None, ["query"], given, notes=False)
    elif name is None:
        rows = [(view.name, view.text, ", ".join(field.name for field in view.fields)) for view in chosen]
        print_table(("table", "one row per", "columns"), rows, color=given.color, wide="columns")
    else:
        print_table(("column", "type", "what it is"), chosen[0].fields, color=given.color, wide="what it is")


def _listed(chosen: Sequence[View], *, whole: bool) -> pl.DataFrame:
    """Tables with their columns, a row each; of one table, its columns."""
    import polars as pl

    if whole:
        rows = [(view.name, view.text, ", ".join(field.name for field in view.fields)) for view in chosen]
        return pl.DataFrame(rows, schema=["table", "row", "columns"], orient="row")
    return pl.DataFrame([tuple(field) for field in chosen[0].fields], schema=["column", "type", "definition"],
                        orient="row")  # fmt: skip


def _described(view: View) -> dict[str, object]:
    columns = [{"name": field.name, "type": field.kind, "description": field.text} for field in view.fields]
    return {"name": view.name, "row": view.text, "columns": columns}


def _as_result(found: pl.DataFrame) -> Analysis:
    from gpuctl.core.notes import note
    from gpuctl.core.results import Analysis, Column, ResultTable
    from gpuctl.core.storable_text import plural

    table = ResultTable(
        name="query",
        section="query",
        title=plural(found.height, "row"),
        question="",
        population=note(""),
        notes=(),
        columns=tuple(Column(name, "-", "") for name in found.columns),
        frame=found,
    )
    command = command_line()
    return Analysis(note("query"), (table,), (("query", "Query"),), (), {}, command)


def analyses(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="One analysis, or FILE.sql: show its columns. Default: list all."),
    ] = None,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="STORE",
            help="Run the analysis on an empty store and on this one, and list violations of the rules for analyses.",
        ),
    ] = None,
    as_json: PlainJsonOption = False,
) -> None:
    """List the analyses that gpuctl analyze runs (one per table) and where each is defined.

    The tables of gpuctl replay are in docs/how-to/replay.md; gpuctl tables lists those that SQL can read.
    """
    from gpuctl.analyze.registry import all_analyses, named

    options = settings(context)
    as_json = as_json or options.json
    if check is not None:
        _checked(named(named_to_check(name, "analysis", "gpuctl analyses NAME --check STORE")), check, as_json=as_json)
        return
    found = list(all_analyses().values()) if name is None else [named(name)]
    if as_json:
        print_json([_description(query) for query in found])
    elif name is None:
        rows = [(q.name, q.section, visible(q.title), _kinds(q), visible(q.origin)) for q in found]
        print_table(("table", "section", "title", "chart", "from"), rows, color=options.color, wide="title")
        options.tell(_OTHERS)
    else:
        print_table(
            ("column", "unit", "what it is"),
            [_words(c) for c in found[0].columns],
            color=options.color,
            wide="what it is",
        )


_OTHERS = (
    "gpuctl analyze computes these. docs/how-to/replay.md lists the tables of gpuctl replay (replay_summary and "
    "others); gpuctl tables lists those that gpuctl query can read."
)


def _words(column: object) -> tuple[str, str, str]:
    return tuple(visible(getattr(column, key)) for key in ("name", "unit", "description"))  # type: ignore[return-value]


def _kinds(query: Query) -> str:
    return ", ".join(dict.fromkeys(chart.kind for chart in query.charts))


def _description(query: Query) -> dict[str, object]:
    plain = ("name", "section", "title", "question", "population", "needs", "detail")
    return {key: getattr(query, key) for key in plain} | {
        "from": query.origin,
        "charts": list(query.drawings),
        "columns": [vars(column) for column in query.columns],
    }


def _checked(query: Query, store: Path, *, as_json: bool) -> None:
    from gpuctl.analyze.conformance import check

    found = check(query, [store])
    about = {"analysis": query.name}
    print_violations(about, found, f"{query.name}: an empty store and {visible(store.name)}", as_json=as_json)


GRACE_S = 1.0
"""How long a statement that is interrupted may take to end before the process does."""


class TimeLimitError(GpuctlError):
    """A statement did not end within the time that the user gave it."""

    exit_code = ExitCode.CHECK_FAILED


class TimeLimit:
    """Interrupts what runs within it; if that does not end, the process does, which may only read.

    DuckDB looks for interruptions between pieces of a statement: a function of one huge value runs to its end, and
    Python's own signal handlers wait for it. So a thread reads the numbers of signals that arrive
    (`signal.set_wakeup_fd`).

    Args:
        seconds: after which what runs is interrupted; None: only on Ctrl-C.
        interrupt: asks what runs to end.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], None]) -> None:
        self._seconds = seconds
        self._interrupt = interrupt
        self._ended = threading.Event()
        self._expired = False

    def __enter__(self) -> TimeLimit:
        import socket

        self._told, self._teller = socket.socketpair()
        for end in (self._told, self._teller):
            end.setblocking(False)
        main = threading.current_thread() is threading.main_thread()
        self._before = signal.set_wakeup_fd(self._teller.fileno(), warn_on_full_buffer=False) if main else None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        if self._before is not None:
            signal.set_wakeup_fd(self._before)
        with contextlib.suppress(OSError):
            self._teller.send(b"\0")
        self._thread.join()
        self._told.close()
        self._teller.close()
        if self._expired and error is not None:
            raise self._error() from None

    def _error(self) -> TimeLimitError:
        return TimeLimitError(
            f"the SQL did not end within {self._seconds:g} s (--timeout)", hint="ask for less, or allow more time"
        )

    def _watch(self) -> None:
        until = None if self._seconds is None else time.monotonic() + self._seconds
        interrupted = False
        while not interrupted and not self._ended.is_set():
            left = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._told], [], [], left)
            if not ready:
                self._expired = True
                break
            interrupted = signal.SIGINT in self._told.recv(64)
        last = time.monotonic() + GRACE_S
        while not self._ended.wait(0.05):
            self._interrupt()
            if time.monotonic() > last:
                self._end_process()

    def _end_process(self) -> None:
        if self._expired:
            message(f"gpuctl: {self._error().message}")
            os._exit(ExitCode.CHECK_FAILED)
        message("gpuctl: interrupted")
        os._exit(ExitCode.INTERRUPTED)
