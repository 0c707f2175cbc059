"""Loads one file of a format into a store, as ingest does it, and shows what came of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.core.sink import StoreSink

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "traffic"
CLUSTER = "site"


class Named(io.BytesIO):
    """Bytes of a file with a name."""

    def __init__(self, data: bytes, name: str) -> None:
        super().__init__(data)
        self.name = name


class Loaded:
    """What a file became.

    Attributes:
        counts: rows in, loaded, rejected.
        reasons: reason -> how many.
    """

    def __init__(self, fmt: Format, text: bytes | str, store: Store, name: str = "job.txt", source: int = 1) -> None:
        data = text.encode() if isinstance(text, str) else text
        sink = StoreSink(store, CLUSTER, source, fmt.timezone)
        try:
            fmt.load(Named(data, f"/somewhere/{name}"), sink)
            sink.finish()
        finally:
            sink.close()
        self.store = store
        self.source = source
        self.counts = (sink.rows_in, sink.rows_loaded, sink.rows_rejected)
        self.reasons = dict(sink.reasons)

    def rows(self, table: str) -> list[dict[str, Any]]:
        """The rows of this source, NULLs left out."""
        found = self.store.frame(f"SELECT * FROM {table} WHERE source = {self.source}").to_dicts()
        hidden = {"cluster", "source"}
        return [{k: v for k, v in row.items() if v is not None and k not in hidden} for row in found]

    def series(self) -> dict[str, list[tuple[float, float, float | None]]]:
        """Job -> (seconds since 1970, bytes, span) of its rows, in the order of time."""
        found = self.store.execute(
            "SELECT job, epoch_us(ts) / 1e6, bytes_read, seconds FROM traffic WHERE source = ? ORDER BY job, ts",
            [self.source],
        ).fetchall()
        series: dict[str, list[tuple[float, float, float | None]]] = {}
        for job, at, size, span in found:
            series.setdefault(job, []).append((at, size, span))
        return series
