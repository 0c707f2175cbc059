"""``gpuctl doctor``: is everything in order that gpuctl needs: the installation, the node, a store, models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuctl.cli.common import message
from gpuctl.cli.options import AnswerOptions, OutputFormat, TableOption, grouped
from gpuctl.cli.output import Command, command_line
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, UsageError

TABLES = ("checks", "ledger")


@grouped
def doctor(
    context: typer.Context,
    *,
    db: Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Trace store to check.")] = None,
    model: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Folder of a saved model to check; repeatable."),
    ] = None,
    reports: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory for reports. Default: the current directory.")
    ] = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Check the installation, the node, a trace store and saved models; report problems and how to fix them.

    Exits with code 1 if a check fails; warnings do not change the exit code.
    """
    options = settings(context)
    shape = answer.shape(options, table)
    unknown = next((name for name in table or () if name not in TABLES), None)
    if unknown is not None:
        raise UsageError(f"--table {unknown}: no such table", hint=f"known: {', '.join(TABLES)}")
    if "ledger" in (table or ()) and db is None:
        raise UsageError("--table ledger needs a store, and none is given", hint="add --db FILE")
    from gpuctl.doctor.check import DoctorContext, Status
    from gpuctl.doctor.run import analysis, run

    checked = DoctorContext(db, tuple(model or ()), reports)
    found, rows = run(checked)
    failed = [one.check for one in found if one.status is Status.FAIL]
    try:
        import polars  # noqa: F401
        import rich  # noqa: F401
    except ImportError as error:
        # no table can be made or printed without them
        for one in found:
            if one.status is not Status.OK:
                message(f"{one.check}: {one.status}: {one.evidence}; {one.fix}")
        message(f"gpuctl: cannot print a table: {error}")
        raise typer.Exit(ExitCode.CHECK_FAILED) from None
    check_outputs(context, {"--output": answer.output})
    # a store that could not be read has no ledger
    result = analysis(checked, found, rows, command_line())
    wanted = [name for name in table or ("checks",) if result.table(name)]
    Command(options, shape, answer, None if shape is OutputFormat.JSON and not table else wanted).print(result)
    if failed:
        message(f"gpuctl: {len(failed)} of {len(found)} checks failed: {', '.join(dict.fromkeys(failed))}")
        raise typer.Exit(ExitCode.CHECK_FAILED)
