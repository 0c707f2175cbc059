"""Merges YARN's properties of nodes into the table ``machines``, independent of the order of the sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.ingest.core.format import Sink


@dataclass
class Machine:
    """Properties of one node; of several numbers the greatest counts, of several names the first by alphabet.

    Attributes:
        gpus: GPUs that its NodeManager offers.
        cpus: virtual cores that it offers.
        mem_mb: memory that it offers, MiB.
        rack: rack, as the ResourceManager's topology script states.
        partition: node label.
    """

    gpus: int | None = None
    cpus: int | None = None
    mem_mb: int | None = None
    rack: str | None = None
    partition: str | None = None

    def offers(self, mem_mb: int, cpus: int, gpus: float) -> None:
        """Merge the node's total resources."""
        self.gpus = max(self.gpus or 0, int(gpus))
        self.cpus = max(self.cpus or 0, cpus)
        self.mem_mb = max(self.mem_mb or 0, mem_mb)


def add_machines(sink: Sink, machines: Mapping[str, Machine]) -> None:
    """Add the nodes that the store does not have, and complete those that it has."""
    import polars as pl

    if not machines:
        return
    names = sorted(machines)
    columns = {
        "machine": pl.Series(names, dtype=pl.String),
        "gpus_labelled": pl.Series([machines[n].gpus for n in names], dtype=pl.Int32),
        "cpus": pl.Series([machines[n].cpus for n in names], dtype=pl.Int32),
        "mem_mb": pl.Series([machines[n].mem_mb for n in names], dtype=pl.Int64),
        "rack": pl.Series([machines[n].rack for n in names], dtype=pl.String),
        "partition": pl.Series([machines[n].partition for n in names], dtype=pl.String),
    }
    sql = "SELECT machine FROM machines WHERE cluster = $cluster"
    known = set(sink.query(sql, {"cluster": sink.cluster})["machine"])
    if not known.isdisjoint(names):
        sink.execute(
            """
            UPDATE machines SET gpus_labelled = greatest(machines.gpus_labelled, stated.gpus),
                                cpus = greatest(machines.cpus, stated.cpus),
                                mem_mb = greatest(machines.mem_mb, stated.mem_mb),
                                rack = least(machines.rack, stated.rack),
                                partition = least(machines.partition, stated.partition)
            FROM (SELECT unnest($machine::VARCHAR[]) AS machine, unnest($gpus_labelled::INTEGER[]) AS gpus,
                         unnest($cpus::INTEGER[]) AS cpus, unnest($mem_mb::BIGINT[]) AS mem_mb,
                         unnest($rack::VARCHAR[]) AS rack, unnest($partition::VARCHAR[]) AS partition) AS stated
            WHERE machines.cluster = $cluster AND machines.machine = stated.machine
            """,
            {"cluster": sink.cluster, **{name: cells.to_list() for name, cells in columns.items()}},
        )
    fresh = pl.DataFrame(columns).filter(~pl.col("machine").is_in(sorted(known)))
    if fresh.height:
        sink.insert("machines", fresh)
