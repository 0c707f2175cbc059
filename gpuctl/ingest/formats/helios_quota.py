"""Helios: GPUs of each virtual cluster, day by day (``cluster_gpu_number.csv``; Hu et al., SC'21).

A row of the ledger is a day: one column per virtual cluster, and their ``total``, which is not read. Quotas change: the
history goes into ``quota_history``, the quotas of the last day into ``queues``. Clusters of Helios share names of
virtual clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.core.job_rows import replace_rows
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import LINE, Delimited, header
from gpuctl.ingest.traces.cells import typed

if TYPE_CHECKING:
    import polars as pl

_NO_DAY = "date is not a day: expected YYYY-MM-DD"
_NO_COUNT = "a number of GPUs is not a whole number, 0 or more"
_TWICE = "a day that appears twice"


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``quota_history`` and ``queues``.

    Raises:
        InputError: the first line is not such a header.
    """
    import polars as pl

    table = Delimited(stream, ("date", "total"), "a Helios quota file")
    queues = [name for name in table.columns if name not in {"date", "total"}]
    days: list[pl.DataFrame] = []
    for piece in table.pieces():
        rows = _rows(piece.rows, queues, sink.timezone)
        rows = rows.with_columns(
            fault=pl.when(~pl.col("day").is_first_distinct()).then(pl.lit(_TWICE)).otherwise("fault")
        )
        days.append(piece.without_faults(rows, sink))
        sink.loaded(days[-1].height)
    _write(pl.concat(days), queues, sink)


def _rows(cells: pl.DataFrame, queues: list[str], timezone: str) -> pl.DataFrame:
    import polars as pl

    day, bad_day = typed(cells["date"] + " 00:00:00", "time", timezone)
    counts = {name: typed(cells[name], "whole", timezone) for name in queues}
    numbers = pl.DataFrame([values.alias(name) for name, (values, _) in counts.items()])
    wrong = pl.any_horizontal([pl.lit(bad) | pl.lit(values.is_null()) for values, bad in counts.values()])
    fault = (
        pl.when(pl.lit(bad_day) | pl.col("day").is_null()).then(pl.lit(_NO_DAY))
        .when(wrong).then(pl.lit(_NO_COUNT))
    )  # fmt: skip
    return numbers.with_columns(day.alias("day"), line=cells[LINE]).with_columns(fault=fault)


def _write(days: pl.DataFrame, queues: list[str], sink: Sink) -> None:
    import polars as pl

    if days.is_empty():
        return
    days = days.sort("day")
    last = pl.DataFrame({"queue": queues, "quota_gpus": [float(days[name][-1]) for name in queues]})
    replace_rows(sink, "queues", last.with_columns(quota_source=pl.lit("configured")))
    local = pl.col("day").dt.convert_time_zone(sink.timezone).dt.offset_by("1d").dt.convert_time_zone("UTC")
    tall = days.with_columns(to_ts=local).unpivot(
        queues, index=["day", "to_ts"], variable_name="queue", value_name="gpus"
    )
    sink.insert("quota_history", tall.rename({"day": "from_ts"}).with_columns(pl.col("gpus").cast(pl.Float64)))


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header: a date, names of virtual clusters, the total."""
    del name
    found = header(first_line(head))
    fits = len(found) > 2 and found[0] == "date" and found[-1] == "total"
    return "header date, virtual clusters, total" if fits and all(n.startswith("vc") for n in found[1:-1]) else None


FORMAT = Format(
    name="helios-quota",
    title="Helios trace: GPUs of the virtual clusters by day (cluster_gpu_number.csv)",
    fills=("quota_history", "queues"),
    file_names=("cluster_gpu_number.csv",),
    order=15,
    timezone="Asia/Shanghai",
    clock="wall",
    sniff=sniff,
    load=load,
)
