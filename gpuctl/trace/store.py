"""Opens a trace store: one DuckDB file, its lock, its version, its migrations."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import duckdb

from gpuctl.core.errors import StoreError, UsageError
from gpuctl.trace.apart import apart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import TracebackType

    import polars as pl

MIGRATIONS = (
    "0001_initial.sql",
    "0002_cluster_managers.sql",
    "0003_queue_limits.sql",
    "0004_profiles.sql",
    "0005_job_logs.sql",
    "0006_results.sql",
    "0007_predictors.sql",
)
"""Applied in order; the schema version is how many have been applied. Never edit one that was released."""

ROW_GROUP = 61_440
"""Rows that one thread of DuckDB compresses and writes together: half of its own choice, so that the batches of a
loader keep two threads busy."""
DEFAULT_MEMORY_LIMIT = "900MB"
"""DuckDB's own limit; past it, it spills to ``temp_directory``. The process as a whole stays under 2 GB."""
_TRANSACTION = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})


class StoreLockedError(StoreError):
    """Another process has the store open.

    Args:
        path: the store.
        holder: the number of that process, where DuckDB can tell it.
    """

    def __init__(self, path: Path, holder: int | None) -> None:
        who = "another process" if holder is None else f"process {holder}"
        super().__init__(f"{path}: {who} has this store open", hint="wait until it is done, then run this again")
        self.holder = holder


class WrongSchemaError(StoreError):
    """The store is of a schema version that this gpuctl does not read as it is."""


@dataclass(frozen=True)
class Rows:
    """What a statement returned."""

    rows: list[Any]

    def fetchall(self) -> list[Any]:
        """Return all rows, each a tuple."""
        return self.rows


