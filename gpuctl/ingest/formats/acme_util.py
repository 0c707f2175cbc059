"""Acme: utilization of GPUs and of nodes' CPUs (``GPU_UTIL.csv``, ``NODE_CPU_UTILIZATION.csv``; Hu et al., NSDI'24).

A row is an instant, one column per node (``10.140.1.10``) or one of its GPUs (``10.140.1.10-0``). CPU figures pass 100
and are stored unchanged; the other metrics are not read. Which job was on a node is unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import LINE, Delimited, header
from gpuctl.ingest.traces.cells import expected, typed

if TYPE_CHECKING:
    import polars as pl

_PLACE = re.compile(r"(\d{1,3}(?:\.\d{1,3}){3})(?:-(\d{1,2}))?", re.ASCII)
_READ = {"GPU_UTIL": True, "NODE_CPU_UTILIZATION": False}


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``gpu_samples`` or ``host_util``; a row of the ledger is an instant.

    Raises:
        InputError: the first line is not such a header.
    """
    table = Delimited(stream, ("Time",), "utilization of Acme")
    places = {name: found for name in table.columns if (found := _PLACE.fullmatch(name))}
    gpus: dict[str, dict[int, str]] = {}
    for name, found in places.items():
        if found[2] is not None:
            gpus.setdefault(found[1], {})[int(found[2])] = name
    hosts = [name for name, found in places.items() if found[2] is None]
    for piece in table.pieces():
        good = piece.without_faults(_rows(piece.rows, list(places), sink.timezone), sink)
        if good.height:
            _write(good, gpus, hosts, sink)
            sink.loaded(good.height)


def _rows(cells: pl.DataFrame, places: list[str], timezone: str) -> pl.DataFrame:
    import polars as pl

    times, bad_time = typed(cells["Time"], "time", timezone)
    read = {name: typed(cells[name], "number", timezone) for name in places}
    wrong = pl.any_horizontal([pl.lit(value=False), *(pl.lit(bad) for _, bad in read.values() if bad.any())])
    fault = (
        pl.when(pl.lit(bad_time | times.is_null())).then(pl.lit(f"Time is not {expected('time')}"))
        .when(wrong).then(pl.lit(f"a value is not {expected('number')}"))
    )  # fmt: skip
    made = pl.DataFrame([times.alias("ts"), cells[LINE].alias("line"), *(v.alias(n) for n, (v, _) in read.items())])
    return made.with_columns(fault=fault.otherwise(pl.lit(None, pl.String)))


def _write(rows: pl.DataFrame, gpus: dict[str, dict[int, str]], hosts: list[str], sink: Sink) -> None:
    import polars as pl

    for host, numbered in gpus.items():
        column = [pl.col(numbered[k]) if k in numbered else pl.lit(None) for k in range(max(numbered) + 1)]
        lists = pl.concat_list([c.cast(pl.Float32) for c in column])
        frame = rows.select("ts", machine=pl.lit(host), util=lists)
        sink.insert("gpu_samples", frame.filter(~frame["util"].list.drop_nulls().list.len().eq(0)))
    if hosts:
        tall = rows.unpivot(hosts, index="ts", variable_name="machine", value_name="cpu_pct").drop_nulls("cpu_pct")
        sink.insert("host_util", tall.with_columns(pl.col("cpu_pct").cast(pl.Float32)))


def _metric(name: str, head: bytes) -> tuple[str, bool] | None:
    """Return the metric in the name of a file and whether its columns are GPUs; None if it is not such a file."""
    found = header(first_line(head))
    places = [_PLACE.fullmatch(column) for column in found[1:]]
    if len(found) < 2 or found[0] != "Time" or not all(places):
        return None
    return name.split(".", 1)[0].upper(), all(place and place[2] is not None for place in places)


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the header, and the metric by the file's name."""
    found = _metric(name, head)
    fits = found is not None and any(metric in found[0] and gpus == found[1] for metric, gpus in _READ.items())
    return "header Time and addresses of nodes" if fits else None


def passes_over(name: str, head: bytes) -> str | None:
    """Recognise the metrics that are not read."""
    found = _metric(name, head)
    return f"Acme's metric {found[0]}: gpuctl reads {' and '.join(_READ)}" if found else None


FORMAT = Format(
    name="acme-util",
    title="Acme trace: utilization of GPUs and nodes (GPU_UTIL.csv, NODE_CPU_UTILIZATION.csv)",
    fills=("gpu_samples", "gpu_util", "host_util"),
    file_names=("GPU_UTIL.csv", "NODE_CPU_UTILIZATION.csv"),
    order=40,
    timezone="Asia/Shanghai",
    zoned=True,
    sniff=sniff,
    load=load,
    passes_over=passes_over,
    verified="sample",
)
