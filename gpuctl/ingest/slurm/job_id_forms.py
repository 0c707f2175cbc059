"""Joins jobs that two sources name differently: by sacct's JobID (``12_3``, ``12+1``) and by its JobIDRaw (``15``).

A source with JobIDRaw names every job by it. One without has only JobID, whose tasks of arrays and components of
heterogeneous jobs are other names for jobs with numbers of their own. If some source has both, the name is replaced
by the number. If none has, and the source with numbers knows the array or heterogeneous job (its own number is that
of one of its tasks) or jobs of the very same times, the same jobs would be there twice: those named by JobID are
rejected. If a source has no dates either, nothing else can join them: user, queue and size are those of many jobs.
Both remain then, and a warning gives their number and files.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.core.known_jobs import KnownJobs

UNJOINED = (
    "an array task or het component named by JobID alone, of a job that another file names by JobIDRaw: which one "
    "it is remains unclear; export JobID and JobIDRaw together"
)
DOUBTFUL = (
    "%d array tasks or het components that %s names by JobID alone may be jobs that %s names by number, counted twice: "
    "without dates nothing resolves this; export again with `sacct -o JobID,JobIDRaw,Submit,Start,End,...`, or "
    "leave one out"
)

_NAMED = "coalesce(job = array_job || '_' || array_task, job = het_job || '+' || het_offset, false)"
# all of a job's rows, before they are settled, state the same of its names; ids may have begun anew
_RENAMED = f"""
    CREATE TEMP TABLE slurm_renamed AS
    WITH own AS (
        SELECT DISTINCT job, source, array_job, array_task, het_job, het_offset FROM jobs
        WHERE cluster = $cluster AND (array_task IS NOT NULL OR het_offset IS NOT NULL)
    ),
    pairs AS (
        SELECT n.job AS old, r.job AS new, n.source
        FROM (FROM own WHERE {_NAMED}) AS n JOIN (FROM own WHERE NOT {_NAMED}) AS r
            ON r.array_job = n.array_job AND r.array_task = n.array_task AND n.array_task IS NOT NULL
        UNION
        SELECT n.job, r.job, n.source
        FROM (FROM own WHERE {_NAMED}) AS n JOIN (FROM own WHERE NOT {_NAMED}) AS r
            ON r.het_job = n.het_job AND r.het_offset = n.het_offset AND n.array_task IS NULL
    )
    SELECT old, min(new) AS new FROM pairs
    GROUP BY old HAVING count(DISTINCT new) = 1 AND NOT bool_or(EXISTS (
        FROM own WHERE own.job = pairs.new AND own.source = pairs.source
    ))
"""  # noqa: S608
_OWN_NAMES = """
    SELECT new, old FROM slurm_renamed SEMI JOIN (
        SELECT job AS old FROM attempts WHERE cluster = $cluster AND source = $source
    ) AS own USING (old)
"""
_RENAME = tuple(
    f"UPDATE {table} SET job = r.new FROM slurm_renamed AS r WHERE {table}.cluster = $cluster AND {table}.job = r.old"  # noqa: S608
    for table in ("attempt_rows", "placements", "job_rows")
)
# what one source knows of a job's names, all of its rows get: the row that stands in the end may be another one's
_SPREAD = """
    UPDATE job_rows AS t SET array_job = o.array_job, array_task = o.array_task, het_job = o.het_job,
        het_offset = o.het_offset
    FROM (
        SELECT job, min(array_job) AS array_job, min(array_task) AS array_task, min(het_job) AS het_job,
               min(het_offset) AS het_offset
        FROM jobs WHERE cluster = $cluster AND (regexp_full_match(array_task, '[0-9]+') OR het_job IS NOT NULL)
            AND job IN (SELECT job FROM jobs WHERE cluster = $cluster AND source = $source)
        GROUP BY job
    ) AS o
    WHERE t.cluster = $cluster AND t.job = o.job AND t.array_job IS NULL AND t.het_job IS NULL
"""
# the same task by the array's own number, which one of its tasks has, or by times that as many jobs share
_NAMING = f"CREATE TEMP TABLE slurm_naming AS SELECT DISTINCT source FROM jobs WHERE cluster = $cluster AND {_NAMED}"  # noqa: S608
_UNJOINED = f"""
    CREATE TEMP TABLE slurm_unjoined AS
    SELECT n.job, n.source FROM jobs AS n
    WHERE n.cluster = $cluster AND {_NAMED} AND EXISTS (
        FROM jobs AS r
        WHERE r.cluster = $cluster AND r.source <> n.source AND r.job = coalesce(n.array_job, n.het_job)
            AND r.array_job IS NULL AND r.het_job IS NULL
            AND (r.submit_ts = n.submit_ts OR r.submit_ts IS NULL OR n.submit_ts IS NULL)
    )
    UNION
    SELECT n.job, n.source
    FROM (
        SELECT job, source, submit_ts, start_ts, end_ts,
               count(DISTINCT job) OVER (PARTITION BY source, submit_ts, start_ts, end_ts) AS alike
        FROM jobs WHERE cluster = $cluster AND {_NAMED}
    ) AS n
    JOIN (
        SELECT source, submit_ts, start_ts, end_ts, count(DISTINCT job) AS alike FROM jobs
        WHERE cluster = $cluster AND array_job IS NULL AND het_job IS NULL
            AND job NOT IN (SELECT job FROM jobs SEMI JOIN slurm_naming USING (source) WHERE cluster = $cluster)
        GROUP BY ALL
    ) AS r ON r.source <> n.source AND r.submit_ts = n.submit_ts AND r.start_ts = n.start_ts AND r.end_ts = n.end_ts
    WHERE n.alike <= r.alike
