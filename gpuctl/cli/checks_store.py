"""Checks of one trace store: that it opens, what it is, and whether its rows are plausible.

It is opened as all commands open it to read. Nothing but gpuctl's own tables is asked, and no file beside it: whoever
made the store may have put views and macros into it.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from gpuctl.cli.checks import Finding, Given, Status, few, size
from gpuctl.core.errors import StoreError
from gpuctl.reports.text import plural

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from gpuctl.trace.store import Store

REJECTED_PCT = 1.0
"""Per cent of a file's rows; a file with more of them rejected makes a warning."""
UNKNOWN_PCT = 1.0
"""Per cent of a cluster's jobs; more of them without a GPU count or submission time make a warning."""
TABLES = ("attempts", "clusters", "gpuctl_schema", "jobs", "rejects", "sources")
"""Those that the checks ask."""
HEADER = 4096
"""Bytes of each of the three headers that a DuckDB file starts with."""
DAY_S = 86_400.0


@dataclass(frozen=True)
class Opened:
    """A store that is open for reading, and when the checks run (seconds since 1970)."""

    store: Store
    path: Path
    now: float


StoreCheck = Callable[[Opened], Iterable[Finding]]


def look(given: Given) -> tuple[list[Finding], pl.DataFrame | None]:
    """Open the store and check it.

    Returns:
        The findings, and its ledger, worst files first (None where there is no store or it cannot be read).
    """
    if given.db is None:
        return [], None
    import duckdb

    from gpuctl.trace.store import Store

    found: list[Finding] = []
    try:
        with Store(given.db) as store:
            opened = Opened(store, given.db, given.now)
            # a view that a stranger put into the file must not read others
            store.execute("SET enable_external_access = false")
            for check in CHECKS:
                found += check(opened)
                if any(one.status is Status.FAIL for one in found):
                    return found, None
            return found, ledger(store)
    except StoreError as error:
        return [*found, unopened(error, given)], None
    except OSError as error:
        evidence = f"{given.db}: {error.strerror or error}"
        return [*found, Finding("store_file", Status.FAIL, evidence, "name another file with --db")], None
    except duckdb.Error as error:
        evidence = f"{given.db}: cannot be read: {str(error).splitlines()[0]}"
        fix = "copy it again, or make it anew: gpuctl ingest"
        return [*found, Finding("store_rows", Status.FAIL, evidence, fix)], None


def unopened(error: StoreError, given: Given) -> Finding:
    """The finding on a store that does not open."""
    from gpuctl.trace.store import StoreLockedError, WrongSchemaError

    check = "store_file"
    evidence = error.message
    if isinstance(error, StoreLockedError):
        check = "store_lock"
        evidence += _program(error.holder, given.root)
    elif isinstance(error, WrongSchemaError):
        check = "store_schema"
    return Finding(check, Status.FAIL, evidence, error.hint or "name another file with --db")


