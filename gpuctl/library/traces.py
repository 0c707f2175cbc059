"""Traces: a trace store, logs, a CSV of jobs, or data frames of jobs, opened for analyses and SQL."""

from __future__ import annotations

import tempfile
import weakref
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict

from gpuctl.core.errors import UsageError
from gpuctl.library.arguments import (
    PathOrText,
    are_paths,
    check_names,
    is_path,
    mapping,
    path_of,
    paths_of,
)
from gpuctl.library.frames import named_frame, write_frame

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    import polars as pl

    from gpuctl.library.ingests import IngestReport
    from gpuctl.store.database import Store


SQL_MEMORY = "250MB"
"""DuckDB's limit for a query of a notebook; the whole process stays below 500 MB, its rows excepted, with a million
jobs (`benchmarks/library_memory.py`)."""


class LogReading(TypedDict, total=False):
    """How logs are read; each has its meaning and default from the option of the same name of ``gpuctl ingest``.

    Attributes:
        cluster: name of the cluster.
        timezone: IANA zone of times that name none.
        log_format: format of files given by name.
        columns: columns of sacct text without a header.
        delimiter: separator of these columns.
        map: meaning of columns of a CSV, ``["gpu_num=num_gpus"]``.
        unit: units of mapped columns, ``["duration=min"]``.
        swf_unit: what a processor of SWF is: core, gpu or node.
        gpus_per_node: GPUs per node, or a CSV of them.
        job_logs: patterns of the paths of jobs' own output.
        signatures: files of your own failure signatures.
        cumulative: bytes of traffic CSVs are counters.
    """

    cluster: str | None
    timezone: str | None
    log_format: str | None
    columns: str | None
    delimiter: str | None
    map: Sequence[str]
    unit: Sequence[str]
    swf_unit: str | None
    gpus_per_node: str | int | None
    job_logs: Sequence[str]
    signatures: Sequence[PathOrText]
    cumulative: bool


