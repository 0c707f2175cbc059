"""``gpuctl dag``: jobs of stages on executors, a search that looks ahead, and trees distilled from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from gpuctl.cli.examples import WithExamples
from gpuctl.cli.options import AnswerOptions, JobSeedOption, ParquetOption, TableOption, grouped
from gpuctl.cli.output import announce_written, check_tables, command_line, start
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.settings import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.research.dag.jobs import Job

StagesOutput = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File for the stages.")]
ExecutorsOption = Annotated[
    int, typer.Option(metavar="E", min=1, max=100_000, help="Number of executors; each runs one task.")
]
DelayOption = Annotated[
    int, typer.Option(metavar="MS", min=0, max=10**9, help="Time for an executor to move to another job.")
]
PatchOption = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Your own rules, applied before those of the tree.")
]
JobsOption = Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=100_000, help="Jobs per generated set.")]

dag = typer.Typer(
    name="dag", help="Run jobs with stages under rules, a search, or a tree distilled from the search.",
    no_args_is_help=True, rich_markup_mode=None,
)  # fmt: skip


LimitChoice = Literal["fair", "all", "tree"]
LimitOption = Annotated[
    LimitChoice | None,
    typer.Option(
        help="Executors that a tree gives to a job: up to its share (fair), all free ones, or the tree's choice. "
        "Default: the model's own; fair for a file."
    ),
]


@dag.callback()
def _group() -> None:
    """Run jobs with stages under rules, a search, or a tree distilled from the search."""


@dag.command(cls=WithExamples)
def generate(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    output: StagesOutput,
    jobs: JobsOption = 25,
    executors: ExecutorsOption = 12,
    load: Annotated[
        float, typer.Option(metavar="L", min=0.01, max=10, help="Load, as a share of the executors.")
    ] = 0.7,
    seed: JobSeedOption = 1,
) -> None:
    """Generate jobs with stages."""
    given = settings(context)
    check_outputs(context, {"--output": output})
    from gpuctl.research.dag import jobs as of_seed

    _write(of_seed.generate(seed, jobs, executors, load), output)
    announce_written((output,), given)


@dag.command(name="import", cls=WithExamples)
def import_(
    context: typer.Context,
    path: Annotated[
        Path,
        typer.Argument(
            metavar="TRACE",
            help="Alibaba's batch_task.csv (2018), SWF (.swf), GWF (.gwf), WfFormat (.json), WTF (Parquet, a folder).",
        ),
    ],
    output: StagesOutput,
) -> None:
    """Read jobs with stages from a trace, with their measured times."""
    given = settings(context)
    check_outputs(context, {"--output": output})
    from gpuctl.research.dag import imported

    found = imported.read(path)
    _write(found.jobs, output)
    used = found.rows - sum(found.left_out.values())
    given.tell(f"{found.rows:,} rows: {used:,} stages of {len(found.jobs):,} jobs")
    for why, rows in found.left_out.items():
        given.tell(f"left out: {rows:,} rows {why}")
    if found.raised:
        given.tell(f"note: {found.raised:,} stages took 0 s by the file, and are given 1 ms")
    announce_written((output,), given)


def _write(jobs: Sequence[Job], output: Path) -> None:
    from gpuctl.core.file_io import write_atomically
    from gpuctl.research.dag.jobs import write

    write_atomically(output, lambda file: write(jobs, file))


@dag.command(cls=WithExamples)
@grouped
def simulate(
    context: typer.Context,
    *,
    path: Annotated[
        Path,
        typer.Argument(metavar="STAGES", help="CSV: job,arrival_ms,stage,tasks,task_ms,parents."),
    ],
    executors: ExecutorsOption = 12,
    delay: DelayOption = 2000,
    policy: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="Policies: fifo, fair, wfair, cp, srpt, rollout, tree:MODEL (a folder, a tree's .json, or rules).",
        ),
    ] = "fifo,fair,wfair,cp,srpt",
    limit: LimitOption = None,
    patch: PatchOption = None,
    log: Annotated[Path | None, typer.Option(metavar="FILE", help="Write every task to a CSV.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="DIR", help="Write jobs.csv and summary.csv.")] = None,
    parquet: ParquetOption = None,
    table: TableOption = None,
    answer: AnswerOptions,
) -> None:
    """Run the jobs of a file under each policy, and report when each job ends."""
    command = start(context, answer, table, csv=csv, parquet=parquet, log=log)
    from gpuctl.research.dag import jobs as of_file
    from gpuctl.research.dag import simulate as of_jobs
    from gpuctl.research.dag import tables
    from gpuctl.research.dag.features import Limit
    from gpuctl.research.dag.policies import parse

    check_tables(table, tables.SIMULATED)
    policies = parse(policy, None if limit is None else Limit(limit), patch)
    jobs = of_file.read(path)
    outcomes = {}
    with command.given.progress() as bar:
        for one in policies:
            outcomes[one.name] = of_jobs.simulate(
                jobs, one, executors=executors, delay_ms=delay, logged=log is not None,
                progress=lambda done, name=one.name: bar.at(f"{name}: jobs", done, len(jobs)),  # type: ignore[misc]
            )  # fmt: skip
    if log is not None:
        from gpuctl.core.file_io import write_atomically

        write_atomically(log, lambda file: of_jobs.write_log(jobs, outcomes, file))
    result = tables.simulated(
        jobs, outcomes, str(path), executors=executors, delay_ms=delay, command=command_line(), limits=policies
    )
    command.print(result)
