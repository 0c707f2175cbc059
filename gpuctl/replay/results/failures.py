"""What failures of nodes cost under each policy: interruptions, ETTR, and every GPU-hour in one class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.notes import NamedValue, note
from gpuctl.replay.results.columns import documented
from gpuctl.replay.results.metrics import total, use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Cluster, Outcome
    from gpuctl.replay.results.settings import Replays

ROUNDING = 1e-9
"""Share of the GPU-hours held that sums of floats may be off."""
TITLE = "Failures of nodes"
QUESTION = "How often are jobs interrupted, what share of their time is productive, and where do the GPU-hours go?"
NOTES = (
    note(
        "productive, checkpoint, load, lost, stalled, preemption, down and idle add up to gpu_hours: each GPU-hour of "
        "all nodes, from the first submission to the last end, is in one of them."
    ),
    note("The same seed gives the same failures under every policy and with every interval of checkpoints."),
)


def failing(outcomes: Sequence[Outcome]) -> bool:
    """Whether nodes failed in these replays, or jobs saved checkpoints against it."""
    return any("interruptions" in outcome.jobs.columns for outcome in outcomes)


def figures(outcome: Outcome, cluster: Cluster) -> dict[str, Any]:
    """Return the figures of ``replay_failures``; of a replay in which nothing fails, too.

    ETTR = productive / (queue + held), of GPU-seconds: the queue from when a job could start, its gang's GPUs wanted.
    """
    jobs = outcome.jobs
    if "interruptions" not in jobs.columns:
        none = ("interruptions", "checkpoint_gpu_s", "load_gpu_s", "stalled_gpu_s")
        jobs = jobs.with_columns(pl.lit(0).alias(name) for name in none)
    of = use(outcome, cluster)
    capacity = cluster.total_gpus * float(of["measured_s"] or 0.0) / 3600
    held, lost, overhead = (float(of[name] or 0.0) for name in ("available_gpu_h", "lost_gpu_h", "overhead_gpu_h"))
    down, idle = max(capacity - held, 0.0), float(of["idle_gpu_h"] or 0.0)
    held = capacity - down - idle
    write, load, stall = (total(jobs[f"{name}_gpu_s"]) / 3600 for name in ("checkpoint", "load", "stalled"))
    productive, rest = held - lost - overhead, overhead - write - load - stall
    queued = total((jobs["wait_s"] - (jobs["eligible_s"] - jobs["submit_s"])).clip(0.0) * jobs["gpus"]) / 3600
    run_h, count = total(jobs["run_s"]) / 3600, int(jobs["interruptions"].sum())
    return {
        "injected": int(outcome.counts.get("injected", 0)),
        "interruptions": count,
        "jobs_interrupted": int((jobs["interruptions"] > 0).sum()),
        "run_h": run_h,
        "mttf_h": run_h / count if count else None,
        "ettr": productive / (queued + held) if held > 0 else None,
        "ettr_running": productive / held if held > 0 else None,
        "gpu_hours": capacity,
        "productive_gpu_hours": productive,
        "checkpoint_gpu_hours": write,
        "load_gpu_hours": load,
        "lost_gpu_hours": lost,
        "stalled_gpu_hours": stall,
        "preemption_gpu_hours": rest if rest > ROUNDING * held else 0.0,
        "down_gpu_hours": down,
        "idle_gpu_hours": idle,
        "second_order_preemptions": _second_order(outcome),
    }


def _second_order(outcome: Outcome) -> int:
    """Preemptions at whose end a job that a failure had interrupted started again on one of the nodes."""
    attempts = outcome.attempts.with_row_index("row").with_columns(pl.col("row").cast(pl.Int32))
    before = attempts.select("job", attempt=pl.col("attempt") + 1, after="end").cast({"attempt": pl.Int32})
    again = attempts.join(before, on=["job", "attempt"]).filter(pl.col("after") == "machine_down")
    ended = attempts.filter(pl.col("end") == "preempted").select("row", t="end_s")
    starts = again.select("row", t="start_s")
    places = outcome.pieces.select("row", "node")
    hit = ended.join(places, on="row").join(starts.join(places, on="row"), on=["t", "node"])
    return int(hit["row"].n_unique())


def table(replays: Replays) -> ResultTable:
    """Return the table ``replay_failures``."""
    rows = [
        {"policy": outcome.policy, "seed": replays.failure_seed, **figures(outcome, replays.cluster)}
        for outcome in replays.outcomes
    ]
    return documented(
        "replay_failures", pl.DataFrame(rows, infer_schema_length=None).cast({"mttf_h": pl.Float64}),
        note(
            "{size:,} job{size||s} of {name}, all counted.",
            size=replays.workload.size, name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay", title=TITLE, question=QUESTION, notes=NOTES,
    )  # fmt: skip
