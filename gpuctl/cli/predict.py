"""``gpuctl predict``: how long jobs will run, what suspending them costs; ``gpuctl predictors``: with what."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from gpuctl.cli.common import message, named_to_check, print_json, print_table, print_violations, visible
from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import (
    AnswerOptions,
    ClusterOption,
    CumulativeOption,
    FiguresOption,
    KeepOption,
    NotesOption,
    OutputFormat,
    PlainJsonOption,
    grouped,
)
from gpuctl.cli.output import announce_written, command_line, keep, keeping_place, print_result, write_files
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, GpuctlError, UsageError
from gpuctl.services.options import LogReading

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.reports.screens.model import Screen

predict = typer.Typer(
    name="predict", help="Predict run times, waits, and the cost of suspending a job.", no_args_is_help=True
)


@predict.command(cls=WithExamples)
@grouped
def runtime(
    context: typer.Context,
    *,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PROFILE...",
            help="Traffic of jobs: a CSV with the columns job_id,t,bytes, or another format of gpuctl formats; or one "
            "trace store (.duckdb).",
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with the columns job_id,model,batch,samples,gpus,epochs; with --model, job_id and any of user, "
            "queue, name, gpus, time_limit_s, submit_time suffice.",
        ),
    ] = None,
    job: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this job; repeatable.")] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of epochs, for jobs without one.")
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Model saved by gpuctl train runtime, for jobs whose training model has no profiles."
        ),
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Trace store for the profiles, and source of earlier ones."),
    ] = None,
    cluster: ClusterOption = None,
    cumulative: CumulativeOption = False,
    notes: NotesOption = False,
    answer: AnswerOptions,
    figures: FiguresOption = None,
    keep_as: KeepOption = None,
) -> None:
    """Predict run times from a job's storage traffic, from other jobs of its training model, or from history."""
    given = settings(context)
    shape = answer.shape(given, ["predictions"])
    from gpuctl.reports.screens.predict import runtime_screen
    from gpuctl.services.predictions import RuntimeOptions, predict_runtime

    check_outputs(context, {"--output": answer.output}, {"--figures": figures})
    place = keeping_place(keep_as, paths or [], db)
    request = RuntimeOptions(paths or [], jobs, tuple(job or ()), epochs, model, db, cluster, cumulative=cumulative)
    result, failed = predict_runtime(request, given, command_line())
    write_files(result, given, figures=figures)
    _write(result, runtime_screen, shape, answer.output, given, notes=notes)
    announce_written((figures,), given)
    keep(result, keep_as, place, context, given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@predict.command()
@grouped
def overhead(
    context: typer.Context,
    *,
    epoch_s: Annotated[
        float | None,
        typer.Option(metavar="S", min=0.0, help="Length of an epoch in seconds. Default: the job has no epochs."),
    ] = None,
    phase_s: Annotated[float, typer.Option(metavar="S", min=0.0, help="Seconds since the epoch began.")] = 0.0,
    epoch_left: Annotated[
        str | None,
        typer.Option(
            metavar="S[,S,S]",
            help="Seconds left of the epoch, as seen in its traffic, with bounds: epoch_left_s, epoch_left_lower_s, "
            "epoch_left_upper_s of predict runtime. Replaces --phase-s.",
        ),
    ] = None,
    checkpoint_bytes: Annotated[
        float | None,
        typer.Option(metavar="B", min=0.0, help="Checkpoint size in bytes. Default: 0.5 GB per GPU, at most 10 GB."),
    ] = None,
    first_bytes: Annotated[
        float, typer.Option(metavar="B", min=0.0, help="Bytes to read before its first step; all data if staged.")
    ] = 0.0,
    gpus: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="GPUs of the gang.")] = 1,
    bandwidth: Annotated[
        float | None, typer.Option(metavar="B/S", min=1.0, help="Bytes per second to and from storage. Default: 1e9.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            metavar="MODE", help="epoch: finish the epoch first; now: checkpoint at once; abort: no checkpoint."
        ),
    ] = "epoch",
    model_name: Annotated[
        str | None, typer.Option("--model-name", metavar="NAME", help="The training model, for a trained predictor.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Model saved by gpuctl train overhead. Default: built-in values.")
    ] = None,
    db: Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Trace store for --keep.")] = None,
    notes: NotesOption = False,
    answer: AnswerOptions,
    keep_as: KeepOption = None,
) -> None:
    """Predict the cost of suspending a job: time until its GPUs are free, time to resume, and time lost."""
    given = settings(context)
    shape = answer.shape(given, ["overhead"])
    if mode not in {"epoch", "now", "abort"}:
        raise UsageError(f"--mode {mode}: expected epoch, now or abort")
    if epoch_s is not None and phase_s > epoch_s:
        raise UsageError(f"--phase-s {phase_s:g} is past the end of an epoch of {epoch_s:g} s")
    left = _left(epoch_left)
    if left is not None and (epoch_s is None or mode != "epoch"):
        raise UsageError("--epoch-left is for a job that finishes its epoch", hint="add --epoch-s, and --mode epoch")
    if db is not None and keep_as is None:
        raise UsageError("--db says where --keep keeps the result", hint="add --keep NAME, or omit --db")
    from gpuctl.predictors.overhead_tables import Suspension, predict_overhead
    from gpuctl.reports.screens.predict import overhead_screen

    check_outputs(context, {"--output": answer.output})
    place = keeping_place(keep_as, [], db)
    suspension = Suspension(epoch_s, phase_s, left, checkpoint_bytes, first_bytes, gpus, bandwidth, mode, model_name)
    result = predict_overhead(suspension, model, command_line())
    _write(result, overhead_screen, shape, answer.output, given, notes=notes)
    keep(result, keep_as, place, context, given)


