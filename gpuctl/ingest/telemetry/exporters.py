"""What exporters of GPU metrics call their metrics and labels: a new exporter is some rows here.

Sources: NVIDIA/dcgm-exporter etc/default-counters.csv and etc/1.x-compatibility-metrics.csv; DCGM 4.6 dcgm_fields.h
(the names in _RATIO, _WATTS); PrincetonUniversity/jobstats; guilbaults/slurm-job-exporter;
utkuozdemir/nvidia_gpu_exporter; ROCm/device-metrics-exporter; ceems-dev/ceems.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gpuctl.ingest.telemetry.health import SIGNALS
from gpuctl.ingest.telemetry.recorder import Device, Identity, pci_of, uuid_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1 / 2**20


class Metric(NamedTuple):
    """One metric of an exporter.

    Attributes:
        reader: the exporter.
        column: of ``gpu_readings``; ``xid`` (a gauge of the last XID), ``fault`` (`SIGNALS`), ``info`` (labels alone),
            ``occupancy``.
        scale: to the column's unit.
        kind: `Identity.util_kind`.
    """

    reader: str
    column: str
    scale: float = 1.0
    kind: str = "kernel"


_DCGM = {
    "util": ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization"),
    "mem_mb": ("DCGM_FI_DEV_FB_USED", "dcgm_fb_used"),
    "power_w": ("DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_BOARD_POWER_WATTS", "dcgm_power_usage"),
    "xid": ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors"),
}
METRICS: dict[str, Metric] = {
    **{name: Metric("dcgm", column) for column, names in _DCGM.items() for name in names},
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": Metric("dcgm", "energy_j", 1e-3),
    **{f"DCGM_FI_PROF_GR_ENGINE_{end}": Metric("dcgm", "util", 100, "engine") for end in ("ACTIVE", "UTIL_RATIO")},
    **{f"DCGM_FI_PROF_SM_{end}": Metric("dcgm", "sm_pct", 100) for end in ("ACTIVE", "UTIL_RATIO")},
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Metric("dcgm", "tensor_pct", 100),
    "DCGM_FI_PROF_TENSOR_UTIL_RATIO": Metric("dcgm", "tensor_pct", 100),
    **{name: Metric("dcgm" if name.startswith("DCGM") else "nvidia_gpu_exporter", "fault") for name in SIGNALS},
    "nvidia_gpu_duty_cycle": Metric("jobstats", "util"),
    "nvidia_gpu_graphics_util_percent": Metric("jobstats", "util", 100, "engine"),
    "nvidia_gpu_memory_used_bytes": Metric("jobstats", "mem_mb", MIB),
    "nvidia_gpu_jobId": Metric("jobstats", "info"),
    "nvidia_gpu_power_usage_milliwatts": Metric("jobstats", "power_w", 1e-3),
    "slurm_job_utilization_gpu": Metric("slurm-job-exporter", "util"),
    "slurm_job_memory_usage_gpu": Metric("slurm-job-exporter", "mem_mb", MIB),
    "slurm_job_power_gpu": Metric("slurm-job-exporter", "power_w", 1e-3),
    "slurm_job_tensor_gpu": Metric("slurm-job-exporter", "tensor_pct"),
    "slurm_job_sm_occupancy_gpu": Metric("slurm-job-exporter", "occupancy"),
    "nvidia_smi_utilization_gpu_ratio": Metric("nvidia_gpu_exporter", "util", 100),
    "nvidia_smi_memory_used_bytes": Metric("nvidia_gpu_exporter", "mem_mb", MIB),
    "nvidia_smi_power_draw_watts": Metric("nvidia_gpu_exporter", "power_w"),
    "nvidia_smi_gpu_info": Metric("nvidia_gpu_exporter", "info"),
    "nvidia_smi_index": Metric("nvidia_gpu_exporter", "info"),
    "ceems_compute_unit_gpu_index_flag": Metric("ceems", "info"),
    "gpu_gfx_activity": Metric("amd", "util"),
    "gpu_used_vram": Metric("amd", "mem_mb"),
    "gpu_package_power": Metric("amd", "power_w"),
    "gpu_average_package_power": Metric("amd", "power_w"),
    "gpu_energy_consumed": Metric("amd", "energy_j", 1e-6),
}
"""By name. Each stays within its reader: of two readers of one GPU and day only one counts."""
_JOB_LABELS = ("hpc_job", "slurmjobid", "jobid", "job_id")
"""Labels with the id of the batch job; ``job`` is Prometheus's own and names what it scrapes."""
_NAMED = re.compile(rb'"__name__"\s*:\s*"([^"\\]{1,200})"')
_MINOR = re.compile(r"nvidia(\d{1,4})", re.ASCII)


