"""The global options of a command, and how services report to a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.cli.common import message
from gpuctl.core.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import typer

    from gpuctl.cli.progress import Bar
    from gpuctl.core.notes import Note
    from gpuctl.ingest.pipeline.report import IngestReport


LOADED = frozenset({"loaded", "replaced"})
"""States of a source whose rows are in the store now."""
_NOT_READ_SHOWN = 20


@dataclass(frozen=True)
class Settings:
    """The options that stand before the command; also where services report to (`gpuctl.services.frontend.Frontend`).

    Attributes:
        json: results as JSON.
        quiet: no progress and no messages but errors.
        debug: tracebacks.
        color: colours allowed (they still need a terminal).
        spreadsheet: CSV and TSV are for a spreadsheet: no text in them is a formula.
        hide: removes names from messages about logs.
    """

    json: bool = False
    quiet: bool = False
    debug: bool = False
    color: bool = True
    spreadsheet: bool = False
    hide: Callable[[Note], Note] | None = None

    def progress(self, *, steps: bool = True) -> Bar:
        """A progress bar on stderr, in steps or else in bytes."""
        from gpuctl.cli.progress import Bar

        return Bar(wanted=not self.quiet, color=self.color, steps=steps)

    def tell(self, text: str, *, fault: bool = False) -> None:
        """Print a message to stderr: a fault always, anything else unless quiet."""
        message(text, quiet=self.quiet and not fault)

    def loaded(self, report: IngestReport, store: Path, *, brief: bool = False) -> None:
        """Print what became of each log.

        Raises:
            Exit: nothing was loaded.
        """
        print_report(report, store, self, brief=brief)
        if report.nothing_loaded:
            import typer

            raise typer.Exit(ExitCode.BAD_INPUT)

    def interrupted(self, report: IngestReport, store: Path) -> None:
        """Print what an interrupted ingest has left in a store."""
        done = sum(s.status in LOADED for s in report.sources)
        text = f"loaded until then, and still in {store}: {done}; the file at hand was rolled back"
        message(f"gpuctl: interrupted; {text}")


def settings(context: typer.Context) -> Settings:
    """Return the global options that this command was called with."""
    found = context.find_object(Settings)
    return Settings() if found is None else found


def print_report(report: IngestReport, store: Path, given: Settings, *, brief: bool = False) -> None:
    """Say on stderr what the table leaves out: faults always, the rest unless quiet.

    If `brief`, what is no fault is counted, not listed.
    """
    from gpuctl.core.notes import NamedValue, note, untrusted

    def say(text: Note, *, fault: bool = False) -> None:
        given.tell(text if given.hide is None else given.hide(text), fault=fault)

    def print_note(path: str, text: Note) -> None:
        say(note("{path}: {told}", path=NamedValue("path", path), told=text))

    rowless, nothing_loaded = {source.path for source in report.rowless}, report.nothing_loaded
    for source in report.sources:
        if source.status == "failed":
            say(
                note("gpuctl: {path}: {why}", path=NamedValue("path", source.path), why=untrusted(source.message)),
                fault=True,
            )
            continue
        # an answer of a node or a day without jobs may be empty, a whole input may not
        if source.path in rowless and (source.rows_in or nothing_loaded):
            what = (
                note("rows rejected: {rows:,} of {rows:,}", rows=source.rows_in) if source.rows_in else note("no rows")
            )
            path = NamedValue("path", source.path)
            say(note("gpuctl: {path}: {what}; nothing was loaded from it", path=path, what=what), fault=True)
        reasons = [] if brief else [(reason, count) for reason, count in source.reasons if reason != source.message]
        if source.message:
            print_note(source.path, untrusted(source.message))
        if source.rows_already_stored and not brief:
            text = note(
                "{stored:,} of {rows:,} row{rows||s} already in the store",
                stored=source.rows_already_stored,
                rows=source.rows_in,
            )
            print_note(source.path, text)
        for reason, count in reasons:
            text = note("rejected {count}: {reason}", count=count, reason=NamedValue("text", reason))
            print_note(source.path, text)
    for found in report.not_read:
        if found.failed:
            say(
                note("gpuctl: {path}: {why}", path=NamedValue("path", found.shown), why=untrusted(found.why)),
                fault=True,
            )
    _print_skipped(report, say, brief=brief)
    for warning in report.warnings:
        say(note("Warning: {warning}", warning=untrusted(warning)))
    if report.dry_run:
        say(note("nothing was written (--dry-run)"))
    elif not report.sources:
        say(note("{store} is up to date", store=NamedValue("path", str(store))))


def _print_skipped(report: IngestReport, say: Callable[..., None], *, brief: bool) -> None:
    """Say which files were not read, for no fault; only how many where `brief`."""
    from gpuctl.core.notes import NamedValue, note, untrusted

    others = [n for n in report.not_read if not n.failed]
    if brief:
        text = note(
            "{others:,} of {files:,} file{files||s} skipped; for reasons: gpuctl ingest --notes",
            others=len(others),
            files=len(others) + len(report.sources),
        )
        if others:
            say(text)
        return
    for found in others[:_NOT_READ_SHOWN]:
        path = NamedValue("path", found.shown)
        say(note("skipped: {path}: {why}", path=path, why=untrusted(found.why)))
    if len(others) > _NOT_READ_SHOWN:
        more = len(others) - _NOT_READ_SHOWN
        say(note("skipped: {more} more (--json lists all)", more=more))
