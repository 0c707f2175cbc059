"""Progress and messages of a service at work: the command line prints them, the library shows progress and faults."""

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
        """Announce, in a line that stays, a step that takes some time."""


class Frontend(Protocol):
    """Where a service shows its progress and sends its messages."""

    def progress(self, *, steps: bool = True) -> AbstractContextManager[Progress]:
        """Show the progress of some work, in steps or else in bytes."""

    def tell(self, text: str, *, fault: bool = False) -> None:
        """Send a message to the user: a fault of the input, or something that is only good to know."""

    def loaded(self, report: IngestReport, store: Path, *, brief: bool = False) -> None:
        """Report what became of each log; if nothing was loaded, raise an error.

        Args:
            report: of the ingest.
            store: the trace store.
            brief: of what is no fault, say only how much there is.
        """

    def interrupted(self, report: IngestReport, store: Path) -> None:
        """Report what an interrupted ingest has left in a store."""
