"""Checks of one trace store: that it opens, its lake, what was rejected, and whether its times are plausible.

It is opened as all commands open it to read; that rejects a file that gpuctl did not write.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import file_digest
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.core.errors import StoreError
from gpuctl.core.numbers import percent, size
from gpuctl.core.relative_time import BEFORE_S
from gpuctl.core.storable_text import plural
from gpuctl.doctor.check import Finding, Status, abbreviate, finding

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.doctor.check import DoctorContext
    from gpuctl.store.database import Store
    from gpuctl.store.lake import File, Lake

HEADER = 4096
"""Bytes of each of the three headers that a DuckDB file starts with."""
LAKE_BYTES = 4 * 1024**3
"""Bytes of a lake that are compared: DuckDB checks no checksums in Parquet, and a whole lake may take hours to read."""
REJECTED_PCT = 1.0
"""Per cent of a file's rows; a file with more of them rejected is a warning."""
UNKNOWN_PCT = 1.0
"""Per cent of a cluster's jobs; more of them without a GPU count or submission time are a warning."""
DAY_S = 86_400.0

_LOAD = "gpuctl ingest LOGDIR --db FILE"
_OTHER_FILE = "give another file with --db"


@dataclass(frozen=True)
class OpenStore:
    """A store that is open for reading, and the time of the checks (seconds since 1970)."""

    store: Store
    path: Path
    now: float


StoreCheck = Callable[[OpenStore], Iterable[Finding]]
"""Checks one thing of an open store."""


def check_store(context: DoctorContext) -> tuple[list[Finding], pl.DataFrame | None]:
    """Open the store and check it.

    Returns:
        The findings, and its ledger, worst files first (None if there is no store or it cannot be read).
    """
    if context.db is None:
        return [], None
    from gpuctl.store.database import Store

    found: list[Finding] = []
    try:
        with Store(context.db) as store:
            return _run_checks(store, context, found)
    except StoreError as error:
        return [*found, open_failure(error, context)], None
    except OSError as error:
        evidence = f"{context.db}: {error.strerror or error}"
        return [*found, finding("store_file", evidence, _OTHER_FILE, Status.FAIL)], None


def _run_checks(
    store: Store, context: DoctorContext, found: list[Finding]
) -> tuple[list[Finding], pl.DataFrame | None]:
    opened = OpenStore(store, store.path, context.now)
    try:
        for check in CHECKS:
            found += check(opened)
            if any(one.status is Status.FAIL for one in found):
                return found, None
        return found, ledger(store)
    except StoreError as error:
        return [*found, finding("store_rows", error.message, error.hint or "create it again", Status.FAIL)], None


def open_failure(error: StoreError, context: DoctorContext) -> Finding:
    """Return the finding on a store that does not open."""
    from gpuctl.store.database import ForeignStoreError, StoreLockedError, WrongSchemaError
    from gpuctl.store.lake_place import LakeError

    check = "store_file"
    evidence = error.message
    if isinstance(error, StoreLockedError):
        check = "store_lock"
        evidence += _process_name(error.holder, context.root)
    elif isinstance(error, WrongSchemaError | ForeignStoreError):
        check = "store_schema"
    elif isinstance(error, LakeError):
        check = "store_lake"
    return finding(check, evidence, error.hint or _OTHER_FILE, Status.FAIL)


