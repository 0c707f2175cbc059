"""Facts of a cluster in the store: its name for readers, and the format of its job log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import NamedValue, named, note

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

REPLAY = "replay"
"""``clusters.source_format`` of what a replay wrote."""


def cluster_note(store: Store, cluster: str) -> Note:
    """Return a cluster's name; for a replay's store, that of the trace and the policy."""
    trace, at, policy = cluster.rpartition("@")
    if not at or source_format(store, cluster) != REPLAY:
        return named("cluster", cluster)
    return note("{trace}@{policy}", trace=NamedValue("cluster", trace), policy=NamedValue("policy", policy))


def source_format(store: Store, cluster: str) -> str | None:
    """Return the format of a cluster's job log; None if there is none."""
    sql = "SELECT source_format FROM clusters WHERE cluster = $cluster"
    found: str | None = store.value(sql, {"cluster": cluster})
    return found
