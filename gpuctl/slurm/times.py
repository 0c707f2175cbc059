"""Slurm's times and durations as instants and seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.local_time import LATEST_S, WallClock

if TYPE_CHECKING:
    import polars as pl

NO_TIME = ("", "Unknown", "None", "N/A", "n/a", "(null)", "NONE", "0", "Invalid")
"""What Slurm writes if there is no such time: not yet (``Unknown``) or never (``None``)."""

_FIRST = 31_536_000
_LOCAL = "%Y-%m-%dT%H:%M:%S"


class Instants(NamedTuple):
    """A column of times.

    Attributes:
        utc: the instants (µs, UTC); null if the text has none or is invalid.
        later: the later reading of times that the clock showed twice (``utc`` has the earlier one); else null.
        bad: true if the text is neither a time nor a word for no time.
    """

    utc: pl.Series
    later: pl.Series
    bad: pl.Series


def instants(texts: pl.Series, timezone: str) -> Instants:
    """Read a column of times, each value in its own form.

    Accepted are ``2026-11-20T21:04:37`` (Slurm's default; a blank for the T as well) in the given zone, the same with
    an offset (``SLURM_TIME_FORMAT=%FT%T%z``), and seconds since the epoch (``%s``). A time that the clock skipped is
    extrapolated from the hour before the change.

    Args:
        texts: strings.
        timezone: IANA name of the zone of times without an offset.
    """
    import polars as pl

    texts = _without_zero(texts)
    utc = _local(texts, timezone)
    none = pl.Series(texts.name, [None], dtype=pl.Datetime("us", "UTC")).new_from_index(0, texts.len())
    no = pl.Series([False]).new_from_index(0, texts.len())
    if utc.null_count() == texts.null_count():
        return Instants(utc, none, no)
    rest = utc.is_null() & texts.is_not_null() & ~texts.is_in(list(NO_TIME))
    if not rest.any():
        return Instants(utc, none, no)
    utc = utc.zip_with(~rest, _with_zone(texts))
    rest &= utc.is_null()
    if not rest.any():
        return Instants(utc, none, no)
    return _odd(texts, utc, rest, WallClock(timezone))


def _without_zero(texts: pl.Series) -> pl.Series:
    """Replace times within a day of 1970-01-01 by null: Slurm's 0 for no time looks like such a date."""
    zero = texts.str.starts_with("1970-01-01T") | texts.str.starts_with("1969-12-31T")
    return texts.set(zero.fill_null(value=False), None) if zero.any() else texts


def _local(texts: pl.Series, timezone: str) -> pl.Series:
    import polars as pl

    naive = texts.str.to_datetime(_LOCAL, time_unit="us", strict=False, cache=False)
    if timezone == "UTC":
        utc = naive.dt.replace_time_zone("UTC")
    else:
        try:
            utc = naive.dt.replace_time_zone(timezone, ambiguous="null", non_existent="null")
            utc = utc.dt.convert_time_zone("UTC")
        except pl.exceptions.ComputeError:
            # a zone that Python knows, but Polars does not
            utc = naive.dt.replace_time_zone("UTC").clear(texts.len())
    return _in_range(utc)


def _with_zone(texts: pl.Series) -> pl.Series:
    """Read times with a zone: seconds since the epoch, and times with an offset."""
    import polars as pl

    numbers = texts.cast(pl.Int64, strict=False)
    numbers = numbers.zip_with(numbers.is_between(_FIRST, LATEST_S), numbers.clear(texts.len()))
    epoch = (numbers * 1_000_000).cast(pl.Datetime("us", "UTC"))
    if epoch.null_count() == texts.null_count():
        return epoch
    zoned = texts.str.replace("Z$", "+0000")
    offset = zoned.str.to_datetime(_LOCAL + "%z", time_unit="us", strict=False, cache=False).dt.convert_time_zone("UTC")
    return epoch.zip_with(epoch.is_not_null(), _in_range(offset))


def _in_range(utc: pl.Series) -> pl.Series:
    numbers = utc.to_physical()
    first, last = _FIRST * 1_000_000, LATEST_S * 1_000_000 - 1
    # finding the extremes is much faster than checking all values
    if not numbers.count() or (numbers.min() >= first and numbers.max() <= last):  # type: ignore[operator]
        return utc
    return utc.zip_with(numbers.is_between(first, last), utc.clear(utc.len()))


def _odd(texts: pl.Series, utc: pl.Series, rest: pl.Series, clock: WallClock) -> Instants:
    """Read the few times in an hour of a clock change or in other forms than Slurm's."""
    import polars as pl

    words = texts.filter(rest).unique()
    stamps = [clock.read(word.strip().replace("T", " ", 1)) for word in words]
    dtype = pl.Datetime("us", "UTC")
    first = pl.Series([None if s is None else s.utc * 1_000_000 for s in stamps], dtype=pl.Int64).cast(dtype)
    second = pl.Series(
        [None if s is None or s.later is None else s.later * 1_000_000 for s in stamps], dtype=pl.Int64
    ).cast(dtype)
    at = texts.replace_strict(words, pl.Series(range(len(words)), dtype=pl.UInt32), default=None)
    known = first.gather(at)
    return Instants(utc.zip_with(~rest, known), second.gather(at), rest & known.is_null())
