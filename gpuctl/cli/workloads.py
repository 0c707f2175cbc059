"""``gpuctl fit`` and ``gpuctl synth``: a model of the jobs of a trace, and jobs made from it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.cli.options import (
    AnswerOptions,
    FormatOption,
    JobSeedOption,
    JsonOption,
    LogsStoreOption,
    MapOption,
    SwfUnitOption,
    TableOption,
    chosen_format,
    grouped,
)
from gpuctl.cli.output import announce_written, check_tables, command_line, print_result, start
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.cli.train import LearntPathsArgument
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.services.inputs import rows_of
from gpuctl.services.options import LogReading, Site

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.cli.settings import Settings
    from gpuctl.core.notes import Note
    from gpuctl.workloads.jobs import Jobs
    from gpuctl.workloads.quality import Score
    from gpuctl.workloads.synth import Model


Method = Literal["resample", "users", "weeks", "jobs", "parametric", "lublin", "lublin-published"]
Arrivals = Literal["sessions", "nhpp", "poisson"]
CapacityOption = Annotated[
    float | None,
    typer.Option(
        metavar="N",
        help="Capacity in GPUs (CPUs, nodes) to which load is relative. Default: the log's nodes, or the most in use.",
    ),
]


@grouped
def fit(
    context: typer.Context,
    *,
    paths: LearntPathsArgument = None,
    model: Annotated[
        Path | None,
        typer.Option("--model", "-o", metavar="DIR", help="Folder for the new model; replaces an existing one."),
    ] = None,
    db: LogsStoreOption = None,
    method: Annotated[
        Method,
        typer.Option(
            help="resample: users with their weeks, or, if users or weeks are few, weeks or blocks of jobs; users, "
            "weeks, jobs: resample only these; parametric: fitted distributions; lublin: Lublin and Feitelson's "
            "model, fitted or as published."
        ),
    ] = "resample",
    unit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="UNIT",
            help="Unit of job sizes: gpu, cpu or node. Default: GPUs, or CPUs or nodes if no job has GPUs. Or "
            "OURS=UNIT, the unit of a column of --map, e.g. duration=min; repeatable.",
        ),
    ] = None,
    near: Annotated[
        float | None,
        typer.Option(
            metavar="WEEKS",
            min=0,
            help="Maximum shift of users and weeks; inf: unlimited. Default: a small shift if the load has a trend.",
        ),
    ] = None,
    arrivals: Annotated[Arrivals | None, typer.Option(help="Arrival process of --method parametric.")] = None,
    anonymous: Annotated[
        bool,
        typer.Option(
            "--anonymous",
            help="Fit only distributions without data of any single job or user, so that the model may be published.",
        ),
    ] = False,
    capacity: CapacityOption = None,
    check: Annotated[
        Path | None,
        typer.Option("--check", metavar="DIR", help="Compare this model with INPUT instead of fitting one."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1000,
            help="Number of synthetic traces to compare. Default: 20; fewer (down to 3) for more than 100,000 jobs.",
        ),
    ] = None,
    load: Annotated[
        float, typer.Option(metavar="L", min=0.01, max=10, help="Load of the replays used for comparison.")
    ] = 0.8,
    no_replay: Annotated[bool, typer.Option("--no-replay", help="Compare without replays.")] = False,
    logs: LogReading,
    columns_map: MapOption = None,
    swf_unit: SwfUnitOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Fit a model of a trace's workload, and report how closely generated jobs match the trace."""
    command = start(context, answer, table)
    if (model is None) == (check is None):
        raise UsageError("fit needs -o for a new model, or --check for one to compare, and not both", hint="-o model")
    if check is not None:
        _check_unused(context, ("method", "near", "arrivals", "anonymous"), "is for a new model, not for --check")
    if capacity is not None and not 1 <= capacity <= 1e9:
        raise UsageError(f"--capacity {capacity:g}: expected at least 1")
    from gpuctl.predictors import card
    from gpuctl.workloads import quality, tables
    from gpuctl.workloads.jobs import from_store

    check_tables(table, tables.TABLES)
    if model is not None:
        card.check_place(model)
    sizes, units = _units(unit or ())
    site = Site(map=columns_map, unit=units, swf_unit=swf_unit)
    trace, sources, failed = rows_of(
        paths or [], db, logs, command.given, partial(from_store, unit=sizes),
        expected="logs, a trace store, or a CSV of jobs", doing="fit", site=site,
    )  # fmt: skip
    if capacity is not None:
        trace = replace(trace, capacity=capacity, capacity_from="given")
    made = _load(check) if check is not None else _fit(trace, method, near, arrivals, anonymous=anonymous)
    if made.unit != trace.unit:
        raise UsageError(
            f"the model counts {made.unit}s, the trace {trace.unit}s", hint=f"--unit {made.unit}, or another model"
        )
    seeds = seeds or quality.synthetic_traces(trace.count)
    scores = _compare(made, trace, seeds, None if no_replay else load, command.given)
    result = tables.fitted(
        made, trace, scores, _comparison_notes(seeds, None if no_replay else load), sources=sources,
        command=command_line(),
    )  # fmt: skip
    if model is not None:
        from gpuctl.workloads import workload_folder

        workload_folder.save(model, made, tables.about(made, trace, scores, sources, anonymous=anonymous))
    command.print(result, (model,))
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def synth(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder written by gpuctl fit.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File for the generated jobs.")],
    jobs: Annotated[int | None, typer.Option("--jobs", metavar="N", min=1, help="Number of jobs.")] = None,
    days: Annotated[float | None, typer.Option(metavar="D", help="Instead of --jobs: all jobs of D days.")] = None,
    users: Annotated[
        int | None,
        typer.Option(
            metavar="U", help="Number of users; if more than in the trace, some are repeated. Default: as in the trace."
        ),
    ] = None,
    load: Annotated[
        float | None, typer.Option(metavar="L", help="Load, as a share of the capacity. Default: the model's own.")
    ] = None,
    load_by: Annotated[
        Literal["time", "users"],
        typer.Option(help="time: shorten the times between submissions; users: add users."),
    ] = "time",
    capacity: CapacityOption = None,
    seed: JobSeedOption = 0,
    growth: Annotated[
        float, typer.Option(metavar="F", help="Growth: jobs in the last week over jobs in the first.")
    ] = 1.0,
    large: Annotated[
        str | None,
        typer.Option(metavar="SHARE:SIZE", help="Share of jobs with at least this size: 0.2:16."),
    ] = None,
    tail: Annotated[
        float, typer.Option(metavar="F", help="Heavier tail of run times: divide the tail index by F.")
    ] = 1.0,
    start: Annotated[
        str | None, typer.Option(metavar="DATE", help="For SWF: start the jobs in the week of this date.")
    ] = None,
    to: Annotated[
        Literal["csv", "swf", "db"] | None, typer.Option(help="Format. Default: by the file's name, else csv.")
    ] = None,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
) -> None:
    """Generate jobs from a model of a workload, for gpuctl replay and for other simulators."""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=None, tables=None)
    from gpuctl.workloads import job_files, synthesis_options, tables, workload_folder
    from gpuctl.workloads.synth import MOST_JOBS, Synthesis, synthesize

    if (jobs is None) == (days is None):
        raise UsageError("synth needs --jobs or --days, and not both", hint="--jobs 10000, or --days 28")
    if load is None:
        _check_unused(context, ("load_by",), "is for --load")
    monday = job_files.start_of(start)
    check_outputs(context, {"--output": output})
    wanted = Synthesis(
        MOST_JOBS if jobs is None else jobs,
        seed,
        load,
        load_by,
        capacity,
        growth,
        synthesis_options.parse_large(large) if large is not None else None,
        tail,
        days,
        users,
    )
    found, card = workload_folder.load(model)
    made = synthesize(found, wanted)
    kind = to or job_files.SUFFIXES.get(output.suffix.lower(), "csv")
    if kind == "db":
        job_files.store(made, output)
    else:
        from gpuctl.core.file_io import write_atomically

        write_atomically(
            output, lambda file: job_files.csv(made, file) if kind == "csv" else job_files.swf(made, monday, file)
        )
    result = tables.synthesis_result(found, made, wanted, (), command_line(), card=card)
    print_result(result, shape, None, None, given)
    announce_written((output,), given)


