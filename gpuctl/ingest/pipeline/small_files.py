"""Loads many small files in one transaction: each is a separate source, in the store as a whole or not at all.

One transaction per file costs a hundred times what scanning a small log does. Rows of several sources are held and
inserted together; a group is committed when it has `FILES` files or `BYTES` bytes, so that a killed ingest loses no
more.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING, Any, TypeAlias

from gpuctl.core.errors import InputError
from gpuctl.ingest.core import ledger
from gpuctl.ingest.core.format import Place
from gpuctl.ingest.core.sink import StoreSink
from gpuctl.ingest.read.files import reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import polars as pl

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.core.ledger import Entry
    from gpuctl.ingest.pipeline.detect import Finding
    from gpuctl.ingest.pipeline.report import Status
    from gpuctl.store.database import Store

Whose: TypeAlias = tuple[str, int | None, str]
"""Job, attempt and stream."""
FILES = 2000
BYTES = 256 << 20
"""On disk, before decompression."""
TOGETHER = 256
TOGETHER_BYTES = 4 << 20
"""The same of files whose rows are made of several sources; if one cannot be loaded, all are read again."""
MOST_PENDING_ROWS = 50_000
"""Rows that are held before they are inserted."""


def groups(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Split findings, in the order of loading, into groups that share a transaction; most are alone."""
    group: list[Finding] = []
    size = 0
    for finding in findings:
        fmt = finding.format
        files, most = (FILES, BYTES) if fmt.many else (TOGETHER if fmt.settle else 1, TOGETHER_BYTES)
        fits = len(group) < files and size + finding.candidate.size <= most
        if group and not (fits and group[0].format is fmt):
            yield group
            group, size = [], 0
        group.append(finding)
        size += finding.candidate.size
    if group:
        yield group


class PendingRows:
    """Rows of several sources that wait to be inserted.

    Args:
        store: open for writing, in a transaction that the caller owns.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._frames: dict[str, list[tuple[pl.DataFrame, dict[str, Any]]]] = defaultdict(list)
        self._rows = 0

    def add(self, table: str, rows: pl.DataFrame, values: dict[str, Any]) -> None:
        """Take rows, and the values of columns that are the same in all of them."""
        self._frames[table].append((rows, values))
        self._rows += rows.height
        if self._rows >= MOST_PENDING_ROWS:
            self.insert()

    def insert(self) -> None:
        """Insert the pending rows."""
        import polars as pl

        for table, parts in self._frames.items():
            whole = pl.concat([rows for rows, _ in parts], how="diagonal")
            # one column per part would be the most expensive step
            whole = whole.with_columns(
                pl.Series(
                    name,
                    [value for rows, values in parts for value in repeat(values[name], rows.height)],
                    pl.Int32 if name == "source" else pl.String,
                )
                for name in parts[0][1]
            )
            self._store.view("incoming", whole)
            # the names are those of `gpuctl.ingest.core.sink.TABLES`: no part of this text is input
            self._store.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")  # noqa: S608
            self._store.drop_view("incoming")
        self._frames.clear()
        self._rows = 0

    def forget(self, source: int) -> None:
        """Drop the rows of a source that turned out to be unreadable."""
        self.insert()
        ledger.remove_all(self._store, [source])


class PendingSink(StoreSink):
    """A sink whose rows wait with those of other sources."""

    def __init__(self, store: Store, cluster: str, source: int, timezone: str, held: PendingRows) -> None:
        super().__init__(store, cluster, source, timezone)
        self._held = held

    def _append(self, table: str, rows: Any, values: dict[str, Any]) -> None:
        import polars as pl

        if hasattr(rows, "read_all"):
            rows = rows.read_all()
        frame = rows if isinstance(rows, pl.DataFrame) else pl.DataFrame(pl.from_arrow(rows))
        self._held.add(table, frame, values)


@dataclass
class KnownFiles:
    """The store's records of the sources that many findings may match, looked up once.

    Attributes:
        by_path: sources by their path in the ledger.
        by_bytes: by their SHA-256.
        by_place: those of job output by where they lay below the directory given.
        by_log: the same by their SHA-256 and whose log they were taken for.
        outputs: where each of those lay, and whose log it was taken for.
        stale: sources that were read with other signatures.
    """

    by_path: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    by_bytes: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    by_place: dict[str, list[Entry]] = field(default_factory=lambda: defaultdict(list))
    by_log: dict[tuple[str, Whose | None], list[Entry]] = field(default_factory=lambda: defaultdict(list))
    outputs: dict[int, tuple[str, Whose | None]] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store, cluster: str, fmt: Format) -> KnownFiles:
        """Look up the store's sources."""
        known = cls()
        if fmt.version is not None:
            known.stale = ledger.stale(store, cluster, fmt.version())
        outputs = ledger.outputs(store, cluster)
        for entry in ledger.all_entries(store, cluster):
            known.add(entry, *outputs.get(entry.source, (None, None)))
        return known

    def add(self, entry: Entry, place: str | None, whose: Whose | None) -> None:
        """Note a source."""
        self.by_path[entry.path].append(entry)
        self.by_bytes[entry.sha256].append(entry)
        if place is not None:
            self.outputs[entry.source] = place, whose
            self.by_place[place].append(entry)
            self.by_log[entry.sha256, whose].append(entry)

    def same(self, finding: Finding) -> Entry | None:
        """Find the source that holds these bytes as the same log, read as it would be read today.

        The same bytes may be the logs of two jobs; a log claimed by its place is the same log only if the place gives
        the same job, attempt and stream.
        """
        found, fmt, sha256 = finding.candidate, finding.format, finding.sha256
        if sha256 is None:
            return None
        if fmt.claims is None:
            near = self.by_bytes.get(sha256, [])
        else:
            near = [*self.by_path.get(found.path, ()), *self.by_log.get((sha256, whose(finding)), ())]
        fresh = (e for e in near if e.sha256 == sha256 and e.format == fmt.name and not self._old(e, finding))
        return min(fresh, key=lambda e: e.path != found.path, default=None)

    def superseded(self, finding: Finding, same: Entry | None) -> list[Entry]:
        """List the sources that a finding replaces.

        These are others under its path; those of its bytes that were read by an older parser or with other signatures;
        and a log that has left the same place, e.g. because it was compressed there.
        """
        found, fmt = finding.candidate, finding.format
        old = list(self.by_path.get(found.path, ()))
        if fmt.claims is not None:
            left = (e for e in self.by_place.get(found.inside, ()) if e.path != found.path and e.format == fmt.name)
            old += (e for e in left if ledger.moved(e))
        elif finding.sha256 is not None:
            bytes_ = self.by_bytes.get(finding.sha256, ())
            old += (e for e in bytes_ if e.format == fmt.name and self._old(e, finding))
        same_source = None if same is None else same.source
        return list({e.source: e for e in old if e.source != same_source}.values())

    def remove(self, entries: Sequence[Entry]) -> None:
        """Note that sources are gone."""
        for entry in entries:
            for index, key in ((self.by_path, entry.path), (self.by_bytes, entry.sha256)):
                index[key] = [e for e in index[key] if e.source != entry.source]
            place, log = self.outputs.pop(entry.source, (None, None))
            if place is not None:
                self.by_place[place] = [e for e in self.by_place[place] if e.source != entry.source]
                same = self.by_log[entry.sha256, log]
                self.by_log[entry.sha256, log] = [e for e in same if e.source != entry.source]

    def _old(self, entry: Entry, finding: Finding) -> bool:
        """Return whether a source would be read differently today."""
        if entry.source in self.stale or entry.parser_version < finding.format.parser_version:
            return True
        known = self.outputs.get(entry.source)
        return known is not None and finding.format.whose is not None and known[1] != whose(finding)


