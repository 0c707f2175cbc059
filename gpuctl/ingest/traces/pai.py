"""Alibaba's PAI trace of 2020: jobs, made of its tables of jobs, tasks, instances and groups once all are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

_THEIRS = """source IN (
    SELECT source FROM sources
    WHERE cluster = $cluster AND format IN ('pai-jobs', 'pai-tasks', 'pai-instances', 'pai-groups'))"""
"""Rows of these tables: a cluster may have jobs of other files, too."""
_STATES = ", ".join(
    f"coalesce(bool_or(state = '{state}'), false) AS {state}"
    for state in ("failed", "running", "unknown", "completed", "pending")
)
_MADE = f"""
CREATE TEMP TABLE pai_made AS
WITH listed AS (
    SELECT job, any_value(instance) AS instance, any_value("user") AS "user", any_value(state) AS state,
           any_value(source_state) AS source_state, min(start_ts) AS submit_ts, max(end_ts) AS end_ts,
           max(source) AS source
    FROM trace_parts WHERE cluster = $cluster AND kind = 'job' GROUP BY job
),
tasks AS (
    SELECT job, sum(instances * gpus) AS gpus, sum(instances * cpus) AS cpus, sum(instances * mem_mb) AS mem_mb,
           string_agg(DISTINCT gpu_type, '|' ORDER BY gpu_type) AS gpu_type, min(start_ts) AS start_ts,
           max(end_ts) AS end_ts, {_STATES}, max(source) AS source
    FROM trace_parts WHERE cluster = $cluster AND kind = 'task' GROUP BY job
),
ran AS (
    SELECT job, min(running_ts) AS start_ts, CASE WHEN count(*) = count(end_ts) THEN max(end_ts) END AS end_ts,
           {_STATES}, count(DISTINCT machine) AS nodes, max(source) AS source
    FROM containers
    WHERE cluster = $cluster AND container IS NOT NULL AND state IS NOT NULL AND {_THEIRS}
    GROUP BY job
),
groups AS (
    SELECT instance, any_value(gpu_type) AS gpu_type, any_value("group") AS "group", any_value(name) AS name
    FROM trace_parts WHERE cluster = $cluster AND kind = 'group' GROUP BY instance
),
made AS (
    SELECT job, l."user", g."group" AS account, g.name, l.submit_ts, coalesce(r.start_ts, t.start_ts) AS start_ts,
           coalesce(l.end_ts, if(r.job IS NULL, t.end_ts, r.end_ts)) AS last_ts,
           coalesce(l.state, CASE
               WHEN coalesce(t.failed, r.failed) THEN 'failed'
               WHEN coalesce(t.running, r.running) THEN 'running'
               WHEN coalesce(t.unknown, r.unknown) THEN 'unknown'
               WHEN coalesce(t.completed, r.completed)
                   THEN if(coalesce(t.pending, r.pending), 'running', 'completed')
               ELSE 'pending' END) AS state,
           l.source_state, t.gpus, coalesce(t.gpu_type, g.gpu_type) AS gpu_type, nullif(r.nodes, 0)::INTEGER AS nodes,
           TRY_CAST(ceil(t.cpus) AS INTEGER) AS cpus, TRY_CAST(round(t.mem_mb) AS BIGINT) AS mem_mb,
           greatest(l.source, t.source, r.source) AS source, l.job IS NULL AS unlisted, t.job IS NULL AS taskless
    FROM listed AS l FULL JOIN tasks AS t USING (job) FULL JOIN ran AS r USING (job)
    LEFT JOIN groups AS g ON g.instance = l.instance
)
SELECT $cluster AS cluster, job, "user", account, name, submit_ts, start_ts,
       if(state IN ('running', 'pending'), NULL, last_ts) AS end_ts, state, source_state, gpus,
       gpu_type, nodes, cpus, mem_mb, CASE WHEN start_ts IS NULL AND state = 'pending' THEN 0 ELSE 1 END AS attempts,
       CASE WHEN start_ts >= submit_ts THEN epoch(start_ts - submit_ts) END AS wait_s,
       CASE WHEN end_ts >= start_ts THEN epoch(end_ts - start_ts) END AS run_span_s,
       run_span_s AS run_sum_s, run_span_s AS run_last_s,
       CASE WHEN unlisted THEN ['not_in_job_table'] ELSE [] END
           || CASE WHEN taskless THEN ['not_in_task_table'] ELSE [] END
           || CASE WHEN start_ts < submit_ts THEN ['start_before_submit'] ELSE [] END
           || CASE WHEN state = 'unknown' THEN ['unknown_state'] ELSE [] END AS quirks,
       source
