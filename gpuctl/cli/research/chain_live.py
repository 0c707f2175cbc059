"""``gpuctl chain advise``, ``run`` and ``status``: chains on a running Slurm."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import AnswerOptions, grouped
from gpuctl.cli.output import command_line, start
from gpuctl.cli.research.chain import chain, check_cost
from gpuctl.cli.settings import settings
from gpuctl.core.errors import ExitCode, InputError, UsageError

__all__ = ["chain"]

if TYPE_CHECKING:
    from gpuctl.cli.settings import Settings
    from gpuctl.research.chain.queue_now import QueuedJob
    from gpuctl.research.chain.runner import Runner

ModelArgument = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder written by gpuctl chain train.")]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=1, max=3600, help="Timeout of each Slurm program."),
]
JournalOption = Annotated[
    Path | None, typer.Option("--journal", metavar="FILE", help="Journal of the chain. Default: CHAIN with .journal.")
]


@chain.command(cls=WithExamples)
@grouped
def advise(
    context: typer.Context,
    *,
    model: ModelArgument,
    job: Annotated[str, typer.Option(metavar="ID", help="The running job that the successor follows.")],
    squeue: Annotated[
        str,
        typer.Option(metavar="now|FILE", help="Queue: now runs squeue; FILE is output of squeue --json --all --array."),
    ] = "now",
    at: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0, max=1e11, help="Time of FILE in seconds since 1970, if the file lacks it."
        ),
    ] = None,
    nodes: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Nodes of the job's partition. Default: the model's.")
    ] = None,
    outage_cost: Annotated[
        float | None,
        typer.Option(
            metavar="C", help="Cost of an hour of interruption, in hours of overlap. Default: the model's, or 1."
        ),
    ] = None,
    timeout: TimeoutOption = 60.0,
    answer: AnswerOptions,
) -> None:
    """Advise whether to submit the successor of a running job now, and what to expect."""
    command = start(context, answer)
    if outage_cost is not None:
        check_cost(outage_cost)
    from gpuctl.research.chain import advice, live_tables
    from gpuctl.research.chain.model import load

    trained = load(model)
    cost = outage_cost or trained.cost
    queue, second, accrues = _queue(squeue, at, timeout, command.given)
    found = advice.advise(trained, queue, job, second, cost=cost, size=nodes)
    command.print(live_tables.advice(found, accrues, command_line()))


def _queue(squeue: str, at: float | None, timeout: float, given: Settings) -> tuple[list[QueuedJob], int, bool | None]:
    """The queue, its time, and whether Slurm has ACCRUE_ALWAYS; None: unknown."""
    from gpuctl.core.file_io import read_whole
    from gpuctl.research.chain.queue_now import MOST_BYTES, read_queue, when

    if squeue != "now":
        data = read_whole(Path(squeue), most=MOST_BYTES, hint="name a file with the output of squeue --json")
        second = when(data) if at is None else int(at)
        if second is None:
            raise UsageError(f"{squeue} does not say when it was made", hint="name that time with --at SECONDS")
        queue = read_queue(data, squeue)
        cut = sum(job.cut for job in queue)
        if cut:
            text = f"note: {squeue} lists only the first tasks (...) of {cut:,} arrays; the other tasks are not counted"
            given.tell(text)
        return queue, second, None
    from gpuctl.research.chain.slurm_calls import Slurm, check_environment
    from gpuctl.research.chain.submission_rule import ACCRUE

    check_environment(os.environ)
    slurm = Slurm(timeout)
    try:
        accrues = ACCRUE in slurm.priority_flags()
    except InputError as error:
        given.tell(f"note: {error.message}")
        return slurm.queue(), int(time.time()), None
    return slurm.queue(), int(time.time()), accrues


@chain.command(cls=WithExamples)
def run(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="CHAIN", help="TOML file that describes the chain.")],
    model: Annotated[
        Path | None, typer.Option(metavar="MODEL", help="Folder written by gpuctl chain train.")
    ] = None,
    journal: JournalOption = None,
    interval: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.2, max=3600, help="Time between two checks of the queue.")
    ] = 60.0,
    settle: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=1, max=3600,
            help="If a submission is uncertain, submit the job again after Slurm has not known it for this long.",
        ),
    ] = 60.0,
    timeout: TimeoutOption = 60.0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the queue once and print the decision; submit nothing.")
    ] = False,
) -> None:  # fmt: skip
    """Submit the jobs of a chain one after the other; can be killed and restarted at any time."""
    given = settings(context)
    from gpuctl.research.chain.chain_file import read_chain_file
    from gpuctl.research.chain.journal import Journal
    from gpuctl.research.chain.model import check_live, load
    from gpuctl.research.chain.runner import Runner
    from gpuctl.research.chain.slurm_calls import Slurm, check_environment
    from gpuctl.research.chain.submission_rule import submission_rule

    check_environment(os.environ)
    spec = read_chain_file(path)
    trained = None if model is None else load(model)
    if trained is not None:
        check_live(trained, spec.outage_cost)
    slurm = Slurm(timeout)
    with Journal(_journal(path, journal), spec.name, dry=dry_run) as log:
        runner = Runner(
            spec, slurm, log, submission_rule(spec, trained, slurm), time.time, settle, dry_run,
            given.tell,
        )  # fmt: skip
        _drive(runner, interval, once=dry_run, given=given)
        stopped = log.state.over and log.state.events[-1]["event"] == "stopped"
    if stopped:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def _drive(runner: Runner, interval: float, *, once: bool, given: Settings) -> None:
    """Check repeatedly until the chain is over; less often while Slurm does not answer."""
    from gpuctl.research.chain.slurm_calls import RefusedError

    pause = interval
    while True:
        try:
            if runner.step() or once:
                return
            pause = interval
        except RefusedError:
            raise
        except InputError as error:
            if once:
                raise
            pause = min(2 * pause, max(interval, 600.0))
            given.tell(f"Slurm does not answer, asking again in {pause:.0f} s: {error.message}")
        time.sleep(pause)


def _journal(path: Path, journal: Path | None) -> Path:
    return path.with_suffix(".journal") if journal is None else journal


@chain.command(cls=WithExamples)
@grouped
def status(
    context: typer.Context,
    *,
    path: Annotated[Path, typer.Argument(metavar="CHAIN", help="TOML file of the chain.")],
    journal: JournalOption = None,
    answer: AnswerOptions,
) -> None:
    """Show the jobs of a chain from its journal, even while it runs."""
    command = start(context, answer)
    from gpuctl.research.chain import live_tables
    from gpuctl.research.chain.journal import read

    state = read(_journal(path, journal))
    if not state.events:
        raise InputError("has no events yet", path=str(_journal(path, journal)), hint="start gpuctl chain run")
    command.print(live_tables.status(state, command_line()))
