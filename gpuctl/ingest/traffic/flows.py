"""Flows that overlap, summed into rows that follow one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

BATCH_ROWS = 100_000
LEAST_US = 1000
"""Microseconds that a flow without a length is given."""

_SUMMED = """
INSERT INTO traffic BY NAME
WITH flows AS (
    SELECT job, epoch_us(ts) - round(seconds * 1e6)::BIGINT AS begin_us, epoch_us(ts) AS end_us, bytes_read
    FROM traffic WHERE cluster = $cluster AND source = -$source
), changes AS (
    SELECT job, begin_us AS us, bytes_read / (end_us - begin_us) AS rate, 1 AS flows FROM flows
    UNION ALL SELECT job, end_us, -bytes_read / (end_us - begin_us), -1 FROM flows
), steps AS (
    SELECT job, us, sum(rate) AS rate, sum(flows) AS flows FROM changes GROUP BY job, us
), stretches AS (
    SELECT job, us AS begin_us, lead(us) OVER later AS end_us,
           sum(rate) OVER later AS rate, sum(flows) OVER later AS flows
    FROM steps WINDOW later AS (PARTITION BY job ORDER BY us)
)
SELECT $cluster AS cluster, job, make_timestamptz(end_us) AS ts,
       CASE WHEN flows > 0 THEN greatest(rate, 0) * (end_us - begin_us) ELSE 0 END AS bytes_read,
       (end_us - begin_us) / 1e6 AS seconds, $source::INTEGER AS source
FROM stretches WHERE end_us IS NOT NULL
"""
"""Rates change only if a flow begins or ends; between two such times they are constant."""


class Flows:
    """Takes flows in any order; the store sums them, so that memory stays bounded however many there are.

    Until `finish` they lie in ``traffic`` under the negative number of their source, within its transaction.

    Args:
        sink: where they go.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._rows: list[tuple[str, int, float, float]] = []

    def add(self, job: str, start: int, end: int, size: float) -> None:
        """Take one flow: its job, start and end (microseconds since 1970), and its bytes."""
        length = max(end - start, LEAST_US)
        self._rows.append((job, start + length, size, length / 1e6))
        if len(self._rows) >= BATCH_ROWS:
            self._flush()

    def finish(self) -> None:
        """Sum them and write the rows."""
        self._flush()
        own: dict[str, object] = {"cluster": self._sink.cluster, "source": self._sink.source}
        self._sink.execute(_SUMMED, own)
        self._sink.execute("DELETE FROM traffic WHERE cluster = $cluster AND source = -$source", own)

    def _flush(self) -> None:
        import polars as pl

        if not self._rows:
            return
        schema = {"job": pl.String, "us": pl.Int64, "bytes_read": pl.Float64, "seconds": pl.Float64}
        rows = pl.DataFrame(self._rows, schema=schema, orient="row")
        ts = pl.col("us").cast(pl.Datetime("us", "UTC")).alias("ts")
        source = pl.lit(-self._sink.source, dtype=pl.Int32).alias("source")
        self._sink.insert("traffic", rows.select("job", ts, "bytes_read", "seconds", source))
        self._rows = []
