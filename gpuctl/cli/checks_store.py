"""Checks of one trace store: that it opens and what it is; those of its rows are in `gpuctl.cli.checks_rows`.

It is opened as all commands open it to read. Nothing but gpuctl's own tables is asked, and no file beside it: whoever
made the store may have put views and macros into it.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING

from gpuctl.cli.checks import Finding, Opened, Status, StoreCheck, few, size
from gpuctl.cli.checks_rows import clocks, clusters, columns, ledger, parsers, rejected
from gpuctl.core.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import polars as pl

    from gpuctl.cli.checks import Given

TABLES = ("attempts", "clusters", "gpuctl_schema", "jobs", "rejects", "results", "sources")
"""Those that the checks ask, and that of kept results."""
HEADER = 4096
"""Bytes of each of the three headers that a DuckDB file starts with."""


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


CHECKS: tuple[StoreCheck, ...] = (file, lock, schema, rejected, parsers, clusters, clocks, columns)
"""In order; after one that fails, those behind it are not done."""
