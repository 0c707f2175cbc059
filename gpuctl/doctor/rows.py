"""Checks of the rows of a trace store: what was rejected, and whether times, zones and columns are plausible."""

from __future__ import annotations

import zoneinfo
from typing import TYPE_CHECKING

from gpuctl.core.numbers import percent
from gpuctl.core.relative_time import BEFORE_S
from gpuctl.core.text import plural
from gpuctl.doctor.check import Finding, Opened, Status, few

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from gpuctl.store.database import Store

REJECTED_PCT = 1.0
"""Per cent of a file's rows; a file with more of them rejected makes a warning."""
UNKNOWN_PCT = 1.0
"""Per cent of a cluster's jobs; more of them without a GPU count or submission time make a warning."""
DAY_S = 86_400.0


def _day(column: str) -> str:
    """SQL for the date of a time; of one that counts from a trace's own start, its day."""
    day = f"'day ' || floor(epoch({column}) / 86400)::BIGINT"
    relative = f"epoch({column}) BETWEEN 0 AND {BEFORE_S - 1}"
    return f"CASE WHEN {relative} THEN {day} ELSE strftime({column}::TIMESTAMP, '%Y-%m-%d') END"


def rejected(opened: Opened) -> Iterable[Finding]:
    """The ledger in one line, and the files of which more than `REJECTED_PCT` per cent of the rows were rejected."""
    rows = ledger(opened.store)
    if rows.height == 0:
        yield Finding("ledger", Status.WARN, "no file was ever loaded", "gpuctl ingest LOGDIR --db FILE")
        return
    came, went = int(rows["rows_in"].sum()), int(rows["rows_rejected"].sum())
    share = 100 * went / max(1, came)
    known = int(rows["rows_already_stored"].sum())
    evidence = f"{plural(rows.height, 'file')}, {plural(came, 'row')}"
    evidence += f", {known:,} already in the store" if known else ""
    evidence += f", {went:,} rejected ({percent(share)})"
    bad = rows.filter(rows["rejected_pct"] > REJECTED_PCT)
    if bad.height:
        worst = (f"{row['path']} ({percent(row['rejected_pct'])})" for row in bad.head(3).iter_rows(named=True))
        evidence += f"; over {REJECTED_PCT:g} % in {bad.height:,}: {', '.join(worst)}"
        evidence += f" and {bad.height - 3:,} more" if bad.height > 3 else ""
        fix = "see why: gpuctl analyze FILE --section data_quality; the store's table rejects has each row"
        yield Finding("ledger", Status.WARN, evidence, fix)
        return
    yield Finding("ledger", Status.OK, evidence)


def parsers(opened: Opened) -> Iterable[Finding]:
    """Whether files were read by parsers that have been improved since."""
    from gpuctl.ingest.pipeline.registry import all_formats

    today = {fmt.name: fmt.parser_version for fmt in all_formats()}
    rows = opened.store.execute("SELECT DISTINCT path, format, parser_version FROM sources ORDER BY path").fetchall()
    old = [path for path, name, version in rows if version < today.get(name, 0)]
    if old:
        evidence = f"{len(old):,} of {plural(len(rows), 'file')} read by an older parser: {few(old)}"
        yield Finding("parsers", Status.WARN, evidence, "load them again: gpuctl ingest LOGDIR --db FILE")
        return
    yield Finding("parsers", Status.OK, f"{plural(len(rows), 'file')} read by today's parsers")


