"""The options of ``gpuctl replay``, in groups: what is replayed, under which policies and rules, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli import complete
from gpuctl.cli.options import (
    ClusterOption,
    DelimiterOption,
    EngineOption,
    FiguresOption,
    HtmlOption,
    KeepOption,
    LogColumnsOption,
    LogFormatOption,
    LogTimezoneOption,
    MapOption,
    ResourcesOption,
    Site,
    SwfUnitOption,
    TableOptions,
    UnitOption,
    WindowOption,
)
from gpuctl.cli.replay_tables import SECTIONS, SHORT_FILES

if TYPE_CHECKING:
    from gpuctl.cli.common import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.node_failures import FailureOptions
    from gpuctl.replay.models.records import Cluster, Outcome, Workload


class Placement(StrEnum):
    """Where gangs may go."""

    ANY = "any"
    CONSOLIDATE = "consolidate"
    SPREAD = "spread"


class Against(StrEnum):
    """What to compare with, beside another policy."""

    RECORDED = "recorded"


class Mode(StrEnum):
    """How jobs are preempted."""

    NOW = "now"
    EPOCH = "epoch"
    ABORT = "abort"


class Resample(StrEnum):
    """How a seed draws jobs."""

    DAYS = "days"
    WEEKS = "weeks"
    USERS = "users"
    NONE = "none"


class Work(StrEnum):
    """What a job's run time is made of."""

    SUM = "sum"
    LAST = "last"
    SPAN = "span"


@dataclass(frozen=True)
class Policies:
    """Which policies, with which parameters and configuration."""

    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            autocompletion=complete.policies,
            help="Policies as listed by gpuctl policies, or FILE.py:CLASS. LABEL=POLICY adds a label, to compare "
            "variants of a policy. Repeatable.",
        ),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of every policy that has it, or of one policy: POLICY.NAME=VALUE or LABEL.NAME=VALUE; "
            "repeatable. Several values: NAME=600,1200 or NAME=600:2400:600.",
        ),
    ] = None
    yarn_conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Configuration for yarn-capacity and yarn-fair: capacity-scheduler.xml, fair-scheduler.xml, "
            "yarn-site.xml or their directory; repeatable.",
        ),
    ] = None
    slurm_conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Configuration for the policy slurm: slurm.conf, output of sacctmgr dump and sacctmgr show, or a "
            "directory of them; repeatable.",
        ),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="For the policy osdec: folder written by gpuctl deferrable train."),
    ] = None
    calibrated: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Rules found by gpuctl calibrate for the trace: policy, parameters, quotas.",
        ),
    ] = None
    experiment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Run the experiment described in this file: jobs, nodes, policies and their parameters, variants, "
            "seeds.",
        ),
    ] = None


@dataclass(frozen=True)
class Inputs:
    """Which jobs, and on which nodes."""

    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Nodes to replay on: 64x8 (nodes x GPUs), pool:512, or a TOML file. Default: the trace's "
            "nodes, or the nodes of --slurm-conf.",
        ),
    ] = None
    per_rack: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Nodes of --cluster per rack, in their order. Default: one rack."),
    ] = None
    add_nodes: Annotated[
        str | None,
        typer.Option(
            metavar="N|NxG", help="Add N nodes like the existing ones, or NxG: N nodes of G GPUs. Several: 0,2,4."
        ),
    ] = None
    inference: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Nodes of an inference cluster, 9x8 (nodes x GPUs), which only the policy aryl may borrow.",
        ),
    ] = None
    inference_load: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns time_s,nodes_free: number of idle --inference nodes from that second on; or a "
            "trace store with requests to services."
            " Default: an assumed daily curve.",
        ),
    ] = None
    trace_cluster: ClusterOption = None
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Trace store for the logs; without INPUT, the store to replay."),
    ] = None
    timezone: LogTimezoneOption = None
    log_format: LogFormatOption = None
    columns: LogColumnsOption = None
    delimiter: DelimiterOption = None
    columns_map: MapOption = None
    unit: UnitOption = None
    swf_unit: SwfUnitOption = None
    quotas: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus: quota of each queue in GPUs."),
    ] = None
    racks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV with columns node,rack for the trace's own nodes.")
    ] = None
    window: WindowOption = None
    scale_load: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Submit jobs F times as fast: 1.2 means 20 % more load. Several: 0.8,1,1.2 or 0.8:1.4:0.1.",
        ),
    ] = None
    work: Annotated[
        Work | None,
        typer.Option(
            help="A job's run time: sum of its attempts (default), its last attempt, or last end - first start."
        ),
    ] = None

    @property
    def site(self) -> Site:
        """What the user says of how the logs are to be read."""
        return Site(map=self.columns_map, unit=self.unit, swf_unit=self.swf_unit)


