"""Telemetry of a store as Parquet files next to it, by cluster and day, read in place by the same SQL.

The table ``lake_files`` lists the files that are part of the store. It changes in the transaction that loads or removes
a source; other files are left-overs of a killed ingest, are never read, and are deleted when the store is next opened
for writing. Temporary views shadow the tables of the same names and show both.
"""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from dataclasses import dataclass
from hashlib import file_digest, sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gpuctl.core.errors import DependencyError, StoreError, UsageError
from gpuctl.store import lake_place
from gpuctl.store.lake_place import LakeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from gpuctl.store.lake_place import Place

TABLES: dict[str, dict[str, str]] = {
    "gpu_samples": {
        "cluster": "VARCHAR",
        "ts": "TIMESTAMPTZ",
        "machine": "VARCHAR",
        "util": "FLOAT[]",
        "mem_mb": "FLOAT[]",
        "source": "INTEGER",
    },
    "host_util": {
        "cluster": "VARCHAR",
        "ts": "TIMESTAMPTZ",
        "machine": "VARCHAR",
        "cpu_pct": "FLOAT",
        "mem_total_kb": "DOUBLE",
        "mem_free_kb": "DOUBLE",
        "source": "INTEGER",
    },
    "gpu_readings": {
        "cluster": "VARCHAR",
        "ts": "TIMESTAMPTZ",
        "series": "BIGINT",
        "util": "FLOAT",
        "mem_mb": "FLOAT",
        "power_w": "FLOAT",
        "energy_j": "DOUBLE",
        "sm_pct": "FLOAT",
        "tensor_pct": "FLOAT",
        "source": "INTEGER",
    },
}
"""Tables that a lake holds, and their columns."""
VIEWS = (*TABLES, "gpu_util")
_DAY = "CASE WHEN year(ts) BETWEEN 1 AND 9999 THEN CAST(CAST(ts AS DATE) AS VARCHAR) ELSE 'other' END"
_FILE = r"[0-9a-f]{32}_\d+\.parquet"
_NAME = re.compile(rf"({'|'.join(TABLES)})/cluster=[\w.-]{{1,80}}/day=(\d{{4}}-\d\d-\d\d|other)/{_FILE}", re.ASCII)
_LEFT = re.compile(rf"(tmp_)?{_FILE}(\.tmp)?")
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,62}")
_GPU_UTIL = """
    SELECT cluster, ts, machine, unnest(range(len(util)))::INTEGER AS gpu, unnest(util) AS util,
           unnest(coalesce(mem_mb, list_resize([]::FLOAT[], len(util)))) AS mem_mb,
           NULL::VARCHAR AS instance, NULL::FLOAT AS sm_pct, NULL::FLOAT AS tensor_pct, NULL::FLOAT AS power_w,
           NULL::DOUBLE AS energy_j, NULL::VARCHAR AS job, NULL::VARCHAR AS uuid, 'kernel' AS util_kind, source
    FROM temp.main.lake_gpu_samples
    UNION ALL BY NAME
    SELECT r.cluster, r.ts, s.machine, s.gpu, r.util, r.mem_mb, s.instance, r.sm_pct, r.tensor_pct, r.power_w,
           r.energy_j, s.job, s.uuid, s.util_kind, r.source
    FROM temp.main.lake_gpu_readings AS r
    JOIN trace.main.gpu_series AS s ON s.cluster = r.cluster AND s.series = r.series
"""


@dataclass(frozen=True)
class File:
    """A file that is part of a store: its name relative to the lake's folder, its size and its digest."""

    table: str
    name: str
    rows: int
    bytes: int
    sha256: str


class Opened(Protocol):
    """The part of a store that a lake needs."""

    path: Path

    def execute(self, sql: str, params: Mapping[str, Any] | list[Any] | None = None) -> Any:
        """Run one statement to its end, values only through `params`; its result has ``fetchall()``."""


