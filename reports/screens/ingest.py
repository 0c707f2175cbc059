"""The screen of ``gpuctl ingest``: loaded files, skipped files, and next steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpuctl.reports.cell_text import shown
from gpuctl.reports.screens.model import Grid, Head, Line, Screen
from gpuctl.reports.screens.words import clipped, count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LINES = 25
"""The screen has no more lines."""
_ROWS = 14


@dataclass(frozen=True)
class Source:
    """The outcome for one file, or for several of one format with the same outcome.

    Attributes:
        path: its name, or that of the first one.
        format: the format's name.
        status: the outcome.
        files: number of files.
        loaded: rows that are now in the store; None if it was not read.
        rejected: rows that were rejected.
        stored: rows that were in the store already.
    """

    path: str
    format: str
    status: str
    files: int
    loaded: int | None
    rejected: int
    stored: int = 0


class Outcome(Protocol):
    """What came of one file, as the report of an ingest has it."""

    @property
    def path(self) -> str:
        """Its name."""

    @property
    def format(self) -> str:
        """The format's name."""

    @property
    def status(self) -> str:
        """What was done with it."""

    @property
    def rows_loaded(self) -> int:
        """Rows that are in the store."""

    @property
    def rows_rejected(self) -> int:
        """Rows that were rejected."""

    @property
    def rows_already_stored(self) -> int:
        """Rows that were in the store before."""


def each_source(outcomes: Iterable[Outcome]) -> list[Source]:
    """Return files as the screen lists them."""
    return [
        Source(
            one.path, one.format, one.status, 1, one.rows_loaded if one.status in {"loaded", "replaced"} else None,
            one.rows_rejected, one.rows_already_stored,
        )
        for one in outcomes
    ]  # fmt: skip


def screen(store: str, cluster: str, sources: Sequence[Source], not_read: int, *, dry_run: bool) -> Screen:
    """Return the screen of an ingest.

    Args:
        store: the trace store, as the user names it.
        cluster: the cluster's name in it.
        sources: the files that were recognised.
        not_read: number of other files that were skipped.
        dry_run: whether nothing was written.
    """
    by_kind = sources if len(sources) <= _ROWS else _summed(sources)
    heads = (
        Head("Files" if by_kind is sources else "Files by format", right=False), Head("format", right=False),
        Head("status", right=False), Head("rows loaded"), Head("rejected"),
    )  # fmt: skip
    cells = tuple(
        (
            clipped(one.path.rsplit("/", 1)[-1], 32) if one.files == 1 else count(one.files, "file"), one.format,
            one.status, "" if one.loaded is None else shown(one.loaded), shown(one.rejected) if one.rejected else "",
        )
        for one in by_kind
    )  # fmt: skip
    rejected, stored = (sum(getattr(one, name) for one in sources) for name in ("rejected", "stored"))
    caveats = [f"{count(rejected, 'row')} rejected"] * bool(rejected)
    caveats += [f"{count(not_read, 'file')} not read"] * bool(not_read)
    lines = [Line("Left out", f"{', '.join(caveats)} (details: --notes)")] if caveats else []
    if stored:
        lines = [Line("Already there", f"{count(stored, 'row')} already in the store"), *lines]
    name = clipped(store, 60)
    title = f"{name}: {count(sum(one.files for one in sources), 'file')} of cluster {clipped(cluster)}"
    what = "nothing was written (--dry-run)" if dry_run else ""
    grid = Grid(heads, cells, "... and {count} more: --json lists all")
    blocks = (*((grid,) if cells else ()), *lines, Line("Next", f"gpuctl analyze {name}"))
    return Screen(title, what, blocks, LINES)


def _summed(sources: Sequence[Source]) -> list[Source]:
    kinds: dict[tuple[str, str], list[Source]] = {}
    for one in sources:
        kinds.setdefault((one.format, one.status), []).append(one)
    return [
        Source(
            own[0].path, kind, status, sum(one.files for one in own),
            None if all(one.loaded is None for one in own) else sum(one.loaded or 0 for one in own),
            sum(one.rejected for one in own),
            sum(one.stored for one in own),
        )
        for (kind, status), own in kinds.items()
    ]  # fmt: skip
