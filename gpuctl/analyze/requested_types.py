"""The GPU type that each attempt of a log requested, if a source states it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.notes import note

if TYPE_CHECKING:
    from gpuctl.core.notes import Note
    from gpuctl.store.database import Store

_TYPES = (
    "CREATE OR REPLACE TEMP TABLE delay_types AS "
    "WITH types AS (SELECT count(DISTINCT gpu_type) AS types FROM base_machines), "
    "stood AS (SELECT number, any_value(m.gpu_type) AS gpu_type "
    "FROM base_placements JOIN base_machines AS m USING (machine) "
    "GROUP BY number HAVING count(DISTINCT m.gpu_type) = 1 AND count(m.gpu_type) = count(*)) "
    "SELECT number, CASE WHEN gpu_type_request = 'unknown' THEN coalesce(a.gpu_type, s.gpu_type) END AS gpu_type, "
    "gpu_type_request = 'unknown' AS is_open "
    "FROM base_attempts AS a LEFT JOIN stood AS s USING (number) CROSS JOIN types "
    "WHERE types > 1 AND gpu_type_request IS NOT NULL"
)
"""Of attempts that asked for no type, or may not have: null, or the type of the nodes that they may be bound to."""


def build(store: Store) -> None:
    """Create ``delay_types``, which is empty if nodes are of one type."""
    store.execute(_TYPES)


def warnings(store: Store) -> list[Note]:
    """Return caveats on waits whose GPU type is unknown."""
    waits = store.value(
        "SELECT count(*) FROM delay_types JOIN base_attempts USING (number) WHERE is_open AND wait_s > 0"
    )
    if not waits:
        return []
    return [
        note(
            "the logs do not state which GPU type {waits:,} waiting attempt{waits||s} requested, so each may have "
            "waited for the type that it got or for any:"
            " export sacct's columns ReqTRES and Constraints, "
            "and name the types in AccountingStorageTRES",
            waits=int(waits),
        )
    ]
