"""The interface of a source format, and of the sink that its loader writes to.

A format is one module in ``gpuctl.ingest.formats`` with a module-level ``FORMAT``. Its ``load`` reads one
decompressed byte stream from front to back, puts rows into the sink, and rejects what it cannot read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import polars as pl
    import pyarrow as pa

STAMPED = frozenset(
    {
        "jobs",
        "queue_samples",
        "machine_samples",
        "job_events",
        "exact_placements",
        "gpu_samples",
        "host_util",
        "gpu_readings",
    }
)
"""Tables whose rows have times as the log writes them."""
RAW_LIMIT = 500
"""Of a rejected row, this many characters are kept in the ``rejects`` table."""


class Place(NamedTuple):
    """The location of a file.

    Attributes:
        inside: below the directory given, archives as if they were unpacked where they lie, without a suffix of a
            compression.
        path: in the whole file system; ``archive!member`` in archives.
    """

    inside: str
    path: str


class Sink(Protocol):
    """Takes the rows of one source file; all of them are committed together or not at all.

    Every row of the source (a line, a JSON object) is counted once as seen (`row`), and then exactly once
    as loaded (`loaded`), as one that the store has (`already_stored`), or as rejected (`reject`): the ledger checks
    that rows_in = rows_loaded + rows_already_stored + rows_rejected.
    """

    cluster: str
    timezone: str
    """The IANA zone of stamps that carry none."""
    epoch: str
    """What the source's times count from (`Format.epoch`), where only the file itself shows it; else empty."""

    @property
    def source(self) -> int:
        """Return the number of this source in the ledger; the value of every inserted row's ``source`` column."""

    def seen(self, rows: int = 1) -> None:
        """Count rows of the source as read."""

    def loaded(self, rows: int = 1) -> None:
        """Count rows of the source as loaded."""

    def already_stored(self, rows: int = 1) -> None:
        """Count rows that the store has with the same content, from another source or from earlier in this one."""

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        """Count one row as rejected and record its line, the reason, and its first `RAW_LIMIT` characters.

        Args:
            line_no: 1-based line on which the row starts.
            reason: what was found and what was expected; the same words for the same fault, so that
                rejects can be counted by reason.
            raw: the row itself.
        """

    def insert(self, table: str, rows: pl.DataFrame | pa.Table | pa.RecordBatchReader) -> None:
        """Append rows to a table of the store, matching columns by name; absent ones become NULL."""

    def query(self, sql: str, params: dict[str, object] | None = None) -> pl.DataFrame:
        """Query the store (e.g. to find duplicate jobs)."""

    def after(self, work: Callable[..., None], *given: object) -> None:
        """Call ``work(sink, *given)`` with a sink of the store, once it has all rows so far; for queries of the store.

        Args:
            work: a function of a module; if another process reads the file, the one that has the store calls it.
            given: can be pickled.
        """

    def execute(self, sql: str, params: dict[str, object] | None = None) -> None:
        """Change rows of the store within this source's transaction."""


@dataclass(frozen=True)
class Format:
    """One source format.

    Attributes:
        name: as ``gpuctl formats`` and the ledger name it, e.g. ``philly-jobs``.
        title: one line for people.
        fills: the tables of the trace store that it fills.
        file_names: usual names of such files, for ``gpuctl formats``.
        order: formats with a lower one are loaded first.
        timezone: the zone of its stamps if they carry none and the user names none.
        clock: ``wall`` if durations are differences of the log's own zone-less stamps, else ``utc``.
        parser_version: raised when the same bytes would give other rows; such sources are loaded again.
        sniff: (file name without compression suffix, first 64 KiB decompressed) -> why this is the format, or None.
            Must not raise for any bytes.
        load: reads the whole stream into the sink. Raises `InputError` only if nothing can be loaded.
        zoned: true if its stamps carry their own zone or count from 1970, so that the user need not name one.
        settle: brings rows that are made of several sources up to date after some of them were loaded, or one was
            removed; called once for the small files that share a transaction.
        claims: (place, first 64 KiB decompressed) -> how its place alone shows that this is the format, or None. Such
            files are not sniffed.
        many: there may be thousands of such files, and most are small: several share a transaction, and the same bytes
            at another place are another source.
        whose: (place) -> (job, attempt, stream) that the place of a claimed file shows; if that changes, the file is
            read again.
        version: of other inputs than the bytes that affect the rows; sources read with another one are stale.
        passes_over: (file name, first 64 KiB decompressed) -> what a file is that belongs to the same software but of
            which nothing is read, and why; None if it is not such a file. Asked only if no format claims the file.
        alone: `load` queries the store only in `Sink.after`, so that another process may read the file.
        conclude: called once at the end of an ingest, in a transaction of its own, with a sink of no source; None if
            there is no store. Returns notes for the user.
        epoch: what its times count from: ``shifted`` by a constant, of which hours and weekdays are right and dates
            are not; ``relative`` to a start of the source's own, whose seconds are counted from 1970 and shown without
            dates.
        unit: the meaning of a row of ``jobs``.
        verified: how the reader was tested: on a whole published file, on a part of one, or only against its
            documentation and the code of its users.
    """

    name: str
    title: str
    fills: tuple[str, ...]
    file_names: tuple[str, ...]
    order: int
    sniff: Callable[[str, bytes], str | None]
    load: Callable[[BinaryIO, Sink], None]
    timezone: str = "UTC"
    clock: Literal["wall", "utc"] = "utc"
    parser_version: int = 1
    settle: Callable[[Sink], None] | None = None
    zoned: bool = False
    claims: Callable[[Place, bytes], str | None] | None = None
    whose: Callable[[Place], tuple[str, int | None, str] | None] | None = None
    many: bool = False
    version: Callable[[], str] | None = None
    passes_over: Callable[[str, bytes], str | None] | None = None
    alone: bool = False
    conclude: Callable[[Sink | None], Iterable[str]] | None = None
    epoch: Literal["real", "shifted", "relative"] = "real"
    unit: Literal["job", "pod", "instance"] = "job"
    verified: Literal["real file", "sample", "documentation"] = "real file"
