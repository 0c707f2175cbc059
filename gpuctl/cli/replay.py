"""``gpuctl replay``: the same jobs under other policies, loads or servers."""

from __future__ import annotations

import shlex
import sys
from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpuctl.cli.common import message, settings
from gpuctl.cli.ingest import LogFormatOption
from gpuctl.cli.keep import KeepOption, keep, keeping_place, traces_db
from gpuctl.cli.output import (
    AllOption,
    FormatOption,
    HtmlOption,
    JsonOption,
    NotesOption,
    OutputOption,
    TableOption,
    chosen_format,
    for_people,
    print_result,
    tell_written,
    write_directory,
)
from gpuctl.cli.output_paths import check_outputs
from gpuctl.cli.policy_choice import checked_baseline, policies
from gpuctl.core.errors import ExitCode, UsageError
from gpuctl.core.notes import ours
from gpuctl.core.spelling import meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.cli.common import Settings
    from gpuctl.cli.replay_inputs import Source
    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Outcome
    from gpuctl.replay.models.speed_table import PairTable, SpeedTable

SECTIONS = ("replay", "replay_compared", "replay_over_time", "replay_jobs")
TABLES = (
    "replay_summary", "replay_by_size", "replay_by_queue", "replay_preemptions", "replay_jct_cdf", "replay_wait_cdf",
    "replay_vs_baseline", "replay_vs_recorded", "replay_fidelity", "replay_timeline", "replay_heatmap",
    "replay_unfinished", "replay_jobs",
)  # fmt: skip
SHORT_FILES = {"replay_jobs": "jobs", "replay_summary": "summary"}
"""Tables whose files --parquet and --csv call by a shorter name; other programs read them."""


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


class Work(StrEnum):
    """What a job's run time is made of."""

    SUM = "sum"
    LAST = "last"
    SPAN = "span"


