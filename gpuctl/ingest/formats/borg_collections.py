"""Google's Borg trace of 2019: events of jobs (``collection_events``, trace format v3, as BigQuery exports it to CSV).

A row is an event; jobs are made of the events of all files of a cell, once these are there. Microseconds count from a
start of the trace's own; 0 is before it, 2**63 - 1 after it, and neither is a time. Alloc sets are reservations and no
jobs: their rows are rejected. There are no GPUs. Requests stand in the table of instances, in units of the largest
machine; of that and of the machines nothing is read, and sizes are not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.read.csv_header import first_line
from gpuctl.ingest.read.delimited import header
from gpuctl.ingest.traces import borg
from gpuctl.ingest.traces.table import Column, RowTable

if TYPE_CHECKING:
    import polars as pl

_NO_TIME = ("0", "9223372036854775807")
_SIDE_TABLES = {
    "events of instances": {"collection_id", "instance_index", "machine_id", "type"},
    "events of machines": {"machine_id", "switch_id", "platform_id", "type"},
    "use of resources": {"collection_id", "instance_index", "start_time", "end_time"},
}


def _named() -> dict[str, pl.Expr]:
    import polars as pl

    return {"name": pl.coalesce("logical", "own_name")}


def _alloc_sets() -> dict[str, pl.Expr]:
    import polars as pl

    return {
        "an alloc set, a reservation and no job": pl.col("collection").is_in(["1", "ALLOC_SET"]).fill_null(value=False),
        "type is no event of a collection": ~pl.col("source_state").str.to_uppercase().is_in(borg.EVENTS),
    }


TABLE = RowTable(
    what="the events of collections of Google's trace of 2019",
    columns={
        "time": Column("start_ts", "epoch", scale=1e-6, missing=_NO_TIME),
        "type": Column("source_state", needed=True),
        "collection_id": Column("job", needed=True),
        "collection_type": Column("collection"),
        "priority": Column("task"),
        "user": Column("user"),
        "collection_name": Column("own_name"),
        "collection_logical_name": Column("logical"),
        "scheduler": Column("group"),
    },
    open_ended=True,
    derive=_named,
    faults=_alloc_sets,
    table="trace_parts",
    keep=("job", "user", "name", "task", "group", "source_state", "start_ts"),
    always={"kind": borg.KIND},
)


def passes_over(name: str, head: bytes) -> str | None:
    """What the other tables of the trace are."""
    del name
    there = set(header(first_line(head), ","))
    what = next((what for what, names in _SIDE_TABLES.items() if names <= there), None)
    return f"{what} of Google's Borg trace, of which nothing is read" if what else None


FORMAT = Format(
    name="borg-collections",
    title="Google's Borg trace of 2019: events of jobs (collection_events*.csv)",
    fills=("trace_parts", "jobs", "attempts"),
    file_names=("collection_events-000000000000.csv",),
    order=20,
    timezone="America/Los_Angeles",
    zoned=True,
    sniff=TABLE.sniff,
    load=TABLE.load,
    passes_over=passes_over,
    conclude=borg.conclude,
    epoch="relative",
    verified="documentation",
)
