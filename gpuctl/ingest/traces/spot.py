"""Alibaba's trace of spot GPUs, 2026: whether its jobs request more GPUs than its nodes have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

_CROWDED = """
    WITH demand AS (
        SELECT gpu_type, sum(gpus * run_sum_s) AS gpu_s, epoch(max(submit_ts) - min(submit_ts)) AS span_s
        FROM jobs WHERE cluster = $cluster GROUP BY gpu_type
    ), stock AS (SELECT gpu_type, sum(gpus) AS gpus FROM machines WHERE cluster = $cluster GROUP BY gpu_type)
    SELECT gpu_type, gpu_s / span_s / gpus AS share, gpus FROM demand JOIN stock USING (gpu_type)
    WHERE span_s > 0 AND gpus > 0 AND gpu_s / span_s > gpus ORDER BY gpu_type
"""


def conclude(sink: Sink | None) -> list[str]:
    """List the GPU types that jobs request beyond the stock, on average over the time of their submissions."""
    if sink is None:
        return []
    here: dict[str, object] = {"cluster": sink.cluster}
    known = "SELECT count(*) > 0 FROM sources WHERE cluster = $cluster AND format = 'alibaba-spot-jobs'"
    if not sink.query(known, here).item():
        return []
    return [
        f"jobs ask for {100 * share:.0f} % of the {gpus:.0f} GPUs of type {kind} on average: "
        "a replay of them never drains"
        for kind, share, gpus in sink.query(_CROWDED, here).iter_rows()
    ]
