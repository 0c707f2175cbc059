"""Trackable resources (TRES), the older generic resources (GRES) and memory sizes of Slurm."""

from __future__ import annotations

import re
from typing import NamedTuple

_UNKNOWN = 2**63
"""Slurm's NO_VAL64 and INFINITE64, and everything near them."""
_MOST_GPUS = 1e6
_MOST_MB = 2**30
"""More than a pebibyte: not a size but a number with a flag bit in it."""
_MIG = re.compile(r"(\d)g\.(\d+)gb", re.IGNORECASE)
_PARTS = re.compile(r"(?:gres[:/])?(?:shard|mps)(?::|=|$)")
"""Parts of GPUs that no count of GPUs can be made of."""
_NUMBER = re.compile(r"(\d+(?:\.\d*)?)([KMGTPE]?)", re.IGNORECASE | re.ASCII)
_GRES = re.compile(r"(?:gres[:/])?gpu(?::([^:=(,]+))??(?:[:=](\d+)([KM]?))?(?:\(.*\))?", re.IGNORECASE)
_MB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3, "E": 1024.0**4}
_TIMES = {"": 1, "K": 1000, "M": 1000_000}


class Tres(NamedTuple):
    """The resources in one TRES text; None if unstated.

    Attributes:
        gpus: GPUs; a MIG instance counts as one, as in Slurm's nodes, jobs and sreport. 0 if the text lists resources
            without a GPU; None if it is empty or has only shards or a percentage of MPS (their number per GPU is
            configured on the nodes).
        gpu_type: the type, several joined by commas in alphabetical order.
        shared: whether it contains MIG instances, shards or MPS.
        cpus: cores.
        nodes: nodes.
        mem_mb: MiB of memory over all nodes.
        billing: billing units, by the partition's TRESBillingWeights.
        gpus_by_type: ``a100=2,h100=4``: the GPUs of each type, a MIG instance as one of its own; in alphabetical order.
    """

    gpus: float | None = None
    gpu_type: str | None = None
    shared: bool = False
    cpus: int | None = None
    nodes: int | None = None
    mem_mb: int | None = None
    billing: float | None = None
    gpus_by_type: str | None = None


def tres(text: str) -> Tres:
    """Parse ``billing=8,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1``.

    Typed and untyped entries describe the same GPUs: any excess of the untyped number is GPUs without a type.
    """
    values: dict[str, float | None] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if equals:
            values[key.strip().lower()] = _number(value, memory=key == "mem")
    if not values:
        return Tres()
    typed = {key[9:]: count or 0.0 for key, count in values.items() if key.startswith("gres/gpu:")}
    parts = any(_PARTS.match(key) for key in values)
    unknown = any(values.get(key, 0) is None for key in values if key.startswith("gres/gpu"))
    gpus = None if unknown else _count(typed, values.get("gres/gpu"))
    if gpus == 0 and parts:
        gpus = None
    return Tres(
        gpus=gpus,
        gpu_type=",".join(sorted(typed)) or None,
        shared=parts or any(_MIG.search(name) for name in typed),
        cpus=_whole(values.get("cpu")),
        nodes=_whole(values.get("node")),
        mem_mb=_whole(values.get("mem")),
        billing=values.get("billing"),
        gpus_by_type=_by_type(typed),
    )


def gres(text: str) -> Tres:
    """Parse ``gpu:a100:4``, ``gres:gpu:4``, ``gpu:4(IDX:0-3)`` or ``gpu`` (one), separated by commas."""
    typed: dict[str, float] = {}
    plain = 0.0
    found = parts = False
    for part in re.split(r",(?![^(]*\))", text.strip()):
        match = _GRES.fullmatch(part.strip())
        if match is None:
            parts = parts or _PARTS.match(part.strip().lower()) is not None
            continue
        found = True
        count = float(match[2] or 1) * _TIMES[(match[3] or "").upper()]
        if match[1]:
            typed[match[1].lower()] = typed.get(match[1].lower(), 0.0) + count
        else:
            plain += count
    if not found and parts:
        return Tres(shared=True)
    if not found:
        return Tres(gpus=0.0 if text.strip() not in {"", "0", "(null)", "N/A"} else None)
    gpus = _count(typed, plain + sum(typed.values()))
    shared = parts or any(_MIG.search(name) for name in typed)
    return Tres(gpus=gpus, gpu_type=",".join(sorted(typed)) or None, shared=shared, gpus_by_type=_by_type(typed))


def req_mem(text: str) -> tuple[float | None, str]:
    """Parse ReqMem: ``16G`` for the whole job, before 21.08 ``4000Mc`` per core or ``31000Mn`` per node.

    Returns:
        (MiB or None, ``job`` | ``core`` | ``node``).
    """
    text = text.strip()
    size = _number(text.rstrip("cn"), memory=True)
    per = {"c": "core", "n": "node"}.get(text[-1:], "job")
    return (None if size is None or not 0 < size < _MOST_MB else size), per


def _number(text: str, *, memory: bool) -> float | None:
    match = _NUMBER.fullmatch(text.strip())
    if match is None or float(match[1]) >= _UNKNOWN:
        return None
    unit = match[2].upper()
    return float(match[1]) * (_MB[unit] if memory else 1000.0 ** "KMGTPE".index(unit) * 1000 if unit else 1)


def _by_type(typed: dict[str, float]) -> str | None:
    return ",".join(f"{name}={count:g}" for name, count in sorted(typed.items()) if count) or None


def _count(typed: dict[str, float], untyped: float | None) -> float | None:
    gpus = max(untyped or 0.0, sum(typed.values()))
    return gpus if gpus <= _MOST_GPUS else None


def _whole(value: float | None) -> int | None:
    return round(value) if value is not None and value < 2**31 else None
