"""Puts together the reports of accounting and other sources on the same attempts, whichever was loaded first.

Every loader that brings jobs, nodes, settings, exact placements, job events or samples of Slurm calls `reconcile` at
its end, within its own transaction; a call with nothing to do costs a few look-ups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.slurm.site.gpu_accounting import settle_gpus

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

# What a scheduler reported about a gang, joined with the attempt with the same start or submission. It is taken only if
# it adds up to the attempt's GPUs: a record of another attempt, or of a job that was resized later, does not.
_FITTING = """
    WITH one AS (
        SELECT a.job, a.attempt, a.gpus AS total, a.source AS jobs_source, e.machine, e.gpus, e.gpu_indices, e.source
        FROM exact_placements AS e
        JOIN attempts AS a ON a.cluster = e.cluster AND a.job = e.job
                              AND (a.start_ts = e.start_ts OR a.queued_ts = e.submit_ts)
        WHERE e.cluster = $cluster AND e.machine IS NOT NULL
        QUALIFY e.source = max(e.source) OVER (PARTITION BY a.job, a.attempt)
    ),
    sums AS (
        SELECT job, attempt FROM one GROUP BY job, attempt
        HAVING sum(gpus) = any_value(total) AND count(*) = count(DISTINCT machine)
    ),
    placed AS (
        SELECT p.job, p.attempt, list_sort(list(p.machine)) AS machines, bool_or(p.estimated) AS estimated
        FROM placements AS p SEMI JOIN sums USING (job, attempt)
        WHERE p.cluster = $cluster
        GROUP BY p.job, p.attempt
    ),
    stated AS (
        SELECT job, attempt, list_sort(list(machine)) AS machines FROM one SEMI JOIN sums USING (job, attempt)
        GROUP BY job, attempt
    )
"""
_REPLACE = f"""
    UPDATE placements SET gpus = fit.gpus, gpu_indices = fit.gpu_indices, estimated = false
    FROM (
        {_FITTING}
        SELECT one.* FROM one JOIN stated USING (job, attempt) JOIN placed USING (job, attempt)
        WHERE stated.machines = placed.machines
    ) AS fit
    WHERE placements.cluster = $cluster AND placements.job = fit.job AND placements.attempt = fit.attempt
          AND placements.machine = fit.machine
          AND (placements.estimated IS DISTINCT FROM false OR placements.gpu_indices IS NULL)
"""  # noqa: S608 (made of the texts above)
_ADD = f"""
    INSERT INTO placements BY NAME
    {_FITTING}
    SELECT $cluster AS cluster, job, attempt, machine, gpus, gpu_indices, jobs_source AS source, false AS estimated
    FROM one SEMI JOIN sums USING (job, attempt) ANTI JOIN placed USING (job, attempt)
    WHERE gpus > 0
"""  # noqa: S608
_NOTE = """
    INSERT INTO field_sources BY NAME
    SELECT DISTINCT e.cluster, e.job, 'placements' AS field, e.source
    FROM exact_placements AS e
    SEMI JOIN (
        SELECT DISTINCT cluster, job FROM placements WHERE cluster = $cluster AND estimated = false
    ) AS p ON p.cluster = e.cluster AND p.job = e.job
    ANTI JOIN field_sources AS f
        ON f.cluster = e.cluster AND f.job = e.job AND f.field = 'placements' AND f.source = e.source
    WHERE e.cluster = $cluster
"""
_ALLOCATED = """
    UPDATE attempt_rows AS t SET allocated_ts = e.since_ts
    FROM job_events AS e
    WHERE t.cluster = $cluster AND e.cluster = $cluster AND e.job = t.job AND e.event = 'configured'
          AND e.since_ts < t.start_ts AND abs(epoch(e.ts) - epoch(t.start_ts)) < 2
          AND t.allocated_ts IS DISTINCT FROM e.since_ts
"""
_PREEMPTED = """
    UPDATE attempt_rows AS t SET preempted_by = e.other_job
    FROM job_events AS e
    WHERE t.cluster = $cluster AND e.cluster = $cluster AND e.job = t.job AND e.event = 'preempted'
          AND e.other_job IS NOT NULL AND t.start_ts <= e.ts
          AND (t.end_ts IS NULL OR t.end_ts >= e.ts - INTERVAL 2 SECOND)
          AND t.preempted_by IS DISTINCT FROM e.other_job
"""
# an array's last task keeps the array's own id, so only tasks with an id of their own change
_TASKS = """
    UPDATE queue_samples SET job = j.job
    FROM jobs AS j
    WHERE queue_samples.cluster = $cluster AND queue_samples.array_task IS NOT NULL
          AND queue_samples.job = queue_samples.array_job AND j.cluster = $cluster
          AND j.array_job = queue_samples.array_job AND j.array_task = queue_samples.array_task
          AND j.job <> queue_samples.job
"""
_STATEMENTS = (
    ("exact_placements", (_REPLACE, _ADD, _NOTE)),
    ("job_events", (_ALLOCATED, _PREEMPTED)),
    ("queue_samples", (_TASKS,)),
)


def reconcile(sink: Sink) -> None:
    """Bring the cluster's attempts, placements and samples up to what all sources loaded so far state together.

    - GPUs of attempts whose accounting record states none (`gpu_accounting`).
    - Placements whose nodes and number of GPUs agree with an exact placement of the same attempt (same start,
      or same submission) take its GPUs and indices and are no estimates any more; attempts without any
      placement get them.
    - ``attempts.allocated_ts``: when an attempt whose start was reset after its nodes had booted got its GPUs.
    - ``attempts.preempted_by``: the job named by the scheduler's log.
    - Samples of array tasks get the id of the task's own job.
    """
    settle_gpus(sink)
    parameters: dict[str, object] = {"cluster": sink.cluster}
    for table, statements in _STATEMENTS:
        # the name comes from the list above
        some = sink.query(f"SELECT 1 FROM {table} WHERE cluster = $cluster LIMIT 1", parameters)  # noqa: S608
        if len(some):
            for statement in statements:
                sink.execute(statement, parameters)
