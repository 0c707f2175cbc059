"""What a service tells its caller while it works: the command line prints it, the library shows progress alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gpuctl.ingest.pipeline.report import IngestReport


class Progress(Protocol):
    """Shows how far some work is."""

    def start(self, what: str, total: int) -> None:
        """Begin with a file of `total` bytes (0 if that is not known)."""

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""

    def at(self, what: str, done: int, total: int) -> None:
        """Be at `done` of `total` steps."""

    def tell(self, text: str) -> None:
        """Say, in a line that stays, what goes on for some time now."""


class Frontend(Protocol):
    """What a service reports to."""

    def progress(self, *, steps: bool = True) -> AbstractContextManager[Progress]:
        """Show the progress of some work, in steps or else in bytes."""

    def tell(self, text: str, *, fault: bool = False) -> None:
        """Tell the user something: a fault of the input, or what is only good to know."""

    def loaded(self, report: IngestReport, store: Path, *, brief: bool = False) -> None:
        """Report what became of each log; if nothing was loaded, raise an error.

        Args:
            report: of the ingest.
            store: the trace store.
            brief: of what is no fault, say only how much there is.
        """

    def interrupted(self, report: IngestReport, store: Path) -> None:
        """Report what an interrupted ingest has left in a store."""
