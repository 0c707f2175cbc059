"""Reads files on workers, ahead of the process that holds the store: only one process may write to it.

Workers run loaders that do not query the store while they read (`Format.alone`). They write their rows as Arrow streams
into a folder next to the store, which all workers must see, and record their other calls to the store. All calls are
then replayed as if the file were read locally, in the order in which files are loaded without workers. Files that a
worker cannot read are read locally.
"""

from __future__ import annotations

import logging
import shutil
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError
from gpuctl.core.local_time import has_local_times
from gpuctl.ingest.core import ledger
from gpuctl.ingest.core.format import RAW_LIMIT, STAMPED
from gpuctl.ingest.pipeline.detect import HEAD
from gpuctl.ingest.pipeline.registry import all_formats, named
from gpuctl.ingest.read.files import Opener

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    import pyarrow as pa

    from gpuctl.ingest.core.format import Format, Sink
    from gpuctl.ingest.pipeline.detect import Finding
    from gpuctl.ingest.read.codecs import Limits
    from gpuctl.ingest.read.files import Candidate
    from gpuctl.spread.engine import Engine
    from gpuctl.store.database import Store

_REJECTS = 20_000
"""A worker that has refused more rows than this leaves the file to the process that keeps them on disk."""


@dataclass(frozen=True)
class FileToRead:
    """A file to be read."""

    candidate: Candidate
    format: str
    timezone: str
    stamps: bool
    """Look whether its times carry a zone."""


def files_to_read(
    findings: Sequence[Finding], store: Store, cluster: str, timezone: Callable[[Format], str], *, find_zones: bool
) -> dict[str, FileToRead]:
    """Choose the files that workers can read, except those that the store may have, by path.

    Args:
        findings: all files of an ingest.
        store: of which an entry of the same size may be the same file.
        cluster: the cluster of the entries.
        timezone: the zone of a format's stamps that have none.
        find_zones: check whether times carry a zone, if the format has any times.
    """
    usual = {fmt.name: fmt for fmt in all_formats()}
    found = {}
    for finding in findings:
        file, fmt = finding.candidate, finding.format
        # with options of this run, or the user's own format, only this process knows the format
        if usual.get(fmt.name) is not fmt or not fmt.alone or finding.chosen:
            continue
        if not any(entry.bytes == file.size for entry in ledger.entries(store, cluster, file.path, file.size)):
            stamps = find_zones and bool(STAMPED.intersection(fmt.fills))
            found[file.path] = FileToRead(file, fmt.name, timezone(fmt), stamps)
    return found


@dataclass(frozen=True)
class ReadFile:
    """The result of reading a file."""

    timezone: str
    steps: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """Methods of the sink that were called, and with what, in their order; rows are the name of a file of them."""
    messages: tuple[tuple[str, int, str], ...] = ()
    """What was logged: loggers, levels and messages."""
    rows_in: int = 0
    rows_loaded: int = 0
    digest: tuple[str, int] = ("", 0)
    damage: tuple[int, str, bytes] | None = None
    local: bool | None = None
    fault: str = ""
    """Why there is nothing of it."""


@dataclass
class _RecordedCalls:
    """The `gpuctl.ingest.core.format.Sink` of a worker."""

    folder: Path
    timezone: str
    cluster: str
    epoch: str = ""
    rows_in: int = 0
    rows_loaded: int = 0
    steps: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    rejects: int = 0

    @property
    def source(self) -> int:
        raise AssertionError("a format that is `alone` asks for its number in the ledger")

    def seen(self, rows: int = 1) -> None:
        self.rows_in += rows

    def loaded(self, rows: int = 1) -> None:
        self.rows_loaded += rows

    def already_stored(self, rows: int = 1) -> None:
        self.steps.append(("already_stored", (rows,)))

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        if self.rejects == _REJECTS:
            raise InputError("too many rows are refused to send them")
        self.rejects += 1
        # a character has at most 4 bytes
        self.steps.append(("reject", (line_no, reason, raw[: 4 * RAW_LIMIT])))

    def insert(self, table: str, rows: pl.DataFrame | pa.Table | pa.RecordBatchReader) -> None:
        import pyarrow as pa

        if not isinstance(rows, pa.RecordBatchReader):
            rows = (rows if isinstance(rows, pa.Table) else rows.to_arrow()).to_reader()
        path = self.folder / f"{uuid.uuid4().hex}.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            for batch in rows:
                stream.write_batch(batch)
        self.steps.append(("insert", (table, path.name)))

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        raise AssertionError("a format that is `alone` asks the store")

    def after(self, work: Callable[..., None], *given: object) -> None:
        self.steps.append(("after", (work, *given)))

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        self.steps.append(("execute", (sql, params)))


