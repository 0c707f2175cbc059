"""Ingest: from paths to a trace store, one transaction per source file, or a group of small ones."""

from __future__ import annotations

import re
import traceback
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gpuctl.core.errors import InputError, UsageError, bug_of, is_bug
from gpuctl.core.local_time import check_timezone, has_local_times
from gpuctl.core.path_checks import resolved
from gpuctl.core.storable_text import plural
from gpuctl.ingest.core import given_gpus, ledger
from gpuctl.ingest.core.format import STAMPED
from gpuctl.ingest.core.ledger import Entry
from gpuctl.ingest.pipeline.chosen_format import not_read_as, refuse_empty
from gpuctl.ingest.pipeline.clusters import ApartError, Times, check_schedulers, scheduler_of
from gpuctl.ingest.pipeline.detect import HEAD, LOG_FORMAT, Finding, survey
from gpuctl.ingest.pipeline.registry import all_formats, built_in, named, with_named
from gpuctl.ingest.pipeline.report import IngestInterrupted, IngestReport, SourceReport, nothing_here, report_of
from gpuctl.ingest.pipeline.small_files import groups
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.files import NotRead, Opener, clean, reason
from gpuctl.store import lake_place
from gpuctl.store.lake import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpuctl.ingest.core.format import Format
    from gpuctl.ingest.core.sink import StoreSink
    from gpuctl.ingest.pipeline.parallel_reader import ParallelReader
    from gpuctl.ingest.pipeline.report import Status
    from gpuctl.ingest.pipeline.small_files import KnownFiles
    from gpuctl.spread.engine import Engine
    from gpuctl.store.database import Store

MEMORY_LIMIT = "600MB"
"""What DuckDB may hold: with what the loaders hold themselves, an ingest stays under 1 GB."""
_SHOWN = 3
_ARCHIVE = re.compile(r"\.(tar|tgz|tbz2?|txz|tzst|zip)(\.(gz|zst|bz2|xz))?$", re.IGNORECASE)


class Progress(Protocol):
    """Receives the progress of an ingest."""

    def start(self, what: str, total: int) -> None:
        """Begin with a file of `total` bytes (0 if that is not known)."""

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""


def ingest(
    paths: Sequence[Path],
    db_path: Path,
    *,
    cluster: str | None = None,
    timezone: str | None = None,
    progress: Progress | None = None,
    dry_run: bool = False,
    limits: Limits | None = None,
    formats: Sequence[Format] | None = None,
    log_format: str | None = None,
    lake: str | None = None,
    engine: Engine | None = None,
    notify: Callable[[str], None] = lambda _: None,
    debug: bool = False,
    then: Callable[[Store, str], None] | None = None,
    gpus_per_node: given_gpus.GpusPerNode | None = None,
) -> IngestReport:
    """Load every log file under some paths into a trace store, which is created if it does not exist.

    Args:
        paths: files, directories and archives; with none, the store is only brought up to its newest version.
        db_path: the trace store.
        cluster: the cluster's name in it; by default derived from the first path.
        timezone: IANA zone of timestamps without one; by default the format's own.
        progress: receives the progress.
        dry_run: only report; nothing is written.
        limits: limits on compressed input.
        formats: the candidates; by default all.
        log_format: the format of every file among the paths themselves, and of files in directories and archives that
            several formats, including this one, claim; or ``FILE.py:NAME``, a user-defined format.
        lake: directory for telemetry in place of the store, as Parquet by cluster and day; by default the store's lake,
            if any.
        engine: its workers read files that need no data of the store, in parallel; None or local: read all in this
            process.
        notify: called with a line for the user about them.
        debug: also show the traceback of a bug that a file reveals.
        then: called with the store and the cluster's name when anything of it has changed, while the store is open.
        gpus_per_node: GPUs of nodes, for jobs whose GPUs no source states; by default those of the store.

    Returns:
        the report on all files found; failed sources are included and do not stop the others.

    Raises:
        InputError: a path does not exist, or nothing under the paths is a known log.
        UsageError: no such time zone, or the cluster was read with another one before; no such format; the lake's
            directory holds something else.
        StoreError: the store is locked, is none, or is of a newer version, or its disk is full.
        IngestInterrupted: Ctrl-C.
    """
    from gpuctl.store.database import Store

    check_timezone(timezone)
    known, log_format = with_named(log_format, all_formats() if formats is None else formats)
    run = _Run(
        cluster=cluster_name(paths, cluster),
        timezone=timezone,
        formats=known,
        chosen=None if log_format is None else named(log_format, known),
        db_path=db_path,
        opener=Opener(limits or Limits()),
        progress=progress,
        dry_run=dry_run,
        named=cluster is not None,
        several=() if cluster else tuple(dict.fromkeys(cluster_name([path]) for path in paths)),
        lake=lake,
        engine=None if dry_run or engine is None or engine.kind == "local" else engine,
        notify=notify,
        debug=debug,
        then=then,
        gpus_per_node=gpus_per_node,
    )
    lake = None if dry_run else lake
    try:
        if db_path.exists() and paths:
            with Store(db_path, write=not dry_run, memory_limit=MEMORY_LIMIT, lake=lake) as store:
                run.look(paths, store)
                return run.load(store)
        if paths:
            # the store is only created once there is something to write
            run.look(paths, None)
        if dry_run:
            return run.load(None)
        with Store(db_path, write=True, memory_limit=MEMORY_LIMIT, lake=lake) as store:
            if gpus_per_node is not None and not paths:
                run.cluster = store.cluster(cluster)
            return run.load(store)
    finally:
        run.opener.close()
        if run.ahead is not None:
            run.ahead.close()


