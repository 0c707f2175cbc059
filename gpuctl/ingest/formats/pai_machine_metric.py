"""``pai_machine_metric`` of Alibaba's trace of 2020: what machines did while a worker ran on them, on average.

The public file has no header. They are averages over the lives of workers and no series. ``machine_gpu`` passes 100
and is kept as it is.
"""

from __future__ import annotations

from gpuctl.ingest.core.format import Format
from gpuctl.ingest.traces import pai
from gpuctl.ingest.traces.table import Column, RowTable

TABLE = RowTable(
    what="PAI's table of machine metrics",
    names=(
        *("worker_name", "machine", "start_time", "end_time", "machine_cpu_iowait", "machine_cpu_kernel"),
        *("machine_cpu_usr", "machine_gpu", "machine_load_1", "machine_net_receive", "machine_num_worker"),
        "machine_cpu",
    ),
    file="pai_machine_metric",
    first_cell=pai.LONG,
    columns={
        "worker_name": Column("worker"),
        "machine": Column("machine", needed=True),
        "start_time": Column("from_ts", "epoch", missing=pai.ZERO),
        "end_time": Column("to_ts", "epoch", missing=pai.ZERO),
        "machine_cpu": Column("cpu_pct", "real"),
        "machine_gpu": Column("gpu_pct", "real"),
        "machine_load_1": Column("load_1", "real"),
        "machine_net_receive": Column("net_receive", "real"),
        "machine_num_worker": Column("workers", "real"),
    },
    table="machine_averages",
    keep=("worker", "machine", "from_ts", "to_ts", "cpu_pct", "gpu_pct", "load_1", "net_receive", "workers"),
)

FORMAT = Format(
    name="pai-machine-metric",
    title="Alibaba PAI trace of 2020: averages of machines (pai_machine_metric)",
    fills=("machine_averages",),
    file_names=("pai_machine_metric.csv",),
    order=40,
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
    **pai.FORMAT,
)
