"""``gpuctl analyze``: logs, or a trace store, into result tables."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

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
    OutputFormat,
    ParquetOption,
    SetOption,
    TableOptions,
    TimezoneOption,
    TracesArgument,
    grouped,
    parameter_values,
)
from gpuctl.cli.output import (
    announce_written,
    command_line,
    for_people,
    keep,
    keeping_place,
    print_result,
    print_screen,
    write_files,
)
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode
from gpuctl.queries.sections import REFERENCES, SECTIONS
from gpuctl.services.inputs import opened
from gpuctl.services.options import Charging, Filters, GpuFigures, LogReading, Reliability, Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.analyze.options import Options
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Screen


class Duration(StrEnum):
    """What a job's duration is; as a `Literal` it would equal that of replay's --work, and be listed in its order."""

    SPAN = "span"
    SUM = "sum"
    LAST = "last"


@grouped
def analyze(
    context: typer.Context,
    *,
    paths: TracesArgument = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db",
            metavar="FILE",
            help="Trace store for the logs of PATHs; without PATHs, the store to analyze. Default: a temporary store.",
        ),
    ] = None,
    cluster: ClusterOption = None,
    timezone: TimezoneOption = None,
    log_format: LogFormatOption = None,
    columns: ColumnsOption = None,
    delimiter: DelimiterOption = None,
    site: Site,
    filters: Filters,
    definition: Annotated[
        Literal["gpuctl", "notebook"],
        typer.Option(help="Definition of waits and run times: gpuctl's or the published notebook's."),
    ] = "gpuctl",
    duration: Annotated[
        Duration | None,
        typer.Option(
            help="A job's duration: last end - first start, sum of its attempts, or its last attempt. "
            "Default: span, or sum if the source has only sums."
        ),
    ] = None,
    by: Annotated[
        Literal["hour", "day", "week", "month", "quarter"] | None,
        typer.Option(
            help="Periods of the series over time (tables activity..., default: hour) and of charges (default: month)."
        ),
    ] = None,
    charging: Charging,
    gpu_figures: GpuFigures,
    reliability: Reliability,
    idle_below: Annotated[
        float,
        typer.Option(
            metavar="PCT",
            min=0,
            max=100,
            help="Mean GPU utilization below which a job counts as idle (tables idle_jobs, users ...).",
        ),
    ] = 5.0,
    reference: Annotated[
        str | None, typer.Option(metavar="NAME", help=f"Compare with published values: {', '.join(REFERENCES)}.")
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.sections,
            help=f"Only this section; repeatable: {', '.join(key for key, _ in SECTIONS)}.",
        ),
    ] = None,
    values: SetOption = None,
    shown: TableOptions,
    csv: CsvOption = None,
    parquet: ParquetOption = None,
    html: HtmlOption = None,
    figures: FiguresOption = None,
    keep_as: KeepOption = None,
) -> None:
    """Report how busy the cluster was, how long jobs waited and why, and how well they used their GPUs.

    On a terminal, print one screen; --section, --table and --all print tables. Files and pipes get tables. --json
    contains the tables of a screen or page; with --all, also tables with one row per job. gpuctl analyses lists the
    tables; --table FILE.sql runs your own analysis (docs/how-to/add-an-analysis.md).
    """
    given = settings(context)
    shape, output = shown.shape(given), shown.output
    from gpuctl.analyze import registry

    table, own = registry.with_files(shown.table or ())
    registry.check_names(sections=section or (), tables=table, reference=reference, own=own)
    from gpuctl.analyze.options import Options
    from gpuctl.core.results import Analysis

    check_outputs(
        context, {"--html": html, "--output": output}, {"--csv": csv, "--parquet": parquet, "--figures": figures}
    )
    place = keeping_place(keep_as, paths or [], db)
    people = for_people(shape, output)
    first = people and not (section or table or shown.every or reference)
    whole = any((csv, parquet, html, figures, keep_as))
    if reference and people and not (section or table or shown.every):
        table = list(registry.tables(reference))
    options = Options(
        exports=(shown.every and shape is OutputFormat.JSON) or any((csv, parquet, keep_as)),
        definition=definition,
        duration=duration.value if duration else None,
        **site.settings(),
        by=by,
        **charging.settings(),
        **reliability.settings(),
        idle_below=idle_below,
        brief=first and not whole,
        reference=reference,
        filter=filters.parsed(),
        sections=tuple(section or ()),
        tables=_wanted(table or (), first=first, whole=whole and not section, drawing=people and shape is None),
        own=own,
        parameters=parameter_values(values or ()),
        command=command_line(),
    )
    logs = LogReading(cluster, timezone, log_format, columns, delimiter)
    with opened(paths or [], db, logs, given, site=site, brief=first, figures=gpu_figures) as found:
        several = first and not whole and not options.filter
        result = _run(found.path, options, found.cluster, given, several=several)
        if not isinstance(result, Analysis):
            print_screen(result, output, given, notes=shown.notes)
            announce_written((output,), given)
            return
    screen = None
    if first:
        from gpuctl.reports.screens.analysis import screen as screen_of

        screen = screen_of(result)
    for warning in result.warnings if screen is None else ():
        given.tell(f"Warning: {warning}")
    write_files(result, given, csv=csv, parquet=parquet, html=html, figures=figures)
    details = shape is OutputFormat.JSON
    names = [*_of_sections(result, section, details=details), *table] if section and table else table or None
    if details and not (names or section or shown.every):
        names = _shown_somewhere(result)
    print_result(result, shape, output, names, given, screen=screen, notes=shown.notes, paged=shown.every)
    keep(result, keep_as, place, context, given)
    announce_written((csv, parquet, html, figures, output), given)
    if found.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _wanted(tables: Sequence[str], *, first: bool, whole: bool, drawing: bool) -> tuple[str, ...]:
    """The tables to compute beside those of --section; none for all."""
    if whole:
        return ()
    if first:
        from gpuctl.reports.screens.analysis import TABLES as SHOWN

        return SHOWN
    if drawing:
        from gpuctl.analyze.registry import all_analyses
        from gpuctl.reports.terminal.pictures import drawn_from

        return (*tables, *(name for name in drawn_from(tables) if name in all_analyses()))
    return tuple(tables)


def _shown_somewhere(result: Analysis) -> list[str]:
    """The tables that a screen or a page shows: what JSON has unless more is asked for."""
    from gpuctl.analyze.registry import all_analyses

    queries = all_analyses()
    return [each.name for each in result.tables if each.name not in queries or not queries[each.name].only_exported]


def _of_sections(result: Analysis, sections: Sequence[str], *, details: bool) -> list[str]:
    """The tables of sections that are written without being named; JSON has detail tables, too."""
    return [each.name for each in result.tables if each.section in sections and (details or not each.detail)]


def _run(
    store_path: Path, options: Options, cluster: str | None, given: Settings, *, several: bool
) -> Analysis | Screen:
    """The analysis of a cluster; with `several`, and none named, the screen of a store that has not exactly one."""
    from dataclasses import replace

    from gpuctl.analyze.run import analyze as run
    from gpuctl.reports.screens import clusters
    from gpuctl.store.database import Store

    with Store(store_path) as store, given.progress() as bar:
        names = [row[0] for row in store.execute("SELECT cluster FROM clusters ORDER BY cluster").fetchall()]
        if not several or cluster is not None or len(names) == 1:
            return run(store, replace(options, cluster=cluster), bar.at)
        each = [run(store, replace(options, cluster=name, tables=clusters.TABLES), bar.at) for name in names]
    return clusters.screen(store_path.name, each)
