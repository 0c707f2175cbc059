"""The ledger of sources: the sources in the store, those that a new file replaces, and the time span of a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.ingest.core.sink import WITH_SOURCE
from gpuctl.store.schema import STORED, TRACE_JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.store.database import Store

# every statement below is built from these names, never from input
_TIMES = {
    "jobs": ("submit_ts", "start_ts", "end_ts"),
    "attempts": ("queued_ts", "start_ts", "end_ts"),
    # job output does not show when the cluster ran
    **dict.fromkeys(("gpu_samples", "host_util", "queue_samples", "traffic"), ("ts",)),
    **dict.fromkeys(("machine_samples", "job_events", "service_load"), ("ts",)),
}


@dataclass(frozen=True)
class Entry:
    """One source that is in the store."""

    source: int
    path: str
    sha256: str
    bytes: int
    parser_version: int
    format: str


@dataclass(frozen=True)
class Cluster:
    """The format and time zone of a cluster's stamps."""

    source_format: str
    timezone: str


def sizes(store: Store, cluster: str) -> set[int]:
    """Return the sizes in bytes of all sources of a cluster."""
    rows = store.execute("SELECT DISTINCT bytes FROM sources WHERE cluster = ?", [cluster]).fetchall()
    return {row[0] for row in rows}


def entries(store: Store, cluster: str, path: str, size: int) -> list[Entry]:
    """List the sources of a cluster that a file may stand for: those under its path, and those of its size."""
    rows = store.execute(
        "SELECT source, path, sha256, bytes, parser_version, format FROM sources "
        "WHERE cluster = ? AND (path = ? OR bytes = ?) ORDER BY source",
        [cluster, path, size],
    ).fetchall()
    return [Entry(*row) for row in rows]


def formats_of(store: Store, cluster: str) -> list[tuple[str, str]]:
    """The formats of a cluster's sources that gave rows, with the first path of each."""
    sql = "SELECT format, min(path) FROM sources WHERE cluster = ? AND rows_loaded > 0 GROUP BY format ORDER BY format"
    return [(row[0], row[1]) for row in store.execute(sql, [cluster]).fetchall()]


def others(store: Store, cluster: str, sha256: str) -> list[str]:
    """Name the other clusters of the store that a file with these bytes was loaded into."""
    rows = store.execute(
        "SELECT DISTINCT cluster FROM sources WHERE sha256 = ? AND cluster <> ? AND rows_loaded > 0 ORDER BY cluster",
        [sha256, cluster],
    ).fetchall()
    return [row[0] for row in rows]


def jobs_of_a_derived_zone(store: Store, cluster: str) -> int:
    """Count the jobs of a cluster whose zone was derived from times that the log records twice."""
    rows = store.execute(
        "SELECT count(*) FROM jobs WHERE cluster = ? AND list_contains(quirks, 'zone_derived')", [cluster]
    ).fetchall()
    return int(rows[0][0])


def assumed_zone(store: Store, cluster: str) -> tuple[int, str]:
    """Count the jobs of a cluster whose log states no time zone, and name the zone in which they are read."""
    rows = store.execute(
        "SELECT count(*), any_value(timezone) FROM job_rows JOIN clusters USING (cluster) "
        "WHERE cluster = ? AND list_contains(quirks, 'zone_assumed')",
        [cluster],
    ).fetchall()
    return int(rows[0][0]), str(rows[0][1])


def same_bytes(near: Iterable[Entry], fmt: Format, sha256: str | None) -> Entry | None:
    """Find the source that holds these bytes, whatever its path was, read by a parser no older than today's."""
    same_content = (e for e in near if e.sha256 == sha256 and e.format == fmt.name)
    return next((e for e in same_content if e.parser_version >= fmt.parser_version), None)


def superseded(near: Iterable[Entry], fmt: Format, path: str, sha256: str | None) -> list[Entry]:
    """List the sources that a file replaces.

    These are other bytes under its path, and its own bytes as an older parser read them.

    Args:
        near: as `entries` lists them.
        fmt: the file's format.
        path: its path in the ledger.
        sha256: of its bytes; None if no source is as big as it is.
    """
    old = []
    for entry in near:
        same = entry.sha256 == sha256 and entry.format == fmt.name
        if (same and entry.parser_version < fmt.parser_version) or (not same and entry.path == path):
            old.append(entry)
    return old


