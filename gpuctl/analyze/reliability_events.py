"""Whether a store knows events of nodes, without which few interruptions have a cause."""

from __future__ import annotations

EVENTS_OF_NODES = (
    "SELECT EXISTS (FROM machine_events WHERE cluster = $cluster) "
    "OR EXISTS (FROM gpu_events WHERE cluster = $cluster AND signal = 'xid')"
)
"""Whether the store has outages of nodes or Xids of the cluster."""