def replay(  # noqa: PLR0917 - Typer passes options by name
    context: typer.Context,
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="INPUT...",
            help="A CSV with the columns job_id,submit_time,duration,num_gpus; or log files, directories or archives; "
            "or one trace store (.duckdb).",
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="A,B",
            help="Policies, as gpuctl policies lists them, or FILE.py:CLASS; LABEL=POLICY calls it LABEL, so that one "
            "policy can be compared with itself. May be given several times.",
        ),
    ] = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A parameter of every policy that has it, or of one: POLICY.NAME=VALUE or LABEL.NAME=VALUE; may be "
            "given several times.",
        ),
    ] = None,
    yarn_conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Configuration that yarn-capacity and yarn-fair go by: capacity-scheduler.xml, fair-scheduler.xml, "
            "yarn-site.xml or their directory; may be given several times.",
        ),
    ] = None,
    slurm_conf: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="Configuration that the policy slurm goes by: slurm.conf, what sacctmgr dump and sacctmgr show print, "
            "or a directory of them; may be given several times.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Servers to replay on: 64x8 (servers x GPUs), pool:512, or a TOML file; else the trace's own, or "
            "the nodes of --slurm-conf.",
        ),
    ] = None,
    add_servers: Annotated[
        str | None, typer.Option(metavar="N|NxG", help="Put so many more servers beside them, like those or of G GPUs.")
    ] = None,
    trace_cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which cluster of the store; needed where it holds several.")
    ] = None,
    db: Annotated[
        Path | None,
        typer.Option(
            "--db", metavar="FILE", help="Keep logs that are read in this trace store; without INPUT, replay it."
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Zone of times in logs that carry none; else the format's own.")
    ] = None,
    log_format: LogFormatOption = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B", help="Columns, in order, of sacct text that has no header.")
    ] = None,
    quotas: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns vc,quota_gpus: GPUs of each queue's quota."),
    ] = None,
    racks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV with columns machine,rack, of the trace's own servers.")
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(metavar="A..B", help="Only jobs submitted from A on and before B: seconds, or ISO dates."),
    ] = None,
    scale_load: Annotated[
        float | None, typer.Option(metavar="F", help="Submit jobs F times as fast: 1.2 is 20 % more load.")
    ] = None,
    work: Annotated[
        Work | None,
        typer.Option(help="A job's run time: sum of its attempts, unless given; its last one; last end - first start."),
    ] = None,
    placement: Annotated[
        Placement | None, typer.Option(help="Where gangs may go under every policy; else as each policy has it.")
    ] = None,
    overhead: Annotated[
        str,
        typer.Option(
            metavar="MODEL",
            help="Cost of a preemption: none, const[:S], resume:S, charge[:S], helios, lucid or pickyman; and of a "
            "resize, if another: MODEL+resize:S.",
        ),
    ] = "none",
    mode: Annotated[
        Mode | None,
        typer.Option(
            help="How every policy preempts: after a checkpoint at any time; at the end of the job's epoch; at once, "
            "with the loss of what was done since. Else each policy's own way."
        ),
    ] = None,
    run_times: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="What policies that go by run times are told: given (the column predicted_time, else the true ones), "
            "true, error:F (wrong by about F: .3 is 30 %), or a CSV with columns job,run_time_s of predictions.",
        ),
    ] = "given",
    locality: Annotated[
        bool | None,
        typer.Option(
            "--locality/--no-locality",
            help="Whether scattered jobs run slower. Unless given: where a trace tells where its jobs ran and they are "
            "replayed on the same servers.",
        ),
    ] = None,
    speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,gpu_type,speed (and speed_in_rack,speed_across_racks): speeds of classes "
            "of jobs on types of GPUs, in place of --locality.",
        ),
    ] = None,
    pair_speeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV with columns job_class,beside,speed: speed of a class of jobs packed beside another on the same "
            "GPUs, for policies of your own.",
        ),
    ] = None,
    time_slice: Annotated[
        str,
        typer.Option(
            metavar="S[:SWITCH]",
            help="Seconds of a turn of jobs that take turns on GPUs, and of the switch between two.",
        ),
    ] = "60:1",
    resources: Annotated[
        str,
        typer.Option(
            metavar="A,B", help="What must be free for a job to start: gpu; or gpu,cpu,mem or gpu with one of them."
        ),
    ] = "gpu",
    per_gpu: Annotated[
        str | None,
        typer.Option(
            metavar="CPUS,GB",
            help="With --resources: what jobs that do not say are taken to ask for, for each of their GPUs (6,50).",
        ),
    ] = None,
    limits: Annotated[bool, typer.Option("--limits", help="End jobs at the run times that they asked for.")] = False,
    limits_from: Annotated[
        str,
        typer.Option(
            metavar="HOW",
            help="What policies that plan ahead (easy, conservative, slurm) take for time limits: asked, true run "
            "times, factor:F (times those), steps (30 min to days, at least twice those), error:F, or a CSV with "
            "columns job,run_time_s of predictions (FILE:upper_s for another column). With commas: each for jobs that "
            "those before it leave without one.",
        ),
    ] = "asked",
    seed: Annotated[int, typer.Option(metavar="N", help="Of policies that draw lots.")] = 0,
    skip_unplaceable: Annotated[
        bool,
        typer.Option("--skip-unplaceable", help="List jobs larger than all servers that they may use, run the rest."),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="POLICY", help="What the others are compared with; else the first one."),
    ] = None,
    against: Annotated[Against | None, typer.Option(help="Also compare with what the trace recorded.")] = None,
    warmup: Annotated[
        float, typer.Option(metavar="F", help="Share of the jobs, from the first on, that no figure of jobs counts.")
    ] = 0.0,
    jobs: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Policies to replay at a time; else one for each processor.")
    ] = None,
    section: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help=f"Only this section; may be given several times: {', '.join(SECTIONS)}."),
    ] = None,
    table: TableOption = None,
    every: AllOption = False,
    notes: NotesOption = False,
    output_format: FormatOption = None,
    as_json: JsonOption = False,
    output: OutputOption = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also write every table to DIR/<table>.csv, with jobs.csv and summary.csv."),
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Also write every table to DIR/<table>.parquet, with jobs.parquet and summary.parquet."
        ),
    ] = None,
    html: HtmlOption = None,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a trace store that gpuctl analyze reads, one cluster a policy."),
    ] = None,
    decisions: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also write each policy's decisions to DIR/<policy>.jsonl.")
    ] = None,
    keep_as: KeepOption = None,
) -> None:
    """Replay jobs under other policies, with more load or on other servers, and say how they would have fared."""
    given = settings(context)
    shape = chosen_format(output_format, as_json=as_json or given.json, output=output, tables=table)
    places = _Places(output, csv, parquet, html, store, decisions)
    names = policies(policy or (), param or (), {"yarn": yarn_conf or [], "slurm": slurm_conf or []})
    baseline = checked_baseline(baseline, names)
    _check_wishes(section or (), table or (), warmup, compared=len(names) > 1, against=against is not None)
    places.check(context)
    kept = keeping_place(keep_as, paths or [], db)
    from gpuctl.cli.replay_inputs import Wishes, read
    from gpuctl.replay.models.resources import parse_resources
    from gpuctl.replay.models.speed_table import parse_time_slice, read_pairs
    from gpuctl.replay.results.tables import policy_notes

    counts, turns = parse_resources(resources), parse_time_slice(time_slice)
    pairs = None if pair_speeds is None else read_pairs(pair_speeds)
    logs_in = traces_db(paths or [], db, keep_as)
    source = read(
        Wishes(paths or [], logs_in, trace_cluster, timezone, columns, log_format, cluster, add_servers, quotas,
               racks, window, scale_load, work.value if work else None, locality, run_times, limits_from, counts,
               per_gpu, tuple(slurm_conf or ()), speeds),
        given,
    )  # fmt: skip
    first = for_people(shape, output) and not (section or table or every)
    told = [*source.workload.notes, *source.cluster.notes]
    for note in told:
        message(f"note: {note}", quiet=given.quiet or first)
    models = _Models(
        source.rates, overhead, placement, seed, mode, counts, pairs, turns,
        limits=limits, skip_unplaceable=skip_unplaceable,
    )  # fmt: skip
    outcomes, missing = _run(source, names, models, jobs, given)
    if missing:
        message(f"gpuctl: interrupted; not done: {', '.join(missing)}" + ("" if outcomes else "; nothing is done"))
        if not outcomes:
            raise typer.Exit(ExitCode.INTERRUPTED)
        baseline = baseline if baseline in {o.policy for o in outcomes} else None
    for note in policy_notes(outcomes):
        told.append(note)
        message(f"note: {note}", quiet=given.quiet or first)
    result = _result(outcomes, source, baseline, warmup, section or (), against=against is not None)
    _tell_unfinished(outcomes, given)
    places.write(result, outcomes, source, given)
    known = {each.name for each in result.tables}
    shown = [n for n in table if n in known] if table and missing else table
    screen = None
    if first:
        from gpuctl.reports.screens.replay import screen as screen_of

        screen = screen_of(result, told)
    print_result(result, shape, output, shown, given, screen=screen, notes=notes, paged=every)
    tell_written((*places.others, output), given)
    if missing:
        if keep_as is not None:
            message(f"not kept as {keep_as!r}: not all policies are done")
        raise typer.Exit(ExitCode.INTERRUPTED)
    keep(result, keep_as, kept, context, given)
    if source.failed:
        raise typer.Exit(ExitCode.BAD_INPUT)


