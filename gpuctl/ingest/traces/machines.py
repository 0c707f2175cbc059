"""Lists of the nodes of published traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from gpuctl.ingest.core.job_rows import replace_rows
from gpuctl.ingest.traces.jobs import LINE
from gpuctl.ingest.traces.table import Table

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink

DUPLICATE = "duplicate node: it is in the list already, with other values"
_COLUMNS = ("machine", "rack", "gpus_labelled", "gpu_type", "gpu_mem_mb", "cpus", "mem_mb", "partition")
_WHOLE = ("gpus_labelled", "cpus", "mem_mb", "gpu_mem_mb")


@dataclass(frozen=True)
class MachineTable(Table):
    """A table with one row per node."""

    def load(self, stream: BinaryIO, sink: Sink) -> None:
        """Read such a file into ``machines``; a node that is already listed with other values is rejected.

        Raises:
            InputError: the header lacks a column.
        """
        import polars as pl

        for rows, raw in self.rows(stream, sink):
            whole = [name for name in _WHOLE if name in rows.columns]
            rows = rows.with_columns(pl.col(name).round().cast(pl.Int64) for name in whole)  # noqa: PLW2901
            names = [name for name in _COLUMNS if name in rows.columns]
            new, same = _standing(sink, rows.select(names))
            sink.already_stored(int(same.sum()))
            lines = rows.filter(~(new | same))[LINE].to_list()
            for number, text in zip(lines, raw(lines), strict=True):
                sink.reject(number, DUPLICATE, text)
            fresh = rows.filter(new).select(names)
            # the store may have some without their sizes, because jobs ran there
            replace_rows(sink, "machines", fresh)
            sink.loaded(fresh.height)


def _standing(sink: Sink, rows: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
    """Which rows are of new nodes, and which repeat a row of the store or an earlier one."""
    import polars as pl

    names = ", ".join(f'"{name}"' for name in rows.columns)
    sql = f"SELECT {names} FROM machines WHERE cluster = $cluster AND gpus_labelled IS NOT NULL"  # noqa: S608
    stored = sink.query(sql, {"cluster": sink.cluster}).cast(dict(rows.schema))  # type: ignore[arg-type]
    new = rows["machine"].is_first_distinct() & ~rows["machine"].is_in(stored["machine"].implode())
    known = pl.concat([stored, rows.filter(new)]).with_columns(there=True)
    both = rows.join(known, on=rows.columns, how="left", nulls_equal=True, maintain_order="left")
    return new, both["there"].fill_null(value=False) & ~new
