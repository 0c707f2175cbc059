"""A command that answers with tables: its options checked before any work, its progress, its answer printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.cli.output import print_answer
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import typer

    from gpuctl.cli.options import AnswerOptions
    from gpuctl.cli.output_format import OutputFormat
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis


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
    """

    given: Settings
    shape: OutputFormat | None
    answer: AnswerOptions
    tables: list[str] | None
    csv: Path | None
    parquet: Path | None
    log: Path | None

    def print(self, result: Analysis, also: Iterable[Path | None] = ()) -> None:
        """Print the answer, write its folders, and report on stderr what was written, `also` and the log included."""
        print_answer(
            result, self.shape, self.answer, self.tables, self.given, csv=self.csv, parquet=self.parquet,
            also=(self.log, *also),
        )  # fmt: skip


def start(
    context: typer.Context, answer: AnswerOptions, table: list[str] | None = None, *, csv: Path | None = None,
    parquet: Path | None = None, log: Path | None = None,
) -> Command:  # fmt: skip
    """Check format and places of an answer.

    Args:
        context: of the command.
        answer: its options.
        table: names of ``--table``.
        csv: the folder of ``--csv``.
        parquet: the folder of ``--parquet``.
        log: the file of ``--log``.

    Raises:
        UsageError: the options contradict each other, or a place cannot be written to.
    """
    given = settings(context)
    shape = answer.shape(given, table)
    check_outputs(context, {"--output": answer.output, "--log": log}, {"--csv": csv, "--parquet": parquet})
    return Command(given, shape, answer, table, csv, parquet, log)