@dataclass(frozen=True)
class _Places:
    """Where results go beside standard output."""

    output: Path | None
    csv: Path | None
    parquet: Path | None
    html: Path | None
    store: Path | None
    decisions: Path | None

    @property
    def others(self) -> tuple[Path | None, ...]:
        """All but the output file."""
        return self.csv, self.parquet, self.html, self.store, self.decisions

    def check(self, context: typer.Context) -> None:
        """See that all of them can be written, before anything runs."""
        check_outputs(
            context,
            {"--output": self.output, "--html": self.html, "--store": self.store},
            {"--csv": self.csv, "--parquet": self.parquet, "--decisions": self.decisions},
        )
        if self.store is not None:
            from gpuctl.replay.results.store import refuse

            refuse(self.store)

    def write(self, result: Analysis, outcomes: list[Outcome], source: Source, given: Settings) -> None:
        """Write all that was asked for."""
        short = replace(result, tables=tuple(replace(t, name=SHORT_FILES.get(t.name, t.name)) for t in result.tables))
        if self.csv is not None:
            write_directory(short, self.csv, "csv", given)
        if self.parquet is not None:
            write_directory(short, self.parquet, "parquet", given)
        if self.html is not None:
            from gpuctl.reports.html import write_html

            write_html(result, self.html)
        if self.decisions is not None:
            from gpuctl.replay.results.store import write_decisions

            write_decisions(self.decisions, outcomes)
        if self.store is not None:
            from gpuctl.replay.results.store import write_store

            write_store(self.store, outcomes, source.workload, source.cluster)


