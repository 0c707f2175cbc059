"""``gpuctl explain``: why a job waited, where it ran, why it failed."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from gpuctl.cli.common import print_json
from gpuctl.cli.options import (
    FiguresOption,
    HtmlOption,
    JsonOption,
    LogFormatOption,
    TimezoneOption,
    TracesArgument,
    grouped,
)
from gpuctl.cli.output import announce_written, command_line
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.inputs import opened
from gpuctl.services.options import Filters, LogReading, Site

if TYPE_CHECKING:
    from gpuctl.analyze.options import Options
    from gpuctl.cli.settings import Settings
    from gpuctl.core.job_explanation import Explanation


@grouped
def explain(
    context: typer.Context,
    *,
    job: Annotated[
        str,
        typer.Argument(
            metavar="JOB", help="Job id, or its unique ending; Slurm array tasks and het jobs also as 12_3 and 12+1."
        ),
    ],
    paths: TracesArgument = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="Trace store for the logs of PATHs; without PATHs, the store to search.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Cluster of the store; needed if several have a job with this id."),
    ] = None,
    timezone: TimezoneOption = None,
    log_format: LogFormatOption = None,
    site: Site,
    filters: Filters,
    decisions: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Directory written by gpuctl replay --decisions. Default: next to the store.",
        ),
    ] = None,
    as_json: JsonOption = False,
    html: HtmlOption = None,
    figures: FiguresOption = None,
) -> None:
    """Explain why a job waited, where it ran, how it used its GPUs, and why it failed, with the evidence."""
    given = settings(context)
    from dataclasses import replace

    from gpuctl.analyze.options import Options
    from gpuctl.core.file_io import write_atomically

    check_outputs(context, {"--html": html}, {"--figures": figures})
    _check_order(job, paths or [])
    options = Options(
        **site.settings(),
        filter=filters.parsed(),
        command=command_line(),
    )
    logs = LogReading(cluster, timezone, log_format)
    with opened(paths or [], db, logs, given, doing="explain", site=site) as store:
        found = _run(store.path, job, replace(options, cluster=store.cluster), decisions, given)
    from gpuctl.reports import explain as report_of

    if html is not None:
        page = report_of.render_explanation(found).encode("utf-8", "backslashreplace")
        write_atomically(html, lambda file: _put(file, page))
    if figures is not None:
        from gpuctl.reports.charts.paper import write_all
        from gpuctl.reports.drawables import of_explanation

        write_all(of_explanation(found), figures)
    if as_json or given.json:
        print_json(report_of.as_json(found))
    else:
        report_of.print_explanation(found, color=None if given.color else False, pictures=sys.stdout.isatty())
    announce_written((html, figures), given)
    if store.failed:
        given.tell("gpuctl: some files could not be read: see above")
        raise typer.Exit(ExitCode.BAD_INPUT)


def _check_order(job: str, paths: list[Path]) -> None:
    """Refuse a job that is a file beside files that are none: the two stand the wrong way round."""
    # not Path.exists: a job's name may be longer than a file's can be
    if os.path.exists(job) and paths and not any(path.exists() for path in paths):  # noqa: PTH110
        corrected = shlex.join(["gpuctl", "explain", str(paths[0]), job])
        raise UsageError(f"{paths[0]}: no such file or directory", hint=f"the job comes before the files: {corrected}")


def _put(file: BinaryIO, page: bytes) -> None:
    file.write(page)


def _run(store_path: Path, job: str, options: Options, decisions: Path | None, given: Settings) -> Explanation:
    from gpuctl.analyze.explain import explain as run
    from gpuctl.store.database import Store

    with Store(store_path) as store, given.progress() as bar:
        return run(store, job, options, decisions, bar.at)
