"""Random cases in which nodes fail, and what must hold of a replay of one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.replay.models.node_failures import DAY_S, NodeFailures, Repair, Source

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.models.records import Cluster, Outcome, Workload


def with_failures(seed: int, case: tuple[Workload, Cluster, Settings]) -> tuple[Workload, Cluster, Settings]:
    """The same case with nodes, and at times whole racks, that fail, and jobs that save checkpoints or none."""
    workload, cluster, settings = case
    draw = np.random.Generator(np.random.PCG64((seed, 1)))
    repair = (Repair(), Repair(mean=4.0), Repair(median=6.0, sigma=1.0), Repair(values=(1.0, 9.0)))[draw.integers(4)]
    rates = DAY_S / draw.uniform(100.0, 1000.0, len(cluster.nodes))
    shape = float(draw.choice([0.6, 1.0, 2.0]))
    sources = [Source((node,), float(rate), shape, repair, (1, node)) for node, rate in enumerate(rates)]
    if draw.random() < 0.3:
        racks = [np.flatnonzero(cluster.rack == rack).tolist() for rack in range(len(cluster.racks))]
        sources += [Source(tuple(of), DAY_S / 2000.0, 1.0, repair, (2, rack)) for rack, of in enumerate(racks)]
    failures = NodeFailures(
        sources=tuple(sources),
        listed=((0, 10.0, 25.0), (0, 12.0, 12.0)) if draw.random() < 0.3 else (),
        every=np.where(draw.random(workload.size) < 0.3, np.inf, draw.uniform(0.5, 10.0, workload.size)),
        write=float(draw.choice([0.0, 0.5, 2.0])),
        restart=float(draw.choice([0.0, 3.0])),
        detect=float(draw.choice([0.0, 0.0, 2.0])),
        spares=int(draw.integers(2)),
        seed=seed,
        text={},
    )
    if failures.listed and draw.random() < 0.5:
        failures = replace(failures, drains=frozenset({(0, 10.0)}))
    return workload, cluster, replace(settings, failures=failures)


def failure_violations(outcome: Outcome, settings: Settings) -> list[str]:
    """Attempts on nodes that failed or drained: that survived it, or started before the repair; and wrong counts."""
    if settings.failures is None:
        return []
    outages = settings.failures.outages(float(outcome.jobs["submit_s"].min() or 0.0))  # type: ignore[arg-type]
    outages.until(outcome.end_s)
    late = settings.failures.detect
    attempts = outcome.attempts.with_row_index("row").with_columns(
        pl.col("row").cast(pl.Int32), end_s=pl.col("end_s").fill_null(outcome.end_s)
    )
    names = outcome.jobs["job"]
    held = outcome.pieces.join(attempts, on="row")
    held = held.with_columns(names.gather(held["job"]).alias("name"))
    found = []
    drained = [row for row in outages.away if row[:2] in settings.failures.drains]
    for node, since, until in drained:
        early = held.filter((pl.col("node") == node) & pl.col("start_s").is_between(since, until, closed="none"))
        found += [f"{name} starts while its node drains or is away to {until:g}" for name in early["name"]]
    for node, since, until in outages.drawn:
        here = held.filter(pl.col("node") == node)
        hit = here.filter((pl.col("start_s") < since) & (pl.col("end_s") > since))
        for name, end, how in hit.select("name", "end_s", "end").rows():
            noticed = end <= since + late + 1e-6
            if not noticed or (how != "machine_down" and late == 0):
                found.append(f"{name} goes on to {end:g} ({how}) on a node that fails at {since:g}")
        early = here.filter((pl.col("start_s") >= since) & (pl.col("start_s") < until))
        found += [f"{name} starts while its node is down to {until:g}" for name in early["name"]]
    ended = attempts.filter(pl.col("end") == "machine_down").group_by("job").len()
    count = dict(ended.iter_rows())
    for job, number in enumerate(outcome.jobs["interruptions"].to_list()):
        if number != count.get(job, 0) and outcome.jobs["state"][job] == "finished":
            found.append(f"{outcome.jobs['job'][job]}: {number} interruptions, {count.get(job, 0)} ended attempts")
    return found
