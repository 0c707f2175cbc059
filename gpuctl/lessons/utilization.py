"""GPU utilization of each attempt, alone on its nodes and with neighbours, and the similarity of attempts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze.shared_tables import SharedTables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.lessons.lesson_input import Case
    from gpuctl.replay.models.records import Floats, Ints

LEAST_SAMPLES = 10
"""Fewest samples for the mean utilization of an attempt."""

_ATTEMPTS = """
    SELECT a.job, a.attempt, a.gpus, j."user", j.name
    FROM attempts AS a JOIN jobs AS j USING (cluster, job) WHERE cluster = $cluster
"""
_PLACES = "SELECT DISTINCT job, attempt, machine FROM placements WHERE cluster = $cluster"


@dataclass(frozen=True)
class Use:
    """Attempts with telemetry, one element each.

    Attributes:
        user: number of its user; jobs without a user count as one user each.
        job: number of its job.
        like: number of its kind: same user, name (ignoring numbers) and GPUs.
        named: whether its job has a name: without one, a kind is all of its user's jobs on as many GPUs.
        gpus: GPUs of the gang.
        nodes: number of nodes that it was on.
        level: 0: on the fewest nodes that can hold it, in one rack; 1: on more nodes of one rack; 2: in several
            racks.
        alone_pct: mean utilization over samples on nodes with no other attempt; NaN none.
        alone: number of these samples.
        shared_pct: the same on nodes with another attempt.
        shared: number of these samples.
    """

    user: Ints
    job: Ints
    like: Ints
    named: NDArray[np.bool_]
    gpus: Ints
    nodes: Ints
    level: Ints
    alone_pct: Floats
    alone: Floats
    shared_pct: Floats
    shared: Floats

    @property
    def pct(self) -> Floats:
        """Return the mean utilization of each attempt."""
        total = np.nan_to_num(self.alone_pct) * self.alone + np.nan_to_num(self.shared_pct) * self.shared
        return np.asarray(total / np.maximum(self.alone + self.shared, 1))

    @property
    def shared_share(self) -> Floats:
        """Return the share of its samples on nodes with another attempt."""
        return np.asarray(self.shared / np.maximum(self.alone + self.shared, 1))


def read(case: Case) -> Use | None:
    """The attempts of a case that have at least `LEAST_SAMPLES`; None if the trace has no telemetry of them."""
    tables = SharedTables(case.store, case.cluster, case.options, case.notify)
    sampled = pl.DataFrame(tables.rows("attempt_use"), infer_schema_length=None)
    if not sampled.height:
        return None
    c = pl.col
    sampled = (
        sampled.with_columns(where=pl.when("colocated").then(pl.lit("shared")).otherwise(pl.lit("alone")))
        .group_by("job", "attempt")
        .agg(
            *(c("samples").filter(c("where") == w).sum().alias(w) for w in ("alone", "shared")),
            *(c("total").filter(c("where") == w).sum().alias(f"{w}_total") for w in ("alone", "shared")),
        )
        .filter(c("alone") + c("shared") >= LEAST_SAMPLES)
    )
    here = {"cluster": case.cluster}
    about = case.store.frame(_ATTEMPTS, here).filter(c("gpus").is_not_null() & (c("gpus") >= 1))
    rows = sampled.join(about, on=["job", "attempt"]).join(_places(case), on=["job", "attempt"])
    rows = rows.sort("job", "attempt")
    if not rows.height:
        return None
    gpus = rows["gpus"].to_numpy().astype(np.int64)
    most = int(case.nodes.gpus.max())
    fewest = -(-gpus // most)
    nodes, racks = rows["nodes"].to_numpy(), rows["racks"].to_numpy()
    level = np.where(racks > 1, 2, np.where(nodes > fewest, 1, 0))
    user = _numbered(_user(rows))
    like = _numbered([f"{u}\0{_stem(name)}\0{g}" for u, name, g in zip(_user(rows), rows["name"], gpus, strict=True)])
    alone, shared = (rows[name].to_numpy().astype(np.float64) for name in ("alone", "shared"))
    totals = (rows[f"{name}_total"].to_numpy().astype(np.float64) / 1e6 for name in ("alone", "shared"))
    with np.errstate(invalid="ignore", divide="ignore"):
        alone_pct, shared_pct = (total / n for total, n in zip(totals, (alone, shared), strict=True))
    job, named = _numbered(rows["job"].to_list()), (rows["name"].fill_null("") != "").to_numpy()
    return Use(user, job, like, named, gpus, nodes.astype(np.int64), level, alone_pct, alone, shared_pct, shared)


def _places(case: Case) -> pl.DataFrame:
    """Return how many nodes and racks each attempt was on: job, attempt, nodes, racks."""
    rack = dict(zip(case.nodes.nodes, case.nodes.rack.tolist(), strict=True))
    rows = case.store.frame(_PLACES, {"cluster": case.cluster})
    rows = rows.with_columns(rack=pl.col("machine").replace_strict(rack, default=None, return_dtype=pl.Int64))
    return rows.group_by("job", "attempt").agg(nodes=pl.len(), racks=pl.col("rack").n_unique())


def _user(rows: pl.DataFrame) -> list[str]:
    """Return the number of its user or, if unknown, of the job itself, which is then similar to no other."""
    return [u if u is not None else f"\0{j}" for u, j in zip(rows["user"], rows["job"], strict=True)]


def _stem(name: str | None) -> str:
    """Return a job's name without numbers, common to the runs of one model."""
    return re.sub(r"\d+", "#", name or "")


def _numbered(names: list[str]) -> Ints:
    return np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)[1].astype(np.int64)
