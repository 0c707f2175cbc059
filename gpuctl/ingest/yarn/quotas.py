"""Computes guaranteed and maximum GPUs of queues if a dump or a log states shares of the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.yarn.events import MANAGER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.ingest.core.format import Sink

_ORIGINS = """
    SELECT DISTINCT origin FROM yarn_facts
    WHERE cluster = $cluster AND origin IN ('capacity', 'limit', 'log_capacity')
"""


def _from_shares(origin: str, columns: str, gpus: str) -> str:
    """Make a statement that fills columns of queues with `gpus`, over the node labels of which a queue has a share."""
    return f"""
        UPDATE queues SET {columns}
        FROM (SELECT queue, {gpus} AS gpus
              FROM (SELECT queue, name AS label, max(gpus) AS share FROM yarn_facts
                    WHERE cluster = $cluster AND origin = '{origin}' GROUP BY ALL) AS shares
              JOIN (SELECT partition AS label, sum(gpus_labelled) AS offered FROM machines
                    WHERE cluster = $cluster GROUP BY ALL) AS sizes ON shares.label IS NOT DISTINCT FROM sizes.label
              GROUP BY queue HAVING sum(offered) > 0) AS found
        WHERE queues.cluster = $cluster AND queues.queue = found.queue
    """  # noqa: S608 (made of the texts below)


_FILL = _from_shares("capacity", "quota_gpus = found.gpus, quota_source = 'configured'", "sum(share * offered)")
_LIMIT = _from_shares(
    "limit",
    "limit_gpus = found.gpus",
    """CASE WHEN min(share) < 1 OR sum(offered) < (SELECT sum(gpus_labelled) FROM machines WHERE cluster = $cluster)
            THEN sum(share * offered) ELSE 'infinity' END""",
)


_FROM_LOG = """
    UPDATE queues SET quota_gpus = share * offered, quota_source = 'configured',
                      limit_gpus = CASE WHEN most < 1 THEN most * offered ELSE 'infinity' END
    FROM (SELECT queue, max(gpus) FILTER (origin = 'log_capacity') AS share,
                 coalesce(max(gpus) FILTER (origin = 'log_limit'), max(gpus) FILTER (origin = 'log_bound')) AS most
          FROM yarn_facts WHERE cluster = $cluster AND origin IN ('log_capacity', 'log_limit', 'log_bound')
          GROUP BY queue) AS stated,
         (SELECT sum(gpus_labelled) AS offered FROM machines WHERE cluster = $cluster AND partition IS NULL) AS sizes
    WHERE queues.cluster = $cluster AND queues.parent IS NULL AND offered > 0 AND share > 0
          AND (queues.queue = stated.queue
               OR NOT contains(stated.queue, '.') AND regexp_extract(queues.queue, '[^.]*$') = stated.queue)
"""
"""Of queues that no scheduler dump has named, which would have given them a parent."""


def note_shares(sink: Sink, shares: Mapping[str, float], origin: str, label: str | None = None) -> None:
    """Keep what share of the nodes of one node label each queue has: path -> 0 to 1.

    Args:
        sink: of the dump.
        shares: by queue.
        origin: ``capacity`` for what they are guaranteed, ``limit`` for what they may have at most; of a log, whose
            word counts less than a dump's, ``log_capacity``, ``log_limit``, and ``log_bound`` for the share of its
            parent's that a queue may have at most: no less than that of all.
        label: the node label; None: the nodes without one.
    """
    import polars as pl

    if shares:
        frame = pl.DataFrame({"queue": list(shares), "gpus": list(shares.values())})
        same = {"job": pl.lit(MANAGER), "origin": pl.lit(origin), "local": pl.lit(value=False)}
        if label is not None:
            same["name"] = pl.lit(label)
        sink.insert("yarn_facts", frame.with_columns(**same))


def fill_quotas(sink: Sink) -> None:
    """Set ``quota_gpus`` and ``limit_gpus`` of queues with a known share of all GPUs of the nodes known by now.

    Both are configured, the share in the scheduler and the GPUs on the nodes, so the source is ``configured``.
    """
    here: dict[str, object] = {"cluster": sink.cluster}
    origins = set(sink.query(_ORIGINS, here)["origin"])
    for statement, of in ((_FILL, "capacity"), (_LIMIT, "limit"), (_FROM_LOG, "log_capacity")):
        if of in origins:
            sink.execute(statement, here)
