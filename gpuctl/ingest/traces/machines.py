"""Lists of machines of published traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.traces.jobs import LINE
from gpuctl.ingest.traces.table import Table

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Sink

DUPLICATE = "duplicate machine: it is in the list already"
_COLUMNS = ("machine", "rack", "gpus_labelled", "gpu_type", "gpu_mem_mb", "cpus", "mem_mb", "partition")


@dataclass(frozen=True)
class MachineTable(Table):
    """A table with one row a machine."""

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file into ``machines``; a machine that is in the list already is rejected.

        Raises:
            InputError: the header lacks a column.
        """
        import polars as pl

        sql = "SELECT machine FROM machines WHERE cluster = $cluster AND gpus_labelled IS NOT NULL"
        known = set(sink.query(sql, {"cluster": sink.cluster})["machine"])
        for rows, raw in self.rows(stream, sink):
            again = rows["machine"].is_in(sorted(known)) | ~rows["machine"].is_first_distinct()
            lines = rows.filter(again)[LINE].to_list()
            for number, text in zip(lines, raw(lines), strict=True):
                sink.reject(number, DUPLICATE, text)
            fresh = rows.filter(~again).select(name for name in _COLUMNS if name in rows.columns)
            if fresh.is_empty():
                continue
            names = fresh["machine"].to_list()
            known.update(names)
            # those that jobs were seen on before
            seen = "DELETE FROM machines WHERE cluster = $cluster AND machine IN (SELECT unnest($names::VARCHAR[]))"
            sink.execute(seen, {"cluster": sink.cluster, "names": names})
            whole = [name for name in ("gpus_labelled", "cpus", "mem_mb", "gpu_mem_mb") if name in fresh.columns]
            fresh = fresh.with_columns(pl.col(name).round().cast(pl.Int64) for name in whole)
            sink.insert("machines", fresh.with_columns(cluster=pl.lit(sink.cluster)))
            sink.loaded(fresh.height)
