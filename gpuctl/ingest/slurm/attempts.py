"""Settles jobs with several records: which record counts, which attempt it is, and the totals of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.job_rows import OTHER_RECORD
from gpuctl.ingest.core.known_jobs import REPEAT
from gpuctl.ingest.slurm.job_id_forms import join_names

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.core.known_jobs import KnownJobs

# A row of jobs belongs to the attempt with its source and the number jobs.attempts - 1: so `Records` inserts them, one
# for each attempt, and so they are left here, one for each job, that of its last attempt.

_OTHERS = "SELECT 1 AS there FROM attempts WHERE cluster = $cluster AND source <> $source LIMIT 1"
_REPEATED = f"SELECT DISTINCT job FROM attempts WHERE cluster = $cluster AND source = $source AND attempt >= {REPEAT}"  # noqa: S608
_KNOWN = """
    SELECT DISTINCT job FROM attempts WHERE cluster = $cluster AND source = $source
        AND job IN (SELECT job FROM attempts WHERE cluster = $cluster AND source <> $source)
"""
# a source that was removed may have taken the first or the last attempt of a job with it, and its row in jobs
_BROKEN = """
    SELECT job FROM attempts WHERE cluster = $cluster AND source <> $source
        AND job NOT IN (SELECT job FROM jobs WHERE cluster = $cluster)
    UNION
    SELECT job FROM attempts WHERE cluster = $cluster
        AND job IN (SELECT job FROM attempts WHERE cluster = $cluster AND source <> $source AND attempt > 0)
    GROUP BY job HAVING count(*) <> max(attempt) + 1
"""
_TABLES = ("slurm_touched", "slurm_stated", "slurm_order", "slurm_totals")
# a text without Submit is matched by its starts; one without either is never better than another record of that attempt
_STATED = """
    CREATE TEMP TABLE slurm_stated AS
    WITH stated AS (
        SELECT job, source, attempt, queued_ts, eligible_ts, start_ts, end_ts, state, gpus,
               CASE state WHEN 'pending' THEN 0 WHEN 'running' THEN 1 WHEN 'suspended' THEN 1 ELSE 2 END AS progress,
               -- a text without State is weaker than one with it, unless it knows the end of what had none
               CASE WHEN state <> 'unknown' THEN progress WHEN end_ts IS NOT NULL THEN 1.5 ELSE -1 END AS stated
        FROM attempts WHERE cluster = $cluster AND job IN (SELECT job FROM slurm_touched)
    ),
    dated AS (
        SELECT *, coalesce(
            queued_ts,
            CASE WHEN start_ts IS NOT NULL THEN min(queued_ts) OVER (PARTITION BY job, start_ts) END,
            start_ts
        ) AS dated_ts
        FROM stated
    ),
    placed AS (
        SELECT * EXCLUDE (dated_ts), dated_ts IS NULL AS dateless,
               coalesce(dated_ts, min(dated_ts) OVER (PARTITION BY job)) AS since
        FROM dated
    )
    SELECT *, row_number() OVER (
        PARTITION BY job, since ORDER BY dateless, queued_ts IS NULL, stated DESC, source, attempt
    ) AS choice
    FROM placed
"""
# records of an attempt for which another one counts. A value that only one of the two states contradicts nothing, and
# while an attempt has not ended its size and its end may change; sources that round differ by a second
_LOSERS = """
    WITH named AS (
        -- a dump of slurmdbd has the numbers of users
        SELECT t.*, CASE WHEN NOT regexp_full_match(j."user", '[0-9]+') THEN j."user" END AS "user"
        FROM slurm_stated AS t LEFT JOIN job_rows AS j
            ON j.cluster = $cluster AND j.job = t.job AND j.source = t.source AND j.attempts - 1 = t.attempt
    ),
    standing AS (SELECT * FROM named WHERE choice = 1)
    SELECT l.job, l.attempt, strftime(l.since, '%Y-%m-%dT%H:%M:%SZ') AS since,
           coalesce(l."user" <> s."user", false)
           OR coalesce(l.progress > 0 AND s.progress > 0 AND abs(epoch(l.start_ts) - epoch(s.start_ts)) > 1, false)
           OR (l.progress = 2 AND s.progress = 2 AND (
               coalesce(abs(epoch(l.end_ts) - epoch(s.end_ts)) > 1, false) OR coalesce(l.gpus <> s.gpus, false)
               OR coalesce(nullif(l.state, 'unknown') <> nullif(s.state, 'unknown'), false)
           )) AS contradicts
    FROM named AS l JOIN standing AS s ON s.job = l.job AND s.since IS NOT DISTINCT FROM l.since
    WHERE l.choice > 1 AND l.source = $source