def allow(con: duckdb.DuckDBPyConnection, place: Place) -> None:
    """Let a connection access a lake, and nothing else outside its store; called before external access is disabled.

    Raises:
        DependencyError: DuckDB's extension for object storage is not installed.
    """
    import duckdb

    if place.remote:
        try:
            con.execute("LOAD httpfs")
        except duckdb.Error as error:
            raise DependencyError(
                f"{place.path}: to read it DuckDB needs its extension httpfs, which is not installed",
                hint="""install it once: python -c "import duckdb; duckdb.sql('INSTALL httpfs')" """.strip(),
            ) from error
        # spilled data would go to files outside of what the connection may access
        con.execute("SET allow_persistent_secrets = false")
        for sql in _secret(place):
            con.execute(sql)
    con.execute(f"SET allowed_directories = [{_quoted(place.path)}]")


def recorded(store: Opened) -> tuple[str, str, int] | None:
    """Return the id, location and write count of the lake that a store has; None if it has none."""
    rows = store.execute("SELECT id, location, writes FROM trace.main.lake").fetchall()
    return rows[0] if rows else None


class Lake:
    """The lake of a store that is open.

    Args:
        store: with access to the place.
        place: location of the lake.
        write: the store is open for writing.

    Raises:
        StoreError: the lake is not there, is another store's, or lacks files.
    """

    def __init__(self, store: Opened, place: Place, *, write: bool) -> None:
        self.place = place
        self._store = store
        self._write = write and not place.remote
        if self._write:
            self._claim()
        elif not place.remote:
            self._check_id()
        files = self.files()
        if not place.remote:
            self._check_files(files)
        if self._write:
            self.sweep()
        self.refresh()

    def refresh(self) -> None:
        """Let SQL see the files that are part of the store now."""
        files: dict[str, list[str]] = {table: [] for table in TABLES}
        for one in self.files():
            files[one.table].append(self.place.file(one.name))
        for table, columns in TABLES.items():
            wanted = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in columns.items())
            # names and types are constants of this module; the paths are bound
            text = f"SELECT {', '.join(columns)} FROM trace.main.{table}"  # noqa: S608
            if files[table]:
                self._store.execute(f"SET VARIABLE lake_{table} = $files", {"files": files[table]})
                source = f"read_parquet(getvariable('lake_{table}'), hive_partitioning = false)"
                text += f" UNION ALL SELECT {wanted} FROM {source}"  # noqa: S608
            self._view(table, text)
        self._view("gpu_util", _GPU_UTIL)

    def _view(self, name: str, text: str) -> None:
        self._store.execute(f"CREATE OR REPLACE TEMP VIEW lake_{name} AS {text}")
        self._store.execute(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM temp.main.lake_{name}")  # noqa: S608

    def append(self, table: str, rows: str, values: Mapping[str, Any], cluster: str, source: int) -> None:
        """Write rows as new files, which become part of the store when its transaction is committed.

        Args:
            table: one of `TABLES`.
            rows: a SELECT of gpuctl, with some of the table's columns.
            values: its parameters.
            cluster: cluster of the rows.
            source: source of the rows.

        Raises:
            UsageError: the lake is in object storage.
            StoreError: they cannot be written.
        """
        if not self._write:
            raise lake_place.only_read(self.place)
        folder = Path(self.place.file(f"{table}/cluster={_folder(cluster)}"))
        wanted = ", ".join(f"CAST({name} AS {kind}) AS {name}" for name, kind in TABLES[table].items())
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder}: {error.strerror}", hint="look at the lake's disk and its owner") from error
        written = self._store.execute(
            f"COPY (SELECT {wanted}, {_DAY} AS day FROM ("  # noqa: S608 - names of this module's own
            f"SELECT * FROM trace.main.{table} WHERE false UNION ALL BY NAME {rows})) TO {_quoted(str(folder))} "
            f"(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day), FILENAME_PATTERN '{uuid.uuid4().hex}_{{i}}', "
            "OVERWRITE_OR_IGNORE, RETURN_STATS)",
            dict(values),
        ).fetchall()
        for path, count, size, *_ in written:
            digest = _to_disk(path)
            name = os.path.relpath(path, self.place.path)
            if not _NAME.fullmatch(name):
                raise AssertionError(f"a file of the lake has another name than it should: {name}")
            self._store.execute(
                "INSERT INTO trace.main.lake_files BY NAME SELECT $table AS table_name, $cluster AS cluster, "
                "$file AS file, $rows::BIGINT AS rows, $bytes::BIGINT AS bytes, $sha256 AS sha256, "
                "$source::INTEGER AS source",
                {
                    "table": table,
                    "cluster": cluster,
                    "file": name,
                    "rows": count,
                    "bytes": size,
                    "sha256": digest,
                    "source": source,
                },
            )
        self.refresh()

    def sweep(self) -> None:
        """Delete files in the lake that are not part of the store; outside of transactions."""
        if not self._write:
            return
        listed = {one.name for one in self.files()}
        for table in TABLES:
            for folder, _, names in os.walk(self.place.file(table), topdown=False):
                for name in names:
                    path = os.path.join(folder, name)  # noqa: PTH118 - of thousands of files
                    if _LEFT.fullmatch(name) and os.path.relpath(path, self.place.path) not in listed:
                        Path(path).unlink(missing_ok=True)
                with suppress(OSError):
                    # a folder that is not empty stays
                    Path(folder).rmdir()

    def files(self) -> list[File]:
        """Return the files that are part of the store, by name.

        Raises:
            StoreError: one has a name that gpuctl does not give.
        """
        sql = "SELECT table_name, file, rows, bytes, sha256 FROM trace.main.lake_files ORDER BY file"
        found = [File(*row) for row in self._store.execute(sql).fetchall()]
        for one in found:
            name = _NAME.fullmatch(one.name)
            if name is None or name[1] != one.table:
                raise StoreError(
                    f"{self._store.path}: a file of its lake has a name that gpuctl does not give: {one.name[:100]!r}",
                    hint="do not trust this store: make one of your own from the logs",
                )
        return found

    def rows_in(self, one: File) -> int | None:
        """Return the row count that a file states; None if it is not Parquet."""
        sql = "SELECT num_rows FROM parquet_file_metadata($path)"
        try:
            return int(self._store.execute(sql, {"path": self.place.file(one.name)}).fetchall()[0][0])
        except LakeError:
            return None

    def _check_files(self, files: list[File]) -> None:
        absent, strange = [], []
        for one in files:
            try:
                there = os.stat(self.place.file(one.name), follow_symlinks=False).st_size == one.bytes  # noqa: PTH116 - of thousands
            except OSError:
                there = False
            if not there:
                absent.append(one)
        # a link on the way would lead out of the lake
        for folder in {os.path.dirname(one.name) for one in files}:  # noqa: PTH120
            path = self.place.file(folder)
            if os.path.realpath(path) != path:
                strange.append(folder)
        strange += [one.name for one in files if os.path.islink(self.place.file(one.name))]  # noqa: PTH114
        if strange:
            raise LakeError(f"{self.place.path}: a link in the lake, {strange[0]}", hint="put the file in its place")
        if absent:
            lost, whole = (sum(one.rows for one in some) for some in (absent, files))
            raise LakeError(
                f"{self._store.path}: its telemetry is in the lake {self.place.path}, where {len(absent):,} of "
                f"{len(files):,} files are missing or of another size ({lost:,} of {whole:,} rows), the first "
                f"{absent[0].name}",
                hint=lake_place.ANEW,
            )

    def _check_id(self) -> None:
        own = recorded(self._store)
        marker = lake_place.read_marker(self.place)
        if own is None or marker is None:
            raise lake_place.missing(self._store.path, self.place, "which is not there")
        if marker[0] != own[0]:
            raise lake_place.missing(self._store.path, self.place, "which is the lake of another store")

    def _claim(self) -> None:
        """Create or adopt the lake; the owner is recorded first, so that the process may be killed at any time."""
        store, own = self._store, recorded(self._store)
        marker = lake_place.read_marker(self.place)
        if own is None:
            if marker is not None or not lake_place.is_free(self.place):
                what = "the lake of another store" if marker else "not empty"
                raise UsageError(f"--lake {self.place.path}: {what}", hint="name a directory that is empty or new")
            own = uuid.uuid4().hex, "", 0
            store.execute("INSERT INTO trace.main.lake VALUES (?, ?, 0)", [own[0], self._location()])
        elif marker is None and (self.files() or not lake_place.is_free(self.place)):
            before = lake_place.recorded(store.path, own[1]).path
            if before != self.place.path:
                raise UsageError(
                    f"--lake {self.place.path}: not the lake of {store.path}, which was {before}",
                    hint="leave --lake out, or name the directory that it was moved to",
                )
            raise lake_place.missing(store.path, self.place, "which is not there")
        elif marker is not None and marker[0] != own[0]:
            raise lake_place.missing(store.path, self.place, "which is the lake of another store")
        elif marker is not None and marker[1] > own[2]:
            raise StoreError(
                f"{store.path}: an older copy of the store that last wrote to the lake {self.place.path}",
                hint="use that store; each copy that is written to needs a copy of the lake of its own",
            )
        sql = "UPDATE trace.main.lake SET writes = writes + 1, location = ?"
        store.execute(sql, [self._location()])
        try:
            Path(self.place.path).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.place.path}: {error.strerror}", hint="name another one with --lake") from error
        lake_place.write_marker(self.place, own[0], own[2] + 1)
        for link in self._links():
            raise StoreError(f"{self.place.path}: a link in the lake, {link}", hint="put the directory in its place")

    def _location(self) -> str:
        return lake_place.location(self._store.path, self.place)

    def _links(self) -> Iterator[str]:
        for folder, folders, _ in os.walk(self.place.path):
            for name in folders:
                path = os.path.join(folder, name)  # noqa: PTH118 - of thousands
                if os.path.islink(path):  # noqa: PTH114
                    yield os.path.relpath(path, self.place.path)