@dataclass(frozen=True)
class _Models:
    """What holds for every policy."""

    rates: str | SpeedTable
    overhead: str
    placement: Placement | None
    seed: int
    mode: Mode | None
    resources: tuple[str, ...]
    pairs: PairTable | None
    time_slice: tuple[float, float]
    limits: bool
    skip_unplaceable: bool


def _check_wishes(
    sections: Sequence[str], tables: Sequence[str], warmup: float, *, compared: bool, against: bool
) -> None:
    """See that the result will have the tables asked for."""
    for kind, names, known in (("section", sections, SECTIONS), ("table", tables, TABLES)):
        for name in names:
            if name not in known:
                raise UsageError(f"a replay has no {kind} {name!r}", hint=meant(name, known))
    if "replay_vs_baseline" in tables and not compared:
        raise UsageError("--table replay_vs_baseline: one policy alone is compared with no other")
    if {"replay_vs_recorded", "replay_fidelity"} & set(tables) and not against:
        raise UsageError("this table compares with what was recorded", hint="add --against recorded")
    if not 0 <= warmup < 1:
        raise UsageError(f"--warmup {warmup:g}: expected a share of the jobs, at least 0 and less than 1")


def _run(
    source: Source, names: list[tuple[str, dict[str, str]]], models: _Models, jobs: int | None, given: Settings
) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and the policies that Ctrl-C left undone."""
    from gpuctl.cli.progress import Bar
    from gpuctl.replay.run import ReplayInterrupted
    from gpuctl.replay.run import replay as run

    with Bar(wanted=not given.quiet, color=given.color, steps=True) as bar:

        def at(ended: Sequence[int], size: int, seconds: Sequence[float]) -> None:
            each = zip(names, ended, seconds, strict=True)
            share = [f"{name} {k / size:.0%} day {s / 86_400:,.1f}" for (name, _), k, s in each if s > 0 and k < size]
            more = f" +{len(share) - 2}" if len(share) > 2 else ""
            bar.at(", ".join(share[:2]) + more or "replaying", sum(ended), size * len(names))

        try:
            outcomes = run(
                source.workload,
                source.cluster,
                names,
                rates=models.rates,
                overhead=models.overhead,
                placement=models.placement and models.placement.value,
                limits=models.limits,
                seed=models.seed,
                mode=models.mode and models.mode.value,
                resources=models.resources,
                pairs=models.pairs,
                time_slice=models.time_slice,
                processes=jobs,
                progress=at,
                skip_unplaceable=models.skip_unplaceable,
                tell=lambda text: message(text, quiet=given.quiet),
            )
        except ReplayInterrupted as stop:
            return stop.outcomes, stop.missing
    return outcomes, []


def _result(
    outcomes: list[Outcome], source: Source, baseline: str | None, warmup: float, sections: Sequence[str], *,
    against: bool,
) -> Analysis:  # fmt: skip
    from gpuctl import __version__
    from gpuctl.replay.results.tables import result

    found = result(
        outcomes,
        source.workload,
        source.cluster,
        baseline=baseline,
        against_recorded=against,
        command="gpuctl " + shlex.join(sys.argv[1:]),
        version=__version__,
        warmup=warmup,
        sources=source.sources,
    )
    found = replace(found, settings=found.settings | {"locality": ours(source.locality)})
    if not sections:
        return found
    return replace(
        found,
        tables=tuple(t for t in found.tables if t.section in sections),
        sections=tuple(s for s in found.sections if s[0] in sections),
    )


def _tell_unfinished(outcomes: list[Outcome], given: Settings) -> None:
    for outcome in outcomes:
        left = Counter(word for word in outcome.jobs["state"].to_list() if word != "finished")
        if left:
            each = ", ".join(f"{count:,} {word}" for word, count in left.most_common())
            message(
                f"{outcome.policy}: {left.total():,} of {outcome.jobs.height:,} jobs did not finish ({each}); "
                "the table replay_unfinished lists them",
                quiet=given.quiet,
            )