class Store:
    """A trace store that is open for reading or for writing.

    Use it as a context manager. Only one process may write, and none may read meanwhile: DuckDB locks the file.

    Args:
        path: the DuckDB file.
        write: create it where it is absent and bring its schema up to date; otherwise it is opened read-only.
        memory_limit: as DuckDB writes it, e.g. ``"900MB"``.
        temp_dir: where DuckDB spills to; beside the store unless given.

    Raises:
        StoreError: the file is locked, is absent (reading), is no trace store, or is of another version.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool = False,
        memory_limit: str = DEFAULT_MEMORY_LIMIT,
        temp_dir: Path | None = None,
    ) -> None:
        self.path = path
        self._memory_limit = memory_limit
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}", hint="name another file with --db") from error
        if not write and not there:
            raise StoreError(f"{path}: no trace store here", hint="make one with: gpuctl ingest LOGDIR --db FILE")
        apart(lambda: self._open(write=write, temp_dir=temp_dir))

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and give up its lock."""
        apart(self._con.close)

    def execute(self, sql: str, params: Mapping[str, Any] | list[Any] | None = None) -> Rows:
        """Run one statement to its end; values only through ``params`` (``$name`` or ``?``).

        Raises:
            KeyboardInterrupt: Ctrl-C; the statement was stopped. What begins or ends a transaction is never stopped.
            StoreError: a view in the store, which gpuctl did not make, asks for a file.
        """

        def run() -> Rows:
            with self._alone():
                done = self._con.execute(sql, params) if params else self._con.execute(sql)
                return Rows(done.fetchall())

        return apart(run, None if sql in _TRANSACTION else self._con.interrupt)

    def frame(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Run a query and return its rows; times come back as UTC.

        Raises:
            KeyboardInterrupt, StoreError: as for `execute`.
        """

        def run() -> pl.DataFrame:
            with self._alone():
                relation = self._con.sql(sql, params=dict(params)) if params else self._con.sql(sql)
                frame: pl.DataFrame = relation.pl()
                return frame

        return apart(run, self._con.interrupt)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Say what it means that a statement of ours asks for a file: none of them does."""
        try:
            yield
        except duckdb.PermissionException as error:
            raise StoreError(
                f"{self.path}: a view in this store asks for something outside of it: {str(error).splitlines()[0]}",
                hint="gpuctl made no such view: do not trust this file, make a store of your own from the logs",
            ) from error

    def value(self, sql: str, params: Mapping[str, Any] | list[Any] | None = None) -> Any:
        """Run a query and return the first column of its first row (None where there is no row)."""
        rows = self.execute(sql, params).fetchall()
        return rows[0][0] if rows else None

    def cluster(self, name: str | None, option: str = "--cluster") -> str:
        """The cluster of that name; where there is only one, None will do.

        Args:
            name: as the user gave it.
            option: with which a name is given.

        Raises:
            UsageError: there is no such cluster, or several and none is named.
        """
        known = [row[0] for row in self.execute("SELECT cluster FROM clusters ORDER BY cluster").fetchall()]
        if name is not None and name not in known:
            raise UsageError(f"no cluster {name!r} in {self.path}; it has: {', '.join(known) or 'none'}")
        if name is None and len(known) != 1:
            what = f"{len(known)} clusters: {', '.join(known)}" if known else "no cluster yet"
            raise UsageError(
                f"{self.path} has {what}", hint=f"name one with {option}" if known else "gpuctl ingest LOGDIR"
            )
        return name or str(known[0])

    def view(self, name: str, data: Any) -> None:
        """Let SQL read an Arrow table, a record-batch reader or a Polars frame under ``name``."""
        apart(lambda: self._con.register(name, data))

    def drop_view(self, name: str) -> None:
        """Forget what ``view`` registered."""
        apart(lambda: self._con.unregister(name))

    def restore_memory_limit(self) -> None:
        """Give DuckDB the memory again that the store was opened with: a loader may have taken it less."""
        self.execute(f"SET memory_limit = '{self._memory_limit}'")

    def _open(self, *, write: bool, temp_dir: Path | None) -> None:
        try:
            self._con = duckdb.connect(
                config={
                    "memory_limit": self._memory_limit,
                    "temp_directory": str(temp_dir or self.path.with_name(self.path.name + ".tmp")),
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                },
            )
            self._con.execute(_attach(self.path, write=write))
            # a stranger's store may hold a view in a table's place: it must not read other files, nor the network
            self._con.execute("SET enable_external_access = false")
        except duckdb.Error as error:
            raise _explain(error, self.path) from error
        try:
            self._con.execute("USE trace")
            self._con.execute("SET TimeZone = 'UTC'")
            # DuckDB would print it to standard output, into the results
            self._con.execute("SET enable_progress_bar = false")
            # rows have no order of their own; keeping that of arrival would make inserts wait for one another
            self._con.execute("SET preserve_insertion_order = false")
            version = self._version()
            if write and version < len(MIGRATIONS):
                self._migrate(version)
            elif version != len(MIGRATIONS):
                raise _wrong_version(self.path, version)
        except BaseException:
            self._con.close()
            raise

    def _version(self) -> int:
        tables = self.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
        names = {row[0] for row in tables}
        if "gpuctl_schema" in names:
            return int(self.value("SELECT max(version) FROM gpuctl_schema") or 0)
        if names:
            raise StoreError(
                f"{self.path}: a DuckDB database, but no trace store (it has tables {', '.join(sorted(names)[:3])} …)",
                hint="name another file with --db",
            )
        return 0

    def _migrate(self, version: int) -> None:
        folder = files("gpuctl.trace").joinpath("migrations")
        self.execute("BEGIN")
        self.execute("CREATE TABLE IF NOT EXISTS gpuctl_schema (version INTEGER NOT NULL, migration VARCHAR NOT NULL)")
        for number, name in enumerate(MIGRATIONS[version:], version + 1):
            self._con.execute(folder.joinpath(name).read_text("utf-8"))
            self.execute("INSERT INTO gpuctl_schema VALUES (?, ?)", [number, name])
        self.execute("COMMIT")


def _wrong_version(path: Path, version: int) -> WrongSchemaError:
    if version == 0:
        hint = "fill it with: gpuctl ingest LOGDIR --db FILE"
        return WrongSchemaError(f"{path}: an empty database, no trace store", hint=hint)
    if version > len(MIGRATIONS):
        return WrongSchemaError(
            f"{path}: schema version {version}, this gpuctl knows up to {len(MIGRATIONS)}", hint="use a newer gpuctl"
        )
    return WrongSchemaError(
        f"{path}: schema version {version}, this gpuctl wants {len(MIGRATIONS)}",
        hint="bring it up to date with: gpuctl ingest --db FILE (no directory needed)",
    )


def _attach(path: Path, *, write: bool) -> str:
    """The statement that opens a store; only so can the size of row groups be chosen."""
    how = f"STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE {ROW_GROUP}" if write else "READ_ONLY"
    name = str(path).replace("'", "''")
    return f"ATTACH '{name}' AS trace ({how})"


def _explain(error: duckdb.Error, path: Path) -> StoreError:
    text = str(error)
    # other errors tell of blocks, and a path may hold any word
    if "set lock on file" in text.replace(str(path), ""):
        holder = re.search(r"PID (\d+)", text)
        return StoreLockedError(path, int(holder[1]) if holder else None)
    if "not a valid DuckDB database" in text:
        return StoreError(f"{path}: not a DuckDB database", hint="name another file with --db")
    reason = text.splitlines()[0]
    return StoreError(f"{path}: cannot be opened: {reason}", hint="check the path, its owner and its disk")