"""
# jobs that another source describes too, by how much their times differ where they ran for equally long
_SHIFTS = """
    WITH mine AS (SELECT * FROM attempts WHERE cluster = $cluster AND source = $source AND end_ts > start_ts),
    pairs AS (
        SELECT o.source, mine.job, epoch(mine.start_ts) - epoch(o.start_ts) AS shift_s
        FROM mine JOIN attempts AS o ON o.cluster = $cluster AND o.source <> $source AND o.job = mine.job
        WHERE o.end_ts - o.start_ts = mine.end_ts - mine.start_ts
    ),
    counted AS (SELECT source, shift_s, count(DISTINCT job) AS jobs FROM pairs GROUP BY ALL)
    SELECT coalesce(s.path, 'another source') AS path, c.shift_s, c.jobs
    FROM counted AS c LEFT JOIN sources AS s ON s.source = c.source
    WHERE c.shift_s <> 0 AND c.shift_s % 900 = 0 AND abs(c.shift_s) <= 26 * 3600 AND c.jobs >= $least
          AND 2 * c.jobs > (SELECT count(DISTINCT job) FROM pairs WHERE pairs.source = c.source)
    ORDER BY c.jobs DESC, path
    LIMIT 1
"""
LEAST = 3
"""So many jobs that differ from another source's by the same quarters of an hour state that a clock is another one."""
_ORDER = """
    CREATE TEMP TABLE slurm_order AS
    SELECT *, row_number() OVER sequence - 1 AS number, lead(start_ts) OVER sequence AS next_start,
           lead(since) OVER sequence AS next_since, count(*) OVER (PARTITION BY job) AS attempts
    FROM slurm_stated WHERE choice = 1
    WINDOW sequence AS (PARTITION BY job ORDER BY since NULLS LAST, start_ts NULLS LAST, source, attempt)
"""
_DROP_LOSERS = tuple(
    f"DELETE FROM {table} AS t USING slurm_stated AS o "  # noqa: S608
    f"WHERE t.cluster = $cluster AND t.job = o.job AND t.source = o.source AND {number} = o.attempt AND o.choice > 1"
    for table, number in (("attempt_rows", "t.attempt"), ("placements", "t.attempt"), ("job_rows", "t.attempts - 1"))
)
_DROP_EARLIER = """
    DELETE FROM job_rows AS t USING slurm_order AS o
    WHERE t.cluster = $cluster AND t.job = o.job AND t.source = o.source AND t.attempts - 1 = o.attempt
        AND o.number < o.attempts - 1
"""
_ATTEMPTS = """
    UPDATE attempt_rows AS t SET
        attempt = o.number,
        state = CASE WHEN o.progress < 2 AND o.next_since IS NOT NULL THEN 'unknown' ELSE t.state END,
        quirks = CASE
            WHEN o.end_ts > o.next_start THEN list_distinct(list_append(t.quirks, 'overlap'))
            WHEN o.progress < 2 AND o.start_ts IS NOT NULL AND o.next_since IS NOT NULL
                THEN list_distinct(list_append(t.quirks, 'no_end'))
            ELSE t.quirks END,
        released_ts = CASE
            WHEN o.end_ts > o.next_start THEN greatest(o.start_ts, o.next_start)
            WHEN o.end_ts IS NULL AND o.next_since IS NOT NULL THEN greatest(o.start_ts, o.next_since)
            ELSE t.released_ts END
    FROM slurm_order AS o
    WHERE t.cluster = $cluster AND t.job = o.job AND t.source = o.source AND t.attempt = o.attempt
"""
_PLACEMENTS = """
    UPDATE placements AS t SET attempt = o.number FROM slurm_order AS o
    WHERE t.cluster = $cluster AND t.job = o.job AND t.source = o.source AND t.attempt = o.attempt
"""
# a change of a running job's size ends a record of sacct and begins another one, of the same try
_RESIZED = """
    WITH resizing AS (
        SELECT t.job, t.attempt, o.attempts - 1 AS last
        FROM attempt_rows AS t JOIN slurm_order AS o ON t.job = o.job AND t.source = o.source AND t.attempt = o.number
        WHERE t.cluster = $cluster AND t.source_state = 'RESIZING'
    ),
    ended AS (
        SELECT r.job, max(t.attempt) AS try_ended
        FROM (SELECT DISTINCT job, last FROM resizing) AS r JOIN attempt_rows AS t ON t.job = r.job
        WHERE t.cluster = $cluster AND t.attempt < r.last AND t.source_state IS DISTINCT FROM 'RESIZING'
        GROUP BY r.job
    ),
    found AS (
        SELECT job, attempt, last, attempt < last AND attempt > coalesce(try_ended, -1) AS goes_on
        FROM resizing LEFT JOIN ended USING (job)
    )
    UPDATE attempt_rows AS t SET
        state = CASE WHEN goes_on THEN 'completed' WHEN f.attempt < f.last THEN 'killed' ELSE 'unknown' END,
        quirks = CASE WHEN goes_on THEN list_distinct(list_append(t.quirks, 'resized'))
                      ELSE list_filter(t.quirks, lambda word: word <> 'resized') END
    FROM found AS f WHERE t.cluster = $cluster AND t.job = f.job AND t.attempt = f.attempt
"""
_MOST_CPUS = """
    UPDATE job_rows AS t SET cpus = r.cpus
    FROM (
        SELECT j.job, max(j.cpus) AS cpus FROM job_rows AS j SEMI JOIN slurm_touched USING (job)
        WHERE j.cluster = $cluster
        AND j.job IN (SELECT job FROM attempt_rows WHERE cluster = $cluster AND source_state = 'RESIZING')
        GROUP BY j.job
    ) AS r
    WHERE t.cluster = $cluster AND t.job = r.job
"""
# a job whose size changed has the largest that it had in its last try; all of this try is its last run
_LARGEST = """
    WITH last AS (
        SELECT a.job, a.attempt, a.gpus, a.servers, a.start_ts, a.run_s
        FROM attempts AS a JOIN (SELECT job, max(number) AS last FROM slurm_order GROUP BY job) AS o USING (job)
        WHERE a.cluster = $cluster
        AND a.job IN (SELECT job FROM attempt_rows WHERE cluster = $cluster AND list_contains(quirks, 'resized'))
        QUALIFY a.attempt > coalesce(max(a.attempt) FILTER (
            NOT list_contains(a.quirks, 'resized') AND a.attempt < o.last
        ) OVER (PARTITION BY a.job), -1)
    )
    UPDATE job_rows AS t SET
        gpus = r.gpus, nodes = r.nodes,
        run_last_s = CASE WHEN r.dated THEN coalesce(r.run_s, t.run_last_s) END,
        run_span_s = CASE WHEN r.dated THEN t.run_span_s END, run_sum_s = CASE WHEN r.dated THEN t.run_sum_s END,
        -- a record of a change may lack when it began: then nobody knows when the job started
        start_ts = CASE WHEN r.dated OR NOT r.first THEN t.start_ts END,
        wait_s = CASE WHEN r.dated OR NOT r.first THEN t.wait_s END
    FROM (
        SELECT job, max(gpus) AS gpus, nullif(max(servers), 0) AS nodes, count(start_ts) = count(*) AS dated,
               min(attempt) = 0 AS first, CASE WHEN count(run_s) = count(*) THEN sum(run_s) END AS run_s
        FROM last GROUP BY job
    ) AS r
    WHERE t.cluster = $cluster AND t.job = r.job
"""
_ORPHANS = """
    INSERT INTO job_rows BY NAME
    SELECT a.cluster, a.job, a.queued_ts AS submit_ts, a.start_ts, a.end_ts, a.state, a.source_state, a.gpus,
           a.servers AS nodes, a.exit_code, a.exit_signal, a.reason, o.attempt + 1 AS attempts, a.run_s AS run_last_s,
           ['job_row_lost'] AS quirks, a.source
    FROM attempts AS a JOIN slurm_order AS o
        ON a.cluster = $cluster AND a.job = o.job AND a.source = o.source AND a.attempt = o.number
    WHERE o.number = o.attempts - 1 AND a.job NOT IN (SELECT job FROM jobs WHERE cluster = $cluster)
"""
_TOTALS = """
    CREATE TEMP TABLE slurm_totals AS
    SELECT a.job, count(*) AS attempts, arg_min(a.queued_ts, a.attempt) AS submit_ts,
           arg_min(a.eligible_ts, a.attempt) FILTER (a.attempt = 0) AS eligible_ts, min(a.start_ts) AS start_ts,
           epoch(arg_max_null(a.end_ts, a.attempt)) - epoch(min(a.start_ts)) AS span_s,
           sum(epoch(a.released_ts) - epoch(a.start_ts)) FILTER (a.run_s IS NOT NULL) AS sum_s
    FROM attempts AS a WHERE a.cluster = $cluster AND a.job IN (SELECT job FROM slurm_touched) GROUP BY a.job
"""
_JOBS = """
    UPDATE job_rows AS t SET
        attempts = o.attempts, submit_ts = o.submit_ts, eligible_ts = o.eligible_ts, start_ts = o.start_ts,
        wait_s = CASE WHEN o.start_ts >= o.submit_ts THEN epoch(o.start_ts) - epoch(o.submit_ts) END,
        run_span_s = CASE WHEN o.span_s >= 0 THEN o.span_s END,
        run_sum_s = coalesce(o.sum_s, t.run_sum_s)
    FROM slurm_totals AS o WHERE t.cluster = $cluster AND t.job = o.job
"""
_RESTARTS = """
    UPDATE job_rows AS t SET quirks = list_append(t.quirks, 'attempts_missing')
    FROM (SELECT unnest($jobs::VARCHAR[]) AS job, unnest($restarts::INTEGER[]) AS restarts) AS r
    WHERE t.cluster = $cluster AND t.job = r.job AND t.attempts <= r.restarts
        AND NOT list_contains(t.quirks, 'attempts_missing')
"""


