"""Loads one file of Slurm accounting into a store as an ingest would, and reads tables back as plain values."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuctl.ingest.core.sink import StoreSink

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

FIXTURES = Path(__file__).resolve().parent / "fixtures" / "slurm" / "other"
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "slurm"


class OneSource(StoreSink):
    """A sink that tells its rejects, too."""

    def __init__(self, store: Store, cluster: str, source: int, timezone: str) -> None:
        super().__init__(store, cluster, source, timezone)
        self.rejects: list[tuple[int, str, str]] = []

    def reject(self, line_no: int, reason: str, raw: bytes | str) -> None:
        text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else raw
        self.rejects.append((line_no, reason, text))
        super().reject(line_no, reason, raw)


def load(
    fmt: Format, data: bytes | str, store: Store, *, cluster: str = "lab", source: int = 1, timezone: str = "UTC"
) -> OneSource:
    """Load bytes as one file of a format; the ledger's sum is checked."""
    sink = OneSource(store, cluster, source, timezone)
    try:
        fmt.load(io.BytesIO(data.encode() if isinstance(data, str) else data), sink)
        sink.finish()
    finally:
        sink.close()
    return sink


def rows(store: Store, table: str, cluster: str = "lab") -> list[dict[str, Any]]:
    """All rows of a cluster in a table, sorted; times as text in UTC."""
    frame = store.frame(
        f"SELECT * EXCLUDE (cluster, source) FROM {table} WHERE cluster = $c ORDER BY ALL", {"c": cluster}
    )
    stamps = [name for name, dtype in frame.schema.items() if str(dtype).startswith("Datetime")]
    return frame.with_columns(frame[name].dt.strftime("%Y-%m-%d %H:%M:%S") for name in stamps).to_dicts()