def clusters(opened: Opened) -> Iterable[Finding]:
    """Which clusters the store has, and whether their zones are known here."""
    # names and numbers of this module's own
    days = f"{_day('first_ts')}, {_day('last_ts')}"
    sql = f"SELECT cluster, source_format, timezone, clock, {days} FROM clusters ORDER BY cluster"  # noqa: S608
    rows = opened.store.execute(sql).fetchall()
    if not rows:
        yield Finding("clusters", Status.WARN, "none", "gpuctl ingest LOGDIR --db FILE")
        return
    told = [f"{row[0]}: {row[1]}, {row[2]} ({row[3]}), {row[4] or '?'} to {row[5] or '?'}" for row in rows]
    evidence = f"{len(rows):,}: {'; '.join(told[:3])}" + (f" and {len(told) - 3:,} more" if len(told) > 3 else "")
    strange = sorted({row[2] for row in rows if not _is_zone(row[2])})
    if strange:
        fix = "install the tzdata package, or load the logs again with --timezone"
        yield Finding("clusters", Status.WARN, f"{evidence}; unknown zone: {few(strange)}", fix)
        return
    yield Finding("clusters", Status.OK, evidence)


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def clocks(opened: Opened) -> Iterable[Finding]:
    """Times that contradict each other by more than a day, or lie more than a day ahead: a wrong clock or zone."""
    rows = opened.store.execute(_TIMES, {"now": opened.now, "day": DAY_S}).fetchall()
    bad = []
    slight = 0
    for cluster, swapped, far, ahead in rows:
        slight += swapped - far
        bad += [f"{cluster}: {far:,} out of order by more than a day"] if far else []
        bad += [f"{cluster}: {ahead:,} more than a day ahead of now"] if ahead else []
    small = f"; {slight:,} out of order by less" if slight else ""
    if bad:
        more = f" and {len(bad) - 4} more" if len(bad) > 4 else ""
        evidence = f"jobs and attempts: {'; '.join(bad[:4])}{more}{small}"
        fix = "check the clock of the machine that logged them, and load again with --timezone ZONE"
        yield Finding("clocks", Status.WARN, evidence, fix)
        return
    yield Finding("clocks", Status.OK, f"no time is a day ahead of now, or out of order by a day{small}")


_TIMES = """
WITH times AS (
    SELECT cluster, epoch(submit_ts) AS a, epoch(start_ts) AS b, epoch(end_ts) AS c FROM jobs
    UNION ALL SELECT cluster, epoch(queued_ts), epoch(start_ts), epoch(end_ts) FROM attempts
)
SELECT cluster, count(*) FILTER (a > b OR b > c OR a > c),
    count(*) FILTER (a > b + $day OR b > c + $day OR a > c + $day),
    count(*) FILTER (greatest(a, b, c) > $now + $day)
FROM times GROUP BY cluster ORDER BY cluster
"""


def columns(opened: Opened) -> Iterable[Finding]:
    """Jobs without a GPU count or a submission time: a column that the log lacks."""
    rows = opened.store.execute(
        "SELECT cluster, count(*), count(*) - count(gpus), count(*) - count(submit_ts) FROM jobs "
        "GROUP BY cluster ORDER BY cluster"
    ).fetchall()
    if not rows:
        return
    yield _known("gpu_counts", "GPU count", [(name, jobs, lacking) for name, jobs, lacking, _ in rows])
    yield _known("submit_times", "submission time", [(name, jobs, lacking) for name, jobs, _, lacking in rows])


_COLUMN_FIX = {
    "gpu_counts": "load logs that contain it (sacct: AllocTRES and ReqTRES); no figure of GPUs counts these jobs",
    "submit_times": "load logs that contain it (sacct: Submit); no figure of waits counts these jobs",
}


def _known(check: str, what: str, rows: list[tuple[str, int, int]]) -> Finding:
    lack = [row for row in rows if row[2] > row[1] * UNKNOWN_PCT / 100]
    bad = [f"{name}: {lacking:,} of {jobs:,} jobs" for name, jobs, lacking in lack]
    if bad:
        more = f" and {len(bad) - 3} more clusters" if len(bad) > 3 else ""
        evidence = f"without a {what}: {'; '.join(bad[:3])}{more}"
        return Finding(check, Status.WARN, evidence, _COLUMN_FIX[check])
    jobs, lacking = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return Finding(check, Status.OK, f"{jobs - lacking:,} of {jobs:,} jobs have a {what}")


def ledger(store: Store) -> pl.DataFrame:
    """The ledger of sources, the files with the largest share of rejected rows first."""
    return store.frame(
        "SELECT cluster, path, format, rows_in, rows_already_stored, rows_rejected, "
        "CASE WHEN rows_in > 0 THEN 100.0 * rows_rejected / rows_in ELSE 0.0 END AS rejected_pct "
        "FROM sources ORDER BY rejected_pct DESC, cluster, path"
    )
