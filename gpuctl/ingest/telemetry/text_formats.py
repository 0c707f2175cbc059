"""Reads metrics as lines of text: exposition, ``/federate``, and dumps of Prometheus's database.

A line is ``NAME{label="v",…} VALUE [TIME]``, or ``{__name__="NAME", label="v", …} VALUE TIME``. The time is in
milliseconds, in OpenMetrics in seconds. https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF
from gpuctl.ingest.read.pieces import LARGE_PIECE, torn_off, whole_lines
from gpuctl.ingest.telemetry.prometheus import Samples, Series

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink

LINE = r"^([A-Za-z_:][\w:]*)?\s*(?:\{(.*)\})?\s+(\S+)(?:\s+(-?\d+(?:\.\d+)?))?\s*$"
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_MILLISECONDS = 1e11
"""A time above is in milliseconds: as seconds it would be after the year 5000."""


def labels_of(name: str | None, text: str | None) -> dict[str, str] | None:
    """The labels of a series, its name as ``__name__``; None where the text is none."""
    found = {} if name is None else {"__name__": name}
    at = 0
    text = (text or "").rstrip()
    while at < len(text):
        label = _LABEL.match(text, at)
        if label is None:
            return None
        found[label[1]] = _ESCAPE.sub(lambda m: {"n": "\n"}.get(m[1], m[1]), label[2])
        at = label.end()
    return found


def load(stream: BinaryIO, sink: Sink, scraped_us: int | None) -> None:
    """Read lines of metrics into ``gpu_readings``; a row of the ledger is a sample.

    Args:
        stream: the file.
        sink: takes the rows.
        scraped_us: when it was scraped, for lines without a time (microseconds since 1970); None: not known.

    Raises:
        InputError: nothing in it has a time.
    """
    samples = Samples(sink)
    known: dict[tuple[str | None, str | None], Series | str] = {}
    line = 1
    timeless = 0
    for data, more in whole_lines(stream, b"", LARGE_PIECE):
        whole, torn = (data, b"") if more else torn_off(data, stream)
        rows = _rows(whole, line)
        timeless += _take(rows, samples, sink, known, scraped_us)
        line += whole.count(b"\n")
        if torn:
            sink.seen()
            sink.reject(line, CUT_OFF, torn)
    samples.finish()
    if timeless and scraped_us is None:
        raise InputError(
            "no line has a time, and the file's name has none: an exporter's page does not say when it was read",
            hint="name the file with the time, e.g. gpu01.20261031T020700Z.prom, or ask Prometheus for the samples",
        )


def _rows(data: bytes, first: int) -> pl.DataFrame:
    import polars as pl

    if not data.strip():
        return pl.DataFrame(schema={"line": pl.Int64, "text": pl.String})
    text = data.replace(b"\x01", b" ").replace(b"\r\n", b"\n")
    lines = pl.read_csv(
        text, has_header=False, separator="\x01", quote_char=None, new_columns=["text"], schema={"text": pl.String},
        encoding="utf8-lossy",
    )  # fmt: skip
    return lines.with_row_index("line", first).filter(
        pl.col("text").is_not_null() & ~pl.col("text").str.starts_with("#")
    )


def _take(
    rows: pl.DataFrame, samples: Samples, sink: Sink, known: dict[tuple[str | None, str | None], Series | str],
    scraped_us: int | None,
) -> int:  # fmt: skip
    """Hand the samples on, series by series; return how many have no time."""
    import polars as pl

    if not rows.height:
        return 0
    parts = pl.col("text").str.extract_groups(LINE).struct.rename_fields(["name", "labels", "value", "stamp"])
    rows = rows.with_columns(parts.alias("parts")).unnest("parts")
    stamp = pl.col("stamp").cast(pl.Float64)
    ts = pl.when(stamp.abs() > _MILLISECONDS).then(stamp * 1e3).otherwise(stamp * 1e6).round().cast(pl.Int64)
    value = pl.col("value").str.strip_chars_start("+").cast(pl.Float64, strict=False)
    ts = ts if scraped_us is None else ts.fill_null(scraped_us)
    rows = rows.with_columns(ts.alias("ts"), value.alias("number"))
    timeless = rows["ts"].null_count()
    for (name, labels), of_one in rows.group_by(["name", "labels"], maintain_order=True):
        key = (None if name is None else str(name), None if labels is None else str(labels))
        first = of_one.row(0, named=True)
        series = known.get(key)
        if series is None:
            found = labels_of(*key) if first["value"] is not None else None
            series = "is no line of a metric" if not found else samples.series(found)
            known[key] = series
            if isinstance(series, str) and found:
                samples.refuse(series, of_one.height, first["line"], first["text"])
        if isinstance(series, Series):
            samples.add(series, of_one.select("ts", value="number"), first["line"])
        elif series == "is no line of a metric":
            for number, text in of_one.select("line", "text").iter_rows():
                sink.seen()
                sink.reject(number, series, text)
    return timeless