def _folder(cluster: str) -> str:
    """Return a cluster's name as part of a path; two clusters may share one, as files have unique numbers."""
    if _PLAIN.fullmatch(cluster):
        return cluster
    return re.sub(r"[^A-Za-z0-9-]+", "-", cluster)[:40] + "_" + sha256(cluster.encode()).hexdigest()[:12]


def _secret(place: Place) -> Iterator[str]:
    """Create DuckDB's secret for ``s3://`` from the variables of S3's own tools, including the endpoint."""
    if not place.path.startswith("s3://"):
        return
    env = os.environ
    options = {
        "KEY_ID": env.get("AWS_ACCESS_KEY_ID"),
        "SECRET": env.get("AWS_SECRET_ACCESS_KEY"),
        "SESSION_TOKEN": env.get("AWS_SESSION_TOKEN"),
        "REGION": env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION"),
    }
    address = env.get("AWS_ENDPOINT_URL_S3") or env.get("AWS_ENDPOINT_URL")
    if address:
        scheme, _, host = address.rpartition("://")
        # private servers seldom have a host name per bucket
        options |= {"ENDPOINT": host.rstrip("/"), "URL_STYLE": "path", "USE_SSL": str(scheme != "http").lower()}
    given = "".join(f", {name} {_quoted(value)}" for name, value in options.items() if value)
    yield f"CREATE TEMPORARY SECRET gpuctl_lake (TYPE s3{given})"


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"


def _to_disk(path: str) -> str:
    """Flush a file to disk before the store records it; return the SHA-256 of its content."""
    with Path(path).open("rb") as file:
        os.fsync(file.fileno())
        return file_digest(file, "sha256").hexdigest()
