"""The origin of rows: the ledger of a trace store, and files that are read without one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from gpuctl.core.results import SourceInfo
from gpuctl.core.storable_text import storable

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.store.database import Store


SOURCE_ENDS = """
    WITH stated AS (
        SELECT source, least(submit_ts, start_ts, end_ts) AS low, greatest(submit_ts, start_ts, end_ts) AS high
        FROM jobs WHERE cluster = $cluster
        UNION ALL
        SELECT source, least(start_ts, end_ts),
               -- a source that states for how long something has run was made then
               greatest(start_ts, end_ts, CASE WHEN state IN ('running', 'suspended') THEN start_ts
                   + to_microseconds(((elapsed_s + coalesce(suspended_s, 0)) * 1e6)::BIGINT) END)
        FROM attempts WHERE cluster = $cluster
    ),
    spans AS (
        SELECT t.source, min(t.low) AS low, max(t.high) AS high,
               coalesce(any_value(s.format) LIKE 'yarn-%', false) AS is_daemons
        FROM stated AS t LEFT JOIN sources AS s ON s.source = t.source GROUP BY t.source
    ),
    parted AS (
        SELECT source, low, high, low > max(high) OVER before + INTERVAL 30 DAY AS begins
        FROM spans WHERE is_daemons
        WINDOW before AS (ORDER BY low, source ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
    ),
    chained AS (
        SELECT source, high, sum(CASE WHEN begins THEN 1 ELSE 0 END) OVER (ORDER BY low, source) AS chain
        FROM parted
    )
    SELECT source, high AS end_ts FROM spans WHERE NOT is_daemons
    UNION ALL
    SELECT source, max(high) OVER (PARTITION BY chain) FROM chained
"""
"""Source, and the last time that it describes jobs: what still ran or waited is known to have done so until then.

Of `$cluster`. An export shows the state of its jobs when it was made. The daemons of YARN write on and on, and state
when something ends: there, the last time of all their logs that follow each other without a gap of 30 days counts.
"""

LAST_SAMPLES = """
    SELECT job, max(ts) AS seen_ts FROM queue_samples
    WHERE cluster = $cluster
          AND coalesce(state, 'PENDING') IN ('PENDING', 'RUNNING', 'CONFIGURING', 'SUSPENDED', 'STOPPED', 'COMPLETING')
    GROUP BY job
"""
"""Job, and when the queue of `$cluster` was last seen with it."""


def read_sources(store: Store, cluster: str) -> tuple[SourceInfo, ...]:
    """Return the files that a cluster of a store was read from, in the order in which they were read."""
    rows = store.frame(
        "SELECT path, format, sha256, bytes, rows_in, rows_loaded, rows_rejected, rows_already_stored FROM sources "
        "WHERE cluster = $cluster ORDER BY source",
        {"cluster": cluster},
    )
    return tuple(SourceInfo(**row) for row in rows.iter_rows(named=True))


JOBS_CSV = "jobs-csv"
"""``format`` of a CSV of jobs."""


def jobs_csv(path: Path, rows_in: int, rows_loaded: int) -> SourceInfo:
    """Return the ledger row of a CSV of jobs that was read without a store.

    Args:
        path: the file.
        rows_in: its rows.
        rows_loaded: rows that were used; the others count as rejected.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = file.tell()
    return SourceInfo(storable(str(path)), JOBS_CSV, digest, size, rows_in, rows_loaded, rows_in - rows_loaded)