FROM made
"""  # noqa: S608
# one that waits may have an attempt, or none: all others have one, and all of it follows
_ONCE = """
INSERT INTO trace_jobs BY NAME
SELECT * EXCLUDE (attempts, wait_s, run_span_s, run_sum_s, run_last_s)
       REPLACE (nullif(array_to_string(quirks, ','), '') AS quirks), true AS placed
FROM pai_made WHERE state <> 'pending'
"""
_WAITING = "INSERT INTO job_rows BY NAME FROM pai_made WHERE state = 'pending'"
_ATTEMPTS = """
INSERT INTO attempt_rows BY NAME
SELECT cluster, job, 0 AS attempt, submit_ts AS queued_ts, start_ts, end_ts, state, source_state, gpus,
       nodes AS servers, wait_s, run_span_s AS run_s,
       CASE WHEN start_ts IS NOT NULL THEN ['no_end'] ELSE [] END AS quirks, source
FROM pai_made WHERE state = 'pending' AND attempts > 0
"""
_SIZES = f"""
-- a task's sum that its type cannot hold is not known
UPDATE containers
SET gpus = t.gpus, cpus = TRY_CAST(ceil(t.cpus) AS INTEGER), mem_mb = TRY_CAST(round(t.mem_mb) AS BIGINT)
FROM (SELECT job, task, any_value(gpus) AS gpus, any_value(cpus) AS cpus, any_value(mem_mb) AS mem_mb
      FROM trace_parts WHERE cluster = $cluster AND kind = 'task' GROUP BY job, task) AS t
WHERE containers.cluster = $cluster AND containers.job = t.job AND containers.task = t.task
      AND {_THEIRS}
"""  # noqa: S608
_PLACEMENTS = f"""
INSERT INTO placements BY NAME
SELECT cluster, job, 0 AS attempt, machine, sum(gpus) AS gpus, max(source) AS source
FROM containers WHERE cluster = $cluster AND machine IS NOT NULL AND gpus IS NOT NULL AND running_ts IS NOT NULL
      AND {_THEIRS}
GROUP BY ALL
"""  # noqa: S608
_SPAN = """
UPDATE clusters SET first_ts = low, last_ts = high
FROM (SELECT min(least(submit_ts, start_ts, end_ts)) AS low, max(greatest(submit_ts, start_ts, end_ts)) AS high
      FROM jobs WHERE cluster = $cluster)
WHERE cluster = $cluster
"""


def conclude(sink: Sink | None) -> list[str]:
    """Make jobs, attempts and placements anew of all tables of the trace that the cluster has.

    The submission is the job table's ``start_time``, the start that of its first instance (of its first task, if no
    instance is stated), the end the job table's. A job that lacks in a table has what the others show, and a quirk.
    """
    if sink is None:
        return []
    here: dict[str, object] = {"cluster": sink.cluster}
    known = (
        "SELECT count(*) > 0 FROM sources WHERE cluster = $cluster "
        "AND format IN ('pai-jobs', 'pai-tasks', 'pai-instances', 'pai-groups')"
    )
    if not sink.query(known, here).item():
        return []
    for table in ("trace_jobs", "job_rows", "attempt_rows", "placements"):
        # the names stand in this line
        sink.execute(f"DELETE FROM {table} WHERE cluster = $cluster AND {_THEIRS}", here)  # noqa: S608
    for sql in (_SIZES, _MADE, _ONCE, _WAITING, _ATTEMPTS, "DROP TABLE pai_made", _PLACEMENTS, _SPAN):
        sink.execute(sql, here if "$cluster" in sql else None)
    return []