def settle(sink: Sink, seen: KnownJobs, restarts: dict[str, int]) -> int:
    """Bring the rows of this source into agreement with one another and with what the store had.

    Args:
        sink: whose rows are all inserted. One of which the store has a record of that attempt counts as already stored;
            it is rejected for `OTHER_RECORD` if the two contradict each other.
        seen: knows their lines.
        restarts: how often a job was started anew, if the source states.

    Returns:
        how many of the source's records do not stand; they were counted.

    Raises:
        InputError: another source describes the same jobs with a clock that is hours ahead or behind.
    """
    own = {"cluster": sink.cluster, "source": sink.source}
    others = sink.query(_OTHERS, own).height > 0
    unjoined, names = join_names(sink, seen) if others else (0, {})
    touched = _touched(sink, others=others)
    rejected = _settle(sink, seen, touched, names) if touched else 0
    if restarts:
        now = {old: new for new, old in names.items()}
        jobs = [now.get(job, job) for job in restarts]
        sink.execute(_RESTARTS, {"cluster": sink.cluster, "jobs": jobs, "restarts": list(restarts.values())})
    return unjoined + rejected


def _check_clock(sink: Sink) -> None:
    """Reject a source whose jobs are already stored with times shifted by a constant multiple of 15 minutes."""
    own: dict[str, object] = {"cluster": sink.cluster, "source": sink.source, "least": LEAST}
    for path, shift, jobs in sink.query(_SHIFTS, own).iter_rows():
        way = "later" if shift > 0 else "earlier"
        raise InputError(
            f"{jobs} of its jobs are in the store, from {path}, {abs(shift) / 3600:g} h {way} here: these two were "
            "exported with the times of different zones",
            hint="leave one of them out, or name this one's zone with --timezone and load it alone",
        )