"""  # noqa: S608
_DROP = tuple(
    f"DELETE FROM {table} AS t USING slurm_unjoined AS u "  # noqa: S608
    "WHERE t.cluster = $cluster AND t.job = u.job AND t.source = u.source"
    for table in ("attempt_rows", "placements", "job_rows")
)
# named tasks left, and jobs with a later number that may be them: one of both has no dates, and nothing contradicts
_DOUBTFUL = f"""
    WITH named AS (FROM jobs WHERE cluster = $cluster AND {_NAMED}),
    numbered AS (
        FROM jobs WHERE cluster = $cluster AND array_job IS NULL AND het_job IS NULL
            AND job NOT IN (SELECT job FROM jobs SEMI JOIN slurm_naming USING (source) WHERE cluster = $cluster)
    ),
    paths AS (SELECT source, coalesce(path, 'another source') AS path FROM sources)
    SELECT coalesce(p.path, 'this file') AS named, coalesce(q.path, 'this file') AS numbered,
           count(DISTINCT n.job) AS jobs
    FROM named AS n JOIN numbered AS r
        ON r.source <> n.source AND $source IN (r.source, n.source)
        AND TRY_CAST(r.job AS BIGINT) > TRY_CAST(coalesce(n.array_job, n.het_job) AS BIGINT)
        AND (coalesce(n.submit_ts, n.start_ts, n.end_ts) IS NULL OR coalesce(r.submit_ts, r.start_ts, r.end_ts) IS NULL)
        AND coalesce(r."user" = n."user", true) AND coalesce(r.queue = n.queue, true)
        AND coalesce(r.account = n.account, true) AND coalesce(r.gpus = n.gpus, true)
    LEFT JOIN paths AS p ON p.source = n.source LEFT JOIN paths AS q ON q.source = r.source
    GROUP BY ALL ORDER BY ALL
"""  # noqa: S608


def join_names(sink: Sink, seen: KnownJobs) -> tuple[int, dict[str, str]]:
    """Give the jobs of all sources one name each; call it if the cluster has several sources.

    Args:
        sink: whose rows are all inserted; `UNJOINED` is why some of them are rejected here.
        seen: knows their lines.

    Returns:
        how many records of this source were rejected; the names that jobs had in it, by those they have now.
    """
    cluster: dict[str, object] = {"cluster": sink.cluster}
    sink.execute(_SPREAD, {**cluster, "source": sink.source})
    if not sink.query(f"SELECT 1 FROM jobs WHERE cluster = $cluster AND {_NAMED} LIMIT 1", cluster).height:  # noqa: S608
        return 0, {}
    sink.execute(_RENAMED, cluster)
    names = dict(sink.query(_OWN_NAMES, {**cluster, "source": sink.source}).iter_rows())
    for statement in _RENAME:
        sink.execute(statement, cluster)
    sink.execute("DROP TABLE slurm_renamed")
    sink.execute(_NAMING, cluster)
    sink.execute(_UNJOINED, cluster)
    rejected = _reject(sink, seen)
    for statement in _DROP:
        sink.execute(statement, cluster)
    for named, numbered, jobs in sink.query(_DOUBTFUL, {**cluster, "source": sink.source}).iter_rows():
        logging.getLogger(__name__).warning(DOUBTFUL, jobs, named, numbered)
    sink.execute("DROP TABLE slurm_unjoined")
    sink.execute("DROP TABLE slurm_naming")
    return rejected, names


def _reject(sink: Sink, seen: KnownJobs) -> int:
    lost = sink.query(
        "SELECT DISTINCT a.job, a.attempt FROM attempts AS a JOIN slurm_unjoined AS u USING (job, source) "
        "WHERE a.cluster = $cluster AND a.source = $source",
        {"cluster": sink.cluster, "source": sink.source},
    )
    if lost.height:
        lines = seen.lines(lost["job"], lost["attempt"])
        for line, job in sorted(zip(lines, lost["job"], strict=True)):
            sink.reject(line, UNJOINED, f"job {job}")
    return lost.height