@predict.command(cls=WithExamples)
@grouped
def wait(
    context: typer.Context,
    *,
    model: Annotated[Path, typer.Option(metavar="DIR", help="Model saved by gpuctl train wait.")],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT...",
            help="Accounting up to now, or one trace store (.duckdb), as the state of the queue. Default: unknown "
            "state.",
        ),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with the column job_id and any of user, queue, gpus, nodes, time_limit_s, submit_time.",
        ),
    ] = None,
    gpus: Annotated[float | None, typer.Option(metavar="N", min=0.0, help="GPUs of one job.")] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Nodes of one job, for logs without GPUs.")
    ] = None,
    limit: Annotated[str | None, typer.Option(metavar="TIME", help="Its time limit: 48h, 90m, 2d.")] = None,
    queue: Annotated[str | None, typer.Option(metavar="NAME", help="Its queue.")] = None,
    user: Annotated[str | None, typer.Option(metavar="NAME", help="Its user.")] = None,
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Time of its submission, on the log's clock. Default: the end of the log."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Forecast the whole queue from one set of simulations.")] = False,
    squeue: Annotated[
        str | None,
        typer.Option(
            metavar="now|FILE", help="Current queue: now runs squeue; FILE is output of squeue --json --all --array."
        ),
    ] = None,
    sinfo: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Output of sinfo --json taken with it. Default: with --squeue now, run sinfo."
        ),
    ] = None,
    taken: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Time of --squeue FILE in seconds since 1970, if the file lacks it."),
    ] = None,
    slurm_conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="With --all: the site's rules: slurm.conf and output of sacctmgr dump and show, or a directory of "
            "them; repeatable.",
        ),
    ] = None,
    logs: LogReading,
    notes: NotesOption = False,
    answer: AnswerOptions,
    figures: FiguresOption = None,
) -> None:
    """Forecast how long jobs will wait: quantiles of the time between eligibility and start."""
    given = settings(context)
    shape = answer.shape(given, ["predictions"])
    one = {"gpus": gpus, "nodes": nodes, "limit": limit, "queue": queue, "user": user, "at": at}
    if every + (jobs is not None) + (gpus is not None or nodes is not None) != 1:
        hint = "--gpus 8 --limit 24h"
        raise UsageError("give jobs with --jobs FILE, one job with --gpus or --nodes, or all with --all", hint=hint)
    if (jobs is not None or every) and any(value is not None for value in one.values()):
        raise UsageError("--limit, --queue, --user and --at are for one job; --jobs FILE has columns for them")
    if squeue is None and (sinfo is not None or taken is not None):
        raise UsageError("--sinfo and --taken go with --squeue", hint="give the queue with --squeue FILE")
    if squeue is not None and not every and not paths:
        raise UsageError("--squeue without accounting is for --all", hint="also give accounting or a store")
    if slurm_conf and not (every and paths):
        raise UsageError("--slurm-conf is for --all, with accounting", hint="give accounting or a store, and --all")
    check_outputs(context, {"--output": answer.output}, {"--figures": figures})
    from gpuctl.reports.screens.predict import wait_screen
    from gpuctl.services.waits import OneJob, Queue, Source, predict_wait

    request = None if every else OneJob(gpus, nodes, limit, queue, user, at) if jobs is None else jobs
    live = None if squeue is None else Queue(squeue, None if sinfo is None else str(sinfo), taken)
    source = Source(paths or [], None, logs, live)
    rules = tuple(slurm_conf or ())
    result, failed = predict_wait(source, model, request, given, command_line(), slurm_conf=rules)
    write_files(result, given, figures=figures)
    _write(result, wait_screen, shape, answer.output, given, notes=notes)
    announce_written((answer.output, figures), given)
    if failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