class _LogRecorder(logging.Handler):
    """Records log messages of loaders, because the user's terminal is elsewhere."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[tuple[str, int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.name, record.levelno, record.getMessage()))


def read(shared: tuple[str, str, Limits], request: FileToRead) -> ReadFile:
    """Read one file on a worker."""
    folder, cluster, limits = Path(shared[0]), shared[1], shared[2]
    sink, opener, local = _RecordedCalls(folder, request.timezone, cluster), Opener(limits), None
    logger, recorder = logging.getLogger("gpuctl"), _LogRecorder()
    logger.addHandler(recorder)
    try:
        with opener.open(request.candidate) as stream:
            if request.stamps:
                local = has_local_times(stream.peek(HEAD))
            named(request.format, all_formats()).load(stream, sink)
            stream.drain()
            digest, damage = stream.digest(), stream.damage
    except (InputError, OSError, RecursionError) as error:
        for kind, given in sink.steps:
            if kind == "insert":
                (folder / given[1]).unlink(missing_ok=True)
        return ReadFile(request.timezone, fault=str(error) or type(error).__name__)
    finally:
        logger.removeHandler(recorder)
        opener.close()
    steps, lines = tuple(sink.steps), tuple(recorder.lines)
    return ReadFile(request.timezone, steps, lines, sink.rows_in, sink.rows_loaded, digest, damage, local)


class ParallelReader:
    """Reads files on workers.

    Args:
        store: the path of the trace store; the folder of results lies next to it.
        cluster: cluster of the files.
        files: the files, by path.
        limits: limits on compressed input.
        engine: engine of the workers.
        notify: called with a line for the user.
    """

    def __init__(
        self,
        store: Path,
        cluster: str,
        files: Mapping[str, FileToRead],
        limits: Limits,
        *,
        engine: Engine,
        notify: Callable[[str], None],
    ) -> None:
        from gpuctl.spread.run import run

        folder = store.absolute().with_name(f"{store.name}.read")
        # left by a killed ingest: the store is locked, so no other process uses it
        shutil.rmtree(folder, ignore_errors=True)
        self._folder = folder
        self._left = set(files)
        self._done: dict[str, ReadFile] = {}
        self.not_read: list[str] = []
        self._results: Iterator[tuple[str, ReadFile]] = iter(())
        if files:
            own = folder / uuid.uuid4().hex
            own.mkdir(parents=True)
            self._own = own
            self._results = run(read, (str(own), cluster, limits), files, engine, notify)

    def take(self, path: str, timezone: str) -> ReadFile | None:
        """Wait for a worker's result for a file; None if the file is to be read locally."""
        if path not in self._left:
            return None
        self._left.remove(path)
        while path not in self._done:
            key, found = next(self._results)
            self._done[key] = found
        found = self._done.pop(path)
        if found.fault:
            self.not_read.append(f"{path}: {found.fault}")
        return None if found.fault or found.timezone != timezone else found

    def put(self, found: ReadFile, sink: Sink) -> None:
        """Replay a worker's result into a sink.

        Raises:
            InputError: the file does not exist.
        """
        for logger, level, text in found.messages:
            logging.getLogger(logger).log(level, "%s", text)
        # counted first: what rejects rows last counts on the others
        sink.seen(found.rows_in)
        sink.loaded(found.rows_loaded)
        for kind, given in found.steps:
            if kind == "insert":
                self._insert(sink, *given)
            else:
                getattr(sink, kind)(*given)

    def _insert(self, sink: Sink, table: str, name: str) -> None:
        import pyarrow as pa

        path = self._own / Path(name).name
        try:
            with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as rows:
                sink.insert(table, rows)
        except FileNotFoundError as error:
            raise InputError(
                "what a worker read of it is not here", hint="the store's directory must be one that workers share"
            ) from error
        path.unlink()

    def close(self) -> None:
        """Cancel pending reads and delete their results."""
        close: Any = getattr(self._results, "close", None)
        if close is not None:
            close()
        shutil.rmtree(self._folder, ignore_errors=True)
