"""Dependencies between the jobs of a trace, for a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.core.notes import note
from gpuctl.replay.inputs.check import circular

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.inputs.trace_rows import Rows
    from gpuctl.replay.models.records import Floats, Ints


def dependencies(trace: Rows, rows: pl.DataFrame) -> tuple[Ints, Floats | None, list[Note]]:
    """Choose the dependencies that a replay uses: those between its jobs, except circles.

    Recorded times may contradict them, as in workload models whose waits are all 0: the definition of SWF counts.

    Args:
        trace: with the dependencies that the log records.
        rows: the jobs to replay: ``job``, ``number``, ``start_c``, ``end_c``.

    Returns:
        pairs of numbers (the later job, the one it waits for), shape (k, 2); seconds from the last end until each job
        may enter the queue, shape (jobs,), None if there are no pairs; notes on dropped and contradicted ones.
    """
    none = np.zeros((0, 2), np.int64)
    if not trace.follows.height:
        return none, None, []
    jobs = rows.select("job", number=pl.col("number").cast(pl.Int64), start_c="start_c", end_c="end_c")
    stated = trace.follows.join(jobs.select("job", "number", "start_c"), on="job")
    pairs = stated.join(jobs.select("job", "end_c", other="number"), left_on="before", right_on="job", how="left")
    there = pairs.filter(pl.col("other").is_not_null())
    contradicted = (pl.col("start_c") < pl.col("end_c")).fill_null(value=False)
    edges = there.unique(["number", "other"], maintain_order=True).sort("number", "other")
    depends = edges.select("number", "other").to_numpy().astype(np.int64).reshape(-1, 2)
    circle = circular(depends, rows.height)
    acyclic = ~np.isin(depends[:, 0], circle)
    outside, looped = pairs.height - there.height, int((~acyclic).sum())
    notes = []
    if outside:
        notes.append(note("{n:,} {n|dependency|dependencies} on jobs outside the replay {n|is|are} dropped", n=outside))
    if looped:
        notes.append(note("{n:,} {n|dependency|dependencies} in a circle {n|is|are} dropped", n=looped))
    if against := there.filter(contradicted).height:
        notes.append(
            note(
                "{n:,} {n|dependency is|dependencies are} contradicted by the recorded times: the replay keeps the "
                "{n|dependency|dependencies}",
                n=against,
            )
        )
    if not acyclic.any():
        return none, None, notes
    think = np.zeros(rows.height)
    np.maximum.at(think, depends[acyclic, 0], edges["think_s"].to_numpy()[acyclic])
    return depends[acyclic], think, notes
