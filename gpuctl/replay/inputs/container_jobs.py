"""Jobs whose GPUs came and went with their containers (YARN), as jobs of a fixed size that hold as many GPU-hours."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.notes import note

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.replay.inputs.trace_rows import Rows

_UNEVEN = 0.05


def of_containers(trace: Rows) -> tuple[Rows, list[Note]]:
    """Give each of these jobs a fixed size, and note how many there are.

    A job has the GPUs of its gang, or the mean held by its containers together, rounded up, if larger: so no job is
    replayed for longer than it ran. Its run time is its GPU-seconds over that size.
    """
    c = pl.col
    rows = trace.attempts.filter(c("held_gpu_s").is_not_null()).join(trace.jobs.select("job", gang="gpus"), on="job")
    until = pl.coalesce("released_c", "shown_c", pl.lit(trace.log_end))
    rows = rows.with_columns(span=until - c("start_c")).filter(c("span") > 0)
    # a few percent are members that came slightly earlier than the last one, or left slightly later
    uneven = rows.filter((c("held_gpu_s") - c("gang") * c("span")).abs() > _UNEVEN * c("held_gpu_s"))
    if uneven.is_empty():
        return trace, []
    means = uneven.group_by("job").agg(mean=(c("held_gpu_s") / c("span")).max())
    jobs = trace.jobs.join(means, on="job", how="left", maintain_order="left")
    grown = (c("mean") > c("gpus") * (1 + _UNEVEN)).fill_null(value=False)
    count = jobs.filter(grown).height
    jobs = jobs.with_columns(gpus=pl.when(grown).then((c("mean") - 1e-6).ceil()).otherwise("gpus")).drop("mean")
    more = note("; {count:,} of them {count|has|have} the mean of what {count|it|they} held", count=count)
    text = note(
        "containers of {changed:,} job{changed||s} came and went: {changed|it is|each is} replayed on all of its GPUs "
        "at once, for as long as makes up the GPU-hours that it held from its start on{more}",
        changed=means.height,
        more=more if count else note(""),
    )
    return replace(trace, jobs=jobs), [text]
