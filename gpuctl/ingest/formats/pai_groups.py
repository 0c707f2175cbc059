"""``pai_group_tag_table`` of Alibaba's trace of 2020: the group of recurring jobs that an instance is of, its workload.

The public file has no header. The group becomes the account of a job, the workload its name.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, RowTable

TABLE = RowTable(
    what="PAI's table of groups",
    names=("inst_id", "user", "gpu_type_spec", "group", "workload"),
    file="pai_group_tag_table",
    first_cell=pai.LONG,
    columns={
        "inst_id": Column("instance", needed=True),
        "user": Column("user"),
        "gpu_type_spec": Column("gpu_type"),
        "group": Column("group"),
        "workload": Column("name"),
    },
    table="trace_parts",
    keep=("instance", "user", "gpu_type", "group", "name"),
    always={"kind": "group"},
)

FORMAT = Format(
    name="pai-groups",
    title="Alibaba PAI trace of 2020: groups of jobs (pai_group_tag_table)",
    fills=("trace_parts", "jobs", "attempts", "placements"),
    file_names=("pai_group_tag_table.csv",),
    order=20,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
    **pai.FORMAT,
)
