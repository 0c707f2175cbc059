"""The kernel's log of nodes: XIDs, the faults that NVIDIA's driver records (``journalctl -k``, ``/var/log/messages``).

``2026-10-31T10:29:05+0100 gpu04 kernel: NVRM: Xid (PCI:0000:90:00): 79, pid=4624, name=python, GPU has fallen off the
bus.`` A row of the ledger is a line; other lines of the kernel are counted as loaded. ``dmesg`` without times, and
seconds since the boot, are refused. https://docs.nvidia.com/deploy/xid-errors/
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any, BinaryIO
from zoneinfo import ZoneInfo

from gpuctl.core.line_reader import RowError, numbered_lines
from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.telemetry.recorder import Recorder, pci_of

_XID = re.compile(
    r"NVRM: Xid \(PCI:([0-9A-Fa-f:.]+)\): (\d{1,4}),?(?: pid='?([^,']*)'?,)?(?: name='?([^,']*)'?,)? ?(.*)"
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)(Z|[+-]\d\d:?\d\d)? (\S+) ")
_SHORT = re.compile(r"([A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d{1,6})? (\S+) ")
_BATCH = 10_000


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read XIDs into ``gpu_events``."""
    recorder, zone = Recorder(sink, node_clock=True), ZoneInfo(sink.timezone)
    events: list[dict[str, Any]] = []
    for line in numbered_lines(stream):
        if not line.data.strip():
            continue
        sink.seen()
        try:
            text = line.text()
            found = _XID.search(text)
            if found is not None:
                events.append(_event(found, text, zone))
        except RowError as bad:
            sink.reject(line.line_no, str(bad), line.data)
            continue
        sink.loaded()
        if len(events) >= _BATCH:
            recorder.event(events)
            events = []
    recorder.event(events)


def _event(found: re.Match[str], text: str, zone: ZoneInfo) -> dict[str, Any]:
    ts, host = _when(text, zone)
    return {
        "ts": ts, "machine": host, "pci_bus_id": pci_of(found[1]), "signal": "xid", "code": int(found[2]),
        "text": found[5][:200], "pid": found[3], "origin": "log",
    }  # fmt: skip


def _when(text: str, zone: ZoneInfo) -> tuple[int, str]:
    """Time (microseconds since 1970) and node of a line.

    Raises:
        RowError: it has none.
    """
    if text.startswith("{"):
        try:
            entry = json.loads(text)
            return int(entry["__REALTIME_TIMESTAMP"]), str(entry["_HOSTNAME"])
        except (ValueError, KeyError, TypeError) as error:
            raise RowError("no entry of journalctl -o json") from error
    if iso := _ISO.match(text):
        at = datetime.fromisoformat(iso[1].replace(",", ".") + (iso[2] or ""))
        return round((at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC).timestamp() * 1e6), iso[3]
    if _SHORT.match(text):
        raise RowError("a time without a year: record it with journalctl -k -o short-iso")
    raise RowError("no date: seconds since the boot, or none; record it with journalctl -k -o short-iso")


def sniff(name: str, head: bytes) -> str | None:
    """Recognise an XID, or lines of the kernel in a file that is named after it."""
    del name
    return "lines with NVRM: Xid" if b"NVRM: Xid (PCI:" in head else None


FORMAT = Format(
    name="gpu-kernel-log",
    title="Kernel log of nodes: XIDs of NVIDIA's driver",
    fills=("gpu_events",),
    file_names=("kernel.NODE.log", "messages"),
    order=46,
    sniff=sniff,
    load=load,
    verified="documentation",
)
