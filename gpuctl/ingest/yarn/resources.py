"""Reads amounts of resources as YARN writes them in logs and in JSON."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

_TEXT = re.compile(
    r"<memory:(\d{1,15})(?:, max memory:\d+)?, vCores:(\d{1,9})(?:, max vCores:\d+)?((?:, [\w./-]+: ?\d+\w*)*)>"
    r"((?:, [\w./-]+: ?\d+\w*)*)",
    re.ASCII,
)
_EXTRA = re.compile(r", ([\w./-]+): ?(\d{1,15})", re.ASCII)
_SECONDS = re.compile(r"(\d{1,18}) ([\w./-]+)-seconds", re.ASCII)


_MOST = 2**30 - 1
_LONGEST_TEXT = 16_384
_NONE = frozenset({"", "null", "N/A", "n/a"})


class Resource(NamedTuple):
    """An amount of resources: memory in MiB, virtual cores, GPUs."""

    mem_mb: int
    cpus: int
    gpus: float


def is_gpu(name: str) -> bool:
    """Whether a resource type counts GPUs: ``yarn.io/gpu``, ``nvidia.com/gpu``, ``gpu``, ``GPUs``."""
    return name.lower().rpartition("/")[2] in {"gpu", "gpus"}


def read_resource(text: str, start: int = 0) -> tuple[Resource, int] | None:
    """Read ``<memory:49152, vCores:15, yarn.io/gpu: 1>``; types other than the first two are written only if not 0.

    Args:
        text: what holds it.
        start: where it begins in the text.

    Returns:
        the resource and where it ends; None if there is none at that place.
    """
    found = _TEXT.match(text, start)
    if found is None:
        return None
    resource = Resource(int(found[1]), int(found[2]), gpus_of_extras(found[3] + found[4]))
    return (resource, found.end()) if _can_be(resource) else None


def gpus_of_extras(text: str) -> float:
    """GPUs among ``, yarn.io/gpu: 1, yarn.io/fpga: 2``."""
    return float(sum(int(count) for name, count in _EXTRA.findall(text) if is_gpu(name)))


def gpu_seconds_of_text(text: str) -> float | None:
    """GPU-seconds of ``120884 MB-seconds, 87 vcore-seconds, 40 yarn.io/gpu-seconds``.

    0 if memory and cores are there and no GPUs; None if it is not such a text.
    """
    parts = {name: int(value) for value, name in _SECONDS.findall(text)}
    if not {"MB", "vcore"} <= parts.keys():
        return None
    return float(sum(value for name, value in parts.items() if is_gpu(name)))


def gpu_seconds_of_entries(value: object) -> float | None:
    """GPU-seconds of a ``resourceSecondsMap``: ``{"entry": [{"key": …, "value": …}, …]}``.

    Args:
        value: as `gpuctl.ingest.yarn.dumps.decode` returns it: repeated keys are gathered in a list.

    Returns:
        0 if memory and cores are there and no GPUs; None if the map is not whole (a reader that keeps only
        the last of the repeated keys has been at it).
    """
    parts: dict[str, float] = {}
    for entry in as_list(value.get("entry") if isinstance(value, dict) else value):
        if isinstance(entry, dict) and isinstance(entry.get("key"), str):
            number = number_of(entry.get("value"))
            if number is not None:
                parts[entry["key"]] = number
    gpus = [amount for name, amount in parts.items() if is_gpu(name)]
    if gpus:
        return float(sum(gpus))
    return 0.0 if {"memory-mb", "vcores"} <= parts.keys() else None


def resource_of_json(value: object) -> Resource | None:
    """Read a resource of a REST answer: ``{memory, vCores, GPUs?, resourceInformations?}``; None if it is none."""
    if not isinstance(value, dict):
        return None
    informations = value.get("resourceInformations")
    rows = as_list(informations.get("resourceInformation") if isinstance(informations, dict) else None)
    amounts = {
        r["name"]: number_of(r.get("value")) for r in rows if isinstance(r, dict) and isinstance(r.get("name"), str)
    }
    memory, cores = number_of(value.get("memory")), number_of(value.get("vCores"))
    memory = amounts.get("memory-mb") if memory is None else memory
    cores = amounts.get("vcores") if cores is None else cores
    if memory is None or cores is None:
        return None
    gpus = sum(amount or 0.0 for name, amount in amounts.items() if is_gpu(name))
    resource = Resource(int(memory), int(cores), gpus or number_of(value.get("GPUs")) or 0.0)
    return resource if _can_be(resource) else None


def _can_be(resource: Resource) -> bool:
    """Whether the store can hold an amount; more than a thousand million cores or GPUs are damage."""
    return abs(resource.cpus) <= _MOST and abs(resource.gpus) <= _MOST


def as_list(value: object) -> list[Any]:
    """Return a list as it is, nothing for None, and anything else as a list of one (single elements lose theirs)."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def number_of(value: object) -> float | None:
    """Return a number, or the number in a text of one; None for all else, for infinities and NaN."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < 1e18 else None


def text_of(value: object) -> str | None:
    """Return a text, cut at 16 384 characters; None for what is none and for YARN's ways to write none."""
    return value[:_LONGEST_TEXT] if isinstance(value, str) and value not in _NONE else None


def whole_of(value: object) -> int | None:
    """Return a whole number of at most 31 bits; None for all else."""
    number = number_of(value)
    return int(number) if number is not None and abs(number) < 2**31 and number == int(number) else None
