"""Traces: a trace store, logs, a CSV of jobs, or data frames of jobs, opened for analyses and SQL."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, cast

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from typing import Unpack

    import polars as pl

    from gpuctl.ingest.pipeline.report import IngestReport
    from gpuctl.store.database import Store

PathOrText = str | PathLike[str]
JOB_COLUMNS = ("job_id", "submit_time", "duration", "num_gpus")
"""Columns that a frame of jobs must have; ``gpuctl replay`` describes the others."""


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
    """

    def __init__(self, path: Path, cluster: str | None = None, owned: ExitStack | None = None) -> None:
        self.path = path
        self.cluster = cluster
        self._owned = owned or ExitStack()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Delete what was made for the trace from logs or frames; a trace store is left as it is."""
        self._closed = True
        self._owned.close()

    @property
    def clusters(self) -> tuple[str, ...]:
        """Names of its clusters."""
        from gpuctl.store.inventory import clusters

        with self.store() as store:
            return tuple(clusters(store))

    @property
    def tables(self) -> tuple[str, ...]:
        """Names of the tables that `sql` can read; ``gpuctl tables NAME`` describes their columns."""
        from gpuctl.store.views import VIEWS

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

        with self.store() as store:
            provide_held(store, text)
            show(store)
            return as_plain(store.read_only_query(text, parameters))

    def store(self) -> Store:
        """Open the store for reading; the caller closes it.

        Raises:
            UsageError: the trace is closed.
            StoreError: a writer has the store open, or it is of another version.
        """
        from gpuctl.store.database import Store

        if self._closed:
            raise UsageError(f"{self.path}: this trace is closed", hint="open it again with gpuctl.open")
        return Store(self.path)

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

    owned = ExitStack()
    try:
        paths = input_paths(source, owned)
        if is_store(paths[0]) and set(reading) - {"cluster"}:
            extra = ", ".join(sorted(set(reading) - {"cluster"}))
            raise UsageError(f"{extra}: {paths[0]} is a trace store, which is already loaded")
        found = owned.enter_context(
            open_store(
                paths, None, record_of(Logs, reading), NOTEBOOK, site=record_of(Site, reading),
                cumulative=reading.get("cumulative", False),
            )
        )  # fmt: skip
        trace = Trace(found.path, found.cluster, owned)
        trace.store().close()
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
        what became of each file: ``.sources``, ``.not_read``, ``.warnings``, ``.failed``.

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
    from gpuctl.library.progress import NOTEBOOK
    from gpuctl.services import inputs
    from gpuctl.services.options import LogReading as Logs
    from gpuctl.services.options import Site, record_of

    logs, site = record_of(Logs, reading), record_of(Site, reading)
    how = inputs.reading(logs, site, cumulative=reading.get("cumulative", False))
    with NOTEBOOK.progress() as progress:
        return inputs.ingest(paths_of(paths), Path(store), logs.cluster, how, NOTEBOOK, progress=progress)


def opened(source: object, reading: LogReading) -> AbstractContextManager[Trace]:
    """The trace that a function was given, left open; anything else is opened, and closed at the end."""
    from contextlib import nullcontext

    if isinstance(source, Trace):
        if set(reading) - {"cluster"}:
            raise UsageError(f"{', '.join(sorted(reading))}: the trace is already open", hint="give it to gpuctl.open")
        return nullcontext(source)
    return open(source, **reading)


def paths_of(source: object) -> list[Path]:
    """One path or several, as a list.

    Raises:
        UsageError: it is neither.
    """
    if _is_path(source):
        return [Path(cast("PathOrText", source))]
    if _are_paths(source):
        return [Path(each) for each in cast("Sequence[PathOrText]", source)]
    raise UsageError(f"expected a path or a list of paths, not {type(source).__name__}")


def input_paths(source: object, stack: ExitStack) -> list[Path]:
    """Return the paths of a trace, of logs or of a CSV of jobs; a frame of jobs is written until the end of `stack`.

    Raises:
        UsageError: it is none of these, or the frame lacks a column.
    """
    if isinstance(source, Trace):
        return [source.path]
    try:
        return paths_of(source)
    except UsageError:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuctl-")))
        return [write_frame(source, folder / "jobs.csv")]


def write_frame(source: object, place: Path, needed: Sequence[str] = JOB_COLUMNS) -> Path:
    """Write a frame of jobs as a CSV of jobs with these columns and others, and return its path.

    Raises:
        UsageError: it is no data frame, or lacks a column.
    """
    frame = _frame(source)
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        raise UsageError(
            f"a frame of jobs needs the columns {', '.join(needed)}; this one lacks {', '.join(missing)}",
            hint="rename your columns; duration and submit_time are in seconds, or submit_time is a time",
        )
    import polars as pl

    times = [name for name, kind in frame.schema.items() if isinstance(kind, pl.Datetime)]
    frame.with_columns(pl.col(times).dt.strftime("%Y-%m-%dT%H:%M:%S%.6f%Z")).write_csv(place)
    return place


def _frame(source: object) -> pl.DataFrame:
    import polars as pl

    if isinstance(source, pl.DataFrame):
        return source
    if isinstance(source, pl.LazyFrame):
        return source.collect()
    # Arrow's own protocol, which Arrow tables, pandas and DuckDB's relations have
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__dataframe__"):
        found: pl.DataFrame = pl.DataFrame(cast("Any", source))
        return found
    raise UsageError(f"expected paths, a trace, or a data frame of jobs, not {type(source).__name__}")


def _is_path(source: object) -> bool:
    return isinstance(source, (str, PathLike))


def _are_paths(source: object) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(map(_is_path, source))
