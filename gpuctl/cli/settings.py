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


@dataclass(frozen=True)
class Settings:
    """The options that stand before the command; as a `gpuctl.services.frontend.Frontend`, prints what services tell.

    Attributes:
        json: results as JSON.
        quiet: no progress and no messages but errors.
        debug: tracebacks.
        color: colours allowed (they still need a terminal).
        spreadsheet: CSV and TSV are for a spreadsheet: no text in them is a formula.
        hide: takes the names out of what is told of logs that are read.
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
        from gpuctl.cli.ingest_messages import print_report

        print_report(report, store, quiet=self.quiet, hide=self.hide, brief=brief)
        if report.nothing_loaded:
            import typer

            raise typer.Exit(ExitCode.BAD_INPUT)

    def interrupted(self, report: IngestReport, store: Path) -> None:
        """Print what an interrupted ingest has left in a store."""
        from gpuctl.cli.ingest_messages import print_interrupted

        print_interrupted(report, store)


def settings(context: typer.Context) -> Settings:
    """Return the global options that this command was called with."""
    found = context.find_object(Settings)
    return Settings() if found is None else found
