"""``nvidia-smi -q -x``: the map of index, UUID, PCI address and minor number of a node's GPUs.

The order of ``<gpu>`` is NVML's: the index is the position. The node is in the file's name. A row of the ledger is a
GPU. One snapshot is no series: its utilization is not stored.
"""

from __future__ import annotations

import re
from typing import BinaryIO
from xml.etree import ElementTree as ET

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.exporters import whole
from gpuctl.ingest.telemetry.node_names import origin_of
from gpuctl.ingest.telemetry.recorder import Device, Recorder, pci_of, uuid_of

_MOST = 16 << 20
_MIB = re.compile(r"(\d{1,9}) MiB", re.ASCII)


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read the devices.

    Raises:
        InputError: it is no XML, has entities, or nothing shows which node it is of.
    """
    data = stream.read(_MOST + 1)
    if len(data) > _MOST or b"<!ENTITY" in data:
        raise InputError(f"is no output of nvidia-smi -q -x: entities, or more than {_MOST >> 20} MiB")
    machine = origin_of(stream, sink).machine
    if machine is None:
        raise InputError(
            "nothing shows which node this is of", hint="name the file after the node: nvidia-smi-q.gpu01.xml"
        )
    try:
        gpus = ET.fromstring(data).findall("gpu")  # noqa: S314 - entities are refused above
    except ET.ParseError as error:
        raise InputError(f"cannot be read to its end as XML: {error}") from error
    recorder = Recorder(sink, node_clock=True)
    for index, gpu in enumerate(gpus):
        sink.seen()
        uuid, pci, minor = uuid_of(gpu.findtext("uuid")), pci_of(gpu.get("id")), whole(gpu.findtext("minor_number"))
        model, mem = gpu.findtext("product_name"), _mib(gpu.findtext("fb_memory_usage/total"))
        parts = gpu.findall("mig_devices/mig_device")
        for part in parts:
            instance, size = part.findtext("gpu_instance_id"), _mib(part.findtext("fb_memory_usage/total"))
            recorder.device(Device(machine, index, uuid, pci, minor, instance, None, model, size))
        if not parts:
            recorder.device(Device(machine, index, uuid, pci, minor, None, None, model, mem))
        sink.loaded()
    recorder.finish()


def _mib(text: str | None) -> float | None:
    found = _MIB.fullmatch((text or "").strip())
    return float(found[1]) if found else None


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the element."""
    del name
    return "element nvidia_smi_log" if b"<nvidia_smi_log>" in head[:2000] else None


FORMAT = Format(
    name="gpu-nvidia-smi-xml",
    title="nvidia-smi -q -x: index, UUID, PCI address and minor number of GPUs",
    fills=("gpu_devices",),
    file_names=("nvidia-smi-q.NODE.xml",),
    order=44,
    clock="wall",
    sniff=sniff,
    load=load,
    verified="documentation",
)
