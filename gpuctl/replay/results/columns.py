"""Meaning and unit of every column of a replay's result tables, and the columns shown first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.results import Column, ResultTable

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.notes import Note


_UNITS = (
    ("_gpu_h", "GPU-h"), ("_gpu_s", "GPU-s"), ("gpu_s", "GPU-s"), ("_min", "min"), ("_s", "s"), ("_pct", "%"),
)  # fmt: skip
_WORDS = {"jct": "JCT (end - submission)", "wait": "wait (time from submission to end without GPUs)",
          "delay": "queueing delay (first start - submission)"}  # fmt: skip
_POLICY = ("policy", "The policy; its parameters are in the settings.")
_SIZE = ("size_bucket", "GPUs that the job requests (its gang).", "GPUs")

_STATES = {
    "finished": "that finished",
    "cut": "that were cut at their time limit, so that some of their work was never done",
    "running": "that ran when the replay ended",
    "waiting": "that waited when the replay ended",
    "held": "still held, before their begin time or waiting for a dependency when the replay ended",
    "unplaceable": "that this cluster could never place",
    "rejected": "that the policy rejected",
}
_JOB_FIGURES = (
    ("jobs", "Jobs counted: all except those of the warm-up.", "jobs"),
    *((f"jobs_{state}", f"Of them, jobs {what}.", "jobs") for state, what in _STATES.items()),
    *(
        (f"{name}_{label}_s", f"{figure} of the {what}, of jobs that ended.")
        for name, what in _WORDS.items()
        for label, figure in (
            ("mean", "Mean"), ("p50", "Median"), ("p90", "90th percentile"), ("p95", "95th percentile"),
            ("p99", "99th percentile"),
        )
    ),
    *(
        (f"slowdown_{label}", f"{figure} of the slowdown, JCT / max(work, 10 s), of finished jobs.")
        for label, figure in (("mean", "Mean"), ("p50", "Median"), ("p95", "95th percentile"))
    ),
    ("bounded_slowdown_mean", "Mean of max(1, slowdown), of finished jobs."),
    ("bounded_slowdown_p95", "95th percentile of max(1, slowdown), of finished jobs."),
    ("t10_mean_s", "Mean time from submission until a tenth of the job's work is done, of finished jobs: how soon "
     "its user sees whether it is any good."),
    ("preemptions", "Preemptions of counted jobs, finished or not.", "preemptions"),
    ("jobs_preempted", "Counted jobs preempted at least once.", "jobs"),
    ("jobs_held_gpu_h", "GPU-hours held by counted jobs; jobs on a shared GPU count equal parts."),
    ("jobs_overhead_gpu_h", "Of these, overhead: suspending, resuming, waiting for the rest of the gang."),
    ("jobs_lost_gpu_h", "Of these, lost progress that had to be repeated."),
)  # fmt: skip

_ANOTHER_STRETCH = "for another stretch of the same workload; empty: the trace is too short"

_SUMMARY = (
    _POLICY,
    ("oracle", "Whether the policy knows true run times, unlike real schedulers."),
    ("jobs_warmup", "Jobs of the warm-up, excluded from job figures.", "jobs"),
    *_JOB_FIGURES,
    ("makespan_s", "From the first submission to the last end of a job, all jobs."),
    ("measured_s", "From the first submission until no job ran or waited, or to the end of the replay: the time over "
     "which the figures of the cluster are taken."),
    ("utilization_pct", "GPU-hours held by jobs, as a share of the GPU-hours of nodes that were up; a shared "
    "GPU counts once. Empty where it would be above 100 %: a note says so."),
    ("goodput_pct", "GPU-hours held with progress that was kept (held - overhead - lost), of those of nodes that "
     "were up. Slow progress on a scattered placement counts."),
    ("goodput_loaded_pct", "Work done up to the last submission (run time at reference speed x GPUs of the gang), of "
     "the GPU-hours of nodes that were up until then. It does not depend on who ends last."),
    ("available_gpu_h", "GPU-hours of nodes that were up, over the measured time."),
    ("useful_gpu_h", "GPU-hours of kept progress."),
    ("overhead_gpu_h", "GPU-hours of overhead: suspending, resuming, waiting for the rest of the gang."),
    ("lost_gpu_h", "GPU-hours of lost progress that had to be repeated."),
    ("idle_gpu_h", "GPU-hours idle on nodes that were up."),
    ("work_finished_gpu_h", "GPU-hours that the finished jobs would take on their recorded placements."),
    ("idle_despite_wait_s", "Time in which some waiting job asked for no more GPUs than were up and free anywhere: "
     "locality, quotas, GPU types, limits or the policy's order held it back."),
    ("rho_apps", "Apps (by default a job is one) whose jobs all finished, with work: those with a rho.", "apps"),
    ("rho_mean", "Mean finish-time fairness: rho = (last end - first submission) / (N x GPU-time of work / GPUs usable "
     "at once), N = mean number of apps in the system over the app's life under this policy. At most 1: no worse off "
     "than with the whole cluster for 1/N of the time."),
    ("rho_p95", "95th percentile of rho."),
    ("rho_max", "Largest rho: the app treated worst."),
    ("jain", "Jain's index over 1 / rho: 1 if all apps fare alike, 1 / apps if one has everything."),
    ("deadlines", "Counted jobs with a deadline; empty: the input states none.", "jobs"),
    ("deadlines_met", "Of these, jobs that ended by it.", "jobs"),
    ("deadlines_missed", "Of these, jobs that did not: late, declined, or without an end.", "jobs"),
    ("deadlines_declined", "Of those missed, jobs that the policy rejected.", "jobs"),
    ("instants", "Distinct instants simulated.", "instants"),
    ("wait_mean_low_s", f"Lower end of the 95 % interval of wait_mean_s, {_ANOTHER_STRETCH}."),
    ("wait_mean_high_s", "Upper end of it."),
    ("wait_p95_low_s", f"Lower end of the 95 % interval of wait_p95_s, {_ANOTHER_STRETCH}."),
    ("wait_p95_high_s", "Upper end of it."),
)  # fmt: skip

_DIFFERENCES = (
    _POLICY,
    ("measure", "jct: end - submission; wait: time from submission to end without GPUs."),
    ("size_bucket", "GPUs that the job requests; all: every size.", "GPUs"),
    ("pairs", "Of them, jobs that finished under both: only these are compared.", "jobs"),
    ("mean_s", "Mean under the policy, over pairs."),
    ("baseline_mean_s", "Mean under the baseline, over pairs."),
    ("diff_mean_s", "Mean of policy - baseline over pairs; negative: the policy is faster."),
    ("diff_low_s", f"Lower end of the 95 % interval of that mean, {_ANOTHER_STRETCH}."),
    ("diff_high_s", "Upper end of the 95 % interval of that mean."),
    ("model_error_s", "Error of the model for a mean: for the replay under the trace's own rules, the end, "
     "farther from 0, of the interval of its difference from the record. The interval and p include it."),
    ("p", "Probability of a difference at least as large by chance, if the policies were equal: Student's t of parts "
     "of the time; empty: the trace is too short to tell, or there is no difference.", "-"),
    ("change_pct", "Change of the mean relative to the baseline's."),
    ("better_pct", "Share of pairs in which the policy is faster by a millisecond or more."),
    ("worse_pct", "Share of pairs in which it is slower by a millisecond or more."),
    ("equal_pct", "Share of pairs that differ by less than a millisecond."),
    ("diff_p50_s", "Median of policy - baseline over pairs."),
    ("jobs", "Jobs counted.", "jobs"),
    ("unpaired_policy", "Jobs not compared because they finished under the baseline only.", "jobs"),
    ("unpaired_baseline", "Jobs not compared because they finished under the policy only.", "jobs"),
    ("unpaired_both", "Jobs that finished under neither.", "jobs"),
    ("stretches", "Independent stretches of time that the trace holds: ((capacity - load) / error of the load)^2, "
     "under that policy of both that leaves fewer. There is no interval below 6.", "-"),
    ("baseline", "The policy or record it is compared with, job by job."),
)  # fmt: skip

_FIDELITY = (
    _POLICY,
    ("by", "Scope of the row: all jobs, a gang size (size_bucket) or a queue."),
    ("value", "The size or queue."),
    ("pairs", "Of them, jobs that started both in the trace and in the replay.", "jobs"),
    ("error_abs_mean_s", "Mean distance of the replayed from the recorded first start."),
    ("within_1s_pct", "Share of pairs at most 1 second apart."),
    ("within_1min_pct", "Share of pairs at most 1 minute apart."),
    ("within_10min_pct", "Share of pairs at most 10 minutes apart."),
    ("within_1h_pct", "Share of pairs at most 1 hour apart."),
    ("delay_recorded_mean_s", "Mean queueing delay (first start - submission) in the trace, over pairs."),
    ("delay_replayed_mean_s", "Mean queueing delay in the replay, over pairs."),
    ("rank_correlation", "Rank correlation (Spearman) of the two delays; empty if one does not vary."),
    ("correlation", "Correlation (Pearson) of the two delays; empty if one does not vary."),
    ("error_mean_s", "Mean of replayed - recorded first start; positive: the replay starts jobs late."),
    *((f"error_p{q}_s", f"{q}th percentile of that error.") for q in (5, 25, 50, 75, 95)),
    ("jobs", "Jobs counted.", "jobs"),
    ("only_recorded", "Jobs that started in the trace only.", "jobs"),
    ("only_replayed", "Jobs that started in the replay only, or whose recorded start is unknown.", "jobs"),
)

_JOB = (
    ("policy", "The policy."),
    ("job", "The job's name."),
    ("submit_s", "Submission, in seconds from the start of the workload."),
    ("start_s", "First start; empty if it never started."),
    ("end_s", "End; empty if it never ended."),
    ("gpus", "GPUs that the job requests.", "GPUs"),
    ("wait_s", "Time from submission to the end (of the replay, if unfinished) spent without GPUs."),
    ("jct_s", "End - submission."),
    ("preemptions", "Times it was preempted.", "preemptions"),
    ("queue", "Its queue."),
    ("user", "Its user."),
    ("state", "finished, cut (at its time limit), running, waiting or held at the end of the replay, unplaceable or "
     "rejected."),
    ("eligible_s", "When it could start: submission, or the end of a hold, begin time or dependency."),
    ("run_s", "Time on GPUs."),
    ("work_s", "Run time on the recorded placement."),
    ("slowdown", "JCT / max(work, 10 s); empty for a job that was cut."),
    ("gpu_s", "GPU-seconds held."),
    ("overhead_gpu_s", "Of these, held without progress."),
    ("lost_gpu_s", "Of these, lost progress that had to be repeated."),
    ("attempts", "Times it was started.", "attempts"),
    ("max_gpus", "The most GPUs that it held.", "GPUs"),
    ("changes", "How often its GPUs changed: more, fewer or elsewhere.", "changes"),
    ("t10_s", "From submission until a tenth of its work was done; empty if it never was."),
    ("rho", "JCT / work: finish-time fairness relative to its own cluster."),
    ("rho_count", "JCT / (N x work x GPUs / GPUs usable at once), N = mean number of unfinished jobs over its life: "
     "Themis' paper's, small for small jobs."),
    ("rho_demand", "JCT / (work x mean over its life of max(1, GPUs that unfinished jobs request / GPUs)): Themis' "
     "authors' simulator's."),
    ("interruptions", "Times that a failure of a node interrupted it; only with --failures.", "interruptions"),
    ("lost_s", "Seconds of its work that failures undid; only with --failures."),
    ("backfilled", "Whether a pass of backfill started it from behind a waiting job; empty under policies that do not "
     "say. Only where one does (mirage)."),
)  # fmt: skip

OPTIONAL = ("backfilled", "model_error_s", "interruptions", "lost_s")
"""Columns that a table has only if they have values."""

_TRAITS = (
    ("job", "The job's name."),
    ("eff_rack", "Speed over several nodes of a rack, relative to one node."),
    ("eff_cross", "Speed over several racks, relative to one node."),
    ("alpha", "n GPUs are n / (1 + alpha (n - 1)) times as fast as one."),
    ("w_min", "The fewest GPUs that it may run on.", "GPUs"),
    ("w_max", "The most.", "GPUs"),
    ("fungible", "Whether it runs on GPUs of inference nodes."),
    ("util", "Share of its GPUs' computing that it uses."),
    ("mem", "Share of its GPUs' memory that it uses."),
    ("grow", "Whether it accepts idle GPUs in addition to its own."),
    ("derived", "Which of these the input does not state: assumed from a hash of the job's name, not measured."),
)

_UNFINISHED = (
    _POLICY,
    ("job", "The job's name."),
    ("state", "running, waiting or held when the replay ended; unplaceable on this cluster; rejected by the policy."),
    ("queue", "Its queue."),
    ("user", "Its user."),
    ("gpus", "GPUs that the job requests.", "GPUs"),
    ("submit_s", "Submission, in seconds from the start of the workload."),
    ("wait_s", "Time without GPUs until the end of the replay."),
    ("run_s", "Time on GPUs until then."),
    ("work_s", "Total run time it needs on the recorded placement."),
    ("reason", "Reason of the last decision about it; empty without one."),
)

_TIME = (
    ("t_s", "Start of the period, in seconds from the start of the workload."),
    ("t_end_s", "End of the period."),
    ("ts", "Start of the period on the calendar; empty if the workload has no calendar."),
)
_TIMELINE = (
    _POLICY,
    *_TIME,
    ("running_jobs", "Jobs that held GPUs, mean over the period.", "jobs"),
    ("waiting_jobs", "Eligible jobs without GPUs, mean over the period.", "jobs"),
    ("gpus_waiting", "GPUs that the waiting jobs requested, mean over the period.", "GPUs"),
    ("gpus_busy", "GPUs held, mean over the period; a shared GPU counts once.", "GPUs"),
    ("gpus_available", "GPUs of nodes that were up, mean over the period.", "GPUs"),
)
_HEATMAP = (
    _POLICY,
    ("row", "Number of the row, from 0, in the order of the cluster's nodes.", "-"),
    ("nodes", "The node, or the first and last of those that share the row."),
    *_TIME,
    ("busy_pct", "GPUs held, mean over the period, of all GPUs of these nodes, up or down. Empty above 100 %."),
    ("down_pct", "GPUs of these nodes that were down, mean over the period."),
)
_CHANGES = (
    _POLICY,
    *_TIME,
    ("resized", "Times a job went to another number of GPUs.", "-"),
    ("migrated", "Times a job was moved.", "-"),
    ("reclaimed", "Times a job lost its GPUs because a loaned node was returned.", "-"),
    ("packed", "Times a job was packed on the GPUs of another one.", "-"),
    ("loans", "Nodes that came on loan.", "nodes"),
    ("returns", "Nodes that were returned.", "nodes"),
)
_GPUS = (
    _POLICY,
    ("job", "The job."),
    ("line", "Name of its line: the job, after the policy's name if there are several policies."),
    *_TIME,
    ("gpus", "GPUs that it held, mean over the period.", "GPUs"),
)
_FAIRNESS = (
    _POLICY,
    ("definition", "Which rho: rho, rho_count or rho_demand, as in replay_jobs."),
    ("jobs", "Finished jobs with a run time.", "jobs"),
    ("rho_mean", "Mean of rho over them."),
    ("rho_p50", "Median."),
    ("rho_p95", "95th percentile."),
    ("rho_max", "The largest: the job treated worst."),
    ("jain", "Jain's index over 1 / rho: 1 if all jobs fare alike, 1 / jobs if one has everything."),
)
_RHO_CDF = (
    _POLICY,
    ("rho", "Completion time by run time."),
    ("cdf_pct", "Share of finished jobs with at most this rho."),
)
_GANTT = (
    _POLICY,
    ("node", "The node."),
    (
        "what",
        "node: a shown node, over the whole window; lent: the same, but present only while on loan; "
        "loan: it was; down: it was down; job: a job held GPUs of it.",
    ),
    ("job", "The job; empty in rows of nodes."),
    ("user", "Its user."),
    ("queue", "Its queue."),
    ("gpus", "GPUs that it held there; for node and lent, all its GPUs.", "GPUs"),
    (
        "counted_gpus",
        "Of these, GPUs that counted for it, mean over the time: fewer where jobs took turns on them.",
        "GPUs",
    ),
    ("beside", "The job whose GPUs it shared, packed on top of it; empty if they were its own."),
    ("t_s", "When that began, in seconds from the start of the workload; it may lie before the window."),
    ("t_end_s", "When that ended, or the end of the replay; it may lie after the window."),
    ("ts", "The beginning on the calendar; empty if the workload has no calendar."),
    (
        "attempt",
        "Number of its first attempt, from 0; one that continues at once on as many GPUs there has no row of its own.",
        "-",
    ),
    ("end", "How its last attempt there ended; empty in rows of nodes."),
)
_PREEMPTIONS = (
    _POLICY,
    ("jobs", "Jobs of the replay.", "jobs"),
    ("jobs_preempted", "Jobs preempted at least once.", "jobs"),
    ("preempted_pct", "Their share of all jobs."),
    ("preemptions", "Number of preemptions.", "preemptions"),
    ("most_of_a_job", "Most preemptions of one job.", "preemptions"),
    *(
        (name, f"Preemptions of jobs that ask for {size}.", "-")
        for name, size in (
            ("of_1_gpu", "1 GPU"), ("of_2_to_4_gpus", "2 to 4 GPUs"), ("of_5_to_8_gpus", "5 to 8 GPUs"),
            ("of_9_gpus_and_more", "9 GPUs and more"),
        )
    ),
    ("migrated", "Attempts that ended because the policy moved the job.", "attempts"),
    ("resized", "Attempts that ended because the policy resized the job.", "attempts"),
    ("lease", "Attempts that ended with a lease.", "attempts"),
    ("reclaimed", "Attempts that ended because a loaned node was reclaimed.", "attempts"),
    ("packs", "Times two jobs were packed onto the same GPUs on trial; empty for policies that never do.", "packs"),
    ("packs_undone", "Of these, those undone because they did not pay.", "packs"),
    ("nodes_reclaimed", "Loaned nodes that were returned; empty for policies without loans.", "nodes"),
    ("reclaim_preemptions", "Times a job lost its GPUs by that.", "preemptions"),
    ("scale_ins", "Times a job lost only flexible workers by that.", "-"),
    ("nodes_lent", "Times a node came on loan from inference.", "nodes"),
    ("nodes_late", "Times one was still on loan when inference needed it again.", "nodes"),
    ("late_node_s", "Node-seconds until these went back.", "s"),
    ("machine_down", "Attempts that ended because a node went down.", "attempts"),
    ("failed", "Attempts that ended in a failure, as recorded.", "attempts"),
    ("overhead_gpu_h", "GPU-hours of overhead, all jobs."),
    ("lost_gpu_h", "GPU-hours of lost progress that had to be repeated, all jobs."),
    ("cost", "What a preemption, a resize and a migration cost."),
)  # fmt: skip

_FAILURES = (
    _POLICY,
    ("seed", "Seed of the failures.", "-"),
    ("injected", "Failures of nodes that were up, whether or not a job ran there.", "failures"),
    ("interruptions", "Times that one interrupted a job.", "interruptions"),
    ("jobs_interrupted", "Jobs interrupted at least once.", "jobs"),
    ("run_h", "Time on GPUs, all jobs.", "h"),
    ("mttf_h", "run_h / interruptions: mean running time of a job to an interruption; empty without one.", "h"),
    ("ettr", "productive_gpu_hours / (GPU-hours held + GPU-hours that jobs queued for their gang's GPUs). The queue "
     "counts from the second at which a job could start.", "-"),
    ("ettr_running", "productive_gpu_hours / GPU-hours held.", "-"),
    ("gpu_hours", "GPUs of all nodes x the measured time: the sum of the eight columns that follow.", "GPU-h"),
    ("productive_gpu_hours", "GPU-hours held with progress that was kept.", "GPU-h"),
    ("checkpoint_gpu_hours", "GPU-hours in which jobs wrote checkpoints (--checkpoint-write).", "GPU-h"),
    ("load_gpu_hours", "GPU-hours without progress at starts after a failure (--restart).", "GPU-h"),
    ("lost_gpu_hours", "GPU-hours of progress since the last complete checkpoint that was lost and repeated; with "
     "--mode abort also what preemptions lost.", "GPU-h"),
    ("stalled_gpu_hours", "GPU-hours held between a failure and its detection (--detect).", "GPU-h"),
    ("preemption_gpu_hours", "GPU-hours without progress for preemptions, migrations and resizes, and until gangs were "
     "complete.", "GPU-h"),
    ("down_gpu_hours", "GPU-hours of nodes that were down, from the detection of their failure to their repair.",
     "GPU-h"),
    ("idle_gpu_hours", "GPU-hours of nodes that were up without a job.", "GPU-h"),
    ("second_order_preemptions", "Preemptions for a job that a failure had interrupted: it started on a node of the "
     "preempted job at the second at which that left.", "preemptions"),
)  # fmt: skip


_DEADLINES = (
    _POLICY,
    ("deadlines", "Jobs with a deadline.", "jobs"),
    ("deadlines_met", "Of these, jobs that ended by it.", "jobs"),
    ("met_pct", "Their share."),
    ("deadlines_missed", "Jobs with a deadline that did not: late, declined, or without an end.", "jobs"),
    ("ended_late", "Of these, jobs that ended after it.", "jobs"),
    ("declined", "Of these, jobs that the policy rejected.", "jobs"),
    ("late_mean_s", "Mean time from the deadline to the end of jobs that ended late."),
    ("late_p95_s", "95th percentile of it."),
)


def _cdf(what: str) -> tuple[tuple[str, ...], ...]:
    return (
        _POLICY,
        ("minutes", f"A {what}.", "min"),
        ("cdf_pct", f"Share of the jobs counted (finished or not) that finished with at most this {what}."),
    )


_TABLES: dict[str, tuple[tuple[str, ...], ...]] = {
    "replay_summary": _SUMMARY,
    "replay_by_size": (_POLICY, _SIZE, *_JOB_FIGURES),
    "replay_by_queue": (_POLICY, ("queue", "The queue."), *_JOB_FIGURES),
    "replay_vs_baseline": _DIFFERENCES,
    "replay_vs_recorded": _DIFFERENCES,
    "replay_vs_unchanged": _DIFFERENCES,
    "replay_fidelity": _FIDELITY,
    "replay_unfinished": _UNFINISHED,
    "replay_jct_cdf": _cdf("JCT"),
    "replay_wait_cdf": _cdf("wait"),
    "replay_timeline": _TIMELINE,
    "replay_heatmap": _HEATMAP,
    "replay_gantt": _GANTT,
    "replay_changes": _CHANGES,
    "replay_gpus": _GPUS,
    "replay_fairness": _FAIRNESS,
    "replay_rho_cdf": _RHO_CDF,
    "replay_preemptions": _PREEMPTIONS,
    "replay_failures": _FAILURES,
    "replay_deadlines": _DEADLINES,
    "replay_jobs": _JOB,
    "replay_traits": _TRAITS,
}


_FIRST = (
    "policy", "size_bucket", "queue", "jobs", "jobs_finished", "jct_mean_s", "jct_p50_s", "jct_p95_s", "wait_mean_s",
    "wait_p50_s", "wait_p95_s", "slowdown_mean", "preemptions", "utilization_pct", "goodput_pct", "makespan_s",
)  # fmt: skip
"""Columns shown first if a table is too wide for a screen: those most people need."""


def columns(table: str) -> tuple[Column, ...]:
    """Return the documented columns of a result table, in order."""
    listed = [Column(name, unit[0] if unit else _unit(name), text) for name, text, *unit in _TABLES[table]]
    if table in {"replay_summary", "replay_by_size", "replay_by_queue"}:
        listed.sort(key=lambda column: _FIRST.index(column.name) if column.name in _FIRST else len(_FIRST))
    return tuple(listed)


def _unit(name: str) -> str:
    return next((unit for ending, unit in _UNITS if name.endswith(ending)), "-")


FIRST_COLUMNS = {
    "replay_summary": 15,
    "replay_by_size": 12,
    "replay_by_queue": 12,
    "replay_vs_baseline": 13,
    "replay_vs_recorded": 13,
    "replay_vs_unchanged": 13,
    "replay_fidelity": 12,
}
"""Columns that a terminal shows of wide tables."""

_FIGURES = ("jobs_finished", "wait_mean_s", "wait_p95_s", "jct_mean_s")
_DIFFERENCE_COLUMNS = (
    "policy", "measure", "size_bucket", "pairs", "diff_mean_s", "diff_low_s", "diff_high_s", "change_pct"
)  # fmt: skip
KEY_COLUMNS = {
    "replay_summary": ("policy", *_FIGURES, "jct_p95_s", "utilization_pct", "preemptions"),
    "replay_by_size": ("policy", "size_bucket", *_FIGURES, "slowdown_mean", "preemptions"),
    "replay_by_queue": ("policy", "queue", *_FIGURES, "slowdown_mean", "preemptions"),
    "replay_vs_baseline": _DIFFERENCE_COLUMNS,
    "replay_vs_recorded": _DIFFERENCE_COLUMNS,
    "replay_vs_unchanged": _DIFFERENCE_COLUMNS,
    "replay_preemptions": (
        "policy", "jobs", "jobs_preempted", "preempted_pct", "preemptions", "most_of_a_job", "overhead_gpu_h",
        "lost_gpu_h",
    ),
    "replay_failures": (
        "policy", "seed", "interruptions", "mttf_h", "ettr", "ettr_running", "productive_gpu_hours",
        "lost_gpu_hours", "down_gpu_hours",
    ),
    "replay_unfinished": ("policy", "job", "state", "queue", "user", "gpus", "wait_s", "reason"),
}  # fmt: skip
"""Columns that a page shows of wide tables."""


def documented(
    name: str,
    frame: pl.DataFrame,
    population: Note,
    *,
    section: str,
    title: str,
    question: str,
    notes: tuple[Note, ...] = (),
    detail: bool = False,
    sentences: tuple[Note, ...] = (),
    charts: tuple[str, ...] = (),
) -> ResultTable:
    """Return a result table of a replay, its columns documented and in their order.

    Args:
        name: of the table, a key of `gpuctl.replay.results.columns`.
        frame: its rows, with at least these columns.
        population: what is counted.
        section: where it is shown.
        title: its heading.
        question: answered by the table.
        notes: on this replay.
        detail: one row per job, or points of a curve.
        sentences: what its columns of sentences hold, each once.
        charts: declarations of charts, for a table that not every replay has.
    """
    shown = tuple(c for c in columns(name) if c.name not in OPTIONAL or c.name in frame.columns)
    return ResultTable(
        name=name,
        section=section,
        title=title,
        question=question,
        population=population,
        notes=notes,
        columns=shown,
        frame=frame.select(c.name for c in shown),
        detail=detail,
        first_columns=FIRST_COLUMNS.get(name, 0),
        key_columns=KEY_COLUMNS.get(name, ()),
        sentences=sentences,
        charts=charts,
    )
