"""Takes the rows of one source and puts them into the store; keeps its rejects and its counts."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from gpuctl.core.storable_text import storable
from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.store import lake
from gpuctl.store.database import ROW_GROUP
from gpuctl.store.schema import STORED, TRACE_JOBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl
    import pyarrow as pa

    from gpuctl.store.database import Store


_BATCH = 2000
_IN_MEMORY = 4 << 20


class Rejects:
    """The rejects of one source, held separately until its end: no other statement can run during an insert.

    Args:
        source: the value of their ``source`` column.
        folder: where the file goes if one is needed; the system removes it even if this process is killed.
    """

    def __init__(self, source: int, folder: Path) -> None:
        self._source = source
        self._lines: list[int] = []
        self._reasons: list[str] = []
        self._raws: list[str] = []
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._writer: pa.RecordBatchStreamWriter | None = None

    def add(self, line_no: int, reason: str, raw: bytes | str) -> None:
        """Keep one; of `raw` the first `RAW_LIMIT` characters."""
        self._lines.append(line_no)
        self._reasons.append(_text(reason))
        self._raws.append(_text(raw))
        if len(self._lines) >= _BATCH:
            self._flush()

    def reader(self) -> pa.RecordBatchReader | None:
        """Return all of them as rows of the table ``rejects``; None if there is none."""
        import pyarrow as pa

        if self._lines:
            self._flush()
        if self._writer is None:
            return None
        self._writer.close()
        self._file.seek(0)
        return pa.ipc.open_stream(self._file)

    def close(self) -> None:
        """Release the memory or the file."""
        self._file.close()

    def _flush(self) -> None:
        import pyarrow as pa

        columns = {
            "source": pa.array([self._source] * len(self._lines), pa.int32()),
            "line_no": pa.array(self._lines, pa.int64()),
            "reason": pa.array(self._reasons, pa.string()),
            "raw": pa.array(self._raws, pa.string()),
        }
        batch = pa.RecordBatch.from_pydict(columns)
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._file, batch.schema)
        self._writer.write_batch(batch)
        self._lines, self._reasons, self._raws = [], [], []


def _text(raw: bytes | str) -> str:
    if isinstance(raw, bytes):
        return raw[: 4 * RAW_LIMIT].decode("utf-8", "replace")[:RAW_LIMIT]
    return storable(raw[:RAW_LIMIT])


WITH_SOURCE = frozenset(
    {
        *(
            "jobs",
            "attempts",
            "placements",
            "gpu_samples",
            "host_util",
            "queue_samples",
            "job_logs",
            "job_outputs",
            "progress",
            "traffic",
        ),
        *("machine_events", "machine_samples", "containers", "field_sources"),
        *("exact_placements", "job_events", "gpu_limits", "settings"),
        "yarn_facts",
        *TRACE_JOBS,
        *("profiles", "suspensions", "traffic_averages"),
        *("service_load", "quota_history", "trace_parts", "machine_averages", "job_dependencies"),
        *("stated_usage", "step_usage"),
        *("gpu_series", "gpu_readings", "gpu_devices", "gpu_numbering", "gpu_events", "job_gpu_summary"),
        *("node_list", "submit_options", "training_marks"),
    }
)
"""Tables whose rows state which source they came from."""
TABLES = WITH_SOURCE | {"machines", "queues", "queue_machines"}
"""The only tables a format may insert into."""
BACKGROUND_TABLES = frozenset({*TRACE_JOBS, "containers"})
"""Tables whose rows are written while the caller makes the next: what it asks of the store then waits for them."""
BACKGROUND_ROWS = 10_000
"""Fewer rows than these are written at once: a thread of their own would cost more than it saves."""
MOST_REASONS = 1000
"""Different reject reasons counted one by one; what is past that is counted as one."""

_OF_THE_END = re.compile(r"cut off|truncated|not closed")


class StoreSink:
    """The `gpuctl.ingest.core.format.Sink` that writes to a trace store, within a transaction that its caller owns.

    Args:
        store: open for writing.
        cluster: the value of every row's ``cluster`` column.
        source: the value of every row's ``source`` column.
        timezone: of stamps that carry none.
    """

    def __init__(self, store: Store, cluster: str, source: int, timezone: str) -> None:
        self.cluster = cluster
        self.source = source
        self.timezone = timezone
        self.epoch = ""
        self.rows_in = 0
        self.rows_loaded = 0
        self.rows_rejected = 0
        self.rows_already_stored = 0
        self.reasons: Counter[str] = Counter()
        self.last_reason = ""
        self.first_reject: tuple[int, str] | None = None
        self.touched: set[str] = set()
        """Tables that rows were inserted into."""
        self.wrote = False
        """Whether anything of the store was changed."""
        self._store = store
        self._rejects = Rejects(source, store.path.parent)

    def seen(self, rows: int = 1) -> None:
        """Count rows of the source as read."""
        self.rows_in += rows

    def loaded(self, rows: int = 1) -> None:
        """Count rows of the source as loaded."""
        self.rows_loaded += rows

    def already_stored(self, rows: int = 1) -> None:
        """Count rows of the source that the store has, with the same content."""
        self.rows_already_stored += rows

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        """Count one row as rejected and keep where it stood, why, and how it began."""
        self.rows_rejected += 1
        self.last_reason = reason
        self.first_reject = self.first_reject or (line_no, reason)
        self.reasons[reason if reason in self.reasons or len(self.reasons) < MOST_REASONS else "other reasons"] += 1
        self._rejects.add(line_no, reason, raw)

    def insert(self, table: str, rows: pl.DataFrame | pa.Table | pa.RecordBatchReader) -> None:
        """Append rows to a table, matching columns by name; ``cluster`` and ``source`` are filled in if absent.

        Rows in memory that fill a row group are written by one thread. Several would each leave a group part full, and
        the checkpoint would write all of them again: a fifth more CPU time for a store that is a third larger. A stream
        is read and written side by side.

        Raises:
            KeyError: `table` is none that formats fill.
        """
        if table not in TABLES:
            raise KeyError(f"{table}: no table that a format fills")
        columns = rows.schema.names() if callable(rows.schema.names) else rows.schema.names
        values: dict[str, Any] = {}
        if "cluster" not in columns:
            values["cluster"] = self.cluster
        if "source" not in columns and table in WITH_SOURCE:
            values["source"] = self.source
        # the times of the attempts there are those of their jobs
        self.touched.add("jobs" if table in TRACE_JOBS else table)
        self.wrote = self.wrote or hasattr(rows, "read_next_batch") or len(rows) > 0
        if hasattr(rows, "read_next_batch"):
            self._append(table, rows, values)
        elif table in BACKGROUND_TABLES and len(rows) >= BACKGROUND_ROWS:
            self._store.run_in_background(lambda: self._append(table, _forgettable(rows), values))
        else:
            with self._store.one_thread() if len(rows) >= ROW_GROUP else nullcontext():
                self._append(table, _forgettable(rows), values)

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        """Query the store, rows of this source included."""
        return self._store.frame(sql, params)

    def after(self, work: Callable[..., None], *given: object) -> None:
        """Call ``work(self, *given)``: the store has all rows so far."""
        work(self, *given)

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        """Change rows of the store within this source's transaction."""
        self.wrote = True
        self._store.execute(sql, params)

    def end_in(self, damage: tuple[int, str, bytes] | None) -> str:
        """Reject the row in which a damaged file ends, and return what is damaged; empty if nothing is.

        Args:
            damage: line, reason and text of that row.
        """
        # a loader that ran into the end inside a row has counted that row itself
        if damage and not _OF_THE_END.search(self.last_reason):
            self.seen()
            self.reject(*damage)
        return damage[1] if damage else ""

    def finish(self) -> None:
        """Write the rejects.

        Raises:
            AssertionError: the format has not counted every row it saw exactly once.
        """
        if self.rows_in != self.rows_loaded + self.rows_already_stored + self.rows_rejected:
            raise AssertionError(
                f"rows do not add up: {self.rows_in} in, {self.rows_loaded} loaded, "
                f"{self.rows_already_stored} already in the store, {self.rows_rejected} rejected"
            )
        rejects = self._rejects.reader()
        if rejects is not None:
            self._append("rejects", rejects, {})

    def close(self) -> None:
        """Release the space that rejects took."""
        self._rejects.close()

    def _append(self, table: str, rows: Any, values: dict[str, Any]) -> None:
        casts = {"cluster": "$cluster::VARCHAR AS cluster", "source": "$source::INTEGER AS source"}
        # the table comes from the list above and the casts from here: no part of this text is input
        found = f"SELECT {', '.join(['*', *(casts[c] for c in values)])} FROM incoming"  # noqa: S608
        faults: list[BaseException] = []
        if hasattr(rows, "read_next_batch"):
            rows = _remembering(rows, faults)
        self._store.view("incoming", rows)
        try:
            if self._store.lake is not None and table in lake.TABLES:
                self._store.lake.append(table, found, values, self.cluster, self.source)
            else:
                self._store.execute(f"INSERT INTO {STORED.get(table, table)} BY NAME {found}", values)
        except Exception as error:
            # DuckDB turns an exception raised by a stream of batches into text; the format's own error is more specific
            if faults:
                raise faults[0] from error
            raise
        # after a fault the transaction is lost, and the view goes with it
        self._store.drop_view("incoming")


def _forgettable(rows: pl.DataFrame | pa.Table) -> pa.RecordBatchReader:
    """Pass rows in a form that is freed at once: DuckDB holds a frame until the transaction ends."""
    import polars as pl

    if isinstance(rows, pl.DataFrame):
        # the newest level hands strings over as they are
        rows = rows.rechunk().to_arrow(compat_level=pl.CompatLevel.newest())
    return rows.to_reader()


def _remembering(reader: pa.RecordBatchReader, faults: list[BaseException]) -> pa.RecordBatchReader:
    import pyarrow as pa

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader
        except BaseException as fault:
            faults.append(fault)
            raise

    return pa.RecordBatchReader.from_batches(reader.schema, batches())
