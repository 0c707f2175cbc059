"""Builds the result tables of a replay, which the terminal, the exports and the HTML report show."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.errors import UsageError
from gpuctl.core.memory import MANY_JOBS, give_back
from gpuctl.core.notes import NONE, NamedValue, Note, listed, literal, note, together
from gpuctl.core.results import Analysis, ResultTable
from gpuctl.replay.models.traits import TRAITS, traits
from gpuctl.replay.results import comparison, failures, gantt, metrics, policy_tables, timelines
from gpuctl.replay.results.columns import documented as _table
from gpuctl.replay.results.comparison import nearness, widen
from gpuctl.replay.results.metrics import total
from gpuctl.replay.results.settings import (
    Replays,
    Unchanged,
    calendar,
    nodes_note,
    oracle_note,
    policy_notes,
    settings,
    shared_notes,
    span,
    warnings,
    with_distinct_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from gpuctl.core.results import SourceInfo
    from gpuctl.replay.models.records import Cluster, Outcome, Workload
    from gpuctl.replay.results.comparison import OwnRules


CDF_POINTS = 200
"""Most points per curve."""

LISTED = 200
"""With more unfinished jobs their table is exported, not printed."""

SECTIONS = (
    ("replay", "Policies"),
    ("replay_compared", "Differences, job by job"),
    ("replay_over_time", "Over time"),
    ("replay_jobs", "Jobs"),
)

_PERCENTILES = note("Percentiles interpolate linearly between the two nearest values.")
COUNTED = (
    "packs", "packs_undone", "nodes_reclaimed", "reclaim_preemptions", "scale_ins", "nodes_lent", "nodes_late",
    "late_node_s",
)  # fmt: skip
"""Counters of some policies, by the names of `Outcome.counts`."""

_PREEMPTED_SIZES = (
    ("of_1_gpu", "1"),
    ("of_2_to_4_gpus", "2-4"),
    ("of_5_to_8_gpus", "5-8"),
    ("of_9_gpus_and_more", ">8"),
)


def result(
    outcomes: Sequence[Outcome],
    workload: Workload,
    cluster: Cluster,
    *,
    baseline: str | None = None,
    against_recorded: bool = False,
    command: str = "",
    version: str = "",
    warmup: float = 0.0,
    resamples: int = comparison.RESAMPLES,
    seed: int = comparison.SEED,
    sources: tuple[SourceInfo, ...] = (),
    tables: Collection[str] | None = None,
    window: tuple[float, float] | None = None,
    unchanged: Unchanged | None = None,
    own: OwnRules | None = None,
    traced: bool = False,
    failure_seed: int = 0,
) -> Analysis:
    """Return all results of a replay.

    Args:
        outcomes: one per policy, on the same workload and cluster; parameters are added to equal names.
        workload: what was replayed.
        cluster: what it was replayed on.
        baseline: the policy that the others are compared with; None for the first.
        against_recorded: whether to compare with what the trace recorded.
        command: the command line, as the user gave it.
        version: gpuctl's version.
        warmup: share of the jobs, in order of submission, excluded from figures of jobs.
        resamples: of the bootstrap.
        seed: of the bootstrap.
        sources: the files that the workload came from.
        tables: make only those of these names; None for all.
        window: seconds between which allocations are listed one by one; None for those around the busiest moment.
        unchanged: replays without what options change, to compare with.
        own: replays of the unchanged trace, which measure the model's error.
        traced: whether the jobs come from a trace, so that the model's error must be reported.
        failure_seed: seed of the failures of nodes.

    Raises:
        UsageError: no outcome has the name of the baseline, or nothing was replayed in the window.
    """
    named = with_distinct_names(outcomes)
    chosen = next((o for o in named if baseline in {None, o.policy}), None)
    if chosen is None:
        raise UsageError(f"no policy {baseline!r} in this replay; it has: {', '.join(o.policy for o in named)}")
    replays = Replays(
        named,
        workload,
        cluster,
        chosen,
        warmup,
        resamples,
        seed,
        window,
        unchanged,
        nearness(own) if traced else None,
        failure_seed,
    )
    compared = len(named) > 1 or against_recorded or unchanged is not None
    absent = set() if len(named) > 1 else {"replay_vs_baseline"}
    absent |= set() if against_recorded else {"replay_vs_recorded", "replay_fidelity"}
    absent |= {"replay_vs_unchanged"} if unchanged is None else set()
    absent |= set() if any(o.by_traits for o in named) else {"replay_traits"}
    absent |= set() if len(named) > 1 or any(o.by_traits for o in named) else {"replay_fairness", "replay_rho_cdf"}
    absent |= set() if failures.failing(named) else {"replay_failures"}
    absent |= set() if policy_tables.has_deadlines(named, workload) else {"replay_deadlines"}
    absent |= set() if policy_tables.changed(named) else {"replay_changes"}
    absent |= set() if policy_tables.resized(named) else {"replay_gpus"}
    wanted = [make for name, make in _MAKERS.items() if name not in absent and (tables is None or name in tables)]
    return Analysis(
        cluster=note("{jobs} on {nodes}", jobs=NamedValue("cluster", workload.name), nodes=nodes_note(cluster)),
        tables=tuple(_made(make, replays) for make in wanted),
        sections=tuple(s for s in SECTIONS if compared or s[0] != "replay_compared"),
        sources=sources,
        settings=settings(replays),
        command=command,
        version=version,
        warnings=warnings(replays, against_recorded=against_recorded),
    )


def _made(make: Callable[[Replays], ResultTable], replays: Replays) -> ResultTable:
    if replays.workload.size >= MANY_JOBS:
        # input of the previous table
        give_back()
    return make(replays)


def _overfull(rows: list[dict[str, Any]]) -> list[Note]:
    named = [row["policy"] for row in rows if metrics.overfull(row)]
    if not named:
        return []
    return [
        note(
            "more GPU-hours were held than the nodes that were up had under {named}: utilization and goodput are "
            "withheld, as a share above 100 % contradicts itself",
            named=listed("policy", named),
        )
    ]


def _summary(replays: Replays) -> ResultTable:
    how: dict[str, Any] = {"warmup": replays.warmup, "resamples": replays.resamples, "seed": replays.seed}
    rows = [
        metrics.summary(o, replays.workload, replays.cluster, warmup=replays.warmup)
        | comparison.wait_intervals(o, replays.workload, **how)
        for o in replays.outcomes
    ]
    notes = (
        _PERCENTILES,
        note(
            "Job figures are over counted, finished jobs; cluster figures (makespan to idle_despite_wait_s) are "
            "over all jobs and the whole measured time, which differs between policies."
        ),
        note(
            "rho takes N, the contention, from the policy's own replay, and is lenient to small jobs when many are "
            "in the system; with a private 1/N of the cluster instead, rho of a single gang would be its JCT / "
            "work."
        ),
        *((replays.nearness.text,) if replays.nearness is not None else ()),
        *shared_notes(replays),
        *oracle_note(replays),
        *replays.workload.notes,
        *replays.cluster.notes,
        *policy_notes(replays.outcomes),
        *_overfull(rows),
    )
    return _table(
        "replay_summary", _with_ends(rows), replays.jobs, section="replay", notes=notes,
        title="Policies compared", question="How long do jobs take and wait, and how full is the cluster, by policy?",
    )  # fmt: skip


def _with_ends(rows: list[dict[str, Any]]) -> pl.DataFrame:
    # for too few jobs no end is known under any policy: an empty column needs a type
    frame = pl.DataFrame(rows, infer_schema_length=None)
    return frame.with_columns(
        pl.col("^wait_(mean|p95)_(low|high)_s$").cast(pl.Float64), pl.col("^deadlines.*$").cast(pl.Int64)
    )


def _grouped(replays: Replays, key: str) -> pl.DataFrame:
    return pl.concat(metrics.by_group(o, replays.workload, key, warmup=replays.warmup) for o in replays.outcomes)


def _by_size(replays: Replays) -> ResultTable:
    return _table(
        "replay_by_size", _grouped(replays, "size_bucket"), replays.jobs, section="replay", notes=(_PERCENTILES,),
        title="By gang size", question="How do small and large jobs fare?",
    )  # fmt: skip


def _by_queue(replays: Replays) -> ResultTable:
    return _table(
        "replay_by_queue", _grouped(replays, "queue"), replays.jobs, section="replay", notes=(_PERCENTILES,),
        title="By queue", question="How do the jobs of each queue fare?",
    )  # fmt: skip


def _preemptions(replays: Replays) -> ResultTable:
    rows = []
    for outcome in replays.outcomes:
        jobs = outcome.jobs.with_columns(metrics.size_class())
        ends = dict(outcome.attempts["end"].value_counts().iter_rows())
        count = jobs["preemptions"]
        hit = int((count > 0).sum())
        rows.append(
            {
                "policy": outcome.policy,
                "jobs": jobs.height,
                "jobs_preempted": hit,
                "preempted_pct": 100 * hit / jobs.height if jobs.height else None,
                "preemptions": int(count.sum()),
                "most_of_a_job": count.max() or 0,
                **{n: int(count.filter(jobs["size_bucket"] == s).sum()) for n, s in _PREEMPTED_SIZES},
                **{
                    end: int(ends.get(end, 0))
                    for end in ("migrated", "resized", "lease", "reclaimed", "machine_down", "failed")
                },
                **{name: outcome.counts.get(name) for name in COUNTED},
                "overhead_gpu_h": total(jobs["overhead_gpu_s"]) / 3600,
                "lost_gpu_h": total(jobs["lost_gpu_s"]) / 3600,
                "cost": str(outcome.settings.get("preemption overhead", "")),
            }
        )
    return _table(
        "replay_preemptions",
        pl.DataFrame(rows, schema_overrides=dict.fromkeys(COUNTED, pl.Int64) | {"late_node_s": pl.Float64}),
        note(
            "{size:,} job{size||s} of {name}, all counted.",
            size=replays.workload.size, name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay", title="Preemptions",
        question="Which jobs were preempted, how often, and at what cost?",
    )  # fmt: skip


def cdf_points(values: pl.Series, total: int) -> pl.DataFrame:
    """Return points of a cumulative distribution, at most `CDF_POINTS`, each exact: ``minutes`` and ``cdf_pct``.

    Args:
        values: seconds; nulls are left out.
        total: number of 100 %, including those without a value.
    """
    ordered = np.sort(values.drop_nulls().to_numpy().astype(np.float64) / 60)
    count = len(ordered)
    rank = np.unique(np.linspace(1, count, min(count, CDF_POINTS)).round().astype(np.int64))
    # The share of equal values is that of the last of them.
    rank = np.unique(np.searchsorted(ordered, ordered[rank - 1], side="right")) if count else rank
    return pl.DataFrame({"minutes": ordered[rank - 1], "cdf_pct": 100 * rank / max(total, 1)})


def _cdf(replays: Replays, measure: str) -> tuple[pl.DataFrame, Note]:
    frames: list[pl.DataFrame] = []
    left: list[Note] = []
    for outcome in replays.outcomes:
        jobs = metrics.counted_jobs(outcome, replays.workload, warmup=replays.warmup)
        possible = jobs.filter(~pl.col("state").is_in(["unplaceable", "rejected"]))
        finished = possible.filter(pl.col("state").is_in(timelines.ENDED))
        points = cdf_points(finished[f"{measure}_s"], possible.height)
        frames.append(points.insert_column(0, pl.Series("policy", [outcome.policy] * points.height, dtype=pl.String)))
        left.append(
            note(
                "{policy} {value:,} of {height:,}",
                policy=NamedValue("policy", outcome.policy),
                value=possible.height - finished.height,
                height=possible.height,
            )
        )
    population = note(
        "{jobs} Jobs that could be placed are 100 %; a curve ends lower where jobs did not finish: {left}.",
        jobs=replays.jobs,
        left=together(", ", left),
    )
    return pl.concat(frames), population


def _jct_cdf(replays: Replays) -> ResultTable:
    return _table(
        "replay_jct_cdf", *_cdf(replays, "jct"), section="replay", title="Distribution of JCT", detail=True,
        question="What share of jobs finished within a given time of submission?",
    )  # fmt: skip


def _wait_cdf(replays: Replays) -> ResultTable:
    return _table(
        "replay_wait_cdf", *_cdf(replays, "wait"), section="replay", title="Distribution of waits", detail=True,
        question="What share of jobs waited at most a given time?",
    )  # fmt: skip


_PAIRED = (
    note("Only jobs that finished under both are compared; the unpaired_ columns count the others."),
    note(
        "Intervals hold the mean that a long run of the same workload would show, 95 % of them; if the trace holds "
        "too few independent stretches (stretches), it is too short to tell and there is none."
    ),
)


def _against(replays: Replays, outcome: Outcome, other: Outcome | pl.DataFrame) -> pl.DataFrame:
    return comparison.against(outcome, other, replays.workload, warmup=replays.warmup)


def _vs_baseline(replays: Replays) -> ResultTable:
    frames = [_widened(replays, _against(replays, o, replays.baseline)) for o in _others(replays)]
    return _table(
        "replay_vs_baseline", pl.concat(frames), replays.jobs, section="replay_compared", notes=_PAIRED,
        title=f"Against {replays.baseline.policy}",
        question=f"How do JCT and wait of the same jobs differ from those under {replays.baseline.policy}?",
    )  # fmt: skip


def _others(replays: Replays) -> list[Outcome]:
    return [o for o in replays.outcomes if o is not replays.baseline]


def _widened(replays: Replays, frame: pl.DataFrame) -> pl.DataFrame:
    return frame if replays.nearness is None else widen(frame, replays.nearness.errors)


def _vs_unchanged(replays: Replays) -> ResultTable:
    unchanged = replays.unchanged or Unchanged((), replays.workload, NONE)
    before = {outcome.policy: outcome for outcome in unchanged.outcomes}
    frames = [
        comparison.against(o, before[o.policy], unchanged.workload, name="unchanged", warmup=replays.warmup)
        for o in replays.outcomes
        if o.policy in before
    ]
    return _table(
        "replay_vs_unchanged", _widened(replays, pl.concat(frames)), replays.jobs, section="replay_compared",
        notes=(note("Changed: {changes}.", changes=unchanged.changes), *_PAIRED), title="Against no change",
        question="How do JCT and wait of the same jobs differ from those without the change?",
    )  # fmt: skip


def _vs_recorded(replays: Replays) -> ResultTable:
    truth = comparison.recorded(replays.workload)
    return _table(
        "replay_vs_recorded", pl.concat(_against(replays, o, truth) for o in replays.outcomes), replays.jobs,
        section="replay_compared", notes=(
            *_PAIRED,
            note("Recorded: end - submission, and of that the time outside the recorded attempts. Jobs without a "
"recorded start or end are not paired."),
        ),
        title="Against the trace", question="How do the replayed jobs differ from what was recorded?",
    )  # fmt: skip


def _fidelity(replays: Replays) -> ResultTable:
    frames = [comparison.fidelity(o, replays.workload, warmup=replays.warmup) for o in replays.outcomes]
    return _table(
        "replay_fidelity", pl.concat(frames), replays.jobs, section="replay_compared", notes=(
            note("For the policy in force when the trace was recorded, this shows how far to trust a replay; for "
"any other policy, how different it is."),
            _PERCENTILES,
        ),
        title="Fidelity", question="How close are the replayed first starts to the recorded ones?",
    )  # fmt: skip


def _timeline(replays: Replays) -> ResultTable:
    begin, end = span(replays)
    edges = timelines.bin_edges(begin, end, timelines.BINS)
    frames = [
        timelines.binned(timelines.exact_levels(o, replays.cluster, until=end), edges).insert_column(
            0, pl.lit(o.policy).alias("policy")
        )
        for o in replays.outcomes
    ]
    frame = pl.concat(frames).with_columns(calendar(replays.workload))
    width = timedelta(seconds=round(float(edges[1] - edges[0])))
    return _table(
        "replay_timeline", frame,
        note(
            "All {jobs:,} job{jobs||s} of {name}, warm-up and unfinished ones among them; waiting jobs are those "
            "that could "
            "start.",
            jobs=replays.workload.size, name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay_over_time", title="Queue and cluster over time", detail=True,
        question="How did queue length and occupancy change over time?",
        notes=(
            note(
                "Means over {periods:,} equal period{periods||s} of about {width}, the same for all policies.",
                periods=len(edges) - 1, width=literal(str(width)),
            ),
            note("Replays that end before the longest one count as empty after their end."),
        ),
    )  # fmt: skip


def _heatmap(replays: Replays) -> ResultTable:
    edges = timelines.bin_edges(*span(replays), timelines.HEAT_BINS)
    times = pl.DataFrame({"bin": np.arange(len(edges) - 1), "t_s": edges[:-1], "t_end_s": edges[1:]})
    frames: list[pl.DataFrame] = []
    names: tuple[str, ...] = ()
    for outcome in replays.outcomes:
        cells, own = timelines.occupancy(outcome, replays.cluster, edges)
        names = max(names, own, key=len)
        frames.append(cells.insert_column(0, pl.lit(outcome.policy).alias("policy")))
    share = pl.col("busy_pct")
    # sums of floats may fall slightly short of all; more than all is a contradiction
    possible = pl.when(share <= 100 + metrics.ROUNDING).then(share.clip(upper_bound=100))
    labels = pl.DataFrame({"row": np.arange(len(names)), "nodes": pl.Series(names, dtype=pl.String)})
    frame = pl.concat(frames).with_columns(busy_pct=possible).join(times, on="bin", how="left", maintain_order="left")
    frame = frame.join(labels, on="row", how="left", maintain_order="left").with_columns(calendar(replays.workload))
    return _table(
        "replay_heatmap", frame,
        note(
            "All {nodes:,} node{nodes||s} of {cluster} in {rows:,} row{rows||s}, {periods} equal "
            "period{periods||s}.",
            nodes=len(replays.cluster.nodes), cluster=nodes_note(replays.cluster), rows=len(names),
            periods=len(edges) - 1,
        ),
        section="replay_over_time", title="Occupancy of the nodes", detail=True,
        question="Which nodes were full, and when?",
    )  # fmt: skip


def _unfinished(replays: Replays) -> ResultTable:
    frames = []
    for outcome in replays.outcomes:
        left = ~outcome.jobs["state"].is_in(timelines.ENDED)
        rows = outcome.jobs.filter(left)
        last_lines = outcome.log.of_jobs(left.arg_true().to_numpy()).unique("job", keep="last")
        why = pl.Series("why", why_left(outcome.never, left.arg_true().to_list(), rows["state"].to_list()), pl.String)
        frames.append(
            rows.join(last_lines.select("job", "reason"), on="job", how="left", maintain_order="left").with_columns(
                pl.lit(outcome.policy).alias("policy"), pl.coalesce(why, "reason").alias("reason")
            )
        )
    frame = pl.concat(frames)
    long = frame.height > LISTED
    notes = (
        (
            note(
                "{height:,} row{height||s}, exported but not printed; replay_summary counts them by state.",
                height=frame.height,
            ),
        )
        if long
        else ()
    )
    return _table(
        "replay_unfinished", frame,
        note(
            "Unfinished jobs among all {jobs:,} job{jobs||s} of each policy, warm-up included.",
            jobs=replays.workload.size,
        ),
        section="replay_jobs", title="Jobs that did not finish", notes=notes, detail=long,
        question="Which jobs did not finish or could not start, and why?", sentences=_reasons(replays, frame),
    )  # fmt: skip


def _reasons(replays: Replays, frame: pl.DataFrame) -> tuple[Note, ...]:
    """Reasons of the table; a Python policy's own words are already notes, and untrusted."""
    every = {reason: reason for outcome in replays.outcomes for reason in outcome.log.reasons}
    every |= {reason: reason for outcome in replays.outcomes for reason in (*outcome.never.values(), BEHIND)}
    last_lines = frame["reason"].drop_nulls().unique().sort().to_list()
    return tuple(reason if isinstance(reason := every[text], Note) else literal(reason) for text in last_lines)


