"""Workloads and outcomes made by hand: the two jobs of a worked example, and consistent random ones of any size."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.replay.engine.state import DECISIONS, LOG
from gpuctl.replay.models.decision_log import DecisionLog
from gpuctl.replay.models.records import Cluster, Outcome, Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

ORIGIN = datetime(2017, 10, 2, tzinfo=UTC)
JOBS: dict[str, Any] = {
    "job": pl.String, "queue": pl.String, "user": pl.String, "gpus": pl.Int64, "submit_s": pl.Float64,
    "eligible_s": pl.Float64, "start_s": pl.Float64, "end_s": pl.Float64, "wait_s": pl.Float64, "jct_s": pl.Float64,
    "run_s": pl.Float64, "work_s": pl.Float64, "gpu_s": pl.Float64, "overhead_gpu_s": pl.Float64,
    "lost_gpu_s": pl.Float64, "preemptions": pl.Int64, "attempts": pl.Int64, "max_gpus": pl.Int64,
    "changes": pl.Int64, "t10_s": pl.Float64, "least_gpus": pl.Int64, "most_gpus": pl.Int64,
    "nodes": pl.Int64, "state": pl.String,
}  # fmt: skip
ATTEMPTS: dict[str, Any] = {
    "job": pl.Int32, "attempt": pl.Int32, "start_s": pl.Float64, "end_s": pl.Float64, "end": pl.String,
    "gpus": pl.Int32,
}  # fmt: skip


def decided(rows: Sequence[tuple[float, str, str, int, int, str]], jobs: Sequence[str]) -> DecisionLog:
    """A decision log of rows (second, decision, job, GPUs, nodes, reason)."""
    reasons = tuple(dict.fromkeys(reason for *_, reason in rows))
    lines = np.zeros(len(rows), LOG)
    for k, (t, what, job, gpus, _, reason) in enumerate(rows):
        lines[k] = (t, jobs.index(job), gpus, -1, reasons.index(reason), DECISIONS.index(what))
    return DecisionLog(lines, np.array([row[4] for row in rows], np.int32), DECISIONS, reasons, tuple(jobs), ())


def make_workload(
    submit: Sequence[float],
    work: Sequence[float],
    gpus: Sequence[int],
    *,
    recorded: Sequence[float] | None = None,
    queue: Sequence[int] | None = None,
    queues: tuple[str, ...] = ("a",),
    origin: datetime | None = None,
) -> Workload:
    """Jobs of one segment each."""
    count = len(submit)
    return Workload(
        name="by hand",
        ids=tuple(f"j{i}" for i in range(count)),
        submit=np.array(submit, dtype=float),
        eligible=np.array(submit, dtype=float),
        gpus=np.array(gpus, dtype=np.int64),
        queue=np.array(queue or [0] * count, dtype=np.int64),
        user=np.full(count, -1),
        time_limit=np.full(count, np.nan),
        gpu_type=np.full(count, -1),
        app=np.arange(count),
        depends=np.empty((0, 2), dtype=np.int64),
        segment_start=np.arange(count + 1),
        segment_s=np.array(work, dtype=float),
        segment_fails=np.zeros(count, dtype=bool),
        recorded_start=np.full(count, np.nan) if recorded is None else np.array(recorded, dtype=float),
        piece_start=np.zeros(count + 1, dtype=np.int64),
        piece_node=np.empty(0, dtype=np.int64),
        piece_gpus=np.empty(0, dtype=np.int64),
        state=("completed",) * count,
        queues=queues,
        users=(),
        gpu_types=(),
        origin=origin,
    )


def make_cluster(nodes: int, gpus: int, *, down: Sequence[tuple[float, float, float]] = ()) -> Cluster:
    """Equal nodes in one rack."""
    return Cluster(
        name=f"{nodes}x{gpus}",
        nodes=tuple(f"gpu{i:03d}" for i in range(nodes)),
        gpus=np.full(nodes, gpus),
        rack=np.zeros(nodes, dtype=np.int64),
        gpu_type=np.full(nodes, -1),
        racks=("r0",),
        pool=False,
        quota=np.array([np.inf]),
        down=np.array(down, dtype=float).reshape(-1, 3) if down else None,
    )


Stay = tuple[float, float | None, str]
"""When a gang got its GPUs, when it lost them (None: never), and why."""


def make_outcome(
    workload: Workload,
    stays: Sequence[Sequence[Stay]],
    *,
    policy: str = "fifo",
    oracle: bool = False,
    states: dict[int, str] | None = None,
    overhead: dict[int, float] | None = None,
    lost: dict[int, float] | None = None,
    nodes: int = 1,
    end_s: float | None = None,
) -> Outcome:
    """An outcome from when each job held its GPUs; a job whose last stay "finished" is finished.

    Args:
        workload: the jobs.
        stays: of each job, in order of time.
        policy: its name.
        oracle: whether it was told run times.
        states: of jobs that did not finish; by default running or waiting.
        overhead: GPU-seconds without progress, by job.
        lost: GPU-seconds made again, by job.
        nodes: each attempt lies on one of them, in turn.
        end_s: end of the replay; by default the last instant of a stay.
    """
    known = [t for s in stays for a, b, _ in s for t in (a, b) if t is not None]
    last = end_s if end_s is not None else max([*known, *workload.submit.tolist()])
    rows, attempts = [], []
    for i, own in enumerate(stays):
        gpus, submit = int(workload.gpus[i]), float(workload.submit[i])
        run = sum((last if b is None else b) - a for a, b, _ in own)
        done = bool(own) and own[-1][2] == "finished"
        end = own[-1][1] if done else None
        state = "finished" if done else (states or {}).get(i, "running" if own and own[-1][1] is None else "waiting")
        rows.append(
            {
                "job": workload.ids[i],
                "queue": workload.queues[workload.queue[i]],
                "gpus": gpus,
                "submit_s": submit,
                "eligible_s": float(workload.eligible[i]),
                "start_s": own[0][0] if own else None,
                "end_s": end,
                "wait_s": (last if end is None else end) - submit - run,
                "jct_s": None if end is None else end - submit,
                "run_s": run,
                "work_s": float(workload.segment_s[i]),
                "gpu_s": run * gpus,
                "overhead_gpu_s": (overhead or {}).get(i, 0.0),
                "lost_gpu_s": (lost or {}).get(i, 0.0),
                "preemptions": sum(why == "preempted" for *_, why in own),
                "attempts": len(own),
                "max_gpus": gpus if own else 0,
                "changes": 0,
                "t10_s": None,
                "least_gpus": gpus,
                "most_gpus": gpus,
                "nodes": 1 if own else None,
                "state": state,
            }
        )
        attempts += [(i, k, a, b, why, gpus) for k, (a, b, why) in enumerate(own)]
    attempts.sort(key=lambda row: (row[2], row[0]))
    held = pl.DataFrame(attempts, schema=ATTEMPTS, orient="row").with_columns(
        pl.lit(value=False).alias("shared"), own_s="start_s", group=pl.int_range(pl.len(), dtype=pl.Int32)
    )
    return Outcome(
        policy=policy,
        params={},
        oracle=oracle,
        settings={"placement": "any", "speed": "as recorded", "overhead": "none", "seed": "0"},
        jobs=pl.DataFrame(rows, schema=JOBS),
        attempts=held,
        pieces=pl.DataFrame(
            {"row": np.arange(held.height), "node": np.arange(held.height) % nodes, "gpus": held["gpus"]},
            schema_overrides={"row": pl.Int32, "node": pl.Int32},
        ),
        log=decided([], [row["job"] for row in rows]),
        end_s=float(last),
        instants=len(set(known)),
    )


def random_workload(
    count: int, *, seed: int = 0, days: float = 8.0, queues: tuple[str, ...] = ("a", "b"), origin: bool = True
) -> Workload:
    """Jobs of all sizes over some days, with recorded starts for most."""
    rng = np.random.default_rng(seed)
    submit = np.sort(rng.uniform(0, days * 86400, count)).round(3)
    recorded = submit + rng.exponential(600, count)
    recorded[rng.random(count) < 0.1] = np.nan
    return make_workload(
        submit.tolist(),
        np.exp(rng.normal(7, 1.5, count)).round(3).tolist(),
        rng.choice([1, 1, 1, 2, 4, 8, 16], count).tolist(),
        recorded=recorded.tolist(),
        queue=rng.integers(0, len(queues), count).tolist(),
        queues=queues,
        origin=ORIGIN if origin else None,
    )


def random_outcome(
    workload: Workload, *, seed: int = 0, policy: str = "random", nodes: int = 4, unfinished: bool = True
) -> Outcome:
    """Starts, preemptions and ends at random: consistent job by job, but no real cluster could hold them all."""
    rng = np.random.default_rng([seed, 1])
    stays: list[list[Stay]] = []
    states: dict[int, str] = {}
    overhead: dict[int, float] = {}
    lost: dict[int, float] = {}
    for i in range(workload.size):
        t, left = float(workload.submit[i]), float(workload.segment_s[i])
        own: list[Stay] = []
        fate = rng.random() if unfinished else 1.0
        for _ in range(int(rng.choice([0, 0, 0, 1, 3])) if fate > 0.1 else 0):
            t += float(rng.exponential(900))
            stay = float(rng.uniform(0, 0.4)) * left
            own.append((t, t + stay, "preempted"))
            t, left = t + stay, left - 0.75 * stay
            overhead[i] = overhead.get(i, 0.0) + 0.1 * stay * float(workload.gpus[i])
            lost[i] = lost.get(i, 0.0) + 0.15 * stay * float(workload.gpus[i])
        t += float(rng.exponential(900))
        if fate > 0.1:
            own.append((t, t + left, "finished"))
        elif fate > 0.07:
            own.append((t, None, "running"))
        elif fate < 0.02:
            states[i] = "unplaceable"
        stays.append(own)
    last = max([float(workload.submit.max()), *(b or a for own in stays for a, b, _ in own)])
    made = make_outcome(
        workload, stays, policy=policy, states=states, overhead=overhead, lost=lost, nodes=nodes, end_s=last
    )
    return replace(made, oracle=seed % 2 == 1)
