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
            help="Policies as listed by gpuctl policies, or FILE.py:CLASS. LABEL=POLICY gives it a label, to "
            "compare a policy with itself. Repeatable.",
        ),
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Parameter of every policy that has it, or of one: POLICY.NAME=VALUE or LABEL.NAME=VALUE; "
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
            help="Configuration for the policy slurm: slurm.conf, what sacctmgr dump and sacctmgr show print, "
            "or a directory of them; repeatable.",
        ),
    ] = None
    model: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL", help="For the policy osdec: the rule in a folder that gpuctl deferrable train wrote."
        ),
    ] = None
    calibrated: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="The trace's own rules, as gpuctl calibrate found them: its policy, parameters, quotas.",
        ),
    ] = None
    experiment: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="An experiment as a file: jobs, nodes, policies with their parameters, what varies, seeds.",
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
            help="Nodes of an inference cluster, 9x8 (nodes x GPUs), which policy aryl may borrow; others run without.",
        ),
    ] = None
    inference_load: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns time_s,nodes_free: from each second on, how many nodes of --inference are idle; "
            "or a trace store with requests to services. Default: an assumed daily curve.",
        ),
    ] = None
    trace_cluster: ClusterOption = None
    db: Annotated[
        Path | None,
        typer.Option(
            "--db", metavar="FILE", help="Trace store to keep the logs in; without INPUT, the store to replay."
        ),
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
        typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus: GPUs of each queue's quota."),
    ] = None
    racks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV with columns node,rack, of the trace's own nodes.")
    ] = None
    window: WindowOption = None
    scale_load: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help="Submit jobs F times as fast: 1.2 is 20 % more load. Several: 0.8,1,1.2 or 0.8:1.4:0.1.",
        ),
    ] = None
    work: Annotated[
        Work | None,
        typer.Option(help="A job's run time: sum of its attempts, unless given; its last one; last end - first start."),
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
            help="Cost of a preemption: none, const[:S], resume:S, charge[:S], helios, lucid or pickyman; and of a "
            "resize, if another: MODEL+resize:S. Else none; optimus and its like have their own, and all policies "
            "resume:62 where these are compared with others.",
        ),
    ] = None
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="How every policy preempts: after a checkpoint at any time, at the end of the epoch, or at once, "
            "losing progress since the last checkpoint. Default: each policy's own way."
        ),
    ] = None
    run_times: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Run times given to policies that use them: given (the column predicted_time, else the true "
            "ones), true, error:F (wrong by about F: .3 is 30 %), or a CSV of predictions with columns "
            "job,run_time_s.",
        ),
    ] = "given"
    locality: Annotated[
        bool | None,
        typer.Option(
            "--locality/--no-locality",
            help="Whether scattered jobs run slower: assumed, not measured. Default: no; with optimus and similar "
            "policies, each job by its own efficiency.",
        ),
    ] = None
    speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,gpu_type,speed (and speed_in_rack,speed_across_racks): speeds of classes "
            "of jobs on types of GPUs, in place of --locality.",
        ),
    ] = None
    pair_speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,beside,speed: speed of a class of jobs packed beside another on the same "
            "GPUs, for policies of your own.",
        ),
    ] = None
    time_slice: Annotated[
        str,
        typer.Option(
            metavar="S[:SWITCH]",
            help="Time slice of jobs that share GPUs in turns, and the time to switch, in seconds.",
        ),
    ] = "60:1"
    resources: ResourcesOption = "gpu"
    per_gpu: Annotated[
        str | None,
        typer.Option(
            metavar="CPUS,GB",
            help="With --resources: CPUs and memory per GPU assumed for jobs that state none (6,50).",
        ),
    ] = None
    limits: Annotated[bool, typer.Option("--limits", help="End jobs at their requested time limits.")] = False
    limits_from: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="Time limits for policies that plan ahead (easy, conservative, slurm): asked, true run "
            "times, factor:F (times those), steps (30 min to days, at least twice those), error:F, or a CSV with "
            "columns job,run_time_s of predictions (FILE:upper_s for another column). Comma-separated: each "
            "applies to jobs that those before it leave without a limit.",
        ),
    ] = "asked"
    seed: Annotated[
        str,
        typer.Option(
            metavar="N",
            help="Random seed for stochastic policies. Several (1..10): each also resamples the jobs (--resample), "
            "and figures get intervals over the seeds.",
        ),
    ] = "0"
    resample: Annotated[
        Resample,
        typer.Option(
            help="With several seeds: resample whole days, whole weeks or users with replacement, or keep the jobs "
            "unchanged."
        ),
    ] = Resample.DAYS
    skip_unplaceable: Annotated[
        bool,
        typer.Option("--skip-unplaceable", help="Skip and list jobs that fit on no node; run the rest."),
    ] = False


@dataclass(frozen=True)
class Comparison:
    """What is compared with what, on which jobs, and which sections of the result are wanted."""

    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="Policy that the others are compared with. Default: the first."),
    ] = None
    against: Annotated[Against | None, typer.Option(help="Also compare with what the trace recorded.")] = None
    unchanged: Annotated[
        bool,
        typer.Option(
            "--unchanged/--no-unchanged",
            help="Also replay without what --scale-load, --add-nodes, --cluster, --placement, --mode, --limits-from "
            "or, with --calibrated, --param and --quotas change, and compare with that.",
        ),
    ] = True
    gantt: Annotated[
        str | None,
        typer.Option(
            metavar="FROM..TO",
            help="Window of the Gantt chart, which job was on which node: seconds, or ISO dates. Default: around the "
            "busiest moment. On a terminal, prints the chart.",
        ),
    ] = None
    warmup: Annotated[float, typer.Option(metavar="F", help="Share of jobs at the start that job figures exclude.")] = (
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
    """Where results go beside standard output."""

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
        return self.csv, self.parquet, self.html, self.store, self.decisions

    @property
    def whole(self) -> bool:
        """Whether every table is written somewhere."""
        return any((self.csv, self.parquet, self.html, self.keep_as))

    def check(self, context: typer.Context, shown: TableOptions) -> None:
        """See that all of them can be written, before anything runs."""
        from gpuctl.cli.output_paths import check_outputs

        check_outputs(
            context,
            {"--output": shown.output, "--html": self.html, "--store": self.store},
            {"--csv": self.csv, "--parquet": self.parquet, "--decisions": self.decisions},
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
        from gpuctl.cli.output import write_directory

        short = replace(result, tables=tuple(replace(t, name=SHORT_FILES.get(t.name, t.name)) for t in result.tables))
        if self.csv is not None:
            write_directory(short, self.csv, "csv", given)
        if self.parquet is not None:
            write_directory(short, self.parquet, "parquet", given)
        if self.html is not None:
            from gpuctl.reports.html import write_html

            write_html(result, self.html)