def _jobs(replays: Replays) -> ResultTable:
    work = pl.max_horizontal(pl.col("work_s"), pl.lit(metrics.SHORTEST_WORK_S))
    frame = pl.concat([
        o.jobs.with_columns(
            pl.lit(o.policy).alias("policy"), (pl.col("jct_s") / work).alias("slowdown"),
            *(
                pl.Series(name, rho, nan_to_null=True)
                for name, rho in metrics.rhos(o, replays.workload, replays.cluster).items()
            ),
            *o.log.backfilled(),
        )
        for o in replays.outcomes
    ], how="diagonal")  # fmt: skip
    return _table(
        "replay_jobs", frame,
        note(
            "All {jobs:,} job{jobs||s} of {name}, once for each policy.",
            jobs=replays.workload.size, name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay_jobs", title="All jobs", detail=True, question="How did each job fare under each policy?",
    )  # fmt: skip


def _traits(replays: Replays) -> ResultTable:
    known = traits(replays.workload)
    missing = [np.where(mask, name, "") for name, mask in known.derived.items()]
    derived = [";".join(name for name in row if name) for row in zip(*missing, strict=True)]
    columns_of = {"job": list(replays.workload.ids), **{name: getattr(known, name) for name in TRAITS}}
    return _table(
        "replay_traits", pl.DataFrame({**columns_of, "derived": derived}),
        note("All {jobs:,} job{jobs||s}, the same for every policy.", jobs=replays.workload.size),
        section="replay_jobs", title="Job traits for deep-learning schedulers", detail=True,
        question="How does each job scale, suffer from distance, and share, and which values are assumed?",
    )  # fmt: skip


_MAKERS: dict[str, Callable[[Replays], ResultTable]] = {
    "replay_summary": _summary,
    "replay_by_size": _by_size,
    "replay_by_queue": _by_queue,
    "replay_preemptions": _preemptions,
    "replay_failures": failures.table,
    "replay_deadlines": policy_tables.deadline_table,
    "replay_jct_cdf": _jct_cdf,
    "replay_wait_cdf": _wait_cdf,
    "replay_fairness": policy_tables.fairness,
    "replay_rho_cdf": policy_tables.distribution,
    "replay_vs_baseline": _vs_baseline,
    "replay_vs_unchanged": _vs_unchanged,
    "replay_vs_recorded": _vs_recorded,
    "replay_fidelity": _fidelity,
    "replay_timeline": _timeline,
    "replay_heatmap": _heatmap,
    "replay_changes": policy_tables.changes,
    "replay_gpus": policy_tables.gpus_of_jobs,
    "replay_gantt": gantt.gantt,
    "replay_unfinished": _unfinished,
    "replay_jobs": _jobs,
    "replay_traits": _traits,
}
"""What makes each table, in the order in which they are shown."""


BEHIND = "waits behind a job that can never start"


def why_left(never: Mapping[int, str], jobs: Sequence[int], states: Sequence[str]) -> list[str | None]:
    """Return why each unfinished job did not finish, if jobs that can never start are the reason.

    When a replay ends, no event is left: jobs behind such a job may also wait forever.
    """
    behind = BEHIND if never else None
    return [never.get(job, behind if state == "waiting" else None) for job, state in zip(jobs, states, strict=True)]
