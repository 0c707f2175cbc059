"""Writes results to their destination in the requested format; what commands that answer with tables have in common."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, TextIO

from gpuctl.cli.options import OutputFormat
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import UsageError
from gpuctl.core.storable_text import storable
from gpuctl.services.inputs import is_jobs_csv, is_store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import typer

    from gpuctl.cli.options import AnswerOptions
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Screen
    from gpuctl.reports.terminal.printer import Painter


def command_line() -> str:
    """The command as the user gave it, for results."""
    return "gpuctl " + shlex.join(sys.argv[1:])


def write_files(
    result: Analysis, given: Settings, *, csv: Path | None = None, parquet: Path | None = None,
    html: Path | None = None, figures: Path | None = None, files: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """Write a result to the places that are given.

    Args:
        result: its tables.
        given: the global options.
        csv: a folder for a CSV of every table.
        parquet: likewise of Parquet.
        html: a page.
        figures: a folder for every chart.
        files: names of the files of CSV and Parquet, where they are not those of the tables.
    """
    if csv is not None or parquet is not None:
        from gpuctl.reports.export.files import write_dir

        called = tuple(replace(each, name=(files or {}).get(each.name, each.name)) for each in result.tables)
        if csv is not None:
            write_dir(replace(result, tables=called), csv, "csv", spreadsheet=given.spreadsheet)
        if parquet is not None:
            write_dir(replace(result, tables=called), parquet, "parquet", spreadsheet=given.spreadsheet)
    if html is not None:
        from gpuctl.reports.html import write_html

        write_html(result, html)
    if figures is not None:
        from gpuctl.reports.charts.paper import write_all
        from gpuctl.reports.drawables import of_analysis

        write_all(of_analysis(result), figures)


def write_text(text: str, output: Path | None) -> None:
    """Write a text to a file, or to standard output."""
    if output is None:
        sys.stdout.write(text)
        return
    from gpuctl.core.file_io import write_atomically

    write_atomically(output, partial(_encode, text))


def _encode(text: str, file: BinaryIO) -> None:
    file.write(text.encode())


def for_people(shape: OutputFormat | None, output: Path | None) -> bool:
    """Whether the result goes to a reader, on a terminal or as ``--format table``, and not to a program."""
    return shape is OutputFormat.TABLE or (shape is None and output is None and sys.stdout.isatty())


def print_result(
    result: Analysis, shape: OutputFormat | None, output: Path | None, tables: list[str] | None, given: Settings, *,
    painter: Painter | None = None, screen: Screen | None = None, notes: bool = True, paged: bool = False,
) -> None:  # fmt: skip
    """Print a result to standard output, or write it to a file.

    Args:
        result: its tables.
        shape: how; None for what suits where it goes.
        output: a file to write to; None for standard output.
        tables: only these.
        given: the global options.
        painter: draws the pictures that a terminal gets; those of the result's own tables where None.
        screen: what a reader gets in place of the tables.
        notes: whether a reader gets what the tables count and how figures are defined.
        paged: whether a terminal gets it page by page.
    """
    from gpuctl.core.file_io import write_atomically
    from gpuctl.reports.export.files import write_tables

    if for_people(shape, output):
        if screen is not None:
            print_screen(screen, output, given, notes=notes)
            return
        _print(partial(_tables, result, tables, given, notes, painter, shape is None), output, paged=paged)
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


def print_screen(screen: Screen, output: Path | None, given: Settings, *, notes: bool = False) -> None:
    """Print a screen to standard output, or write it to a file."""

    def show(file: TextIO, *, color: bool | None = None) -> None:
        from gpuctl.reports.screens.draw import print_screen as draw

        draw(screen, file=file, color=color if given.color else False, notes=notes)

    _print(show, output)


def _tables(  # noqa: PLR0917 - as print_result has them
    result: Analysis, tables: list[str] | None, given: Settings, notes: bool, painter: Painter | None, drawing: bool,
    file: TextIO, *, color: bool | None = None,
) -> None:  # fmt: skip
    """Write tables for a reader to a stream; pictures only where `drawing`."""
    from gpuctl.reports.terminal.pictures import of_analysis
    from gpuctl.reports.terminal.printer import print_analysis

    painter = (painter or partial(of_analysis, result)) if drawing else None
    color = color if given.color else False
    print_analysis(result, color=color, file=file, names=tables, painter=painter, notes=notes)


def _print(show: Show, output: Path | None, *, paged: bool = False) -> None:
    """Let something be written to a file, to a pager, or to standard output."""
    if output is not None:
        from gpuctl.core.file_io import write_atomically

        text = io.StringIO()
        show(text, color=False)
        write_atomically(output, partial(_encode, text.getvalue()))
    elif paged and sys.stdout.isatty():
        page(show)
    else:
        show(sys.stdout)


@dataclass(frozen=True)
class Command:
    """A command whose options are checked.

    Attributes:
        given: the global options.
        shape: format of the answer; None for what suits where it goes.
        answer: where the answer goes.
        tables: names of the tables to print; None: those that are printed by default.
        csv: a folder for all tables as CSV.
        parquet: likewise as Parquet.
        log: a file that the command writes itself.
        figures: a folder for all charts.
    """

    given: Settings
    shape: OutputFormat | None
    answer: AnswerOptions
    tables: list[str] | None
    csv: Path | None = None
    parquet: Path | None = None
    log: Path | None = None
    figures: Path | None = None

    def print(self, result: Analysis, also: Iterable[Path | None] = ()) -> None:
        """Print the answer, write its folders, and report on stderr what was written, `also` and the log included."""
        write_files(result, self.given, csv=self.csv, parquet=self.parquet, figures=self.figures)
        print_result(result, self.shape, self.answer.output, self.tables, self.given)
        announce_written((self.answer.output, self.log, *also, self.csv, self.parquet, self.figures), self.given)


def start(
    context: typer.Context, answer: AnswerOptions, table: list[str] | None = None, *, csv: Path | None = None,
    parquet: Path | None = None, log: Path | None = None, figures: Path | None = None,
) -> Command:  # fmt: skip
    """Check format and places of an answer.

    Args:
        context: of the command.
        answer: its options.
        table: names of ``--table``.
        csv: the folder of ``--csv``.
        parquet: the folder of ``--parquet``.
        log: the file of ``--log``.
        figures: the folder of ``--figures``.

    Raises:
        UsageError: the options contradict each other, or a place cannot be written to.
    """
    given = settings(context)
    shape = answer.shape(given, table)
    folders = {"--csv": csv, "--parquet": parquet, "--figures": figures}
    check_outputs(context, {"--output": answer.output, "--log": log}, folders)
    return Command(given, shape, answer, table, csv, parquet, log, figures)


def announce_written(places: Iterable[Path | None], given: Settings) -> None:
    """Say on stderr what was written."""
    for place in places:
        if place is not None:
            given.tell(f"wrote {place}")


def check_tables(wanted: Sequence[str] | None, known: Sequence[str]) -> None:
    """See that the result will have the tables asked for, before any work is done.

    Raises:
        UsageError: it will not.
    """
    strange = next((name for name in wanted or () if name not in known), None)
    if strange is not None:
        raise UsageError(f"--table {strange}: no such table", hint=f"known: {', '.join(known)}")


class Show(Protocol):
    """Writes a result to a stream, in colour if told so."""

    def __call__(self, file: TextIO, *, color: bool | None = None) -> None:
        """Write."""


def page(show: Show) -> None:
    """Show what is written to a stream through ``$PAGER``, else ``less``; where there is neither, all at once.

    ``less`` ends by itself if everything fits on one screen, and shows colours.
    """
    from gpuctl.reports.terminal.printer import wants_color

    given = shlex.split(os.environ.get("PAGER", ""))
    command = given or ["less"]
    if os.environ.get("TERM", "dumb") == "dumb" or shutil.which(command[0]) is None:
        show(sys.stdout)
        return
    text = io.StringIO()
    show(text, color=wants_color(sys.stdout, os.environ))
    environ = {"LESS": "FRX", **os.environ}
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, env=environ)  # noqa: S603 - the user's own pager
    # whoever has read enough leaves: no error of ours
    with reader, suppress(BrokenPipeError):
        reader.communicate(text.getvalue().encode(sys.stdout.encoding or "utf-8", "replace"))


LONGEST = 100
"""Characters of a name."""


def keeping_place(name: str | None, paths: Sequence[Path], db: Path | None) -> Path | None:
    """The store that a result is to be kept in; None where none is to be.

    Args:
        name: of ``--keep``.
        paths: what the command reads.
        db: of ``--db``.

    Raises:
        UsageError: the name is none, no store is named, or it cannot be written.
    """
    if name is None:
        return None
    if not name.strip() or len(name) > LONGEST or not name.isprintable():
        raise UsageError(f"--keep {name!r}: expected a name of 1 to {LONGEST} printable characters")
    stores = [path for path in paths if is_store(path)]
    if db is None and not stores:
        raise UsageError("--keep: there is not a trace store to keep it in", hint="add --db FILE")
    from gpuctl.reports.export.files import check_places

    place = db or stores[0]
    check_places({"--keep": place}, {})
    if place.exists() and not is_store(place):
        raise UsageError(f"--keep: {place} is not a trace store", hint="give another file with --db")
    if place.exists() and not os.access(place, os.W_OK):
        raise UsageError(f"--keep: {place} cannot be written to", hint="give another store with --db")
    return place


def traces_db(paths: Sequence[Path], db: Path | None, name: str | None) -> Path | None:
    """The store that logs are read into: none for a CSV of jobs, whose result alone is kept in that of ``--db``."""
    return None if name is not None and any(is_jobs_csv(path) for path in paths) else db


def keep(result: Analysis, name: str | None, place: Path | None, context: typer.Context, given: Settings) -> None:
    """Keep a result in a store; nothing where ``place`` is None.

    Args:
        result: what is kept, all of its tables.
        name: under which it is kept.
        place: the store, brought up to date or made where it is absent.
        context: of the command that made it.
        given: the global options.

    Raises:
        StoreError: the store is locked or cannot be written.
    """
    if place is None or name is None:
        return
    from gpuctl.reports.export.document import document
    from gpuctl.store.database import Store
    from gpuctl.store.saved_results import SavedResult
    from gpuctl.store.saved_results import keep as put

    kind = context.command_path.partition(" ")[2]
    text = "".join(document(result, result.tables, ())).encode()
    # arguments that are no UTF-8 hold lone surrogates
    command = storable(result.command)
    about = SavedResult(name, kind, datetime.now(UTC), result.version, command, len(text))
    with Store(place, write=True) as store:
        put(store, about, text)
    given.tell(f"kept as {name!r} in {place}")
