"""Requests to LLM services as Mooncake and Qwen-Bailian publish them: one JSON object per line.

``timestamp`` counts milliseconds from a start of the trace's own (Mooncake); seconds if there is a ``chat_id``
(Qwen-Bailian). Most of Mooncake's stamps are multiples of 3 s: between those its clock shows no arrivals.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from gpuctl.ingest.core.format import Format, Sink
from gpuctl.ingest.traces.requests import count, load_json_lines

_KEYS = frozenset({"timestamp", "input_length", "output_length"})


def read(found: dict[str, Any]) -> tuple[float, int, int]:
    """Seconds, tokens in and out of one request.

    Raises:
        RowError: one of them is not a number.
    """
    stamp = count(found, "timestamp")
    scale = 1.0 if "chat_id" in found else 0.001
    return stamp * scale, int(count(found, "input_length")), int(count(found, "output_length"))


def load(stream: BinaryIO, sink: Sink) -> None:
    """Read ``service_load``."""
    load_json_lines(stream, sink, read, "mooncake")


def sniff(name: str, head: bytes) -> str | None:
    """Recognise the keys of the first object."""
    del name
    first = head.split(b"\n", 1)[0].strip()
    if not first.startswith(b"{") or not all(f'"{key}"'.encode() in first for key in _KEYS):
        return None
    # a long list of hashes may go on past what is looked at
    whole = first if first.endswith(b"}") else first.partition(b'"hash_ids"')[0].rstrip(b", ") + b"}"
    try:
        found = json.loads(whole)
    except (ValueError, RecursionError):
        return None
    return "JSON lines with timestamp, input_length, output_length" if found.keys() >= _KEYS else None


FORMAT = Format(
    name="llm-mooncake",
    title="Mooncake, Qwen-Bailian: requests to LLM services (JSON lines)",
    fills=("service_load",),
    file_names=("conversation_trace.jsonl",),
    order=30,
    zoned=True,
    sniff=sniff,
    load=load,
    epoch="relative",
    verified="sample",
)