def _left(text: str | None) -> tuple[float, float, float] | None:
    """Seconds left of an epoch, with bounds where they are given."""
    if text is None:
        return None
    try:
        numbers = [float(word) for word in text.split(",")[:4]]
    except ValueError:
        numbers = []
    middle, lower, upper = numbers * 3 if len(numbers) == 1 else numbers if len(numbers) == 3 else (math.nan,) * 3
    if not (0 <= lower <= middle <= upper and math.isfinite(upper)):
        raise UsageError(
            f"--epoch-left {text}: expected seconds, or three of them: the middle, lower and upper bound",
            hint="--epoch-left 42 or --epoch-left 42,38,47",
        )
    return middle, lower, upper


def _write(
    result: Analysis, screen_of: Callable[[Analysis], Screen], shape: OutputFormat | None, output: Path | None,
    given: Settings, *, notes: bool,
) -> None:  # fmt: skip
    """As every result; in JSON its rows are also where other programs were promised them."""
    if shape is not OutputFormat.JSON:
        print_result(result, shape, output, None, given, screen=screen_of(result), notes=notes)
        return
    from gpuctl.reports.export.document import document
    from gpuctl.services.predictions import promised

    text = "".join(document(result, result.tables, (), promised(result)))
    if output is None:
        sys.stdout.write(text)
        return
    from gpuctl.core.file_io import write_atomically

    def write(file: BinaryIO) -> None:
        file.write(text.encode())

    write_atomically(output, write)


def predictors(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="One predictor, or FILE.py:CLASS. Default: all.")
    ] = None,
    check: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Run it on N random logs and list violations of the rules for predictors."
        ),
    ] = None,
    as_json: PlainJsonOption = False,
) -> None:
    """List the predictors that gpuctl train runtime scores: the model, simple rules, installed packages."""
    from gpuctl.predictors.registry import find, origin

    options = settings(context)
    as_json = as_json or options.json
    if check is not None:
        _check(named_to_check(name, "predictor", "gpuctl predictors NAME --check 100"), check, as_json=as_json)
        return
    found = list(_all())
    if name is not None:
        found = [row for row in found if row[0] == name]
        if not found:
            kind = find(name)
            found = [(kind.name, kind.title, origin(name))]
    if as_json:
        print_json([{"name": key, "title": title, "from": whence} for key, title, whence in found])
    else:
        rows = [tuple(map(visible, row)) for row in found]
        print_table(("name", "method", "from"), rows, color=options.color, wide="method")


def _all() -> Iterator[tuple[str, str, str]]:
    """Every predictor and where it is from; of one that cannot be used, why not is told instead."""
    from gpuctl.core.plugins import BUILT_IN
    from gpuctl.predictors.registry import built_in, find, installed

    yield from ((key, title, BUILT_IN) for key, title in built_in().items())
    for plugin in {each.name: each for each in installed()}.values():
        try:
            kind = find(plugin.name)
            plugin.refuse_rivals()
            yield kind.name, kind.title, plugin.origin
        except GpuctlError as error:
            message(f"Warning: {error.message}")


def _check(name: str, cases: int, *, as_json: bool) -> None:
    from gpuctl.predictors.conformance import check
    from gpuctl.predictors.registry import find

    kind = find(name)
    found = check(kind, cases)
    about = {"predictor": kind.name, "cases": cases}
    print_violations(about, found, f"{kind.name}: {cases} random logs", as_json=as_json)
