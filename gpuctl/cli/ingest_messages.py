"""What an ingest reports to the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.cli.common import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.core.notes import Note
    from gpuctl.ingest.pipeline.report import IngestReport

LOADED = frozenset({"loaded", "replaced"})
"""States of a source whose rows are in the store now."""
_NOT_READ_SHOWN = 20


def print_interrupted(report: IngestReport, store: Path) -> None:
    """Say what an ingest that was interrupted has left in a store that stays."""
    done = sum(s.status in LOADED for s in report.sources)
    message(f"gpuctl: interrupted; loaded until then, and still in {store}: {done}; the file at hand was rolled back")


def print_report(
    report: IngestReport,
    store: Path,
    *,
    quiet: bool,
    hide: Callable[[Note], Note] | None = None,
    brief: bool = False,
) -> None:
    """Say on stderr what the table leaves out: faults always, the rest unless `quiet`; without names where `hide`.

    Where `brief`, what is no fault is counted, not listed.
    """
    from gpuctl.core.notes import NamedValue, note, untrusted

    def say(text: Note, *, quiet: bool = False) -> None:
        message(text if hide is None else hide(text), quiet=quiet)

    def print_note(path: str, text: Note, *, quiet: bool = False) -> None:
        say(note("{path}: {told}", path=NamedValue("path", path), told=text), quiet=quiet)

    rowless, nothing_loaded = {source.path for source in report.rowless}, report.nothing_loaded
    for source in report.sources:
        if source.status == "failed":
            say(note("gpuctl: {path}: {why}", path=NamedValue("path", source.path), why=untrusted(source.message)))
            continue
        # an answer of a node or a day without jobs may be empty, a whole input may not
        if source.path in rowless and (source.rows_in or nothing_loaded):
            what = (
                note("rows rejected: {rows:,} of {rows:,}", rows=source.rows_in) if source.rows_in else note("no rows")
            )
            path = NamedValue("path", source.path)
            say(note("gpuctl: {path}: {what}; nothing was loaded from it", path=path, what=what))
        reasons = [] if brief else [(reason, count) for reason, count in source.reasons if reason != source.message]
        if source.message:
            print_note(source.path, untrusted(source.message), quiet=quiet)
        if source.rows_already_stored and not brief:
            text = note(
                "{stored:,} of {rows:,} row{rows||s} already in the store",
                stored=source.rows_already_stored,
                rows=source.rows_in,
            )
            print_note(source.path, text, quiet=quiet)
        for reason, count in reasons:
            text = note("rejected {count}: {reason}", count=count, reason=NamedValue("text", reason))
            print_note(source.path, text, quiet=quiet)
    for found in report.not_read:
        if found.failed:
            say(note("gpuctl: {path}: {why}", path=NamedValue("path", found.shown), why=untrusted(found.why)))
    _print_skipped(report, say, quiet=quiet, brief=brief)
    for warning in report.warnings:
        say(note("Warning: {warning}", warning=untrusted(warning)), quiet=quiet)
    if report.dry_run:
        say(note("nothing was written (--dry-run)"), quiet=quiet)
    elif not report.sources:
        say(note("{store} is up to date", store=NamedValue("path", str(store))), quiet=quiet)


def _print_skipped(report: IngestReport, say: Callable[..., None], *, quiet: bool, brief: bool) -> None:
    """Say which files were not read, for no fault; only how many where `brief`."""
    from gpuctl.core.notes import NamedValue, note, untrusted

    others = [n for n in report.not_read if not n.failed]
    if brief:
        text = note(
            "{others:,} of {files:,} file{files||s} skipped; for reasons: gpuctl ingest --notes",
            others=len(others),
            files=len(others) + len(report.sources),
        )
        say(text, quiet=quiet or not others)
        return
    for found in others[:_NOT_READ_SHOWN]:
        path = NamedValue("path", found.shown)
        say(note("skipped: {path}: {why}", path=path, why=untrusted(found.why)), quiet=quiet)
    if len(others) > _NOT_READ_SHOWN:
        more = len(others) - _NOT_READ_SHOWN
        say(note("skipped: {more} more (--json lists all)", more=more), quiet=quiet)
