"""``gpuctl lessons``: what the lessons of the Philly study would have saved on this trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli import complete
from gpuctl.cli.options import (
    ClusterOption,
    ColumnsOption,
    CsvOption,
    DelimiterOption,
    FiguresOption,
    HtmlOption,
    KeepOption,
    LogFormatOption,
    LogsStoreOption,
    ParquetOption,
    TableOptions,
    TimezoneOption,
    grouped,
)
from gpuctl.cli.output import (
    announce_written,
    check_tables,
    command_line,
    for_people,
    keep,
    keeping_place,
    print_result,
    write_files,
)
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.cli.train import LearntPathsArgument
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.lessons.names import LESSONS
from gpuctl.queries.sections import REFERENCES
from gpuctl.services.inputs import opened
from gpuctl.services.options import LogReading, Site

if TYPE_CHECKING:
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis


@grouped
def lessons(
    context: typer.Context,
    *,
    paths: LearntPathsArgument = None,
    db: LogsStoreOption = None,
    cluster: ClusterOption = None,
    timezone: TimezoneOption = None,
    log_format: LogFormatOption = None,
    columns: ColumnsOption = None,
    delimiter: DelimiterOption = None,
    site: Site,
    lesson: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", autocompletion=complete.lessons, help=f"Only this lesson; repeatable: "
                     f"{', '.join(LESSONS)}."),
    ] = None,
    overhead: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Cost of a preemption or migration, as for replay; pickyman: by epoch, checkpoint and storage.",
        ),
    ] = "pickyman",
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Replays to run in parallel. Default: one per processor."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help="Compare with the study's published values: atc19.")
    ] = None,
    shown: TableOptions,
    csv: CsvOption = None,
    parquet: ParquetOption = None,
    html: HtmlOption = None,
    figures: FiguresOption = None,
    keep_as: KeepOption = None,
) -> None:  # fmt: skip
    """Estimate what the lessons of the Philly study would have saved on this trace, in GPU-hours and in waits."""
    given = settings(context)
    shape, output = shown.shape(given), shown.output
    _check(lesson or [], reference)
    from gpuctl.lessons import run as known

    check_tables(shown.table, known.TABLES if reference is None else (*known.TABLES, *known.OF_REFERENCE))
    folders = {"--csv": csv, "--parquet": parquet, "--figures": figures}
    check_outputs(context, {"--html": html, "--output": output}, folders)
    place = keeping_place(keep_as, paths or [], db)
    first = for_people(shape, output) and not (shown.table or shown.every)
    logs = LogReading(cluster, timezone, log_format, columns, delimiter)
    with opened(paths or [], db, logs, given, doing="learn from", site=site, brief=first) as found:
        result = _result(found.path, found.cluster, site, (lesson or [], overhead, jobs, reference), given)
    for warning in () if first else result.warnings:
        given.tell(f"Warning: {warning}")
    write_files(result, given, csv=csv, parquet=parquet, html=html, figures=figures)
    screen = None
    if first:
        from gpuctl.reports.screens.lessons import screen as screen_of

        screen = screen_of(result)
    print_result(result, shape, output, shown.table, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((csv, parquet, html, figures, output), given)
    keep(result, keep_as, place, context, given)
    if found.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _check(wanted: list[str], reference: str | None) -> None:
    from gpuctl.core.suggestions import meant

    strange = next((name for name in wanted if name not in LESSONS), None)
    if strange is not None:
        raise UsageError(f"no lesson {strange!r}", hint=meant(strange, LESSONS))
    if reference is not None and reference != "atc19":
        known = "the others are for gpuctl analyze" if reference in REFERENCES else "known: atc19"
        raise UsageError(f"--reference {reference}: the lessons have only atc19", hint=known)


def _result(
    path: Path, name: str | None, site: Site, how: tuple[list[str], str, int | None, str | None], given: Settings
) -> Analysis:
    from gpuctl.lessons.lesson_input import open_case
    from gpuctl.lessons.run import result
    from gpuctl.store.database import Store
    from gpuctl.store.sources import read_sources

    wanted, overhead, jobs, reference = how
    with Store(path) as store, given.progress() as bar:
        case = open_case(
            store,
            name,
            site.settings(),
            lambda text: bar.at(text, 0, 1),
            processes=jobs,
            overhead=overhead,
            reasons=not wanted or "failures" in wanted,
        )
        sources = read_sources(store, case.cluster)
        return result(case, wanted, sources, command_line(), reference)
