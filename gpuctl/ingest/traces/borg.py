"""Jobs of Google's Borg trace of 2019, made of their events.

Of an event in ``trace_parts``, ``task`` is the priority, ``group`` the scheduler and ``start_ts`` the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

_NAMES = (
    *("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST"),
    *("UPDATE_PENDING", "UPDATE_RUNNING"),
)
"""Events, in the order of their numbers: https://github.com/google/cluster-data, clusterdata_trace_format_v3.proto."""
_NUMBERED = " ".join(f"WHEN '{number}' THEN '{name}'" for number, name in enumerate(_NAMES))
_THEIRS = "source IN (SELECT source FROM sources WHERE cluster = $cluster AND format = 'borg-collections')"
_JOBS = f"""
INSERT INTO job_rows BY NAME
WITH events AS (
    SELECT job, "user", name, task, "group", start_ts AS ts, source,
           CASE source_state {_NUMBERED} ELSE upper(source_state) END AS kind
    FROM trace_parts WHERE cluster = $cluster AND kind = 'borg-event'
),
merged AS (
    SELECT job, min("user") AS "user", min(name) AS name, max(try_cast(task AS INTEGER)) AS priority,
           min("group") AS qos, min(ts) FILTER (kind = 'SUBMIT') AS submit_ts,
           min(ts) FILTER (kind = 'SCHEDULE') AS start_ts,
           max(ts) FILTER (kind IN ('FAIL', 'FINISH', 'KILL', 'LOST')) AS end_ts,
           arg_max(kind, ts) FILTER (kind IN ('FAIL', 'FINISH', 'KILL', 'LOST')) AS ended,
           bool_or(kind = 'SCHEDULE') AS begun, bool_or(kind = 'EVICT') AS evicted,
           bool_or(kind = 'SUBMIT' AND ts IS NULL) AS before_trace, max(source) AS source
    FROM events GROUP BY job
)
SELECT $cluster AS cluster, job, "user", name, priority, qos, submit_ts, start_ts, end_ts, ended AS source_state,
       CASE ended WHEN 'FINISH' THEN 'completed' WHEN 'KILL' THEN 'killed' WHEN 'FAIL' THEN 'failed'
                  WHEN 'LOST' THEN 'unknown' ELSE if(begun, 'running', 'pending') END AS state,
       0.0 AS gpus, if(begun OR ended IS NOT NULL, 1, 0) AS attempts,
       CASE WHEN start_ts >= submit_ts THEN epoch(start_ts - submit_ts) END AS wait_s,
       CASE WHEN end_ts >= start_ts THEN epoch(end_ts - start_ts) END AS run_span_s,
       run_span_s AS run_sum_s, run_span_s AS run_last_s,
       CASE WHEN before_trace THEN ['created_before_trace'] ELSE [] END
           || CASE WHEN evicted THEN ['evicted'] ELSE [] END
           || CASE WHEN state = 'unknown' THEN ['unknown_state'] ELSE [] END AS quirks,
       source
FROM merged
"""  # noqa: S608
_ATTEMPTS = f"""
INSERT INTO attempt_rows BY NAME
SELECT cluster, job, 0 AS attempt, submit_ts AS queued_ts, start_ts, end_ts,
       CASE WHEN state NOT IN ('running', 'pending') THEN greatest(start_ts, end_ts) END AS released_ts, state,
       source_state, gpus, 0 AS servers, wait_s, run_span_s AS run_s,
       CASE WHEN start_ts IS NULL THEN ['no_start'] ELSE [] END || ['nodes_unknown'] AS quirks, source
FROM jobs WHERE cluster = $cluster AND attempts > 0 AND {_THEIRS}
"""  # noqa: S608
_SPAN = """
UPDATE clusters SET first_ts = low, last_ts = high
FROM (SELECT min(least(submit_ts, start_ts, end_ts)) AS low, max(greatest(submit_ts, start_ts, end_ts)) AS high
      FROM jobs WHERE cluster = $cluster)
WHERE cluster = $cluster
"""


def conclude(sink: Sink | None) -> list[str]:
    """Replace the jobs and attempts of the cluster by those that all its events make."""
    here: dict[str, object] = {} if sink is None else {"cluster": sink.cluster}
    known = "SELECT count(*) > 0 FROM sources WHERE cluster = $cluster AND format = 'borg-collections'"
    if sink is None or not sink.query(known, here).item():
        return []
    for table in ("job_rows", "attempt_rows"):
        # the names stand in this line
        sink.execute(f"DELETE FROM {table} WHERE cluster = $cluster AND {_THEIRS}", here)  # noqa: S608
    for sql in (_JOBS, _ATTEMPTS, _SPAN):
        sink.execute(sql, here)
    return []
