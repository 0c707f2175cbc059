"""Jobs whose size changed while they ran (Slurm's RESIZING), as jobs of a fixed size that hold as many GPU-hours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import note

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.inputs.trace_rows import Rows


def of_resized(trace: Rows) -> tuple[Rows, list[Note]]:
    """Join attempts separated by a change of size into one run, and count the jobs concerned.

    Such a run has the job's largest size and lasts for its GPU-seconds over that size: it holds its GPU-hours, and
    never runs for longer than it did. Its placement is that of its first attempt with that size. Its holdings by node
    and queue over time remain in ``containers``.
    """
    c = pl.col
    if not trace.attempts["resized"].any():
        return trace, []
    # an attempt that a resize ended belongs to the one after it
    rows = trace.attempts.sort("job", "attempt")
    tries = rows.with_columns(
        run=c("resized").shift(1).over("job").fill_null(value=False).not_().cast(pl.Int32).cum_sum().over("job")
    )
    parted = tries.filter(c("resized").any().over("job", "run"))
    until = pl.max_horizontal(pl.coalesce("released_c", "shown_c", pl.lit(trace.log_end)), "start_c")
    parted = parted.with_columns(gpu_s=c("gpus") * (until - c("start_c")), until_c=until)
    largest = c("attempt").filter(c("gpus") == c("gpus").max()).first()
    ends = ("state", "endless", "end_c", "released_c", "shown_c")
    merged = parted.group_by("job", "run", maintain_order=True).agg(
        c("start_c", "held_from_c").first(),
        *(c(name).last() for name in ends),
        attempt=c("attempt").last(),
        gpus=c("gpus").max(),
        held_gpu_s=pl.when(c("gpu_s").null_count() == 0).then(c("gpu_s").sum()),
        placed=largest,
        resized=pl.lit(value=False),
        whole=pl.lit(value=False),
    )
    pieces = _pieces(trace, parted, merged)
    moved = merged.select("job", "attempt", "placed")
    unresized = trace.placements.join(parted.select("job", "attempt"), on=["job", "attempt"], how="anti")
    placed = trace.placements.join(moved.rename({"attempt": "to", "placed": "attempt"}), on=["job", "attempt"])
    placed = placed.with_columns(attempt="to").select(unresized.columns)
    others = trace.attempts.join(parted.select("job", "attempt"), on=["job", "attempt"], how="anti")
    changed = merged["job"].n_unique()
    text = note(
        "the size of {changed:,} job{changed||s} changed while {changed|it|they} ran: {changed|it is|each is} replayed "
        "at its largest size, for as long as makes up the GPU-hours that it held; a replay resizes no recorded job",
        changed=changed,
    )
    attempts = pl.concat([others, merged.select(set(others.columns) & set(merged.columns))], how="diagonal_relaxed")
    return replace(
        trace,
        attempts=attempts.select(trace.attempts.columns),
        containers=pl.concat([trace.containers, pieces.select(trace.containers.columns)], how="vertical_relaxed"),
        placements=pl.concat([unresized, placed]),
    ), [text]


def _pieces(trace: Rows, parted: pl.DataFrame, merged: pl.DataFrame) -> pl.DataFrame:
    """Holdings of each attempt over time: a row per node, or one without a node if none is known."""
    c = pl.col
    runs = parted.select("job", "run", "attempt", "start_c", "until_c", total="gpus")
    on = trace.placements.select("job", "attempt", "machine", part="gpus")
    rows = runs.join(on, on=["job", "attempt"], how="left", maintain_order="left")
    known = (c("part").null_count() == 0) & (c("part").sum() == c("total").first())
    rows = rows.with_columns(known=known.over("job", "attempt"))
    whole = rows.filter(~c("known")).unique(["job", "attempt"], maintain_order=True)
    whole = whole.with_columns(gpus="total", machine=pl.lit(None, pl.String))
    rows = pl.concat([rows.filter("known").with_columns(gpus="part"), whole], how="diagonal_relaxed")
    return rows.drop("attempt").join(merged.select("job", "run", "attempt"), on=["job", "run"]).filter(c("gpus") > 0)
