"""The report of an ingest: one record per file found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB, OTHER_RECORD
from gpuctl.ingest.read.files import clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.ingest.pipeline.detect import Finding
    from gpuctl.ingest.read.files import NotRead

_CONTRADICTED = frozenset({DUPLICATE_JOB, OTHER_RECORD})
"""Why rows are rejected of jobs that the store has."""
_SHOWN_WHEN_NOTHING_FITS = 12
TOP_REASONS = 5

Status = Literal["loaded", "replaced", "unchanged", "failed", "interrupted", "new"]
"""``new`` only with ``dry_run``: it would be loaded."""


@dataclass(frozen=True)
class SourceReport:
    """The outcome of one recognised file.

    Attributes:
        path: as the user's spelling leads to it; ``archive!member`` in archives.
        format: the format's name.
        why: the reason for the recognition.
        status: the outcome.
        bytes: its size before decompression.
        rows_in: rows (lines, objects) it holds; 0 if it was not read.
        rows_loaded: number of these in the store.
        rows_rejected: number of these in the table ``rejects``.
        rows_already_stored: number of these that the store had already, with the same content.
        reasons: (reason, rejects) of the most frequent reasons.
        message: more about the status, or the error.
        apart: it failed because its times suggest another cluster.
    """

    path: str
    format: str
    why: str
    status: Status
    bytes: int
    rows_in: int = 0
    rows_loaded: int = 0
    rows_rejected: int = 0
    rows_already_stored: int = 0
    reasons: tuple[tuple[str, int], ...] = ()
    message: str = ""
    apart: bool = False


@dataclass(frozen=True)
class IngestReport:
    """The outcome of everything found.

    Attributes:
        cluster: the name in the store.
        sources: the recognised files, in the order they were loaded in.
        not_read: everything else that was found, with the reason.
        dry_run: true if nothing was written.
        warnings: notes on the whole ingest.
    """

    cluster: str
    sources: tuple[SourceReport, ...]
    not_read: tuple[NotRead, ...]
    dry_run: bool
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """True if something that should have been read was not.

        This includes a file whose rows were all rejected, unless the store has all of their jobs.
        """
        lost = any(
            sum(rows for why, rows in s.reasons if why in _CONTRADICTED) + s.rows_already_stored < s.rows_in
            for s in self.rowless
        )
        return lost or any(s.status == "failed" for s in self.sources) or any(n.failed for n in self.not_read)

    @property
    def rowless(self) -> tuple[SourceReport, ...]:
        """Return the files read now of which no row is in the store."""
        read = (s for s in self.sources if s.status in {"loaded", "replaced"})
        return tuple(s for s in read if not s.rows_loaded and (s.rows_rejected or not s.rows_already_stored))

    @property
    def nothing_loaded(self) -> bool:
        """True if there were files to load, and none of them, nor any that is in the store already, gave a row."""
        rowless = len(self.rowless)
        return bool(self.sources) and rowless + sum(s.status == "failed" for s in self.sources) == len(self.sources)


class IngestInterrupted(KeyboardInterrupt):
    """Ctrl-C; the source at hand was rolled back, those before it stay.

    Args:
        report: the report up to then.
    """

    def __init__(self, report: IngestReport) -> None:
        super().__init__("interrupted")
        self.report = report


def nothing_here(paths: Sequence[Path], not_read: Sequence[NotRead]) -> InputError:
    """Return the error that none of these files is a log of a known format, with the reasons for some of them."""
    where = ", ".join(clean(p) for p in paths)
    hint = "what gpuctl reads: gpuctl formats"
    if not not_read:
        return InputError("no file here", path=where, hint=hint)
    shown = [f"  {n.shown}: {n.why}" for n in not_read[:_SHOWN_WHEN_NOTHING_FITS]]
    more = len(not_read) - len(shown)
    if more:
        shown.append(f"  and {more} more")
    return InputError("\n".join(["unrecognized format:", *shown]), path=where, hint=hint)


def report_of(finding: Finding, status: Status, sink: StoreSink | None = None, message: str = "") -> SourceReport:
    """Return the outcome of a file; with its counts if it was read."""
    found = finding.candidate
    report = (found.shown, finding.format.name, finding.why, status, found.size)
    if sink is None:
        return SourceReport(*report, message=message)
    counts = (sink.rows_in, sink.rows_loaded, sink.rows_rejected, sink.rows_already_stored)
    return SourceReport(*report, *counts, tuple(sink.reasons.most_common(TOP_REASONS)), message)
