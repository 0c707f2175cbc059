"""``gpuctl plan``: how many GPUs waits need, now and with the demand forecast."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpuctl.cli import complete
from gpuctl.cli.options import (
    ClusterOption,
    CsvOption,
    FiguresOption,
    HtmlOption,
    KeepOption,
    LogFormatOption,
    LogTimezoneOption,
    ParquetOption,
    QuotasOption,
    RacksOption,
    ResourcesOption,
    SlurmConfOption,
    TableOptions,
    WindowOption,
    YarnConfOption,
    declare,
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
from gpuctl.core.errors import ExitCode
from gpuctl.services.options import Inputs, Planning, Policies, Rules

declare(
    Planning,
    goal=typer.Option(
        metavar="GOAL",
        help="Bound on waits until the first start: p95-wait=1h (any percentile), mean-wait=30min, or wait-over-1h=5% "
        "(at most 5 % of the jobs wait for longer).",
    ),
    goal_queue=typer.Option("--queue", metavar="NAME", help="Only the jobs of this queue must meet the goal."),
    by_queue=typer.Option("--by-queue", help="Also one answer for the jobs of each queue."),
    horizon=typer.Option(
        metavar="TIME",
        help="How far ahead: 13w, 3mo, 1q or 1y; at most half of the history. Default: 13w, or less of a short one.",
    ),
    node_size=typer.Option(metavar="N", min=1, help="GPUs of an added node. Default: the most frequent kind of node."),
    node_type=typer.Option(metavar="NAME", help="GPU type of added nodes. Default: that of the most frequent kind."),
    remove_nodes=typer.Option(
        metavar="N|NAMES|rack:NAME",
        help="Also what the removal of nodes costs: how many of the most frequent kind, names (gpu[01-04]), or a rack.",
    ),
    prices=typer.Option(
        metavar="FILE",
        help="Prices of GPU-hours, as for analyze: CSV with gpu_type,price_per_gpu_hour and, as needed, account,from,"
        "to.",
    ),
    draws=typer.Option(metavar="N", min=10, max=1000, help="Futures to draw for each time."),
    seed=typer.Option(metavar="N", min=0, help="Random seed; the same seed gives the same plan."),
    jobs=typer.Option("--jobs", metavar="N", min=1, help="Futures to replay in parallel. Default: one per processor."),
)


@grouped
def plan(
    context: typer.Context,
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT...",
            help="One trace store (.duckdb); log files, directories or archives; or, with --cluster, a CSV of jobs.",
        ),
    ] = None,
    planning: Planning,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.policies,
            help="Policy to replay. Default: of a few, the one that comes nearest to the recorded starts.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Parameter of the policy; repeatable.")
    ] = None,
    calibrated: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Policy, parameters and quotas found by gpuctl calibrate."),
    ] = None,
    slurm_conf: SlurmConfOption = None,
    yarn_conf: YarnConfOption = None,
    quotas: QuotasOption = None,
    racks: RacksOption = None,
    nodes: Annotated[
        str | None,
        typer.Option("--cluster", metavar="SPEC", help="Present nodes, as for replay. Default: the trace's own."),
    ] = None,
    trace_cluster: ClusterOption = None,
    timezone: LogTimezoneOption = None,
    log_format: LogFormatOption = None,
    window: WindowOption = None,
    resources: ResourcesOption = "gpu",
    limits_from: Annotated[
        str, typer.Option(metavar="HOW", help="Time limits for policies that plan ahead, as for replay.")
    ] = "asked",
    shown: TableOptions,
    csv: CsvOption = None,
    parquet: ParquetOption = None,
    html: HtmlOption = None,
    figures: FiguresOption = None,
    keep_as: KeepOption = None,
) -> None:
    """Say how many GPUs keep waits within a goal, now and with the demand forecast, or what fewer nodes cost."""
    from gpuctl.capacity.tables import TABLES
    from gpuctl.services.plans import plan as planned

    given = settings(context)
    shape = shown.shape(given)
    check_tables(shown.table, TABLES)
    folders = {"--csv": csv, "--parquet": parquet, "--figures": figures}
    check_outputs(context, {"--html": html, "--output": shown.output}, folders)
    place = keeping_place(keep_as, paths or [], None)
    inputs = Inputs(
        cluster=nodes, trace_cluster=trace_cluster, timezone=timezone, log_format=log_format, quotas=quotas,
        racks=racks, window=window,
    )  # fmt: skip
    chosen = Policies(policy, param, yarn_conf, slurm_conf, calibrated=calibrated)
    rules = Rules(resources=resources, limits_from=limits_from)
    result, failed = planned(paths or [], planning, chosen, inputs, rules, frontend=given, command=command_line())
    first = for_people(shape, shown.output) and not (shown.table or shown.every)
    for warning in () if first else result.warnings:
        given.tell(f"Warning: {warning}")
    write_files(result, given, csv=csv, parquet=parquet, html=html, figures=figures)
    screen = None
    if first:
        from gpuctl.reports.screens.plan import screen as screen_of

        screen = screen_of(result)
    print_result(result, shape, shown.output, shown.table, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((csv, parquet, html, figures, shown.output), given)
    keep(result, keep_as, place, context, given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)
