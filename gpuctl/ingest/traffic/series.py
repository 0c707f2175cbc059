"""Bytes between the samples of each job, out of counters or as they are, whatever the samples are cut into."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

WRAP = 2.0**32
"""Where a counter of 32 bits begins anew."""
WRAP_MOST = 2.0**30
"""Most bytes from one sample to the next that are believed to have skipped such an end; else it is a restart."""

_SAMPLE = ("job", "us", "value")


def increase(before: int, now: int) -> int:
    """Bytes between two values of a counter of 64 bits; if it fell, it began anew and what it shows is new."""
    return now - before if now >= before else now


class SampleCounts(NamedTuple):
    """What became of some samples.

    Attributes:
        rows: job, us (microseconds since 1970), bytes_read, seconds (since the sample before; null for the first of a
            job), in the order of the samples; those that are late are left out.
        late: for every sample whether its time is not after that of an earlier one of its job.
    """

    rows: pl.DataFrame
    late: pl.Series


class Deltas:
    """Takes samples in the order of time of each job, in pieces of any size, and gives the bytes between them.

    Args:
        cumulative: the values are counters, which may begin anew (a restart: what has been counted since then is
            taken) or pass the end of 32 bits; else they are bytes since the sample before. The first sample of a
            counter shows no bytes: 0.

    Attributes:
        restarts: times that a counter fell and was taken to have begun anew at 0.
        wraps: times that a counter passed the end of 32 bits.
    """

    def __init__(self, *, cumulative: bool) -> None:
        import polars as pl

        self.restarts = 0
        self.wraps = 0
        self._cumulative = cumulative
        self._last = pl.DataFrame(schema={"job": pl.String, "us": pl.Int64, "value": pl.Float64, "peak": pl.Float64})

    def add(self, samples: pl.DataFrame) -> SampleCounts:
        """Take samples.

        Args:
            samples: job, us (whole microseconds since 1970), value (bytes, at least 0).
        """
        import polars as pl

        known = self._last.join(samples.select("job").unique(), on="job", how="semi")
        rows = pl.concat(
            [
                known.with_columns(new=pl.lit(value=False)),
                samples.select(*_SAMPLE, peak="value", new=pl.lit(value=True)),
            ]
        )
        latest = pl.col("us").cum_max().shift(1).over("job")
        rows = rows.with_columns(late=(pl.col("us") <= latest).fill_null(value=False))
        late = rows.filter("new")["late"]
        rows = rows.filter(~pl.col("late")).with_columns(
            peak=pl.col("peak").cum_max().over("job"),
            before=pl.col("value").shift(1).over("job"),
            seconds=(pl.col("us") - pl.col("us").shift(1).over("job")) / 1e6,
        )
        ends = rows.group_by("job", maintain_order=True).last().select(*_SAMPLE, "peak")
        self._last = pl.concat([self._last.join(ends, on="job", how="anti"), ends])
        rows = rows.filter("new")
        bytes_read = self._from_counters(rows) if self._cumulative else rows["value"]
        return SampleCounts(rows.select("job", "us", bytes_read.alias("bytes_read"), "seconds"), late)

    def _from_counters(self, rows: pl.DataFrame) -> pl.Series:
        import polars as pl

        value, before = pl.col("value"), pl.col("before")
        over = value + WRAP - before
        fell = rows.select(
            fell=(value < before).fill_null(value=False),
            wrapped=((value < before) & (pl.col("peak") < WRAP) & (over <= WRAP_MOST)).fill_null(value=False),
        )
        wraps = int(fell["wrapped"].sum())
        self.wraps += wraps
        self.restarts += int(fell["fell"].sum()) - wraps
        step = pl.when("wrapped").then(over).when("fell").then(value).otherwise(value - before)
        return rows.hstack(fell).select(step.fill_null(0.0).alias("bytes_read"))["bytes_read"]
