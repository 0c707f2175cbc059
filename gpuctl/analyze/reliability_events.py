"""Whether a store knows events of nodes, without which few interruptions have a cause."""

from __future__ import annotations

EVENTS_OF_NODES = (
    "SELECT EXISTS (FROM machine_events WHERE cluster = $cluster) "
    "OR EXISTS (FROM gpu_events WHERE cluster = $cluster AND signal IN ('xid', 'ecc_dbe')) "
    "OR EXISTS (FROM gpu_faults WHERE cluster = $cluster AND signal = 'lost')"
)
"""Whether the store has outages of nodes, Xids, or faults of GPUs in telemetry of the cluster."""