def _program(process: int | None, root: Path) -> str:
    """What a process is called, where the kernel tells: `` (python)``."""
    if process is None:
        return ""
    try:
        name = (root / "proc" / str(process) / "comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
    return f" ({name})" if name else ""


def file(opened: Opened) -> Iterable[Finding]:
    """Where the store is, its size, whether all its blocks are there, and whether a writer left something beside it."""
    there = opened.path.stat().st_size
    rows = opened.store.frame("PRAGMA database_size").rows(named=True)
    blocks = next(row for row in rows if row["database_name"] == "trace")
    # those that are free may be missing at the end; before the first lie three headers
    least = int(blocks["block_size"]) * int(blocks["used_blocks"]) + 3 * HEADER
    evidence = f"{opened.path}: {size(there)}"
    if there < least:
        evidence += f", {size(least)} by its own account: the end is missing"
        yield Finding("store_file", Status.FAIL, evidence, "copy it again, or make it anew: gpuctl ingest")
        return
    log = opened.path.with_name(opened.path.name + ".wal")
    if log.exists():
        evidence += f"; {log.name} ({size(log.stat().st_size)}) was left by a process that was stopped"
        yield Finding("store_file", Status.WARN, evidence, "keep both together; the next gpuctl ingest takes it in")
        return
    yield Finding("store_file", Status.OK, evidence)


def lock(_opened: Opened) -> Iterable[Finding]:
    """Nobody writes to it: else it would not have opened (`unopened`)."""
    yield Finding("store_lock", Status.OK, "no process holds it for writing")


def schema(opened: Opened) -> Iterable[Finding]:
    """The version of its tables, DuckDB's storage version, and that gpuctl's tables are what is there."""
    from gpuctl.trace.store import MIGRATIONS

    rows = opened.store.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = 'trace'").fetchall()
    absent = sorted(set(TABLES) - {row[0] for row in rows})
    if absent:
        evidence = f"no table {few(absent)}: not made by gpuctl, or changed since"
        yield Finding("store_schema", Status.FAIL, evidence, "make the store anew: gpuctl ingest")
        return
    tags = opened.store.value("SELECT tags FROM duckdb_databases() WHERE database_name = 'trace'")
    storage = dict(tags or {}).get("storage_version", "unknown")
    import duckdb

    evidence = f"version {len(MIGRATIONS)}, as gpuctl wants; DuckDB {duckdb.__version__}, storage version {storage}"
    views = "SELECT view_name FROM duckdb_views() WHERE database_name = 'trace' AND NOT internal"
    macros = "SELECT function_name FROM duckdb_functions() WHERE database_name = 'trace' AND NOT internal"
    there = {row[0] for row in opened.store.execute(f"{views} UNION ALL {macros}").fetchall()}
    strange = sorted(there - _own_views())
    if strange:
        evidence += f"; views or macros that gpuctl did not make: {few(strange)}"
        fix = "trust the store only if you know who made it; gpuctl ingest makes one without them"
        yield Finding("store_schema", Status.WARN, evidence, fix)
        return
    yield Finding("store_schema", Status.OK, evidence)


def _own_views() -> set[str]:
    """The views that gpuctl makes."""
    from gpuctl.trace.store import MIGRATIONS

    folder = files("gpuctl.trace").joinpath("migrations")
    texts = (folder.joinpath(name).read_text("utf-8") for name in MIGRATIONS)
    return {name for text in texts for name in re.findall(r"^CREATE VIEW (\w+)", text, re.MULTILINE)}


def rejected(opened: Opened) -> Iterable[Finding]:
    """The ledger in one line, and the files of which more than `REJECTED_PCT` per cent of the rows were rejected."""
    rows = ledger(opened.store)
    if rows.height == 0:
        yield Finding("ledger", Status.WARN, "no file was ever loaded", "gpuctl ingest LOGDIR --db FILE")
        return
    came, went = int(rows["rows_in"].sum()), int(rows["rows_rejected"].sum())
    share = 100 * went / max(1, came)
    evidence = f"{plural(rows.height, 'file')}, {plural(came, 'row')}, {went:,} rejected ({share:.2g} %)"
    bad = rows.filter(rows["rejected_pct"] > REJECTED_PCT)
    if bad.height:
        worst = (f"{row['path']} ({row['rejected_pct']:.2g} %)" for row in bad.head(3).iter_rows(named=True))
        evidence += f"; over {REJECTED_PCT:g} % in {bad.height:,}: {', '.join(worst)}"
        evidence += f" and {bad.height - 3:,} more" if bad.height > 3 else ""
        fix = "see why: gpuctl analyze FILE --section data_quality; the store's table rejects has each row"
        yield Finding("ledger", Status.WARN, evidence, fix)
        return
    yield Finding("ledger", Status.OK, evidence)


def parsers(opened: Opened) -> Iterable[Finding]:
    """Whether files were read by parsers that have been improved since."""
    from gpuctl.ingest.registry import all_formats

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
    rows = opened.store.execute(
        "SELECT cluster, source_format, timezone, clock, strftime(first_ts::TIMESTAMP, '%Y-%m-%d'), "
        "strftime(last_ts::TIMESTAMP, '%Y-%m-%d') FROM clusters ORDER BY cluster"
    ).fetchall()
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
    "gpu_counts": "load logs that tell it (sacct: AllocTRES and ReqTRES); no figure of GPUs counts these jobs",
    "submit_times": "load logs that tell it (sacct: Submit); no figure of waits counts these jobs",
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
        "SELECT cluster, path, format, rows_in, rows_rejected, "
        "CASE WHEN rows_in > 0 THEN 100.0 * rows_rejected / rows_in ELSE 0.0 END AS rejected_pct "
        "FROM sources ORDER BY rejected_pct DESC, cluster, path"
    )


CHECKS: tuple[StoreCheck, ...] = (file, lock, schema, rejected, parsers, clusters, clocks, columns)
"""In order; after one that fails, those behind it are not done."""