def metric_of(name: str | None) -> Metric | None:
    """The metric of a name; a site may put ``amd_`` before AMD's."""
    return None if name is None else METRICS.get(name) or METRICS.get(name.removeprefix("amd_"))


def gpu_metric(answer: bytes) -> str | None:
    """The first metric that an answer of Prometheus names, if it is one of GPUs."""
    found = _NAMED.search(answer)
    name = found[1].decode("utf-8", "replace") if found else None
    return name if metric_of(name) else None


def identity(metric: Metric, labels: Mapping[str, str]) -> Identity:
    """Whose a series is, by its labels."""
    gpu = whole(labels.get("gpu", labels.get("ordinal", labels.get("gpu_id", labels.get("index")))))
    uuid = uuid_of(labels.get("UUID") or labels.get("gpu_uuid") or labels.get("uuid"))
    instance = labels.get("GPU_I_ID") or None
    job = next((labels[name] for name in _JOB_LABELS if labels.get(name)), None) or _pod(labels)
    slot = None
    if metric.reader == "ceems":
        # its uuid is the job; index counts the instances of MIG, too
        uuid, instance, job = uuid_of(labels.get("gpuuuid")), labels.get("gpuiid") or None, labels.get("uuid") or None
        gpu = None if instance else gpu
    if metric.reader == "slurm-job-exporter":
        # numbers the GPUs of the job's own cgroup
        slot, gpu = labels.get("gpu"), None
    kind = metric.kind if metric.column == "util" else "occupancy" if metric.column == "occupancy" else "kernel"
    return Identity(metric.reader, host(labels), gpu, uuid, instance, job, slot, kind)


def device(labels: Mapping[str, str], found: Identity) -> Device | None:
    """The map of a GPU's names that the labels of a series state."""
    minor = _MINOR.fullmatch(labels.get("device", ""))
    number = whole(labels.get("minor_number")) if minor is None else int(minor[1])
    if found.gpu is None or (found.uuid is None and number is None):
        return None
    pci, model = pci_of(labels.get("pci_bus_id")), labels.get("modelName") or labels.get("name")
    profile = labels.get("GPU_I_PROFILE") or None
    return Device(found.machine, found.gpu, found.uuid, pci, number, found.instance, profile, model)


def unused(metric: Metric, labels: Mapping[str, str]) -> str | None:
    """Why a series of a known metric is no GPU's activity; None where it is."""
    if metric.reader == "amd" and labels.get("gpu_partition_id", "0") not in {"", "0"}:
        return "a partition of an AMD GPU other than the first: it has no activity of its own"
    return None


def host(labels: Mapping[str, str]) -> str | None:
    """The node that a series is of."""
    for name in ("Hostname", "hostname", "exported_instance", "instance"):
        if labels.get(name):
            return labels[name].partition(":")[0] if name.endswith("instance") else labels[name]
    return None


def whole(text: str | None) -> int | None:
    """A small whole number; None where it is none."""
    return int(text) if text and re.fullmatch(r"\d{1,4}", text, re.ASCII) else None


def _pod(labels: Mapping[str, str]) -> str | None:
    """The pod that holds the GPU, as namespace/pod; the exporter's own pod holds none."""
    first = {name: labels.get(f"exported_{name}") or labels.get(name) for name in ("pod", "namespace")}
    pod, space = first["pod"] or labels.get("pod_name"), first["namespace"] or labels.get("pod_namespace")
    return None if not pod or "dcgm-exporter" in pod else f"{space}/{pod}" if space else pod