def _check_unused(context: typer.Context, names: Sequence[str], why: str) -> None:
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise UsageError(f"--{name.replace('_', '-')} {why}", hint="leave it out")


def _units(words: Sequence[str]) -> tuple[str | None, list[str] | None]:
    """Return the unit of sizes and the units of columns: both are ``--unit``; the latter have a ``=``.

    Raises:
        UsageError: sizes would count two things.
    """
    from gpuctl.workloads.jobs import UNITS

    sizes = [word for word in words if "=" not in word]
    if len(sizes) > 1 or not UNITS.keys() >= set(sizes):
        raise UsageError(
            f"--unit {' --unit '.join(sizes)}: expected one of {', '.join(UNITS)}, or OURS=UNIT",
            hint="--unit gpu says what sizes count; --unit duration=min, with --map, the unit of a column",
        )
    return (sizes[0] if sizes else None), [word for word in words if "=" in word] or None


def _fit(trace: Jobs, method: Method, near: float | None, arrivals: Arrivals | None, *, anonymous: bool) -> Model:
    from gpuctl.workloads import learn, lublin, lublin_fit, resample

    if anonymous and method not in {"resample", "parametric"}:
        raise UsageError(f"--anonymous: {method} is made of the trace's jobs", hint="--method parametric")
    if arrivals is not None and method != "parametric" and not anonymous:
        raise UsageError("--arrivals is for --method parametric", hint="add it, or leave --arrivals out")
    if near is not None and (anonymous or method in {"parametric", "lublin", "lublin-published", "jobs"}):
        raise UsageError("--near is for users and weeks that are drawn", hint="leave it out")
    if anonymous or method == "parametric":
        return learn.fit(trace, arrivals, anonymous=anonymous)
    if method in {"lublin", "lublin-published"}:
        published = lublin.for_machine(lublin.PUBLISHED, trace.capacity)
        laws = lublin_fit.fit(trace) if method == "lublin" else published
        return lublin.Lublin(laws, trace.unit, trace.capacity, trace.name, trace.capacity_from)
    return resample.fit(trace, method, near)


def _load(place: Path) -> Model:
    from gpuctl.workloads import workload_folder

    return workload_folder.load(place)[0]


def _compare(model: Model, trace: Jobs, seeds: int, load: float | None, given: Settings) -> list[Score]:
    """Compare jobs of several seeds with the trace; without a load no replays."""
    from gpuctl.workloads import quality, replay_check
    from gpuctl.workloads.synth import Synthesis, synthesize

    drawn = [synthesize(model, Synthesis(trace.count, seed)) for seed in range(seeds)]
    found = quality.scores(trace, drawn)
    if load is not None:
        with given.progress() as bar:
            waits = replay_check.scores(
                trace, drawn, max(int(trace.capacity), 1), load, lambda done: bar.at("replays", round(100 * done), 100)
            )
        found = [*waits, *found]
    return found


def _comparison_notes(seeds: int, load: float | None) -> dict[str, Note]:
    from gpuctl.core.notes import note

    notes = {"compared": note("{seeds:,} synthetic trace{seeds||s}, seeds 0 to {last}", seeds=seeds, last=seeds - 1)}
    if load is not None:
        notes["load of the replays"] = note("{load:.2f}", load=load)
    return notes
