"""Joins logs with jobs of the store: Slurm's ids of array tasks, logs of unknown jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.ingest.core.format import Sink

_SHOWN = 3
# job_outputs states which rows are meant, so it comes last
_TABLES = ("job_logs", "progress", "training_marks", "job_outputs")
# a log's name may have the ids of an array and of a task in it, or those of a heterogeneous job; jobs have their own
_RENAME = """
    UPDATE {table} SET job = j.job
    FROM (
        SELECT any_value(job) AS job, named
        FROM (
            SELECT job, array_job || '_' || array_task AS named FROM jobs
            WHERE cluster = $cluster AND array_job IS NOT NULL AND array_task IS NOT NULL
            UNION ALL
            SELECT job, het_job || '+' || het_offset AS named FROM jobs
            WHERE cluster = $cluster AND het_job IS NOT NULL AND het_offset IS NOT NULL
            UNION ALL
            SELECT job, het_job AS named FROM jobs
            WHERE cluster = $cluster AND het_job IS NOT NULL AND het_offset = 0
        )
        SEMI JOIN (
            SELECT DISTINCT o.job AS named FROM job_outputs AS o
            WHERE o.cluster = $cluster AND o.job NOT IN (SELECT job FROM jobs WHERE cluster = $cluster)
        ) USING (named)
        GROUP BY named HAVING count(DISTINCT job) = 1
    ) AS j
    WHERE {table}.cluster = $cluster AND {table}.job = j.named
"""
# a log of a YARN container, whose id there is once, may have come as a file, in aggregated logs, and as text
_AGAIN = """
    SELECT o.source, o.job, o.attempt, o.stream FROM job_outputs AS o
    WHERE o.cluster = $cluster AND contains(o.stream, ':container_')
    QUALIFY o.source > min(o.source) OVER (PARTITION BY o.job, o.attempt, o.stream, o.bytes, o.lines)
"""
_UNKNOWN = """
    SELECT job, count(*) AS logs FROM job_outputs
    WHERE cluster = $cluster AND job NOT IN (SELECT job FROM jobs WHERE cluster = $cluster)
    GROUP BY job ORDER BY job
"""


def conclude(sink: Sink) -> Iterator[str]:
    """Give logs the ids that the store has for their jobs, whichever was loaded first; report logs of unknown jobs."""
    parameters: dict[str, object] = {"cluster": sink.cluster}
    if not len(sink.query("SELECT 1 FROM job_outputs WHERE cluster = $cluster LIMIT 1", parameters)):
        return
    again = sink.query(_AGAIN, parameters)
    if len(again):
        for table in _TABLES:
            # the names are those above: no part of this text is input
            sink.execute(
                f"DELETE FROM {table} USING ({_AGAIN}) AS a WHERE {table}.source = a.source "  # noqa: S608
                f"AND {table}.job = a.job AND {table}.attempt = a.attempt AND {table}.stream = a.stream",
                parameters,
            )
        yield (
            f"{len(again)} log{'s' * (len(again) != 1)} of containers came more than once (as files, aggregated, or as "
            "text of yarn logs): each is stored once"
        )
    unknown = sink.query(_UNKNOWN, parameters)
    if not len(unknown):
        return
    for table in _TABLES:
        sink.execute(_RENAME.format(table=table), parameters)
    unknown = sink.query(_UNKNOWN, parameters)
    if not len(unknown):
        return
    names = unknown["job"].to_list()
    shown = ", ".join(names[:_SHOWN]) + (" …" if len(names) > _SHOWN else "")
    logs, jobs = int(unknown["logs"].sum()), len(names)
    yield (
        f"{logs} log{'s' * (logs != 1)} of {jobs} job{'s' * (jobs != 1)} that cluster {sink.cluster} has no record of: "
        f"{shown}; they are stored: load the scheduler's logs into the same cluster, or correct the --job-logs pattern"
    )
