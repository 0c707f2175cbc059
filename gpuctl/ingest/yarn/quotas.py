"""Works out the GPUs that queues are guaranteed, where a scheduler dump tells shares and no GPUs (2.10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.yarn.events import MANAGER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.ingest.base import Sink

_FILL = """
    UPDATE queues SET quota_gpus = share * offered, quota_source = 'configured'
    FROM (SELECT queue, max(gpus) AS share FROM yarn_facts
          WHERE cluster = $cluster AND origin = 'capacity' GROUP BY queue) AS told,
         (SELECT sum(gpus_labelled) AS offered FROM machines WHERE cluster = $cluster AND partition IS NULL) AS sizes
    WHERE queues.cluster = $cluster AND queues.queue = told.queue AND offered > 0
"""


def note_shares(sink: Sink, shares: Mapping[str, float]) -> None:
    """Keep what share of the machines without a node label each queue is guaranteed: path -> 0 to 1."""
    import polars as pl

    if shares:
        frame = pl.DataFrame({"queue": list(shares), "gpus": list(shares.values())})
        same = {"job": pl.lit(MANAGER), "origin": pl.lit("capacity"), "local": pl.lit(value=False)}
        sink.insert("yarn_facts", frame.with_columns(**same))


def fill_quotas(sink: Sink) -> None:
    """Set ``quota_gpus`` of queues with a known share of all GPUs of the machines known by now.

    Both are configured, the share in the scheduler and the GPUs on the machines, so the source is ``configured``.
    """
    sink.execute(_FILL, {"cluster": sink.cluster})
