"""How evenly policies treat jobs: the distribution of finish-time fairness, rho, and Jain's index of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import note
from gpuctl.replay.results import metrics
from gpuctl.replay.results.result_tables import documented

if TYPE_CHECKING:
    from gpuctl.core.results import ResultTable
    from gpuctl.replay.results.settings import Replays

POINTS = 150
"""Most points per curve."""

_TIMES = note(
    "rho: completion time by run time alone; rho_count and rho_demand also divide that by the contention: replay_jobs "
    "defines them."
)


def fairness(replays: Replays) -> ResultTable:
    """Return rho and Jain's index under each policy, by definition."""
    rows = []
    for outcome in replays.outcomes:
        skip = metrics.warmup_jobs(replays.workload, replays.warmup)
        for name, every in metrics.rhos(outcome, replays.workload, replays.cluster).items():
            rho = every[skip:][np.isfinite(every[skip:])]
            mean, p50, p95, most = (
                (float(rho.mean()), *np.quantile(rho, (0.5, 0.95)).tolist(), float(rho.max()))
                if rho.size
                else [None] * 4
            )
            rows.append(
                {"policy": outcome.policy, "definition": name, "jobs": rho.size, "rho_mean": mean, "rho_p50": p50,
                 "rho_p95": p95, "rho_max": most, "jain": metrics.jain(1 / rho) if rho.size else None}
            )  # fmt: skip
    frame = pl.DataFrame(rows, schema_overrides=dict.fromkeys(
        ("rho_mean", "rho_p50", "rho_p95", "rho_max", "jain"), pl.Float64
    ))  # fmt: skip
    return documented(
        "replay_fairness", frame, replays.jobs, section="replay", title="Fairness", notes=(_TIMES,),
        question="How evenly are jobs treated, by policy?",
        charts=(
            'bars on=page name=chart-replay-jain x=policy y=jain where=definition:rho '
            'title="Jain\'s index of 1/rho by policy: 1 if all jobs fare equally"',
        ),
    )  # fmt: skip


def distribution(replays: Replays) -> ResultTable:
    """Return points of the distribution of rho under each policy, each exact."""
    frames = []
    for outcome in replays.outcomes:
        skip = metrics.warmup_jobs(replays.workload, replays.warmup)
        every = metrics.rhos(outcome, replays.workload, replays.cluster)["rho"][skip:]
        rho = np.sort(every[np.isfinite(every)])
        rank = np.unique(np.linspace(1, rho.size, min(rho.size, POINTS)).round().astype(np.int64))
        # the share of equal values is that of the last of them
        rank = np.unique(np.searchsorted(rho, rho[rank - 1], side="right")) if rho.size else rank
        frames.append(
            pl.DataFrame(
                {
                    "policy": [outcome.policy] * rank.size,
                    "rho": rho[rank - 1],
                    "cdf_pct": 100 * rank / max(rho.size, 1),
                },
                schema={"policy": pl.String, "rho": pl.Float64, "cdf_pct": pl.Float64},
            )
        )
    return documented(
        "replay_rho_cdf", pl.concat(frames), replays.jobs, section="replay", title="Distribution of rho", detail=True,
        question="How is rho, completion time by run time, distributed over the jobs?", notes=(_TIMES,),
        charts=(
            'cdf on=page name=chart-replay-rho x=rho y=cdf_pct series=policy scale=ratio '
            'title="Finish-time fairness (rho) by policy" x_title="rho: completion time by run time (logarithmic)" '
            'y_title="% of finished jobs with at most this rho"',
        ),
    )  # fmt: skip
