"""Names of the series of a source that has several: interfaces of a machine, mounts of a process."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

_SHOWN = 8
_log = logging.getLogger(__name__)


def settle_names(sink: Sink, stem: str, what: str) -> None:
    """Leave out series that never read a byte, and call a series that is alone after the file.

    Where none read anything, all stay.

    Args:
        sink: whose source is looked at; its series are called ``stem`` and what follows.
        stem: the name of the file.
        what: names one series for a message, e.g. ``interfaces``.
    """
    sums = sink.query(
        "SELECT job, sum(bytes_read) AS bytes FROM traffic WHERE cluster = $cluster AND source = $source "
        "GROUP BY job ORDER BY job",
        {"cluster": sink.cluster, "source": sink.source},
    )
    busy = sums.filter(sums["bytes"] > 0)["job"].to_list()
    idle = [job for job in sums["job"].to_list() if job not in busy] if busy else []
    if idle:
        shown = ", ".join(job.removeprefix(stem).lstrip("/") or job for job in idle[:_SHOWN])
        _log.warning(
            "%s: %s that received nothing are left out: %s%s", stem, what, shown, " …" if len(idle) > _SHOWN else ""
        )
        sink.execute(
            "DELETE FROM traffic WHERE cluster = $cluster AND source = $source "
            "AND job IN (SELECT unnest($jobs::VARCHAR[]))",
            {"cluster": sink.cluster, "source": sink.source, "jobs": idle},
        )
    if sums.height - len(idle) == 1:
        sink.execute(
            "UPDATE traffic SET job = $job WHERE cluster = $cluster AND source = $source",
            {"cluster": sink.cluster, "source": sink.source, "job": stem},
        )