def whose(finding: Finding) -> Whose | None:
    """Return the job, attempt and stream of a log, from its place."""
    found, fmt = finding.candidate, finding.format
    return fmt.whose(Place(found.inside, found.path)) if fmt.whose is not None else None


class Group:
    """Files that share a transaction, which its caller owns.

    Args:
        store: open for writing.
        cluster: cluster of the files.
        timezone: of timestamps without one.
        known: the store's records; kept up to date.
    """

    def __init__(self, store: Store, cluster: str, timezone: str, known: KnownFiles) -> None:
        self._store, self._cluster, self._timezone, self._known = store, cluster, timezone, known
        self._held = PendingRows(store)
        self._first = ledger.next_source(store)
        self._loaded: list[tuple[Entry, StoreSink]] = []
        self._gone: list[Entry] = []
        self._format: Format | None = None

    def take(
        self, finding: Finding, read: Callable[[Finding, StoreSink], tuple[str, int, str]], *, dry_run: bool
    ) -> tuple[Status, StoreSink | None, str]:
        """Load one file, or find that it is in the store.

        Args:
            finding: the file.
            read: runs the format's loader; returns SHA-256, size and damage.
            dry_run: only state the rule.

        Returns:
            (what was done, the sink with its counts if it was read, a message).
        """
        found, fmt, known = finding.candidate, finding.format, self._known
        self._format = fmt
        same = known.same(finding)
        old = known.superseded(finding, same)
        as_new: Status = "replaced" if old else "new" if dry_run else "loaded"
        if same is not None:
            elsewhere = "" if same.path == found.path else f"the same bytes as {same.path}"
            if not dry_run:
                self._replace(old)
                if elsewhere and ledger.moved(same):
                    ledger.rename(self._store, same.source, found.path)
            return "replaced" if old else "unchanged", None, elsewhere
        if dry_run:
            return as_new, None, ""
        source = self._first + len(self._loaded)
        sink = PendingSink(self._store, self._cluster, source, self._timezone, self._held)
        try:
            sha256, size, damage = read(finding, sink)
            sink.finish()
        except InputError as error:
            sink.close()
            self._held.forget(source)
            return "failed", None, reason(error)
        entry = ledger.Entry(source, found.path, sha256, max(size, found.size), fmt.parser_version, fmt.name)
        self._loaded.append((entry, sink))
        self._replace(old)
        known.add(entry, found.inside if fmt.claims is not None else None, whose(finding))
        return as_new, sink, damage

    def finish(self) -> None:
        """Insert the pending rows and the ledger's rows."""
        self._held.insert()
        ledger.remove_all(self._store, [entry.source for entry in self._gone])
        if self._loaded and self._format is not None:
            ledger.record_all(self._store, self._cluster, self._loaded)
            ledger.note_cluster(self._store, [self._loaded[-1][1]], self._format, replaced=False)

    def close(self) -> None:
        """Release the space of rejects."""
        for _, sink in self._loaded:
            sink.close()

    def _replace(self, old: Sequence[Entry]) -> None:
        self._gone += old
        self._known.remove(old)
