"""Lucid: Helios's jobs with a job name and a measured model (``cluster_full_log.csv``; Hu et al., ASPLOS'23).

The job log of Helios with further columns: ``jobname``, and what a model of its size measured. Times as there.
"""

from __future__ import annotations

from dataclasses import replace

from gpuctl.ingest.formats import helios_jobs
from gpuctl.ingest.traces.table import Column

_MEASURED = frozenset({"dataset", "batchsize", "amp", "speed", "gpu_util", "gmem_util", "gmem"})

TABLE = replace(
    helios_jobs.TABLE,
    what="a job log of Lucid",
    columns={**helios_jobs.TABLE.columns, "jobname": Column("name")},
    optional={"": Column("row"), "model": Column("model")},
    passed=_MEASURED,
)

FORMAT = replace(
    helios_jobs.FORMAT,
    name="helios-lucid",
    title="Lucid: jobs of Helios with their names (cluster_full_log.csv)",
    file_names=("cluster_full_log.csv",),
    sniff=TABLE.sniff,
    load=TABLE.load,
    verified="documentation",
)