def moved(entry: Entry) -> bool:
    """Whether a source has left the path that it was loaded from; members of archives are taken not to."""
    old = Path(entry.path)
    return "!" not in entry.path and (not old.is_file() or old.stat().st_size != entry.bytes)


def next_source(store: Store) -> int:
    """Return the number that the next source gets."""
    return int(store.execute("SELECT coalesce(max(source), 0) + 1 FROM sources").fetchall()[0][0])


def rename(store: Store, source: int, path: str) -> None:
    """Record the new path of a source."""
    store.execute("UPDATE sources SET path = ? WHERE source = ?", [path, source]).fetchall()


def remove(store: Store, source: int) -> None:
    """Delete a source and every row that came from it."""
    remove_all(store, [source])


def remove_all(store: Store, sources: Sequence[int]) -> None:
    """Delete several sources and every row that came from them."""
    if sources:
        for table in [*sorted(WITH_SOURCE), "lake_files", "rejects", "sources"]:
            sql = f"DELETE FROM trace.main.{STORED.get(table, table)} WHERE source IN (SELECT unnest($sources))"  # noqa: S608
            store.execute(sql, {"sources": list(sources)}).fetchall()
        store.refresh_lake()


def spread(store: Store, cluster: str) -> None:
    """Expand jobs stored in compact form into rows of their own, for code that changes single attempts."""
    some = "SELECT 1 FROM all_trace_jobs WHERE cluster = $cluster LIMIT 1"
    if not store.execute(some, {"cluster": cluster}).fetchall():
        return
    # the names are those of this function: no part of this text is input
    theirs = "WHERE cluster = $cluster AND job IN (SELECT job FROM all_trace_jobs WHERE cluster = $cluster)"
    for view in STORED:
        store.execute(f"CREATE TEMP TABLE spread_{view} AS FROM {view} {theirs}", {"cluster": cluster})
    for table in TRACE_JOBS:
        store.execute(f"DELETE FROM {table} WHERE cluster = $cluster", {"cluster": cluster})  # noqa: S608
    for view, table in STORED.items():
        store.execute(f"INSERT INTO {table} BY NAME FROM spread_{view}")
        store.execute(f"DROP TABLE spread_{view}")


def stale(store: Store, cluster: str, version: str) -> set[int]:
    """Return the sources of job output that were read with another version of the signatures."""
    sql = "SELECT DISTINCT source FROM job_outputs WHERE cluster = ? AND signatures <> ?"
    return {row[0] for row in store.execute(sql, [cluster, version]).fetchall()}


def outputs(store: Store, cluster: str) -> dict[int, tuple[str, tuple[str, int | None, str]]]:
    """Return of each source of job output where it lay below the directory given, and whose log that was taken for."""
    sql = "SELECT source, path, named, attempt, stream FROM job_outputs WHERE cluster = ?"
    rows = store.execute(sql, [cluster]).fetchall()
    return {source: (path, (named, attempt, stream)) for source, path, named, attempt, stream in rows}


def all_entries(store: Store, cluster: str) -> list[Entry]:
    """List the sources of a cluster."""
    rows = store.execute(
        "SELECT source, path, sha256, bytes, parser_version, format FROM sources WHERE cluster = ? ORDER BY source",
        [cluster],
    ).fetchall()
    return [Entry(*row) for row in rows]


def record_all(store: Store, cluster: str, loaded: Sequence[tuple[Entry, StoreSink]]) -> None:
    """Write the ledger's rows of several sources."""
    import polars as pl

    columns: dict[str, list[object]] = {
        "source": [e.source for e, _ in loaded],
        "path": [e.path for e, _ in loaded],
        "format": [e.format for e, _ in loaded],
        "sha256": [e.sha256 for e, _ in loaded],
        "bytes": [e.bytes for e, _ in loaded],
        "rows_in": [s.rows_in for _, s in loaded],
        "rows_loaded": [s.rows_loaded for _, s in loaded],
        "rows_rejected": [s.rows_rejected for _, s in loaded],
        "rows_already_stored": [s.rows_already_stored for _, s in loaded],
        "parser_version": [e.parser_version for e, _ in loaded],
    }
    store.view("incoming", pl.DataFrame(columns))
    store.execute(
        "INSERT INTO sources BY NAME SELECT *, $cluster::VARCHAR AS cluster, now() AS loaded_at FROM incoming",
        {"cluster": cluster},
    ).fetchall()
    store.drop_view("incoming")