@dataclass(frozen=True)
class Rules:
    """What holds for every policy."""

    placement: Annotated[
        Placement | None, typer.Option(help="Placement of gangs under every policy. Default: each policy's own.")
    ] = None
    overhead: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            help="Cost of a preemption: none, const[:S], resume:S, charge[:S], helios, lucid or pickyman; for a "
            "different cost of resizing: MODEL+resize:S. Default: none; optimus and similar policies have their "
            "own, and if they are compared with others, all use resume:62.",
        ),
    ] = None
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="How every policy preempts: after a checkpoint at any time, at the end of the epoch, or at once, "
            "losing progress since the last checkpoint. Default: each policy's own."
        ),
    ] = None
    run_times: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Run times given to policies that use them: given (column predicted_time, else the true run times), "
            "true, error:F (off by about F: .3 means 30 %), or a CSV of predictions with columns job,run_time_s.",
        ),
    ] = "given"
    locality: Annotated[
        bool | None,
        typer.Option(
            "--locality/--no-locality",
            help="Slow down scattered jobs by an assumed (not measured) factor. Default: no; under optimus and "
            "similar policies, by each job's own efficiency.",
        ),
    ] = None
    speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,gpu_type,speed (and speed_in_rack,speed_across_racks): speeds of "
            "classes of jobs on types of GPUs, instead of --locality.",
        ),
    ] = None
    pair_speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,beside,speed: speed of a class of jobs that shares GPUs with another "
            "class, for your own policies.",
        ),
    ] = None
    time_slice: Annotated[
        str,
        typer.Option(
            metavar="S[:SWITCH]",
            help="Time slice of jobs that take turns on GPUs, and the time to switch, in seconds.",
        ),
    ] = "60:1"
    resources: ResourcesOption = "gpu"
    per_gpu: Annotated[
        str | None,
        typer.Option(
            metavar="CPUS,GB",
            help="With --resources: CPUs and memory per GPU assumed for jobs that request none (6,50).",
        ),
    ] = None
    limits: Annotated[bool, typer.Option("--limits", help="End jobs at their requested time limits.")] = False
    limits_from: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Time limits for policies that plan ahead (easy, conservative, slurm): asked (as requested), true "
            "(run times), factor:F (F times the run times), steps (30 min to days, at least twice the run "
            "times), error:F, or a CSV of predictions with columns job,run_time_s (FILE:upper_s for another "
            "column). Comma-separated: each applies to jobs still without a limit.",
        ),
    ] = "asked"
    seed: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Random seed for stochastic policies. Several (1..10): each also resamples the jobs (--resample), "
            "and results include intervals over the seeds.",
        ),
    ] = "0"
    resample: Annotated[
        Resample,
        typer.Option(
            help="With several seeds: resample whole days, whole weeks or users with replacement, or leave the jobs "
            "unchanged."
        ),
    ] = Resample.DAYS
    skip_unplaceable: Annotated[
        bool,
        typer.Option("--skip-unplaceable", help="Skip and list jobs that do not fit on the nodes; run the rest."),
    ] = False


