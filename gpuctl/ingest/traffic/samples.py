"""Puts samples of traffic into the table ``traffic``, and states what was odd about them."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from gpuctl.core.line_reader import RowError
from gpuctl.core.storable_text import plural

if TYPE_CHECKING:
    from typing import BinaryIO

    import polars as pl

    from gpuctl.ingest.core.format import Sink

BATCH_ROWS = 100_000
LATE = "time is not after that of the sample before it of the same job"
GAP = 2.5
"""A sample is stated to be missing where a span is this many times as long as the job's median."""
COUNTER_ROWS = 20
"""Fewest rows of a job whose bytes are stated to look like counters."""
MOST_NAME = 500
_LEAST_S, _MOST_S = -(2**31), 253_402_300_799
"""A time in seconds is from 1901 to the end of 9999, which is also what a store can hold."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,25}(?:\.\d{0,25})?|\.\d{1,25})(?:[eE][+-]?\d{1,3})?", re.ASCII)
_log = logging.getLogger(__name__)


class Feed:
    """Takes samples one by one and writes them in batches; every one of them is counted once.

    Args:
        sink: where they go.
        cumulative: the values are counters; else bytes since the sample before.
    """

    def __init__(self, sink: Sink, *, cumulative: bool) -> None:
        from gpuctl.ingest.traffic.series import Deltas

        self._sink = sink
        self._deltas = Deltas(cumulative=cumulative)
        self._lines: list[int] = []
        self._raws: list[bytes | str] = []
        self._samples: list[tuple[str, int, float]] = []

    def add(self, line_no: int, raw: bytes | str, job: str, us: int, value: float) -> None:
        """Take one sample and count it as seen.

        Args:
            line_no: where it stands.
            raw: what stands there.
            job: what the series is called.
            us: microseconds since 1970.
            value: bytes, at least 0.
        """
        self._sink.seen()
        self._lines.append(line_no)
        self._raws.append(raw)
        self._samples.append((job, us, value))
        if len(self._samples) >= BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what has not been written yet."""
        import polars as pl

        if not self._samples:
            return
        schema = {"job": pl.String, "us": pl.Int64, "value": pl.Float64}
        taken = self._deltas.add(pl.DataFrame(self._samples, schema=schema, orient="row"))
        for at in taken.late.arg_true().to_list():
            self._sink.reject(self._lines[at], LATE, self._raws[at])
        if taken.rows.height:
            put(self._sink, taken.rows)
            self._sink.loaded(taken.rows.height)
        self._lines, self._raws, self._samples = [], [], []

    def finish(self, what: str) -> None:
        """Write the rest, and state what was odd: counters that fell, samples that are missing.

        Args:
            what: names the source.
        """
        self.flush()
        if self._deltas.restarts:
            _log.warning(
                "%s: counters fell %d times and were taken as restarted from 0",
                what,
                self._deltas.restarts,
            )
        if self._deltas.wraps:
            _log.warning("%s: counters passed the end of 32 bits %d times", what, self._deltas.wraps)
        warn_of_gaps(self._sink, what)


def put(sink: Sink, rows: pl.DataFrame) -> None:
    """Insert rows with job, us (microseconds since 1970), bytes_read and seconds."""
    import polars as pl

    ts = pl.col("us").cast(pl.Datetime("us", "UTC")).alias("ts")
    sink.insert("traffic", rows.select("job", ts, "bytes_read", "seconds"))


def warn_of_gaps(sink: Sink, what: str) -> None:
    """Say how many spans of a source are so long that samples must be missing in them."""
    found = sink.query(
        """
        SELECT count(*) AS gaps, count(DISTINCT job) AS jobs, coalesce(sum(seconds), 0) AS seconds
        FROM (SELECT job, seconds, median(seconds) OVER (PARTITION BY job) AS usual
              FROM traffic WHERE cluster = $cluster AND source = $source)
        WHERE seconds > $gap * usual
        """,
        {"cluster": sink.cluster, "source": sink.source, "gap": GAP},
    ).row(0)
    if found[0]:
        _log.warning("%s: samples are missing in %d places of %d series; the %g s there are one row each", what, *found)


def warn_of_counters(sink: Sink, what: str) -> None:
    """Mark which jobs of a source have bytes that look like counters: they never fall, and are not all equal."""
    found = sink.query(
        """
        SELECT job FROM (
            SELECT job, bytes_read, bytes_read - lag(bytes_read) OVER (PARTITION BY job ORDER BY ts) AS step
            FROM traffic WHERE cluster = $cluster AND source = $source
        ) GROUP BY job HAVING count(*) >= $least AND min(step) >= 0 AND max(step) > 0
        ORDER BY job
        """,
        {"cluster": sink.cluster, "source": sink.source, "least": COUNTER_ROWS},
    )["job"]
    if found.len():
        _log.warning(
            "%s: the bytes of %s never fall, e.g. %s; if they are counters, read the file with --cumulative",
            what,
            plural(found.len(), "job"),
            found[0],
        )


def name_of(stream: BinaryIO) -> str:
    """The last part of the name of the file that is read, without suffix; ``traffic`` if it has no name."""
    name = getattr(stream, "name", None)
    last = re.split(r"[/!]", name)[-1] if isinstance(name, str) else ""
    for suffix in (".gz", ".zst", ".bz2", ".xz"):
        last = last.removesuffix(suffix)
    stem = last.rpartition(".")[0] or last
    return stem[:MOST_NAME] or "traffic"


def job_name(text: str) -> str:
    """Check what a series is called.

    Raises:
        RowError: it is empty, too long, or contains unprintable characters.
    """
    if not text or len(text) > MOST_NAME or not text.isprintable():
        raise RowError(f"no name of a job: 1 to {MOST_NAME} printable characters are expected")
    return text


def number(text: str, name: str, least: float = 0.0, most: float = 1e24) -> float:
    """Read a number.

    Raises:
        RowError: it is none, or not from `least` to `most`.
    """
    if not _NUMBER.fullmatch(text):
        raise RowError(f"{name} is not a number")
    value = float(text)
    if not least <= value <= most:
        raise RowError(f"{name} is not from {least:g} to {most:g}")
    return value


def micros(text: str, name: str) -> int:
    """Microseconds of a time in seconds since 1970, or since any other origin.

    Raises:
        RowError: it is not a number, or so large that it cannot be seconds.
    """
    value = number(text, name, -1e300, 1e300)
    if not _LEAST_S <= value <= _MOST_S:
        raise RowError(f"{name} is {'below' if value < 0 else 'past'} what seconds can be; are they milliseconds?")
    return round(value * 1e6)
