"""The options of ``gpuctl replay``, in groups: what is replayed, under which policies and rules, and where it goes."""

from __future__ import annotations

from dataclasses import dataclass
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
    SwfUnitOption,
    TableOptions,
    UnitOption,
    WindowOption,
    declare,
)
from gpuctl.cli.replay_tables import SECTIONS, SHORT_FILES
from gpuctl.services.options import Comparison, Failing, Inputs, Policies, Rules

if TYPE_CHECKING:
    from gpuctl.cli.settings import Settings
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

declare(
    Policies,
    policy=typer.Option(
        metavar="A,B",
        autocompletion=complete.policies,
        help="Policies as listed by gpuctl policies, or FILE.py:CLASS. LABEL=POLICY adds a label, to compare "
        "variants of a policy. Repeatable.",
    ),
    param=typer.Option(
        metavar="NAME=VALUE",
        help="Parameter of every policy that has it, or of one policy: POLICY.NAME=VALUE or LABEL.NAME=VALUE; "
        "repeatable. Several values: NAME=600,1200 or NAME=600:2400:600.",
    ),
    yarn_conf=typer.Option(
        metavar="PATH",
        help="Configuration for yarn-capacity and yarn-fair: capacity-scheduler.xml, fair-scheduler.xml, "
        "yarn-site.xml or their directory; repeatable.",
    ),
    slurm_conf=typer.Option(
        metavar="PATH",
        help="Configuration for the policy slurm: slurm.conf, output of sacctmgr dump and sacctmgr show, or a "
        "directory of them; repeatable.",
    ),
    model=typer.Option(metavar="MODEL", help="For the policy osdec: folder written by gpuctl deferrable train."),
    calibrated=typer.Option(
        metavar="FILE.toml",
        help="Rules found by gpuctl calibrate for the trace: policy, parameters, quotas.",
    ),
    experiment=typer.Option(
        metavar="FILE.toml",
        help="Run the experiment described in this file: jobs, nodes, policies and their parameters, variants, seeds.",
    ),
)
declare(
    Inputs,
    cluster=typer.Option(
        metavar="SPEC",
        help="Nodes to replay on: 64x8 (nodes x GPUs), pool:512, or a TOML file. Default: the trace's "
        "nodes, or the nodes of --slurm-conf.",
    ),
    per_rack=typer.Option(metavar="N", min=1, help="Nodes of --cluster per rack, in their order. Default: one rack."),
    add_nodes=typer.Option(
        metavar="N|NxG", help="Add N nodes like the existing ones, or NxG: N nodes of G GPUs. Several: 0,2,4."
    ),
    inference=typer.Option(
        metavar="SPEC",
        help="Nodes of an inference cluster, 9x8 (nodes x GPUs), which only the policy aryl may borrow.",
    ),
    inference_load=typer.Option(
        metavar="FILE",
        help="CSV with columns time_s,nodes_free: number of idle --inference nodes from that second on; or a "
        "trace store with requests to services."
        " Default: an assumed daily curve.",
    ),
    trace_cluster=ClusterOption,
    db=typer.Option("--db", metavar="FILE", help="Trace store for the logs; without INPUT, the store to replay."),
    timezone=LogTimezoneOption,
    log_format=LogFormatOption,
    columns=LogColumnsOption,
    delimiter=DelimiterOption,
    columns_map=MapOption,
    unit=UnitOption,
    swf_unit=SwfUnitOption,
    quotas=typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus: quota of each queue in GPUs."),
    racks=typer.Option(metavar="FILE", help="CSV with columns node,rack for the trace's own nodes."),
    window=WindowOption,
    scale_load=typer.Option(
        metavar="F",
        help="Submit jobs F times as fast: 1.2 means 20 % more load. Several: 0.8,1,1.2 or 0.8:1.4:0.1.",
    ),
    work=typer.Option(
        help="A job's run time: sum of its attempts (default), its last attempt, or last end - first start."
    ),
)
declare(
    Rules,
    placement=typer.Option(help="Placement of gangs under every policy. Default: each policy's own."),
    overhead=typer.Option(
        metavar="MODEL",
        help="Cost of a preemption: none, const[:S], resume:S, charge[:S], helios, lucid or pickyman; for a "
        "different cost of resizing: MODEL+resize:S. Default: none; optimus and similar policies have their "
        "own, and if they are compared with others, all use resume:62.",
    ),
    mode=typer.Option(
        help="How every policy preempts: after a checkpoint at any time, at the end of the epoch, or at once, "
        "losing progress since the last checkpoint. Default: each policy's own."
    ),
    run_times=typer.Option(
        metavar="HOW",
        help="Run times given to policies that use them: given (column predicted_time, else the true run times), "
        "true, error:F (off by about F: .3 means 30 %), or a CSV of predictions with columns job,run_time_s.",
    ),
    locality=typer.Option(
        "--locality/--no-locality",
        help="Slow down scattered jobs by an assumed (not measured) factor. Default: no; under optimus and "
        "similar policies, by each job's own efficiency.",
    ),
    speeds=typer.Option(
        metavar="FILE",
        help="CSV with columns job_class,gpu_type,speed (and speed_in_rack,speed_across_racks): speeds of "
        "classes of jobs on types of GPUs, instead of --locality.",
    ),
    pair_speeds=typer.Option(
        metavar="FILE",
        help="CSV with columns job_class,beside,speed: speed of a class of jobs that shares GPUs with another "
        "class, for your own policies.",
    ),
    time_slice=typer.Option(
        metavar="S[:SWITCH]",
        help="Time slice of jobs that take turns on GPUs, and the time to switch, in seconds.",
    ),
    resources=ResourcesOption,
    per_gpu=typer.Option(
        metavar="CPUS,GB",
        help="With --resources: CPUs and memory per GPU assumed for jobs that request none (6,50).",
    ),
    limits=typer.Option("--limits", help="End jobs at their requested time limits."),
    limits_from=typer.Option(
        metavar="HOW",
        help="Time limits for policies that plan ahead (easy, conservative, slurm): asked (as requested), true "
        "(run times), factor:F (F times the run times), steps (30 min to days, at least twice the run "
        "times), error:F, or a CSV of predictions with columns job,run_time_s (FILE:upper_s for another "
        "column). Comma-separated: each applies to jobs still without a limit.",
    ),
    seed=typer.Option(
        metavar="N",
        help="Random seed for stochastic policies. Several (1..10): each also resamples the jobs (--resample), "
        "and results include intervals over the seeds.",
    ),
    resample=typer.Option(
        help="With several seeds: resample whole days, whole weeks or users with replacement, or leave the jobs "
        "unchanged."
    ),
    skip_unplaceable=typer.Option(
        "--skip-unplaceable", help="Skip and list jobs that do not fit on the nodes; run the rest."
    ),
)
declare(
    Failing,
    failures=typer.Option(
        metavar="RATE|FILE",
        help="Nodes fail: failures a node-day (0.0065), RATE:weibull:SHAPE, TYPE=RATE,TYPE=RATE, recorded (as the "
        "trace records), a CSV with the columns time_s,node,until_s,kind, or a TOML file. Several rates: 0.005,0.01.",
    ),
    checkpoint=typer.Option(
        metavar="S|young|none",
        help="With --failures: jobs save their progress after each S seconds of work, or at Young's interval for "
        "their nodes (young). Default: none, interrupted jobs start again. Several: 900,3600,young.",
    ),
    checkpoint_write=typer.Option(
        metavar="S", min=0, help="With --failures: seconds that writing a checkpoint blocks its job (0)."
    ),
    restart=typer.Option(
        metavar="S", min=0, help="With --failures: seconds without progress at a start after one (0)."
    ),
    detect=typer.Option(
        metavar="S", min=0, help="With --failures: seconds until a failure is noticed and its job ends (0)."
    ),
    repair=typer.Option(
        metavar="HOW",
        help="With --failures: how long a node is away: mean seconds (0: back at once, the default), "
        "lognormal:MEDIAN:SIGMA, or a CSV with the columns time_s,until_s.",
    ),
    spares=typer.Option(
        metavar="K", min=0, help="With --failures: spare nodes, each of which stands in for one at once."
    ),
    requeue=typer.Option(
        help="With --failures: interrupted jobs queue again with their first submission (head), or as new arrivals "
        "(tail). Default: as the policy has it."
    ),
    lemon_share=typer.Option(
        metavar="SHARE[:TIMES]",
        help="With --failures: this share of the nodes fails more often, 8 times or TIMES as often: 0.05:10.",
    ),
)
declare(
    Comparison,
    baseline=typer.Option(metavar="POLICY", help="Policy to compare the others with. Default: the first."),
    against=typer.Option(help="Also compare with what the trace recorded."),
    unchanged=typer.Option(
        "--unchanged/--no-unchanged",
        help="Also replay without the changes of --scale-load, --add-nodes, --cluster, --placement, --mode, "
        "--limits-from or, with --calibrated, --param and --quotas, and compare with that replay.",
    ),
    gantt=typer.Option(
        metavar="FROM..TO",
        help="Window of the Gantt chart (jobs on nodes): seconds, or ISO dates. Default: around the busiest "
        "moment. On a terminal, print the chart.",
    ),
    warmup=typer.Option(metavar="F", help="Share of the first jobs to exclude from job figures."),
    jobs=typer.Option(
        metavar="N",
        min=1,
        help="Replays to run in parallel. Default: one per processor, or 8 jobs with --engine slurm.",
    ),
    engine=EngineOption,
    section=typer.Option(
        metavar="NAME",
        autocompletion=complete.sections,
        help=f"Only this section; repeatable: {', '.join(SECTIONS)}.",
    ),
)


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
        from gpuctl.cli.output import write_files

        write_files(
            result, given, csv=self.csv, parquet=self.parquet, html=self.html, figures=self.figures, files=SHORT_FILES
        )