class Trace:
    """A trace store to ask; use it as a context manager if it was made from logs or frames, or call `close`.

    Each call opens the store and closes it again, so that a notebook keeps no nightly ``gpuctl ingest`` from writing,
    and threads do not share a connection.

    Args:
        path: the trace store.
        cluster: the cluster that is meant if the store has several.
        owned: what ends with the trace: the temporary folder of a store made for it.

    Attributes:
        path: the trace store.
        cluster: as given.

    Example:
        >>> import gpuctl
        >>> trace = gpuctl.open("sample_data/jobs.csv")
        >>> trace.clusters, "attempts" in trace.tables
        (('jobs.csv',), True)
        >>> trace.sql("SELECT count(*) AS jobs FROM jobs WHERE gpus >= $least", {"least": 8})["jobs"][0] > 0
        True
        >>> trace.close()
    """

    def __init__(self, path: Path, cluster: str | None = None, owned: ExitStack | None = None) -> None:
        self.path = path
        self.cluster = cluster
        # a trace of one expression, as in gpuctl.open(jobs).sql("…"), is closed by nobody else
        self._close_owned = weakref.finalize(self, (owned or ExitStack()).close)
        self._closed = False

    def __enter__(self) -> Self:
        self._file()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete what was made for the trace from logs or frames; a trace store is left as it is."""
        self._closed = True
        self._close_owned()

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of its clusters."""
        from gpuctl.store.inventory import clusters

        with self._store() as store:
            return tuple(clusters(store))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that `sql` can read; ``sql("DESCRIBE NAME")`` lists their columns."""
        from gpuctl.store.views import VIEWS

        self._file()
        return tuple(view.name for view in VIEWS)

    def sql(self, text: str, parameters: Mapping[str, Any] | None = None) -> pl.DataFrame:
        """Run one SELECT and return its rows; times are UTC.

        Args:
            text: SQL over `tables`; it can read neither files nor the network.
            parameters: values of ``$name`` in `text`.

        Raises:
            UsageError: it is no SELECT, or DuckDB rejects it.
            StoreError: a writer has the store open, it is damaged, or there is not enough memory.
        """
        from gpuctl.analyze.held import provide_held
        from gpuctl.store.views import as_plain, show

        if not isinstance(text, str):
            raise UsageError(f"sql: expected a text, not {type(text).__name__}", hint='"SELECT count(*) FROM jobs"')
        values = mapping("parameters", parameters)
        with self._store(SQL_MEMORY) as store:
            provide_held(store, text)
            show(store)
            return as_plain(store.read_only_query(text, values or None))

    def _store(self, memory: str | None = None) -> Store:
        """Open the store for reading; the caller closes it.

        Args:
            memory: DuckDB's limit; it spills to disk beyond. None: the usual one.

        Raises:
            UsageError: the trace is closed.
            StoreError: a writer has the store open, or it is of another version.
        """
        from gpuctl.store.database import Store

        return Store(self._file()) if memory is None else Store(self._file(), memory_limit=memory)

    def _file(self) -> Path:
        """Return the path of the store.

        Raises:
            UsageError: the trace is closed.
        """
        if self._closed:
            raise UsageError(f"{self.path}: this trace is closed", hint="open it again with gpuctl.open")
        return self.path

    def __repr__(self) -> str:
        return f"<{'closed ' if self._closed else ''}gpuctl.Trace {self.path}>"


def open(source: object, **reading: Unpack[LogReading]) -> Trace:
    """Open a trace.

    Args:
        source: a trace store; log files, directories or archives (one path or several); a CSV of jobs; or a data frame
            of jobs (Polars, Arrow, pandas) with at least `JOB_COLUMNS`.
        reading: how logs are read; of a store, only ``cluster``.

    Raises:
        InputError: there is nothing to read, or it is not what it should be.
        UsageError: options that do not apply to this source.
        StoreError: the store is in use by a writer, or of another version.

    Example:
        >>> import gpuctl
        >>> with gpuctl.open("sample_data/jobs.csv") as trace:
        ...     trace.sql("SELECT count(*) AS jobs FROM jobs")["jobs"].to_list()
        [300]
    """
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.services.inputs import is_store
    from gpuctl.services.inputs import opened as open_store
    from gpuctl.services.options import LogReading as Logs
    from gpuctl.services.options import Site, record_of

    check_names(reading, LogReading.__annotations__)
    if isinstance(source, Trace):
        raise UsageError("this trace is already open", hint="use it, or open its path: trace.path")
    is_frame = not is_path(source) and not are_paths(source)
    if is_frame and reading:
        raise UsageError(f"{', '.join(sorted(reading))}: for logs; this is a data frame of jobs", hint="leave it out")
    owned = ExitStack()
    try:
        paths = input_paths(source, owned)
        if is_store(paths[0]) and set(reading) - {"cluster"}:
            extra = ", ".join(sorted(set(reading) - {"cluster"}))
            raise UsageError(f"{extra}: {paths[0]} is a trace store, already loaded", hint="leave it out")
        with named_frame(paths[0]) if is_frame else nullcontext():
            found = owned.enter_context(
                open_store(
                    paths, None, record_of(Logs, reading), NOTEBOOK, site=record_of(Site, reading),
                    cumulative=reading.get("cumulative", False),
                )
            )  # fmt: skip
        trace = Trace(found.path, found.cluster, owned)
        with trace._store() as store:
            if trace.cluster is not None:
                store.cluster(trace.cluster)
    except BaseException:
        owned.close()
        raise
    return trace


def ingest(paths: object, store: PathOrText, **reading: Unpack[LogReading]) -> IngestReport:
    """Read logs into a trace store, which is made if it is absent; files already loaded are skipped.

    Args:
        paths: log files, directories or archives; one path or several.
        store: the trace store.
        reading: how logs are read.

    Returns:
        what became of each file: ``.sources``, ``.not_read``, ``.warnings``, ``.failed``; ``.notes`` has what needs
            attention.

    Raises:
        InputError: a path does not exist, or nothing there is a known log.
        UsageError: no such time zone, format or unit.
        StoreError: the store is in use, of a newer version, or its disk is full.
        KeyboardInterrupt: interrupted; files loaded until then stay.

    Example:
        >>> import gpuctl
        >>> report = gpuctl.ingest("sample_data/philly", "trace.duckdb")
        >>> report.cluster
        'philly'
    """
    from gpuctl.library.ingests import IngestReport, remarks
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.services import inputs
    from gpuctl.services.options import LogReading as Logs
    from gpuctl.services.options import Site, record_of

    check_names(reading, LogReading.__annotations__)
    named, place = paths_of(paths), path_of(store, "store")
    logs, site = record_of(Logs, reading), record_of(Site, reading)
    how = inputs.reading(logs, site, cumulative=reading.get("cumulative", False))
    with NOTEBOOK.progress() as progress, remarks() as found:
        report = inputs.ingest(named, place, logs.cluster, how, NOTEBOOK, progress=progress)
    return IngestReport.of(report, place, found)


def opened(source: object, reading: LogReading) -> AbstractContextManager[Trace]:
    """The trace that a function was given, left open; anything else is opened, and closed at the end."""
    check_names(reading, LogReading.__annotations__)
    if isinstance(source, Trace):
        if set(reading) - {"cluster"}:
            raise UsageError(f"{', '.join(sorted(reading))}: the trace is already open", hint="give it to gpuctl.open")
        return nullcontext(source)
    return open(source, **reading)


def input_paths(source: object, stack: ExitStack) -> list[Path]:
    """Return the paths of a trace, of logs or of a CSV of jobs; a frame of jobs is written until the end of `stack`.

    Raises:
        UsageError: it is none of these, the trace is closed, or the frame lacks a column.
        InputError: the frame has no rows.
    """
    if isinstance(source, Trace):
        return [source._file()]
    if is_path(source) or are_paths(source):
        return paths_of(source)
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-")))
    place = write_frame(source, folder / "jobs.csv")
    stack.enter_context(named_frame(place))
    return [place]