def _process_name(process: int | None, root: Path) -> str:
    """Return the name of a process by the kernel, as `` (python)``; empty if not known."""
    if process is None:
        return ""
    try:
        name = (root / "proc" / str(process) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return f" ({name})" if name else ""


def file(opened: OpenStore) -> list[Finding]:
    """Check the store's path and size, that no block is missing, and that no write-ahead log is left."""
    there = opened.path.stat().st_size
    rows = opened.store.frame("PRAGMA database_size").rows(named=True)
    blocks = next(row for row in rows if row["database_name"] == "trace")
    # free blocks may be missing at the end; three headers precede the first block
    least = int(blocks["block_size"]) * int(blocks["used_blocks"]) + 3 * HEADER
    evidence = f"{opened.path}: {size(there)}"
    if there < least:
        evidence += f", {size(least)} according to its header: the end is missing"
        return [finding("store_file", evidence, "copy it again, or create it again: gpuctl ingest", Status.FAIL)]
    log = opened.path.with_name(opened.path.name + ".wal")
    if log.exists():
        evidence += f"; {log.name} ({size(log.stat().st_size)}) was left by a process that was stopped"
        return [finding("store_file", evidence, "keep both together; the next gpuctl ingest merges it")]
    return [finding("store_file", evidence)]


def lock(_opened: OpenStore) -> list[Finding]:
    """Report that no process writes to it: otherwise it would not have opened (`open_failure`)."""
    return [finding("store_lock", "no process has it open for writing")]


def schema(opened: OpenStore) -> list[Finding]:
    """Report the version of its tables and DuckDB's storage version."""
    import duckdb

    from gpuctl.store.schema import MIGRATIONS

    tags = opened.store.value("SELECT tags FROM duckdb_databases() WHERE database_name = 'trace'")
    storage = dict(tags or {}).get("storage_version", "unknown")
    evidence = f"version {len(MIGRATIONS)}, as gpuctl requires; DuckDB {duckdb.__version__}, storage version {storage}"
    return [finding("store_schema", evidence)]


def lake(opened: OpenStore) -> list[Finding]:
    """Compare the lake's files with their checksums; without its lake, the store did not open (`LakeError`)."""
    from gpuctl.store.lake_place import ANEW

    found = opened.store.lake
    if found is None:
        return []
    files = found.files()
    rows, whole = sum(one.rows for one in files), sum(one.bytes for one in files)
    evidence = f"{found.place.path}: {plural(len(files), 'file')}, {plural(rows, 'row')}, {size(whole)}"
    if found.place.remote:
        return [finding("store_lake", f"{evidence} according to the store; not checked, as it is in object storage")]
    ends = accumulate(one.bytes for one in files)
    read = [one for one, end in zip(files, ends, strict=True) if end <= LAKE_BYTES]
    bad = [(one, why) for one in read if (why := _damage(found, one))]
    if bad:
        lost = sum(one.rows for one, _ in bad)
        evidence += f"; {plural(len(bad), 'file')} of {lost:,} rows damaged, the first {bad[0][0].name}: {bad[0][1]}"
        return [finding("store_lake", evidence, ANEW, Status.FAIL)]
    left = whole - sum(one.bytes for one in read)
    evidence += f"; all bytes except {size(left)} were compared" if left else "; every byte as written"
    return [finding("store_lake", evidence)]


def _damage(lake: Lake, one: File) -> str:
    """Return the fault of a file, and the number of its rows found; empty if it is intact."""
    try:
        with Path(lake.place.file(one.name)).open("rb") as file:
            if file_digest(file, "sha256").hexdigest() == one.sha256:
                return ""
    except OSError as error:
        return f"{error.strerror or error}; {one.rows:,} rows expected"
    rows = lake.rows_in(one)
    found = "it cannot be read" if rows is None else f"{rows:,} found"
    return f"bytes differ from those written; {one.rows:,} rows expected, {found}"


def ledger(store: Store) -> pl.DataFrame:
    """Return the ledger of sources, the files with the largest share of rejected rows first."""
    return store.frame(
        "SELECT cluster, path, format, rows_in, rows_already_stored, rows_rejected, "
        "CASE WHEN rows_in > 0 THEN 100.0 * rows_rejected / rows_in ELSE 0.0 END AS rejected_pct "
        "FROM sources ORDER BY rejected_pct DESC, cluster, path"
    )


def rejected(opened: OpenStore) -> list[Finding]:
    """Sum up the ledger, and list the files with more than `REJECTED_PCT` per cent of their rows rejected."""
    rows = ledger(opened.store)
    if rows.height == 0:
        return [finding("ledger", "no file has been loaded", _LOAD)]
    total, dropped = int(rows["rows_in"].sum()), int(rows["rows_rejected"].sum())
    known = int(rows["rows_already_stored"].sum())
    evidence = f"{plural(rows.height, 'file')}, {plural(total, 'row')}"
    evidence += f", {known:,} already in the store" if known else ""
    evidence += f", {dropped:,} rejected ({percent(100 * dropped / max(1, total))})"
    bad = rows.filter(rows["rejected_pct"] > REJECTED_PCT)
    if not bad.height:
        return [finding("ledger", evidence)]
    worst = (f"{row['path']} ({percent(row['rejected_pct'])})" for row in bad.head(3).iter_rows(named=True))
    evidence += f"; over {REJECTED_PCT:g} % in {bad.height:,}: {', '.join(worst)}"
    evidence += f" and {bad.height - 3:,} more" if bad.height > 3 else ""
    fix = "for reasons: gpuctl analyze FILE --section data_quality; the store's table rejects lists each row"
    return [finding("ledger", evidence, fix)]


def parsers(opened: OpenStore) -> list[Finding]:
    """List files that were read by parsers that have been improved since."""
    from gpuctl.ingest.pipeline.registry import all_formats

    today = {fmt.name: fmt.parser_version for fmt in all_formats()}
    rows = opened.store.execute("SELECT DISTINCT path, format, parser_version FROM sources ORDER BY path").fetchall()
    old = [path for path, name, version in rows if version < today.get(name, 0)]
    if old:
        evidence = f"{len(old):,} of {plural(len(rows), 'file')} read by an older parser version: {abbreviate(old)}"
        return [finding("parsers", evidence, f"reload them: {_LOAD}")]
    return [finding("parsers", f"{plural(len(rows), 'file')} read by the current parsers")]


def clusters(opened: OpenStore) -> list[Finding]:
    """List the clusters of the store, and time zones that are not known here."""
    # names and numbers are constants of this module
    days = f"{_day('first_ts')}, {_day('last_ts')}"
    sql = f"SELECT cluster, source_format, timezone, clock, {days} FROM clusters ORDER BY cluster"  # noqa: S608
    rows = opened.store.execute(sql).fetchall()
    if not rows:
        return [finding("clusters", "none", _LOAD)]
    listed = (f"{row[0]}: {row[1]}, {row[2]} ({row[3]}), {row[4] or '?'} to {row[5] or '?'}" for row in rows)
    evidence = f"{len(rows):,}: {abbreviate(listed, separator='; ')}"
    unknown = sorted({row[2] for row in rows if not _is_zone(row[2])})
    if unknown:
        fix = "install the tzdata package, or reload the logs with --timezone"
        return [finding("clusters", f"{evidence}; unknown zone: {abbreviate(unknown)}", fix)]
    return [finding("clusters", evidence)]


def _day(column: str) -> str:
    """Return SQL for the date of a time; for a time since a trace's own start, its day."""
    day = f"'day ' || floor(epoch({column}) / 86400)::BIGINT"
    relative = f"epoch({column}) BETWEEN 0 AND {BEFORE_S - 1}"
    return f"CASE WHEN {relative} THEN {day} ELSE strftime({column}::TIMESTAMP, '%Y-%m-%d') END"


def _is_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


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


def clocks(opened: OpenStore) -> list[Finding]:
    """Count times that are out of order by more than a day, or more than a day ahead: a wrong clock or zone."""
    rows = opened.store.execute(_TIMES, {"now": opened.now, "day": DAY_S}).fetchall()
    bad = []
    for cluster, _, far, ahead in rows:
        bad += [f"{cluster}: {far:,} out of order by more than a day"] if far else []
        bad += [f"{cluster}: {ahead:,} more than a day ahead of now"] if ahead else []
    slight = sum(swapped - far for _, swapped, far, _ in rows)
    small = f"; {slight:,} out of order by less" if slight else ""
    if bad:
        fix = "check the clock of the machine that logged them, and reload with --timezone ZONE"
        return [finding("clocks", f"jobs and attempts: {abbreviate(bad, 4, '; ')}{small}", fix)]
    return [finding("clocks", f"no time is a day ahead of now, or out of order by a day{small}")]


def columns(opened: OpenStore) -> list[Finding]:
    """Count jobs without a GPU count or a submission time: a column that the log lacks."""
    rows = opened.store.execute(
        "SELECT cluster, count(*), count(*) - count(gpus), count(*) - count(submit_ts) FROM jobs "
        "GROUP BY cluster ORDER BY cluster"
    ).fetchall()
    if not rows:
        return []
    counts, times = ([(row[0], row[1], row[column]) for row in rows] for column in (2, 3))
    return [
        _known("gpu_counts", "GPU count", counts, "AllocTRES and ReqTRES", "GPUs"),
        _known("submit_times", "submission time", times, "Submit", "waits"),
    ]


def _known(check: str, what: str, rows: list[tuple[str, int, int]], fields: str, figure: str) -> Finding:
    bad = [
        f"{name}: {lacking:,} of {jobs:,} jobs" for name, jobs, lacking in rows if lacking > jobs * UNKNOWN_PCT / 100
    ]
    if bad:
        fix = f"load logs that contain it (sacct: {fields}); figures of {figure} exclude these jobs"
        return finding(check, f"without a {what}: {abbreviate(bad, 3, '; ', 'clusters')}", fix)
    jobs, lacking = sum(row[1] for row in rows), sum(row[2] for row in rows)
    return finding(check, f"{jobs - lacking:,} of {jobs:,} jobs have a {what}")


CHECKS: tuple[StoreCheck, ...] = (file, lock, schema, lake, rejected, parsers, clusters, clocks, columns)
"""In order; a failure ends the checks."""
