"""Deadlines that each policy meets and misses: of a replay whose jobs have some, or whose policies assume some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import NamedValue, note
from gpuctl.replay.models import deadlines as models
from gpuctl.replay.results.result_tables import documented

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import ResultTable
    from gpuctl.replay.models.records import Outcome, Workload
    from gpuctl.replay.results.settings import Replays

GO_BY_THEM = ("edf", "elasticflow")
"""Policies that assume deadlines where the input has none."""


def there(outcomes: Sequence[Outcome], workload: Workload) -> bool:
    """Whether there is something to count."""
    return workload.deadline is not None or any(outcome.kind in GO_BY_THEM for outcome in outcomes)


def table(replays: Replays) -> ResultTable:
    """Return how many deadlines each policy meets, one row a policy."""
    by = models.deadlines(replays.workload)
    some = np.isfinite(by)
    rows = []
    for outcome in replays.outcomes:
        jobs = outcome.jobs.with_columns(late=pl.col("end_s") - pl.Series(by)).filter(pl.Series(some))
        late = jobs["late"].filter(jobs["late"] > models.LATE_S)
        met = int((jobs["late"] <= models.LATE_S).sum())
        rejected = int((jobs["state"] == "rejected").sum())
        rows.append(
            {
                "policy": outcome.policy,
                "deadlines": jobs.height,
                "deadlines_met": met,
                "met_pct": 100 * met / jobs.height if jobs.height else None,
                "deadlines_missed": jobs.height - met,
                "ended_late": late.len(),
                "declined": rejected,
                "late_mean_s": late.mean(),
                "late_p95_s": late.quantile(0.95, interpolation="linear"),
            }
        )
    return documented(
        "replay_deadlines",
        pl.DataFrame(rows, schema_overrides={"late_mean_s": pl.Float64, "late_p95_s": pl.Float64}),
        note(
            "{size:,} job{size||s} with a deadline of {name}, all counted.",
            size=int(some.sum()),
            name=NamedValue("cluster", replays.workload.name),
        ),
        section="replay",
        title="Deadlines",
        question="How many deadlines does each policy meet?",
        notes=models.derived(replays.workload),
    )
