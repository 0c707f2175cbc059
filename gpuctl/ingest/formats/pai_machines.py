"""``pai_machine_spec`` of Alibaba's trace of 2020: machines, the type and number of their GPUs. No header."""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.machines import MachineTable
from gpuctl.ingest.traces.table import Column

TABLE = MachineTable(
    what="PAI's table of machines",
    names=("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
    file="pai_machine_spec",
    first_cell=pai.SHORT,
    columns={
        "machine": Column("machine", needed=True),
        "gpu_type": Column("gpu_type"),
        "cap_cpu": Column("cpus", "number"),
        "cap_mem": Column("mem_mb", "number", scale=1024),
        "cap_gpu": Column("gpus_labelled", "whole", needed=True),
    },
)

FORMAT = Format(
    name="pai-machines",
    title="Alibaba PAI trace of 2020: machines (pai_machine_spec)",
    fills=("machines",),
    file_names=("pai_machine_spec.csv",),
    order=10,
    sniff=TABLE.sniff,
    load=TABLE.load,
    **pai.FORMAT,
)
