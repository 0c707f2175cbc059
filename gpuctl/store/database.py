"""Opens a trace store: one DuckDB file, its lock, its version, its migrations."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb

from gpuctl.core.errors import StoreError, UsageError
from gpuctl.core.interruption import uninterrupted
from gpuctl.store import lake_place, long_frames, reader_sql, schema, trusted_stores
from gpuctl.store.background_task import BackgroundTask
from gpuctl.store.lake import Lake, allow, recorded
from gpuctl.store.schema import MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import polars as pl

_T = TypeVar("_T")
ROW_GROUP = 61_440
"""Rows that one thread of DuckDB compresses and writes together: half of its own choice, so that a loader needs to
hold fewer."""
DEFAULT_MEMORY_LIMIT = "900MB"
"""DuckDB's own limit; past it, it spills to ``temp_directory``. The process as a whole stays under 2 GB."""
_ANEW = "do not trust this file: make a store of your own from the logs, with gpuctl ingest LOGDIR --db FILE"
_NO_ROOM = ("No space left", "Disk quota", "File too large")
"""What the system calls a full disk; DuckDB hands it on as text."""
_REFUSED = ("Permission denied", "Read-only file system", "Is a directory", "Input/output error")
"""What else the system reports about a file that it does not open."""
_OF_THE_FILE = (duckdb.OperationalError, duckdb.InternalError, duckdb.FatalException, duckdb.PermissionException)
_OF_THE_STORE = (*_OF_THE_FILE, duckdb.DataError, duckdb.IntegrityError)
"""Errors that a file or, if it is only read, its rows make; all others are of a statement's making."""
_PARQUET = re.compile("parquet|zstd", re.IGNORECASE)
"""In what DuckDB reports about a file in the lake that it cannot read."""
_MEMORY = re.compile("memory_limit|max_memory", re.IGNORECASE)
_TRANSACTION = frozenset({"BEGIN", "COMMIT", "ROLLBACK"})


class StoreLockedError(StoreError):
    """Another process has the store open.

    Args:
        path: the store.
        holder: the id of that process, if DuckDB knows it.
    """

    def __init__(self, path: Path, holder: int | None) -> None:
        who = "another process" if holder is None else f"process {holder}"
        super().__init__(f"{path}: {who} has this store open", hint="wait until it is done, then run this again")
        self.holder = holder


class WrongSchemaError(StoreError):
    """The store has a schema version that this gpuctl cannot read."""


class ForeignStoreError(StoreError):
    """The store holds other objects than the tables that gpuctl makes."""


@dataclass(frozen=True)
class Rows:
    """The result of a statement."""

    rows: list[Any]

    def fetchall(self) -> list[Any]:
        """Return all rows, each a tuple."""
        return self.rows