@dataclass(frozen=True)
class Failing:
    """How nodes fail, and what jobs keep."""

    failures: Annotated[
        str | None,
        typer.Option(
            metavar="RATE|FILE",
            help="Nodes fail: failures a node-day (0.0065), RATE:weibull:SHAPE, TYPE=RATE,TYPE=RATE, recorded (as the "
            "trace records), a CSV with the columns time_s,node,until_s, or a TOML file. Several rates: 0.005,0.01.",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="S|young|none",
            help="With --failures: jobs save their progress after each S seconds of work, or at Young's interval for "
            "their nodes (young). Default: none, interrupted jobs start again. Several: 900,3600,young.",
        ),
    ] = None
    checkpoint_write: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, help="With --failures: seconds that writing a checkpoint blocks its job (0)."),
    ] = None
    restart: Annotated[
        float | None,
        typer.Option(metavar="S", min=0, help="With --failures: seconds without progress at a start after one (0)."),
    ] = None
    detect: Annotated[
        float | None,
        typer.Option(
            metavar="S", min=0, help="With --failures: seconds until a failure is noticed and its job ends (0)."
        ),
    ] = None
    repair: Annotated[
        str | None,
        typer.Option(
            metavar="HOW",
            help="With --failures: how long a node is away: mean seconds (0: back at once, the default), "
            "lognormal:MEDIAN:SIGMA, or a CSV with the columns time_s,until_s.",
        ),
    ] = None
    spares: Annotated[
        int | None,
        typer.Option(metavar="K", min=0, help="With --failures: spare nodes, each of which stands in for one at once."),
    ] = None

    def options(self, *, several: bool) -> FailureOptions | None:
        """Return the options with their files read; None without --failures.

        Args:
            several: an experiment's file may name the failures.

        Raises:
            UsageError: an option of failures without them.
            InputError: a file cannot be read.
        """
        from gpuctl.core.errors import UsageError
        from gpuctl.replay.models.node_failures import FailureOptions, with_files

        given = {
            "checkpoint": self.checkpoint, "write": self.checkpoint_write, "restart": self.restart,
            "detect": self.detect, "repair": self.repair, "spares": self.spares,
        }  # fmt: skip
        given = {name: value for name, value in given.items() if value is not None}
        if self.failures is None and not several:
            if given:
                name = {"write": "checkpoint-write"}.get(next(iter(given)), next(iter(given)))
                raise UsageError(f"--{name} requires --failures", hint="--failures 0.0065")
            return None
        return with_files(FailureOptions(self.failures or "0", **given))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Comparison:
    """What is compared with what, on which jobs, and which sections of the result are wanted."""

    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Policy to compare the others with. Default: the first."),
    ] = None
    against: Annotated[Against | None, typer.Option(help="Also compare with what the trace recorded.")] = None
    unchanged: Annotated[
        bool,
        typer.Option(
            "--unchanged/--no-unchanged",
            help="Also replay without the changes of --scale-load, --add-nodes, --cluster, --placement, --mode, "
            "--limits-from or, with --calibrated, --param and --quotas, and compare with that replay.",
        ),
    ] = True
    gantt: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="Window of the Gantt chart (jobs on nodes): seconds, or ISO dates. Default: around the busiest "
            "moment. On a terminal, print the chart.",
        ),
    ] = None
    warmup: Annotated[float, typer.Option(metavar="F", help="Share of the first jobs to exclude from job figures.")] = (
        0.0
    )
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Replays to run in parallel. Default: one per processor, or 8 jobs with --engine slurm.",
        ),
    ] = None
    engine: EngineOption = "local"
    section: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=complete.sections,
            help=f"Only this section; repeatable: {', '.join(SECTIONS)}.",
        ),
    ] = None


@dataclass(frozen=True)
class Places:
    """Destinations of results besides standard output."""

    csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.csv, with jobs.csv and summary.csv."),
    ] = None
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write every table to DIR/<table>.parquet, with jobs.parquet and summary.parquet."
        ),
    ] = None
    html: HtmlOption = None
    figures: FiguresOption = None
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a trace store for gpuctl analyze, with one cluster per policy."),
    ] = None
    decisions: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write each policy's decisions to DIR/<policy>.jsonl.")
    ] = None
    keep_as: KeepOption = None

    @property
    def all(self) -> tuple[Path | None, ...]:
        """Files and folders to write."""
        return self.csv, self.parquet, self.html, self.figures, self.store, self.decisions

    @property
    def whole(self) -> bool:
        """Whether every table is written somewhere."""
        return any((self.csv, self.parquet, self.html, self.figures, self.keep_as))

    def check(self, context: typer.Context, shown: TableOptions) -> None:
        """See that all of them can be written, before anything runs."""
        from gpuctl.cli.output_paths import check_outputs

        check_outputs(
            context,
            {"--output": shown.output, "--html": self.html, "--store": self.store},
            {"--csv": self.csv, "--parquet": self.parquet, "--figures": self.figures, "--decisions": self.decisions},
        )
        if self.store is not None:
            from gpuctl.replay.results.store import refuse

            refuse(self.store)

    def write(
        self, result: Analysis, outcomes: list[Outcome], replayed: tuple[Workload, Cluster], given: Settings
    ) -> None:
        """Write all that was asked for."""
        self.write_tables(result, given)
        if self.decisions is not None:
            from gpuctl.replay.results.store import write_decisions

            write_decisions(self.decisions, outcomes)
        if self.store is not None:
            from gpuctl.replay.results.store import write_store

            write_store(self.store, outcomes, *replayed)

    def write_tables(self, result: Analysis, given: Settings) -> None:
        """Write the tables as files, and the page."""
        from gpuctl.cli.output import write_directory, write_figures

        short = replace(result, tables=tuple(replace(t, name=SHORT_FILES.get(t.name, t.name)) for t in result.tables))
        if self.csv is not None:
            write_directory(short, self.csv, "csv", given)
        if self.parquet is not None:
            write_directory(short, self.parquet, "parquet", given)
        if self.html is not None:
            from gpuctl.reports.html import write_html

            write_html(result, self.html)
        write_figures(result, self.figures)
