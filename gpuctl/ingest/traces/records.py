"""Jobs of sources that are no tables: records read one by one and written in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.traces.jobs import LINE, Jobs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.ingest.core.format import Sink

BATCH = 20_000
_TIMES = ("submit_ts", "start_ts", "end_ts")
_TEXTS = frozenset(("job", "user", "account", "name", "queue", "state", "source_state", "gpu_type", "qos"))
_WHOLE = frozenset(("nodes", "cpus", "time_limit_s", "attempts"))


class JobRecords:
    """Takes one record per job and writes them like `Jobs`.

    Args:
        sink: takes the rows.
    """

    def __init__(self, sink: Sink) -> None:
        self._jobs = Jobs(sink)
        self._rows: list[dict[str, Any]] = []
        self._texts: dict[int, str] = {}

    def add(self, line: int, row: Mapping[str, Any], text: str) -> None:
        """Take one job.

        Args:
            line: 1-based line of the record, or its number among the records; unique.
            row: columns of the table ``jobs``, the same for every job; times in seconds since 1970.
            text: the record, for a reject.
        """
        self._rows.append({**row, LINE: line})
        self._texts[line] = text[:RAW_LIMIT]
        if len(self._rows) == BATCH:
            self._write()

    def finish(self) -> None:
        """Write the records of the last batch, and the queues."""
        self._write()
        self._jobs.finish()

    def _write(self) -> None:
        import polars as pl

        if not self._rows:
            return
        texts = self._texts
        frame = pl.DataFrame(self._rows, schema={name: _kind(name) for name in self._rows[0]}).with_columns(
            (pl.col(name) * 1_000_000).round().cast(pl.Int64).cast(pl.Datetime("us", "UTC"))
            for name in _TIMES
            if name in self._rows[0]
        )

        def raw(lines: Sequence[int]) -> list[str]:
            return [texts[line] for line in lines]

        self._jobs.add(frame, raw)
        self._rows, self._texts = [], {}


def _kind(name: str) -> Any:
    import polars as pl

    if name == "quirks":
        return pl.List(pl.String)
    return pl.String if name in _TEXTS else pl.Int64 if name in _WHOLE or name == LINE else pl.Float64