def _touched(sink: Sink, *, others: bool) -> str:
    """The query for jobs with several records; empty if there are none."""
    own = {"cluster": sink.cluster, "source": sink.source}
    parts = [_REPEATED]
    if others:
        _check_clock(sink)
        parts += [_KNOWN, _BROKEN]
    query = " UNION ".join(f"({part})" for part in parts)
    return query if sink.query(f"SELECT job FROM ({query}) LIMIT 1", own).height else ""  # noqa: S608


def _settle(sink: Sink, seen: KnownJobs, touched: str, names: dict[str, str]) -> int:
    cluster: dict[str, object] = {"cluster": sink.cluster}
    own = {**cluster, "source": sink.source}
    sink.execute(f"CREATE TEMP TABLE slurm_touched AS {touched}", own)
    sink.execute(_STATED, cluster)
    dropped = _count_losers(sink, seen, names)
    for statement in _DROP_LOSERS:
        sink.execute(statement, cluster)
    sink.execute(_ORDER)
    for statement in (_MOST_CPUS, _DROP_EARLIER, _ATTEMPTS, _PLACEMENTS, _RESIZED, _ORPHANS, _TOTALS, _JOBS, _LARGEST):
        sink.execute(statement, cluster)
    for table in _TABLES:
        sink.execute(f"DROP TABLE {table}")
    return dropped


def _count_losers(sink: Sink, seen: KnownJobs, names: dict[str, str]) -> int:
    """Count the records of this source that do not stand; `names` are those they have in it, if renamed."""
    losers = sink.query(_LOSERS, {"cluster": sink.cluster, "source": sink.source})
    others = losers.filter("contradicts")
    sink.already_stored(losers.height - others.height)
    if others.height:
        lines = seen.lines(others["job"].replace(names), others["attempt"])
        for line, job, since in sorted(zip(lines, others["job"], others["since"], strict=True)):
            sink.reject(line, OTHER_RECORD, f"job {job}, submitted {since or 'at an unknown time'}")
    return losers.height
