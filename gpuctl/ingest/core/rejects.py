"""Holds the rejects of one source, in memory while they are few and in a nameless file when they are many."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from gpuctl.core.storable_text import storable
from gpuctl.ingest.core.format import RAW_LIMIT

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

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
