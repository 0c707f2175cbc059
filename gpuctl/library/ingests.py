"""What an ingest returns: the outcome of each file, and one screen."""

from __future__ import annotations

import io
import logging
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Self

from gpuctl.ingest.pipeline.report import IngestReport as Outcome
from gpuctl.library.result import preformatted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


@dataclass(frozen=True, repr=False, kw_only=True)
class IngestReport(Outcome):
    """What became of each file; in a notebook it shows one screen.

    Attributes:
        store: the trace store.
    """

    store: Path

    @classmethod
    def of(cls, outcome: Outcome, store: Path, remarks: Sequence[str] = ()) -> Self:
        """Return the outcome of an ingest into a store, with what its readers remarked."""
        whole = replace(outcome, warnings=(*outcome.warnings, *remarks))
        return cls(**{field.name: getattr(whole, field.name) for field in fields(whole)}, store=store)

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence for each file that should have been read and was not, and each warning."""
        failed = [f"{one.path}: {one.message}" for one in self.sources if one.status == "failed"]
        empty = [f"{one.path}: nothing was loaded from it" for one in self.rowless if one.rows_in]
        unread = [f"{one.shown}: {one.why}" for one in self.not_read if one.failed]
        return (*failed, *empty, *unread, *self.warnings)

    def __repr__(self) -> str:
        return f"<gpuctl.IngestReport of {self.store}: {len(self.sources)} files of cluster {self.cluster}>"

    def __str__(self) -> str:
        """The screen that ``gpuctl ingest`` prints."""
        from gpuctl.reports.screens.draw import print_screen
        from gpuctl.reports.screens.ingest import each_source, screen

        text = io.StringIO()
        others = sum(not one.failed for one in self.not_read)
        shown = screen(str(self.store), self.cluster, each_source(self.sources), others, dry_run=self.dry_run)
        print_screen(shown, width=100, color=False, file=text)
        return text.getvalue().rstrip("\n")

    def _repr_html_(self) -> str:
        return preformatted(str(self))


@contextmanager
def remarks() -> Iterator[list[str]]:
    """Collect what gpuctl logs in this context; without a handler, Python prints it."""
    found: list[str] = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: found.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("gpuctl")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