def record(store: Store, sink: StoreSink, entry: Entry) -> None:
    """Write the ledger's row of a source that `sink` has loaded."""
    store.execute(
        "INSERT INTO sources BY NAME SELECT ?::INTEGER AS source, ? AS cluster, ? AS path, ? AS format, ? AS sha256, "
        "?::BIGINT AS bytes, ?::BIGINT AS rows_in, ?::BIGINT AS rows_loaded, ?::BIGINT AS rows_rejected, "
        "?::BIGINT AS rows_already_stored, "
        "?::INTEGER AS parser_version, now() AS loaded_at",
        [
            entry.source,
            sink.cluster,
            entry.path,
            entry.format,
            entry.sha256,
            entry.bytes,
            sink.rows_in,
            sink.rows_loaded,
            sink.rows_rejected,
            sink.rows_already_stored,
            entry.parser_version,
        ],
    ).fetchall()


def cluster_of(store: Store, cluster: str) -> Cluster | None:
    """Return what is known of a cluster; None if the store has nothing of it."""
    rows = store.execute("SELECT source_format, timezone FROM clusters WHERE cluster = ?", [cluster]).fetchall()
    return Cluster(*rows[0]) if rows else None


def note_cluster(store: Store, sinks: Sequence[StoreSink], fmt: Format, *, replaced: bool) -> None:
    """Create or update the row of a cluster after sources of one format were loaded.

    Its format, zone and clock are those of the format that its jobs came from first, of the first source if there are
    no jobs. Its times are widened by the rows just inserted; after a replacement they are found anew.
    """
    sink, sources = sinks[-1], [each.source for each in sinks]
    known = cluster_of(store, sink.cluster)
    if known is None:
        store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock, epoch, unit) VALUES (?, ?, ?, ?, ?, ?)",
            [sink.cluster, fmt.name, sink.timezone, fmt.clock, *_about(fmt, sink)],
        ).fetchall()
    elif "jobs" in fmt.fills and not _has_other_jobs(store, sink.cluster, sources):
        store.execute(
            "UPDATE clusters SET source_format = ?, timezone = ?, clock = ?, epoch = ?, unit = ? WHERE cluster = ?",
            [fmt.name, sink.timezone, fmt.clock, *_about(fmt, sink), sink.cluster],
        ).fetchall()
    if replaced:
        store.execute(
            "UPDATE clusters SET first_ts = NULL, last_ts = NULL WHERE cluster = ?", [sink.cluster]
        ).fetchall()
    touched = set[str]().union(*(each.touched for each in sinks))
    for table in sorted(_TIMES) if replaced else sorted(touched & set(_TIMES)):
        _widen(store, sink.cluster, None if replaced else sources, table)


def _about(fmt: Format, sink: StoreSink) -> tuple[str | None, str | None]:
    """The columns of a cluster's row about its times and jobs, if they are unusual."""
    epoch = sink.epoch or fmt.epoch
    return None if epoch == "real" else epoch, None if fmt.unit == "job" else fmt.unit


def _has_other_jobs(store: Store, cluster: str, sources: list[int]) -> bool:
    rows = store.execute(
        "SELECT count(*) FROM "
        "(SELECT 1 FROM jobs WHERE cluster = ? AND NOT list_contains(?::INTEGER[], source) LIMIT 1)",
        [cluster, sources],
    ).fetchall()
    return bool(rows[0][0])


def _widen(store: Store, cluster: str, sources: list[int] | None, table: str) -> None:
    """Widen a cluster's times by the rows of some sources, or of all."""
    times = ", ".join(_TIMES[table])
    which = "cluster = $cluster" + ("" if sources is None else " AND list_contains($sources::INTEGER[], source)")
    store.execute(
        f"UPDATE clusters SET first_ts = least(first_ts, low), last_ts = greatest(last_ts, high) "  # noqa: S608
        f"FROM (SELECT min(least({times})) AS low, max(greatest({times})) AS high FROM {table} WHERE {which}) "
        "WHERE cluster = $cluster",
        {"cluster": cluster} if sources is None else {"cluster": cluster, "sources": sources},
    ).fetchall()
