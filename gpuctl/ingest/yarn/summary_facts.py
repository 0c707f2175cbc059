"""Turns an ApplicationSummary into facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.yarn import facts as f

if TYPE_CHECKING:
    from gpuctl.ingest.yarn.summary import Summary


def take_summary(facts: f.Facts, summary: Summary) -> None:
    """Note what a summary says.

    The submission is ``startTime``, which every version and the REST answers have, and not ``submitTime``, the client's
    call some 0.1 s before it, which only some have.

    Raises:
        RowError: one of its times is past the year 2200.
    """
    submit, launch, end = map(f.epoch_millis, (summary.start_ms, summary.launch_ms, summary.end_ms))
    row = facts.row("summary", summary.job)
    for field, text in (
        (f.NAME, summary.name),
        (f.USER, summary.user),
        (f.QUEUE, summary.queue),
        (f.FINAL_STATUS, summary.final_status),
        (f.REASON, summary.diagnostics),
        (f.MACHINE, summary.master_host),
    ):
        f.least(row, field, text)
    # a restarted ResourceManager writes a second summary, and may have lost some of what it had counted
    f.most(row, f.GPU_SECONDS, summary.gpu_seconds)
    f.advance(row, summary.state)
    f.earliest(row, f.SUBMIT, submit)
    f.earliest(row, f.LAUNCH, launch)
    f.earliest(row, f.END, end)
