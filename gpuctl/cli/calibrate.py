"""``gpuctl calibrate``: the rules with which a replay starts a trace's jobs as recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli import complete
from gpuctl.cli.common import message
from gpuctl.cli.options import (
    ClusterOption,
    HtmlOption,
    LogFormatOption,
    LogTimezoneOption,
    ResourcesOption,
    SlurmConfOption,
    TableOptions,
    WindowOption,
    YarnConfOption,
    grouped,
)
from gpuctl.cli.output import announce_written, check_tables, command_line, for_people, print_result, write_files
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from gpuctl.calibrate.run import Fit
    from gpuctl.cli.settings import Settings
    from gpuctl.services.replay_inputs import Source


@grouped
def calibrate(
    context: typer.Context,
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="INPUT...", help="One trace store (.duckdb); or log files, directories or archives."),
    ] = None,
    policy: Annotated[
        str,
        typer.Option(metavar="NAME", autocompletion=complete.policies, help="Policy to calibrate."),
    ],
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Parameter with a known value, not to be fitted; repeatable."),
    ] = None,
    slurm_conf: SlurmConfOption = None,
    yarn_conf: YarnConfOption = None,
    quotas: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus. Default: fit the quotas too."),
    ] = None,
    racks: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV with columns node,rack.")] = None,
    nodes: Annotated[
        str | None,
        typer.Option("--cluster", metavar="SPEC", help="Nodes, as for replay. Default: the trace's own."),
    ] = None,
    trace_cluster: ClusterOption = None,
    timezone: LogTimezoneOption = None,
    log_format: LogFormatOption = None,
    window: WindowOption = None,
    resources: ResourcesOption = "gpu",
    fitted: Annotated[
        float,
        typer.Option("--fit", metavar="F", help="Share of the jobs used for fitting; the others measure the accuracy."),
    ] = 0.6,
    trials: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of replays.")] = 1000,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FILE.toml", help="Write the rules to this file, for gpuctl replay --calibrated."
        ),
    ] = None,
    shown: TableOptions,
    html: HtmlOption = None,
) -> None:
    """Find policy parameters and quotas with which a replay starts jobs as in the trace, and report how closely."""
    given = settings(context)
    shape = shown.shape(given)
    from gpuctl.calibrate import tables

    check_tables(shown.table, tables.TABLES)
    check_outputs(context, {"--html": html, "--output": shown.output, "--save": save})
    if not 0.1 <= fitted <= 0.95:
        raise UsageError(f"--fit {fitted:g}: expected a share of the jobs, from 0.1 to 0.95")
    from gpuctl.core.job_filter import JobFilter
    from gpuctl.services.options import Inputs, Rules
    from gpuctl.services.policy_choice import policies
    from gpuctl.services.replay_inputs import read

    [(name, fixed)] = _one(policies([policy], param or [], {"slurm": slurm_conf or [], "yarn": yarn_conf or []}))
    inputs = Inputs(
        cluster=nodes, trace_cluster=trace_cluster, timezone=timezone, log_format=log_format, quotas=quotas,
        racks=racks, window=window,
    )  # fmt: skip
    rules = Rules(resources=resources)
    source = read(
        paths or [], inputs, JobFilter(), rules, given, slurm_conf=tuple(slurm_conf or ()), names=[(name, fixed)]
    )
    for text in (*source.workload.notes, *source.cluster.notes):
        message(f"note: {text}", quiet=given.quiet or for_people(shape, shown.output))
    fit = _fit(source, (name, fixed), (fitted, trials, resources), given)
    result = tables.result(fit, sources=source.sources, command=command_line())
    if save is not None:
        save.write_text(fit.calibration.toml(), encoding="utf-8")
    write_files(result, given, html=html)
    screen = None
    if for_people(shape, shown.output) and not (shown.table or shown.every):
        from gpuctl.reports.screens.calibrate import screen as screen_of

        screen = screen_of(result)
    print_result(result, shape, shown.output, shown.table, given, screen=screen, notes=shown.notes, paged=shown.every)
    announce_written((save, html, shown.output), given)
    if source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _one(names: list[tuple[str, dict[str, str]]]) -> list[tuple[str, dict[str, str]]]:
    if len(names) > 1:
        raise UsageError("--policy: one policy is calibrated at a time", hint="once for each, and compare their scores")
    return names


def _fit(source: Source, policy: tuple[str, dict[str, str]], how: tuple[float, int, str], given: Settings) -> Fit:
    from gpuctl.calibrate.run import calibrate as fit
    from gpuctl.replay.models.resources import parse_resources

    fitted, trials, resources = how
    with given.progress() as bar:
        return fit(
            source.workload, source.cluster, policy[0], fixed=policy[1], fitted=fitted, trials=trials,
            resources=parse_resources(resources),
            progress=lambda done, least: bar.at(f"distance {least:.3f}", min(done, trials), trials),
            notify=bar.tell,
        )  # fmt: skip
