"""Checks of one trace store: that it opens and what it is; those of its rows are in `gpuctl.doctor.rows`.

It is opened as all commands open it to read, which sees that it holds what gpuctl makes and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import StoreError
from gpuctl.core.numbers import size
from gpuctl.doctor.check import Finding, Opened, Status, StoreCheck
from gpuctl.doctor.lake import lake
from gpuctl.doctor.rows import clocks, clusters, columns, ledger, parsers, rejected

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import polars as pl

    from gpuctl.doctor.check import Given
    from gpuctl.store.database import Store

HEADER = 4096
"""Bytes of each of the three headers that a DuckDB file starts with."""


def look(given: Given) -> tuple[list[Finding], pl.DataFrame | None]:
    """Open the store and check it.

    Returns:
        The findings, and its ledger, worst files first (None where there is no store or it cannot be read).
    """
    if given.db is None:
        return [], None
    from gpuctl.store.database import Store

    found: list[Finding] = []
    try:
        with Store(given.db) as store:
            return _ask(store, given, found)
    except StoreError as error:
        return [*found, unopened(error, given)], None
    except OSError as error:
        evidence = f"{given.db}: {error.strerror or error}"
        return [*found, Finding("store_file", Status.FAIL, evidence, "name another file with --db")], None


def _ask(store: Store, given: Given, found: list[Finding]) -> tuple[list[Finding], pl.DataFrame | None]:
    opened = Opened(store, store.path, given.now)
    try:
        for check in CHECKS:
            found += check(opened)
            if any(one.status is Status.FAIL for one in found):
                return found, None
        return found, ledger(store)
    except StoreError as error:
        return [*found, Finding("store_rows", Status.FAIL, error.message, error.hint or "make it again")], None


def unopened(error: StoreError, given: Given) -> Finding:
    """The finding on a store that does not open."""
    from gpuctl.store.database import ForeignStoreError, StoreLockedError, WrongSchemaError
    from gpuctl.store.lake_place import LakeError

    check = "store_file"
    evidence = error.message
    if isinstance(error, StoreLockedError):
        check = "store_lock"
        evidence += _program(error.holder, given.root)
    elif isinstance(error, WrongSchemaError | ForeignStoreError):
        check = "store_schema"
    elif isinstance(error, LakeError):
        check = "store_lake"
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
        yield Finding("store_file", Status.FAIL, evidence, "copy it again, or make it again: gpuctl ingest")
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
    """The version of its tables and DuckDB's storage version."""
    from gpuctl.store.schema import MIGRATIONS

    tags = opened.store.value("SELECT tags FROM duckdb_databases() WHERE database_name = 'trace'")
    storage = dict(tags or {}).get("storage_version", "unknown")
    import duckdb

    evidence = f"version {len(MIGRATIONS)}, as gpuctl wants; DuckDB {duckdb.__version__}, storage version {storage}"
    yield Finding("store_schema", Status.OK, evidence)


CHECKS: tuple[StoreCheck, ...] = (file, lock, schema, lake, rejected, parsers, clusters, clocks, columns)
"""In order; after one that fails, those behind it are not done."""