class Store:
    """A trace store that is open for reading or for writing.

    Use it as a context manager. Only one process may write, and no other may read at the same time: DuckDB locks the
    file.

    Args:
        path: the DuckDB file.
        write: create it if it is absent and bring its schema up to date; otherwise it is opened read-only.
        memory_limit: as DuckDB writes it, e.g. ``"900MB"``.
        temp_dir: where DuckDB spills to; next to the store unless given.
        lake: the directory for its telemetry, created if absent; if the store already has one, its present place.

    Raises:
        StoreError: the file is locked, is absent (reading), is not a trace store, or is of another version.
    """

    def __init__(
        self,
        path: Path,
        *,
        write: bool = False,
        memory_limit: str = DEFAULT_MEMORY_LIMIT,
        temp_dir: Path | None = None,
        lake: str | None = None,
    ) -> None:
        self.path = path
        self._write = write
        self._memory_limit = memory_limit
        self._limited = False
        self._background = BackgroundTask()
        self._one_thread = False
        self._named_lake = lake_place.parse_place(lake) if lake is not None else None
        self._place: lake_place.Place | None = None
        self.lake: Lake | None = None
        trusted_stores.check_names(path, temp_dir)
        try:
            there = path.is_file()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}", hint="name another file with --db") from error
        if not write and not there:
            raise StoreError(f"{path}: no trace store here", hint="make one with: gpuctl ingest LOGDIR --db FILE")
        self._before = trusted_stores.seal(path)
        self._new = not there and not trusted_stores.log_of(path).exists()
        uninterrupted(lambda: self._open(write=write, temp_dir=temp_dir))

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._write:
                self._put_in_place()
        finally:
            self.close()

    def _put_in_place(self) -> None:
        """Write committed data from DuckDB's log into the file: closing does so as well, but cannot report a failure.

        Raises:
            StoreError: its disk is full or fails.
        """
        try:
            with suppress(duckdb.TransactionException):
                # a reader of this process may hold a transaction open; closing tries again
                uninterrupted(lambda: (self._background.end(), self._con.execute("CHECKPOINT trace")))
        except duckdb.Error as error:
            if not trusted_stores.log_of(self.path).exists():
                raise _unusable(error, self.path, write=True) from error
            raise trusted_stores.unfinished(self.path, _first_line(error)) from error

    def close(self) -> None:
        """Close the file and give up its lock."""

        def end() -> None:
            self._background.end()
            self._con.close()

        with suppress(duckdb.Error):
            # a failure to write was reported at the write
            uninterrupted(end)
            if self._write:
                trusted_stores.note(self.path, len(MIGRATIONS))

    def execute(self, sql: str, params: Mapping[str, Any] | list[Any] | None = None) -> Rows:
        """Run one statement to its end; values only through ``params`` (``$name`` or ``?``).

        Raises:
            KeyboardInterrupt: Ctrl-C; the statement was stopped. Statements that begin or end a transaction are never
                stopped.
            StoreError: the store is damaged, its disk is full, or there is not enough memory.
        """

        def run() -> Rows:
            with self._explained():
                done = self._con.execute(sql, params) if params else self._con.execute(sql)
                return Rows(done.fetchall())

        self._limited = self._limited or _MEMORY.search(sql) is not None
        if sql == "ROLLBACK":
            # an error may have ended the transaction, or the whole database
            with suppress(StoreError, duckdb.Error):
                uninterrupted(lambda: (self._background.end(), run()))
                self._con.execute("RESET threads")
                self._one_thread = False
                self.refresh_lake()
            return Rows([])
        return self._run(run, None if sql in _TRANSACTION else self._con.interrupt)

    def run_in_background(self, work: Callable[[], None]) -> None:
        """Run `work`, statements of this store in one DuckDB thread, while the caller continues.

        The caller's next statement waits until it is done, and raises its exception.
        """

        def run() -> None:
            if not self._one_thread:
                self.execute("SET threads = 1")
                self._one_thread = True
            work()

        self._background.wait(self._con.interrupt)
        self._background.start(run)

    def wait(self) -> None:
        """Wait for the background work.

        Raises:
            KeyboardInterrupt: Ctrl-C; it was stopped.
            Exception: an exception that it raised.
        """
        if self._background.is_here():
            return
        self._background.wait(self._con.interrupt)
        if self._one_thread:
            # an error ends the transaction, which then accepts no setting: the rollback resets this as well
            uninterrupted(lambda: self._con.execute("RESET threads"))
            self._one_thread = False

    def _run(self, work: Callable[[], _T], interrupt: Callable[[], None] | None = None) -> _T:
        self.wait()
        return uninterrupted(work, interrupt)

    def frame(self, sql: str, params: Mapping[str, Any] | None = None, *, long: bool = False) -> pl.DataFrame:
        """Run a query and return its rows; times come back as UTC.

        Args:
            sql: one SELECT.
            params: its parameters.
            long: there may be one row per job: rows are kept in a temporary file, see `long_frames`.

        Raises:
            KeyboardInterrupt, StoreError: as for `execute`.
        """

        def run() -> pl.DataFrame:
            values = dict(params) if params else None
            with self._explained():
                if long:
                    return long_frames.read(self._con, sql, values, check)
                return check(long_frames.whole(self._con, sql, values))

        def check(found: pl.DataFrame) -> pl.DataFrame:
            beyond = reader_sql.beyond_years(found)
            if beyond is not None:
                raise _damaged(self.path, f"a time in {beyond} is not in the years 1 to 9999")
            return found

        return self._run(run, self._con.interrupt)

    def read_only_query(self, sql: str, params: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Run a reader's own SELECT and return its rows; times come back as UTC, intervals as seconds.

        Raises:
            KeyboardInterrupt: Ctrl-C; it was stopped.
            UsageError: it is not a statement, several, one that does more than read, or one that DuckDB cannot run; a
                time in its answer is outside the years 1 to 9999.
            StoreError: the store is damaged, or there is not enough memory.
        """

        def run() -> pl.DataFrame:
            with self._explained_to_reader():
                frame: pl.DataFrame = reader_sql.relation(self._con, sql, params).pl()
                return frame

        return reader_sql.in_years(self._run(run, self._con.interrupt))

    def interrupt(self) -> None:
        """Interrupt the running statement; may be called from another thread."""
        self._con.interrupt()

    def batches(
        self, sql: str, rows: int = reader_sql.BATCH_ROWS, params: Mapping[str, Any] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Run a reader's own SELECT and yield its rows in batches, so that memory does not grow with them.

        The first frame comes even if there are no rows. Raises as `read_only_query` does.
        """

        def begin() -> Any:
            with self._explained_to_reader():
                return reader_sql.relation(self._con, sql, params).to_arrow_reader(rows)

        def following() -> Any:
            with self._explained_to_reader():
                return next(reader, None)

        reader = self._run(begin, self._con.interrupt)
        empty = reader.schema.empty_table()
        batch = self._run(following, self._con.interrupt)
        yield reader_sql.in_years(reader_sql.as_frame(empty if batch is None else batch))
        while (batch := self._run(following, self._con.interrupt)) is not None:
            frame = reader_sql.as_frame(batch)
            if frame.height:
                yield reader_sql.in_years(frame)

    @contextmanager
    def _explained_to_reader(self) -> Iterator[None]:
        """Turn errors of a reader's own SQL into errors for the user."""
        try:
            yield
        except duckdb.PermissionException as error:
            raise UsageError(
                f"the SQL accesses more than the store: {_first_line(error)}",
                hint="a query reads the store alone, no files and no network",
            ) from error
        except duckdb.Error as error:
            if of_the_lake := self._of_the_lake(error):
                raise of_the_lake from error
            # a damaged block found while rows are fetched has no exception class of its own
            if isinstance(error, _OF_THE_FILE) or type(error) is duckdb.Error:
                raise _unusable(error, self.path, write=False) from error
            raise UsageError(_first_line(error), hint="gpuctl tables lists tables and columns") from error

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Turn errors of gpuctl's own statements into errors of the store."""
        try:
            yield
        except duckdb.Error as error:
            if of_the_lake := self._of_the_lake(error):
                raise of_the_lake from error
            # a statement that fails on a log's rows, and not on those of the store, is a bug of gpuctl
            of_the_store = _OF_THE_FILE if self._write else _OF_THE_STORE
            # a damaged block found while rows are fetched has no exception class of its own
            if not isinstance(error, of_the_store) and type(error) is not duckdb.Error:
                raise
            raise _unusable(error, self.path, write=self._write) from error
        except (OverflowError, ValueError) as error:
            # a time that Python cannot represent as a date
            if self._write:
                raise
            raise _damaged(self.path, str(error)) from error
        except BaseException as error:
            # the panic of a Rust library is not an Exception
            if type(error).__name__ != "PanicException":
                raise
            raise _damaged(self.path, str(error)) from error

    def _of_the_lake(self, error: duckdb.Error) -> StoreError | None:
        """Return the user's error for a failure caused by a file in the lake; None for other failures."""
        reason = str(error).splitlines()[0]
        if self._place is None or not (self._place.path in reason or _PARQUET.search(reason)):
            return None
        if isinstance(error, duckdb.OutOfMemoryException) or any(words in reason for words in _NO_ROOM):
            return None
        return lake_place.unreadable(self.path, self._place, reason)

    def value(self, sql: str, params: Mapping[str, Any] | list[Any] | None = None) -> Any:
        """Run a query and return the first column of its first row (None if there is no row)."""
        rows = self.execute(sql, params).fetchall()
        return rows[0][0] if rows else None

    def cluster(self, name: str | None, option: str = "--cluster") -> str:
        """Return the id of the cluster of that name; if there is only one, the name may be None.

        Args:
            name: as given by the user.
            option: the option that names a cluster.

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
        """Let SQL read an Arrow table, a record batch reader or a Polars frame as ``name``."""
        self._run(lambda: self._con.register(name, data))

    def drop_view(self, name: str) -> None:
        """Drop a name that ``view`` registered."""
        self._run(lambda: self._con.unregister(name))

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Restrict DuckDB to one thread for the statements within."""
        self.execute("SET threads = 1")
        # an error ends the transaction, which then accepts no setting: the rollback resets this as well
        yield
        self.execute("RESET threads")

    def keep(self, name: str, rows: pl.DataFrame) -> None:
        """Copy a Polars frame into a temporary table; `name` is a constant of gpuctl."""
        self.view("kept_rows", rows)
        self.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT * FROM kept_rows")  # noqa: S608
        self.drop_view("kept_rows")

    def refresh_lake(self) -> None:
        """Let SQL see the files that are now part of the lake; called after every change to them."""
        if self.lake is not None:
            self.lake.refresh()

    def restore_memory_limit(self) -> None:
        """Restore DuckDB's memory limit of the opened store, which a loader may have lowered."""
        if self._limited:
            self.execute(f"SET memory_limit = '{self._memory_limit}'")
            self._limited = False

    def _open(self, *, write: bool, temp_dir: Path | None) -> None:
        self._connect(self._named_lake, write=write, temp_dir=temp_dir)
        try:
            place = self._named_lake
            own = recorded(self)
            if place is None and own is not None:
                # the places that a connection may access are set once
                place = lake_place.recorded(self.path, own[1])
                self._con.close()
                self._connect(place, write=write, temp_dir=temp_dir)
            if place is not None:
                self._place = place
                self.lake = Lake(self, place, write=write)
        except BaseException:
            with suppress(duckdb.Error):
                self._con.close()
            raise

    def _connect(self, lake: lake_place.Place | None, *, write: bool, temp_dir: Path | None) -> None:
        try:
            self._con = _database(
                {
                    "memory_limit": self._memory_limit,
                    "temp_directory": str(temp_dir or self.path.with_name(self.path.name + ".tmp")),
                    "autoinstall_known_extensions": "false",
                    "autoload_known_extensions": "false",
                },
            )
            if write and self._new:
                _make(self._con, self.path)
            self._con.execute(_attach(self.path, write=write))
            if lake is not None:
                allow(self._con, lake)
            # an untrusted store may hold a view in place of a table: it must not read other files or the network
            self._con.execute("SET enable_external_access = false")
        except duckdb.Error as error:
            raise _explain(error, self.path) from error
        try:
            with self._explained():
                # before any query of the store, which may hold macros
                version = self._look_through()
                self._con.execute("USE trace")
                self._con.execute("SET TimeZone = 'UTC'")
                # it would be printed among the results; in notebooks without ipywidgets it is off, and cannot be set
                if self._con.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
                    self._con.execute("SET enable_progress_bar = false")
                # rows have no order; preserving insertion order would make inserts wait for one another
                self._con.execute("SET preserve_insertion_order = false")
                if write and version < len(MIGRATIONS):
                    self._migrate(version)
                elif version != len(MIGRATIONS):
                    raise _wrong_version(self.path, version)
        except BaseException:
            with suppress(duckdb.Error):
                self._con.close()
            raise

    def _look_through(self) -> int:
        """Return the schema version of the store; its catalogue is checked unless this process left it unchanged."""
        tables = "SELECT 1 FROM system.main.duckdb_tables() WHERE database_name = 'trace' LIMIT 1"
        # another process may have created it in the meantime
        if self._new and not self._con.execute(tables).fetchall():
            return 0
        known = trusted_stores.version(self.path, self._before)
        return self._version(schema.objects(self._con, "trace")) if known is None else known

    def _version(self, found: schema.Objects) -> int:
        """Return the schema version of a store from its objects.

        Raises:
            StoreError: it is not a trace store, or holds an object that gpuctl did not create.
        """
        tables = sorted(name for kind, _, name in found.made if kind == "table")
        if not found.made:
            return 0
        if "gpuctl_schema" not in tables:
            names = ", ".join((tables or sorted(name for _, _, name in found.made))[:3])
            raise StoreError(
                f"{self.path}: a DuckDB database, but not a trace store (it has tables {names} …)",
                hint="name another file with --db",
            )
        version = self._last_migration(found)
        if 0 <= version <= len(MIGRATIONS) and (difference := schema.difference_text(found, version)):
            raise ForeignStoreError(f"{self.path}: not as gpuctl made it: {difference}", hint=_ANEW)
        return version

    def _last_migration(self, found: schema.Objects) -> int:
        if any(found.made.get(key) != text for key, text in schema.of_every_version().items()):
            raise ForeignStoreError(f"{self.path}: its gpuctl_schema is not as gpuctl made it", hint=_ANEW)
        versions = [row[0] for row in self._con.execute("SELECT version FROM trace.main.gpuctl_schema").fetchall()]
        return max(versions, default=0)

    def _migrate(self, version: int) -> None:
        self.execute("BEGIN")
        self.execute(schema.SCHEMA_TABLE)
        for number, name in enumerate(MIGRATIONS[version:], version + 1):
            self._con.execute(schema.migration(name))
            self.execute("INSERT INTO gpuctl_schema VALUES (?, ?)", [number, name])
        self.execute("COMMIT")


def _database(config: Mapping[str, str]) -> duckdb.DuckDBPyConnection:
    """Return a connection to an empty database in memory, to which one store is attached."""
    return duckdb.connect(config=dict(config))


def _first_line(error: duckdb.Error) -> str:
    return str(error).strip().partition("\n")[0]


def _wrong_version(path: Path, version: int) -> WrongSchemaError:
    what, newest = f"schema version {version}, this gpuctl", len(MIGRATIONS)
    if version <= 0:
        what, hint = "an empty database, not a trace store", "fill it with: gpuctl ingest LOGDIR --db FILE"
    elif version > newest:
        what, hint = f"{what} knows up to {newest}", "use a newer gpuctl"
    else:
        what, hint = f"{what} wants {newest}", "bring it up to date with: gpuctl ingest --db FILE (no directory needed)"
    return WrongSchemaError(f"{path}: {what}", hint=hint)


def _make(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Create an empty database at a path in one step.

    DuckDB creates a file and then writes its headers: a process killed in between leaves a file that cannot be opened.
    If another process was faster, its file stays.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with suppress(OSError):
        unfinished.unlink(missing_ok=True)
    try:
        con.execute(_attach(unfinished, write=True))
        con.execute("DETACH trace")
        # on a file system without hard links, DuckDB has to create it in place
        with suppress(OSError):
            os.link(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def _attach(path: Path, *, write: bool) -> str:
    """Return the statement that opens a store; the size of row groups can only be set this way."""
    how = f"STORAGE_VERSION 'v1.5.0', ROW_GROUP_SIZE {ROW_GROUP}" if write else "READ_ONLY"
    name = str(path).replace("'", "''")
    return f"ATTACH '{name}' AS trace ({how})"


def _explain(error: duckdb.Error, path: Path) -> StoreError:
    text = str(error)
    # other errors describe blocks, and a path may contain any word
    if "set lock on file" in text.replace(str(path), ""):
        holder = re.search(r"PID (\d+)", text)
        return StoreLockedError(path, int(holder[1]) if holder else None)
    if "not a valid DuckDB database" in text:
        return StoreError(f"{path}: not a DuckDB database", hint="name another file with --db")
    reason = text.splitlines()[0]
    if any(words in reason for words in _NO_ROOM):
        return _unusable(error, path, write=True)
    if damage := _damage(reason):
        return _damaged(path, damage)
    if "storage version" in reason:
        return StoreError(
            f"{path}: in a newer DuckDB format than this gpuctl writes", hint="name another file with --db"
        )
    cause = next((words for words in _REFUSED if words in reason), reason)
    return StoreError(f"{path}: cannot be opened: {cause}", hint="check the path, its owner and its disk")


def _damage(reason: str) -> str:
    """Return the kind of damage in a file with corrupt blocks, from DuckDB's message; empty if there is none."""
    if "Could not read enough bytes" in reason:
        return "it is cut off"
    return "its bytes are not those that were written (checksum)" if "checksum" in reason else ""


def _unusable(error: duckdb.Error, path: Path, *, write: bool) -> StoreError:
    """Return the user's error for a DuckDB error that the statement did not cause."""
    reason = str(error).splitlines()[0]
    if isinstance(error, duckdb.OutOfMemoryException):
        return StoreError(f"{path}: not enough memory or disk space: {reason}", hint="free some, then run this again")
    if any(words in reason for words in _NO_ROOM):
        return StoreError(f"{path}: its disk is full: {reason}", hint="free space on its disk, then run this again")
    if isinstance(error, duckdb.PermissionException):
        return ForeignStoreError(
            f"{path}: something in this store refers to something outside it: {reason}", hint=_ANEW
        )
    if write:
        hint = "look at its disk; if that is sound, take another copy of the store, or make it again"
        return StoreError(f"{path}: cannot be read or written: {reason}", hint=hint)
    return _damaged(path, _damage(reason) or reason)


def _damaged(path: Path, reason: str) -> StoreError:
    hint = "take another copy of it, or make it again from the logs: gpuctl ingest LOGDIR --db FILE"
    return StoreError(f"{path}: damaged, cannot be read: {reason}"[:400], hint=hint)
