"""Makes jobs, attempts, containers and placements from all facts of a cluster's sources.

Facts are stored as each source gave them (``yarn_facts``); the rows of a job are made anew whenever a source that
states something of it came or went, or the clock or the queue names were found to be others. So the pieces may arrive
in any order, overlap, or be replaced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpuctl.ingest.core.job_rows import add_queues
from gpuctl.ingest.yarn import merge_sql as sql
from gpuctl.ingest.yarn.clock import find_clock
from gpuctl.ingest.yarn.events import Change, machine_events
from gpuctl.ingest.yarn.quotas import fill_quotas
from gpuctl.ingest.yarn.rows import ATTEMPT_COLUMNS, JOB_COLUMNS, attempt_rows, job_rows

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink
    from gpuctl.ingest.yarn.clock import Clock

_TEMPORARY = (
    *(
        "yarn_stale",
        "yarn_seen",
        "yarn_attempt_facts",
        "yarn_containers",
        "yarn_gang_members",
        "yarn_jobs",
        "yarn_attempts",
    ),
)


def refresh(sink: Sink) -> None:
    """Make the rows of every job anew whose facts have changed since they were made.

    Args:
        sink: of the source that was just read; its facts are written already.
    """
    cluster: dict[str, object] = {"cluster": sink.cluster}
    fill_quotas(sink)
    clock, paths = find_clock(sink), _queue_paths(sink)
    offsets = [(stamp.isoformat(), ahead) for stamp, ahead in clock.offsets]
    restarts = [stamp.isoformat() for stamp in sink.query(sql.RESTARTS, cluster)["ts"]]
    gpus_listed = bool(sink.query(sql.GPUS_LISTED, cluster)["listed"][0])
    context = json.dumps([clock.zone, offsets, clock.assumed, sorted(paths.items()), restarts, gpus_listed])
    sink.execute(sql.STALE, {**cluster, "context": context})
    [(stale, manager, several)] = sink.query(sql.STATE).rows()
    if not stale:
        sink.execute("DROP TABLE yarn_stale")
        return
    for table in sql.FORGET:
        # one of the names above; no part of this text is input
        sink.execute(
            f"DELETE FROM {table} WHERE cluster = $cluster AND job IN (SELECT job FROM yarn_stale)",  # noqa: S608
            cluster,
        )
    if not gpus_listed:
        sink.execute(sql.FORGET_MACHINE_ZEROS, cluster)
    _gather(sink, clock, () if gpus_listed else (sql.FORGET_ZEROS,))
    sink.execute(sql.INSERT_CONTAINERS, cluster)
    sink.execute(sql.PLACEMENTS, cluster)
    if several:
        sink.execute(sql.FIELD_SOURCES, cluster)
    sink.execute(sql.SEEN_MACHINES, cluster)
    if manager:
        _insert_machine_events(sink)
    attempts = attempt_rows(sink.query(sql.ATTEMPT_ROWS))
    jobs = job_rows(sink.query(sql.JOB_ROWS), attempts, paths, clock.quirk)
    sink.insert("attempts", attempts.select(ATTEMPT_COLUMNS))
    sink.insert("jobs", jobs.select(JOB_COLUMNS))
    sink.execute(sql.BUILT, {**cluster, "context": context})
    _name_queues(sink)
    fill_quotas(sink)
    for table in _TEMPORARY:
        sink.execute(f"DROP TABLE {table}")
    _span(sink)


def _gather(sink: Sink, clock: Clock, corrections: tuple[str, ...]) -> None:
    params: dict[str, object] = {"cluster": sink.cluster}
    if clock.zone is not None:
        params["zone"] = clock.zone
    else:
        params["ahead"] = [ahead for _, ahead in clock.offsets]
        if len(clock.offsets) > 1:
            params["stamps"] = [stamp for stamp, _ in clock.offsets]
    sink.execute(sql.facts(zone=clock.zone is not None, offsets=len(clock.offsets)), params)
    for statement in (*corrections, sql.JOBS, sql.ATTEMPT_FACTS, sql.CONTAINERS, sql.GANGS, sql.ATTEMPTS):
        sink.execute(statement)


def _insert_machine_events(sink: Sink) -> None:
    """Rebuild the cluster's node events after a change of its nodes' facts or of its clock."""
    import polars as pl

    sink.execute("DELETE FROM machine_events WHERE cluster = $cluster", {"cluster": sink.cluster})
    events = machine_events(Change(*row) for row in sink.query(sql.CHANGES).iter_rows())
    if events:
        time = pl.Datetime("us", "UTC")
        schema: dict[str, pl.DataType | type[pl.DataType]] = {
            **{"machine": pl.String, "from_ts": time, "to_ts": time},
            **{"state": pl.String, "reason": pl.String, "source": pl.Int32},
        }
        sink.insert("machine_events", pl.DataFrame(events, schema, orient="row"))


def _queue_paths(sink: Sink) -> dict[str, str]:
    """Last part of a queue's path -> the path, if only one path ends in it.

    Of queues that a scheduler dump gave a parent to, and of those that a source of some job named in full.
    """
    rows = sink.query(
        """
        SELECT regexp_extract(path, '[^.]*$') AS leaf, any_value(path) AS path
        FROM (SELECT queue AS path FROM queues WHERE cluster = $cluster AND parent IS NOT NULL
              UNION SELECT queue FROM yarn_facts WHERE cluster = $cluster AND contains(queue, '.'))
        GROUP BY leaf HAVING count(*) = 1
        """,
        {"cluster": sink.cluster},
    )
    return dict(rows.iter_rows())


def _name_queues(sink: Sink) -> None:
    """Add the queues of jobs, and forget those that no scheduler dump named and no job is in any more."""
    jobs = sink.query(
        "SELECT DISTINCT queue FROM jobs WHERE cluster = $cluster AND queue IS NOT NULL", {"cluster": sink.cluster}
    )
    sink.execute(
        "DELETE FROM queues WHERE cluster = $cluster AND parent IS NULL AND queue <> 'root' AND (quota_source IS NULL "
        "OR queue IN (SELECT queue FROM yarn_facts WHERE cluster = $cluster AND origin = 'log_capacity')) "
        "AND queue NOT IN (SELECT queue FROM jobs WHERE cluster = $cluster AND queue IS NOT NULL)",
        {"cluster": sink.cluster},
    )
    add_queues(sink, jobs["queue"].to_list())


def _span(sink: Sink) -> None:
    """Find the span of the cluster anew: times of earlier sources may have moved with the clock."""
    sink.execute(
        """
        UPDATE clusters SET first_ts = low, last_ts = high
        FROM (SELECT min(low) AS low, max(high) AS high
              FROM (SELECT min(least(submit_ts, start_ts, end_ts)) AS low,
                           max(greatest(submit_ts, start_ts, end_ts)) AS high FROM jobs WHERE cluster = $cluster
                    UNION ALL
                    SELECT min(least(queued_ts, start_ts, end_ts)), max(greatest(queued_ts, start_ts, end_ts))
                    FROM attempts WHERE cluster = $cluster
                    UNION ALL SELECT min(ts), max(ts) FROM machine_samples WHERE cluster = $cluster
                    UNION ALL SELECT min(ts), max(ts) FROM gpu_samples WHERE cluster = $cluster
                    UNION ALL SELECT min(ts), max(ts) FROM host_util WHERE cluster = $cluster))
        WHERE cluster = $cluster
        """,
        {"cluster": sink.cluster},
    )
