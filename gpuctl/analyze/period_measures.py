"""What jobs held, and how long they waited, within one period of a store: the rows that a comparison counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from gpuctl.analyze import shared_sql
from gpuctl.analyze.options import Options
from gpuctl.analyze.shared_tables import SharedTables
from gpuctl.core.errors import UsageError
from gpuctl.core.periods import Period, parse_period

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.core.job_filter import JobFilter
    from gpuctl.store.database import Store

_SPAN = "SELECT min(first_ts) AS first_ts, max(last_ts) AS last_ts FROM base_log_span"
_JOBS = "SELECT queue, epoch_us(submit_ts) AS submit_us FROM base_jobs WHERE submit_ts IS NOT NULL ORDER BY ALL"
_GPUS = "SELECT sum(gpus) AS gpus FROM base_machines"


@dataclass(frozen=True)
class Measured:
    """The rows of one period.

    Attributes:
        period: as requested.
        start_s: the first second of it that the log covers, since 1970.
        end_s: the end of what the log covers.
        gpus: of the cluster; None if unknown.
        spans: what was held: ``user``, ``queue``, ``account``, ``outcome``, ``gpus``, ``from_us``, ``until_us``,
            ``held_s`` (seconds on the log's clock) and ``is_idle``, one row an attempt or container.
        waits: ``queue``, ``submit_us``, ``seconds`` and ``gpus`` of each wait of a job submitted in the period.
        jobs: ``queue`` and ``submit_us`` of each job submitted in it.
    """

    period: Period
    start_s: float
    end_s: float
    gpus: float | None
    spans: pl.DataFrame
    waits: pl.DataFrame
    jobs: pl.DataFrame


def zone_of(store: Store, cluster: str, zone: str | None) -> ZoneInfo:
    """Return the zone in which periods begin: the one requested, or that of the log."""
    return ZoneInfo(zone or store.value("SELECT timezone FROM clusters WHERE cluster = $cluster", {"cluster": cluster}))


def measure(store: Store, options: Options, text: str, zone: ZoneInfo, chosen: JobFilter) -> Measured:
    """Measure one period of one cluster.

    Args:
        store: open.
        options: with the cluster.
        text: the period, see `gpuctl.core.periods`.
        zone: in which its days begin.
        chosen: which jobs count, without times.

    Raises:
        UsageError: it is no period, the log does not reach into it, or no job was submitted in it.
    """
    from dataclasses import replace

    period = parse_period(text, zone)
    cluster = store.cluster(options.cluster)
    wanted = replace(chosen, since=period.start.isoformat(), until=period.end.isoformat())
    statements = [shared_sql.base_sql(name) for name in ("compared_spans", "compared_waits")]
    every = SharedTables(store, cluster, replace(options, filter=chosen), lambda _: None, [_SPAN])
    [log] = every.ask(_SPAN, whole=True)
    first, last = log["first_ts"], log["last_ts"]
    if first is None or last is None:
        raise UsageError("the log has no times to compare", hint="gpuctl analyze says what it has")
    start, end = max(period.start, first).timestamp(), min(period.end, last).timestamp()
    if start >= end:
        raise UsageError(
            f"period {text}: the log has nothing of it", hint=f"it covers {first:%Y-%m-%d} to {last:%Y-%m-%d}"
        )
    shared = SharedTables(store, cluster, replace(options, filter=wanted), lambda _: None, [*statements, _JOBS, _GPUS])
    frames = [shared.frame(sql) for sql in (*statements, _JOBS)]
    [size] = shared.ask(_GPUS)
    return Measured(period, start, end, size["gpus"] and float(size["gpus"]), frames[0], frames[1], frames[2])