def cluster_name(paths: Sequence[Path], chosen: str | None = None) -> str:
    """Return the cluster's name: as given, else from the first path's directory or archive, in plain letters.

    Raises:
        UsageError: the name given is empty, over 100 characters, or has characters that cannot be printed.
    """
    if chosen is not None:
        if not chosen.strip() or len(chosen) > 100 or not chosen.isprintable():
            raise UsageError(f"--cluster {chosen!r}: a name has 1 to 100 printable characters")
        return chosen
    if not paths:
        return ""
    first = resolved(paths[0])
    name = first.name
    if not first.is_dir():
        name = _ARCHIVE.sub("", name) if _ARCHIVE.search(name) else first.parent.name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", clean(name)).strip("-.")[:64] or "cluster"


def _family(format_name: str) -> str:
    """Return the software whose logs a format reads; all of its logs have the clock of one site."""
    return format_name.partition("-")[0]


@dataclass
class _Run:
    """One ingest in progress."""

    cluster: str
    timezone: str | None
    formats: Sequence[Format]
    db_path: Path
    opener: Opener
    progress: Progress | None
    dry_run: bool
    chosen: Format | None = None
    """The format that the user named."""
    findings: list[Finding] = field(default_factory=list)
    not_read: list[NotRead] = field(default_factory=list)
    done: list[SourceReport] = field(default_factory=list)
    named: bool = False
    """Whether the user stated which cluster all of it is of."""
    several: tuple[str, ...] = ()
    """Names that the paths would have as clusters of their own, where nobody named one."""
    elsewhere: dict[str, list[str]] = field(default_factory=dict)
    """Other clusters of the store, and the files at hand that are in it as theirs too."""
    lake: str | None = None
    engine: Engine | None = None
    notify: Callable[[str], None] = lambda _: None
    debug: bool = False
    then: Callable[[Store, str], None] | None = None
    gpus_per_node: given_gpus.GpusPerNode | None = None
    ahead: ParallelReader | None = None
    """What workers read."""
    derived: int = 0
    """Jobs whose zone follows from the log, where the user named one that does not fit."""
    assumed: tuple[int, str] = (0, "")
    """Jobs whose log states no time zone, where the user named none, and the zone in which they are read."""
    remarks: list[str] = field(default_factory=list)
    known: dict[str, KnownFiles] = field(default_factory=dict)
    """What the store has of formats with many files, by format."""
    times: Times | None = None
    apart: list[tuple[Finding, str]] = field(default_factory=list)
    """Files whose times do not meet those that are loaded by now, and what to report about it."""
    local: dict[str, bool] = field(default_factory=dict)
    """Of files that were read now, whether their beginning has a time without a zone; where a zone was given."""

    def look(self, paths: Sequence[Path], store: Store | None) -> None:
        """Survey the paths.

        Raises:
            InputError: nothing is a known log, or the logs come from several schedulers.
        """
        sizes = ledger.sizes(store, self.cluster) if store else set()
        own = [self.db_path, *(self.db_path.with_name(self.db_path.name + end) for end in (".wal", ".tmp"))]
        if store is not None and store.lake is not None:
            own.append(Path(store.lake.place.path))
        elif self.lake is not None:
            own.append(Path(self.lake))
        if self.progress:
            self.progress.start("looking through what is there", 0)
        by_path: dict[str, Finding] = {}
        for found in survey(paths, self.formats, self.opener, sizes=sizes, exclude=own, chosen=self.chosen):
            if isinstance(found, NotRead):
                self.not_read.append(found)
                continue
            if self.progress:
                self.progress.advance(found.candidate.size)
            earlier = by_path.get(found.candidate.path)
            if earlier is not None:
                why = "a later member of the archive has the same name"
                self.not_read.append(NotRead(earlier.candidate.shown, why))
            by_path[found.candidate.path] = found
        if not by_path:
            raise nothing_here(paths, self.not_read)
        self.findings = sorted(by_path.values(), key=lambda found: found.order)
        self._check_lake(store)
        stored = ledger.formats_of(store, self.cluster) if store else []
        check_schedulers(((f.format, f.candidate.shown) for f in self.findings), stored, self.formats, self.cluster)

    def _check_lake(self, store: Store | None) -> None:
        """Reject telemetry for a read-only lake, before anything is loaded."""
        lake = None if store is None else store.lake
        place = lake.place if lake is not None else None if self.lake is None else lake_place.parse_place(self.lake)
        first = next((f for f in self.findings if TABLES.keys() & set(f.format.fills)), None)
        if place is not None and place.remote and first is not None:
            raise lake_place.only_read(place, first.candidate.shown)

    def load(self, store: Store | None) -> IngestReport:
        """Load all files found; without a store, only report the format."""
        if store:
            known = ledger.cluster_of(store, self.cluster)
            if known and self.timezone not in {None, known.timezone}:
                raise UsageError(
                    f"cluster {self.cluster} was read with the time zone {known.timezone}, not {self.timezone}",
                    hint="give another --cluster or another --db",
                )
        self._withdraw_given(store)
        if store and self.engine is not None:
            from gpuctl.ingest.pipeline.parallel_reader import ParallelReader, files_to_read

            zones = partial(self._timezone, store=store)
            files = files_to_read(self.findings, store, self.cluster, zones, find_zones=self.timezone is not None)
            limits = self.opener.limits
            self.ahead = ParallelReader(
                self.db_path, self.cluster, files, limits, engine=self.engine, notify=self.notify
            )
        for group in groups(self.findings):
            self._take(group, store)
        left = len(self.apart) + 1
        while 0 < len(self.apart) < left:
            # files between them may have arrived later
            again, left, self.apart = self.apart, len(self.apart), []
            for finding, _ in again:
                self._take([finding], store)
        self.done += [replace(report_of(finding, "failed", message=why), apart=True) for finding, why in self.apart]
        if store and self.timezone is not None:
            self.derived = ledger.jobs_of_a_derived_zone(store, self.cluster)
        if store and self.timezone is None and any(s.status in {"loaded", "replaced"} for s in self.done):
            self.assumed = ledger.assumed_zone(store, self.cluster)
        self._conclude(store)
        self._give(store)
        if store and store.lake is not None:
            # the files of sources that others have replaced
            store.lake.sweep()
        if store and self.then is not None and any(s.status in {"loaded", "replaced"} for s in self.done):
            if self.progress:
                self.progress.start("summarizing telemetry", 0)
            try:
                self.then(store, self.cluster)
            except KeyboardInterrupt:
                raise IngestInterrupted(self._summary()) from None
        return self._summary()

    def _withdraw_given(self, store: Store | None) -> None:
        """Withdraw GPUs per node that the user gave earlier, until all sources have been read."""
        if store and not self.dry_run and given_gpus.has_user_gpus(store, self.cluster):
            with self._all_or_nothing(store):
                given_gpus.withdraw(store, self.cluster)

    def _give(self, store: Store | None) -> None:
        """Fill in GPUs of jobs that no source states, from the user's GPUs per node of this or an earlier ingest."""
        if store and not self.dry_run and (self.gpus_per_node or given_gpus.has_user_gpus(store, self.cluster)):
            with self._all_or_nothing(store):
                self.remarks += given_gpus.give(store, self.cluster, self.gpus_per_node)

    def _take(self, group: list[Finding], store: Store | None) -> None:
        before = ledger.next_source(store) if store else 0
        try:
            if store is not None and group[0].format.many:
                self._group(group, store)
            elif store is not None and len(group) > 1 and not self.dry_run:
                self.done += self._together(group, store)
            else:
                self.done += [self._one(finding, store) for finding in group]
        except InputError as error:
            if len(group) > 1 and not group[0].format.many:
                # whatever the error, loading each file by itself shows which one causes it
                for finding in group:
                    self._take([finding], store)
            elif isinstance(error, ApartError):
                self.apart += [(finding, reason(error)) for finding in group]
            else:
                self.done += [report_of(finding, "failed", message=reason(error)) for finding in group]
        except KeyboardInterrupt:
            # a commit cannot be interrupted: the source may be in after all
            any_rows = store is not None and ledger.next_source(store) > before
            self.done += [report_of(finding, "loaded" if any_rows else "interrupted") for finding in group]
            raise IngestInterrupted(self._summary()) from None
        except BaseException as error:
            self._leave_out(group, store, error)

    def _leave_out(self, group: list[Finding], store: Store | None, error: BaseException) -> None:
        """Leave out a file that reveals a bug in a reader; the other files of its group are loaded."""
        if not is_bug(error):
            raise error
        if len(group) > 1:
            for finding in group:
                self._take([finding], store)
            return
        if self.debug:
            self.notify("".join(traceback.format_exception(error)))
        message = bug_of(error, f"reading it as {group[0].format.name}")
        self.done.append(report_of(group[0], "failed", message=message))

    def _summary(self) -> IngestReport:
        return IngestReport(self.cluster, tuple(self.done), tuple(self.not_read), self.dry_run, tuple(self._warnings()))

    def _conclude(self, store: Store | None) -> None:
        """Run the formats' final corrections, which need all sources: built-in formats in one transaction."""
        concluding = [fmt for fmt in self.formats if fmt.conclude is not None]
        if store is None or self.dry_run:
            self.remarks += [text for fmt in concluding if fmt.conclude for text in fmt.conclude(None)]
            return
        included = [fmt for fmt in concluding if fmt.name in {each.name for each in built_in()}]
        for group in filter(None, (included, *([fmt] for fmt in concluding if fmt not in included))):
            with self._all_or_nothing(store) as sinks:
                sinks.append(sink := self._sink(group[0], store))
                for fmt in group:
                    self.remarks += fmt.conclude(sink) if fmt.conclude else ()

    def _warnings(self) -> Iterator[str]:
        yield from self.remarks
        yield from self.times.remarks if self.times else ()
        if self.ahead is not None and self.ahead.not_read:
            yield f"workers could not read {plural(len(self.ahead.not_read), 'file')}, e.g. {self.ahead.not_read[0]}"
        if len(self.several) > 1:
            yield (
                f"{', '.join(self.several)} were read as one cluster, {self.cluster}; if they are several, load them "
                "one by one, each with a --cluster of its own, else name the one with --cluster"
            )
        for other, paths in self.elsewhere.items():
            yield (
                f"{plural(len(paths), 'file')} of cluster {self.cluster} is in the store as cluster {other} too: "
                f"{', '.join(paths[:_SHOWN])}{' …' if len(paths) > _SHOWN else ''}; the same jobs are in both"
            )
        own = [f.candidate for f in self.findings if f.format.zoned or not self.local.get(f.candidate.path, True)]
        zoned = [found.shown for found in own]
        if self.timezone is not None and zoned:
            yield (
                f"--timezone {self.timezone} is not used for {plural(len(zoned), 'file')} whose times carry their own "
                f"zone or count from 1970: {', '.join(zoned[:_SHOWN])}{' …' if len(zoned) > _SHOWN else ''}"
            )
        if self.chosen is not None and not any(f.chosen or f.format.name == self.chosen.name for f in self.findings):
            yield (
                f"{LOG_FORMAT} {self.chosen.name} had no effect: it applies to files named explicitly, "
                "and in directories and archives to files that several formats match"
            )
        if self.assumed[0]:
            yield (
                f"the log of {plural(self.assumed[0], 'job')} names no time zone, and nothing in it states one: its "
                f"times are read as {self.assumed[1]}; if that is wrong, give --timezone"
            )
        if self.derived:
            yield (
                f"--timezone {self.timezone} does not fit the times of {plural(self.derived, 'job')}, which the log "
                "has both with and without a zone: the zone that follows from these was used"
            )

    def _one(self, finding: Finding, store: Store | None) -> SourceReport:
        if store is None:
            return report_of(finding, "new")
        same, old = self._stored(finding, store)
        if same is None:
            if self.dry_run:
                return report_of(finding, "replaced" if old else "new")
            return self._transaction(finding, store, old)
        if old and not self.dry_run:
            self._forget(finding, store, old)
        return self._found_again(finding, store, same, "replaced" if old else "unchanged")

    def _found_again(self, finding: Finding, store: Store, same: Entry, done: Status) -> SourceReport:
        path = finding.candidate.path
        if same.path == path:
            return report_of(finding, done)
        if not self.dry_run and ledger.moved(same):
            ledger.rename(store, same.source, path)
        return report_of(finding, done, message=f"the same bytes as {same.path}")

    def _stored(self, finding: Finding, store: Store) -> tuple[Entry | None, list[Entry]]:
        """Return the source that holds the bytes of a file, if any, and those that the file replaces."""
        found, fmt = finding.candidate, finding.format
        near = ledger.entries(store, self.cluster, found.path, found.size)
        sha256 = finding.sha256
        if sha256 is None and any(e.bytes == found.size for e in near):
            with self.opener.open(found) as stream:
                sha256 = stream.digest()[0]
        return ledger.same_bytes(near, fmt, sha256), ledger.superseded(near, fmt, found.path, sha256)

    def _transaction(self, finding: Finding, store: Store, old: Sequence[Entry]) -> SourceReport:
        with self._all_or_nothing(store) as sinks:
            sinks.append(sink := self._sink(finding.format, store))
            done, others = self._load(finding, store, sink, old)
            times = self._settled(finding.format, store, [sink], old)
        self.times = times
        self._note_elsewhere(finding, others)
        return done

    def _together(self, findings: Sequence[Finding], store: Store) -> list[SourceReport]:
        """Load small files of a format, all or none; rows derived from several sources are computed once, at the end.

        Raises:
            InputError: not all can be loaded together.
        """
        fmt, done = findings[0].format, []
        with self._all_or_nothing(store) as sinks:
            for finding in findings:
                same, old = self._stored(finding, store)
                if old:
                    raise InputError("takes the place of a source")
                if same is not None:
                    done.append((self._found_again(finding, store, same, "unchanged"), list[str]()))
                    continue
                sinks.append(sink := self._sink(fmt, store))
                done.append(self._load(finding, store, sink, old))
            before = self.times
            times = self._settled(fmt, store, sinks, ()) if sinks else before
            if times is not None and times.remarks != (before.remarks if before else ()):
                raise InputError("said of a source by itself")
        self.times = times
        for finding, (_, others) in zip(findings, done, strict=True):
            self._note_elsewhere(finding, others)
        return [report for report, _ in done]

    def _load(
        self, finding: Finding, store: Store, sink: StoreSink, old: Sequence[Entry]
    ) -> tuple[SourceReport, list[str]]:
        """Load one file; return what was done, and the other clusters that have it."""
        found, fmt = finding.candidate, finding.format
        for entry in old:
            ledger.remove(store, entry.source)
        sha256, size, damage = self._read(finding, sink)
        sink.finish()
        # a cut-off member counts with the size its archive gives, so that it is known again
        entry = Entry(sink.source, found.path, sha256, max(size, found.size), fmt.parser_version, fmt.name)
        ledger.record(store, sink, entry)
        others = ledger.others(store, self.cluster, sha256) if sink.rows_loaded else []
        return report_of(finding, "replaced" if old else "loaded", sink, damage), others

    def _settled(self, fmt: Format, store: Store, sinks: Sequence[StoreSink], old: Sequence[Entry]) -> Times | None:
        """Compute the rows derived from several sources, and record the cluster's span; return the times of all.

        Raises:
            ApartError: one does not belong to the others, as far as is known.
        """
        if fmt.settle:
            fmt.settle(sinks[-1])
        ledger.note_cluster(store, sinks, fmt, replaced=bool(old))
        if self.named:
            return None
        if self.times is None and [sink.source for sink in sinks] == [1]:
            # the first in the store: the times of later sources are compared with it
            return None
        times = self.times or Times.of(store, self.cluster, but=[sink.source for sink in sinks])
        for sink in sinks:
            times = times.meet(store, sink, [entry.source for entry in old])
        return times

    def _note_elsewhere(self, finding: Finding, others: Sequence[str]) -> None:
        for other in others:
            self.elsewhere.setdefault(other, []).append(finding.candidate.shown)

    def _group(self, findings: Sequence[Finding], store: Store) -> None:
        """Load many small files in one transaction.

        Raises:
            InputError: their common settings cannot be used.
        """
        from gpuctl.ingest.pipeline.small_files import Group, KnownFiles

        fmt = findings[0].format
        if fmt.name not in self.known:
            self.known[fmt.name] = KnownFiles.of(store, self.cluster, fmt)
        try:
            with self._all_or_nothing(store) as open_:
                group = Group(store, self.cluster, self._timezone(fmt, store), self.known[fmt.name])
                open_.append(group)
                done = [report_of(f, *group.take(f, self._read, dry_run=self.dry_run)) for f in findings]
                group.finish()
        except BaseException:
            # records for this group no longer apply
            del self.known[fmt.name]
            raise
        self.done += done

    def _sink(self, fmt: Format, store: Store) -> StoreSink:
        from gpuctl.ingest.core.sink import StoreSink

        if scheduler_of(fmt) is not None:
            ledger.spread(store, self.cluster)
        return StoreSink(store, self.cluster, ledger.next_source(store), self._timezone(fmt, store))

    def _timezone(self, fmt: Format, store: Store) -> str:
        known = ledger.cluster_of(store, self.cluster)
        # the output of jobs has the clock of their cluster
        same = known is not None and (fmt.many or _family(known.source_format) == _family(fmt.name))
        return self.timezone or (known.timezone if known and same else None) or fmt.timezone

    def _forget(self, finding: Finding, store: Store, old: Sequence[Entry]) -> None:
        """Remove sources without a replacement."""
        with self._all_or_nothing(store) as sinks:
            sinks.append(sink := self._sink(finding.format, store))
            for entry in old:
                ledger.remove(store, entry.source)
            if finding.format.settle:
                finding.format.settle(sink)

    @contextmanager
    def _all_or_nothing(self, store: Store) -> Iterator[list[Any]]:
        """Open a transaction; objects appended to the list are closed before it ends."""
        closed: list[Any] = []
        store.execute("BEGIN").fetchall()
        try:
            yield closed
            # an error in pending writes belongs to this transaction
            store.wait()
        except BaseException:
            store.execute("ROLLBACK").fetchall()
            raise
        finally:
            for each in closed:
                each.close()
            store.restore_memory_limit()
        store.execute("COMMIT").fetchall()

    def _read(self, finding: Finding, sink: StoreSink) -> tuple[str, int, str]:
        """Run the format's loader; return digest and size of the file, and its damage."""
        found = finding.candidate
        if self.progress:
            self.progress.start(found.shown, found.size)
        read = self.ahead.take(found.path, sink.timezone) if self.ahead is not None else None
        if read is not None and self.ahead is not None:
            self.ahead.put(read, sink)
            if read.local is not None:
                self.local[found.path] = read.local
            refuse_empty(finding, sink, self.opener, self.formats)
            return *read.digest, sink.end_in(read.damage)
        with self.opener.open(found, self.progress.advance if self.progress else None) as stream:
            if self.timezone is not None and STAMPED.intersection(finding.format.fills):
                self.local[found.path] = has_local_times(stream.peek(HEAD))
            try:
                finding.format.load(stream, sink)
            except RecursionError as error:
                raise InputError("nested too deeply", path=found.shown) from error
            except InputError as error:
                raise (not_read_as(finding, error, self.opener, self.formats) if finding.chosen else error) from error
            refuse_empty(finding, sink, self.opener, self.formats)
            stream.drain()
            return *stream.digest(), sink.end_in(stream.damage)
