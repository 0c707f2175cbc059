"""The attributes of one accounting record of PBS Pro, OpenPBS or Torque: sizes, nodes, exit statuses.

Names and meanings are those of OpenPBS (``src/include/job.h``, ``src/server/accounting.c``) and of Torque's
administrator guide. The two give different meanings to the same negative exit statuses.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.core.local_time import LATEST_S
from gpuctl.core.states import State
from gpuctl.ingest.core.ranges import LARGEST

_PAIR = re.compile(r'(?<!\S)([A-Za-z_][\w.]*)=("[^"]*"|\S*)', re.ASCII)
_WHOLE = re.compile(r"\d{1,15}", re.ASCII)
_COUNT = re.compile(r"\d{1,9}", re.ASCII)
_STATUS = re.compile(r"-?\d{1,9}", re.ASCII)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kmgtp]?)([bw]?)", re.ASCII | re.IGNORECASE)
_PRO = frozenset({"run_count", "exec_vnode", "project", "Resource_List.select", "Resource_List.place"})
"""Attributes that PBS Pro writes and Torque does not."""
_PRO_STATES = {
    **dict.fromkeys((-28, -29), State.TIMEOUT),
    **dict.fromkeys((-26, -27), State.OUT_OF_MEMORY),
    **dict.fromkeys((-3, -11, -12, -14, -15, -16, -17, -18, -19, -24, -25), State.KILLED),
    -20: State.NODE_FAIL,
}
_TORQUE_STATES = {
    **dict.fromkeys((-11, -12), State.TIMEOUT),
    **dict.fromkeys((-3, -13, -14), State.KILLED),
    -10: State.OUT_OF_MEMORY,
}
_KILLS = frozenset({9, 15})
_GPUS = ("ngpus", "naccelerators", "gpus", "gpu")


class Size(NamedTuple):
    """The size of a job: its GPUs and their nodes.

    Attributes:
        gpus: None if the record states no resources.
        cpus: None if it states none.
        nodes: None if it states none.
        placed: GPUs on each node.
        estimated: whether those are an even share of the job's GPUs.
    """

    gpus: float | None
    cpus: int | None
    nodes: int | None
    placed: dict[str, float]
    estimated: bool


def attributes(text: str) -> dict[str, str]:
    """Return the attributes of a record by name, without the quotes around values."""
    return {name: value.strip('"') for name, value in _PAIR.findall(text)}


def seconds(found: dict[str, str], *names: str) -> int | None:
    """Return the first of these times; None if none is there or it is 0.

    Raises:
        RowError: it is not a number of seconds from 1970.
    """
    name = next((name for name in names if name in found), None)
    if name is None:
        return None
    if not _WHOLE.fullmatch(found[name]) or int(found[name]) > LATEST_S:
        raise RowError(f"{names[0]} is not in seconds from 1970")
    return int(found[name]) or None


def memory_mb(text: str) -> int | None:
    """Return the MiB of ``64gb``, ``1024kb`` or ``12.27M``; a number alone counts bytes, ``w`` words of 8 bytes."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    size = float(match[1]) * 1024 ** " kmgtp".index(match[2].lower() or " ") * (8 if match[3] in {"w", "W"} else 1)
    return round(size / 2**20) if size < 2**62 else None


def memory(found: dict[str, str]) -> int | None:
    """Return the MiB that a job requested in all."""
    whole = memory_mb(found.get("Resource_List.mem", ""))
    if whole is not None:
        return whole
    parts = [memory_mb(traits["mem"]) for _, traits in _chunks(found.get("exec_vnode", "")) if "mem" in traits]
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def size(found: dict[str, str]) -> Size:
    """Return the GPUs, CPUs and nodes of a job: those allocated if the record has them, else those requested."""
    chunks = _chunks(found.get("exec_vnode", ""))
    slots = _slots(found.get("exec_host", ""))
    exact: dict[str, float] = {}
    for host, traits in chunks:
        exact[host] = exact.get(host, 0.0) + _gpus_of(traits)
    exact = exact if any(exact.values()) else _exec_gpus(found.get("exec_gpus", ""))
    hosts = list(dict.fromkeys(host for host, _ in chunks)) or list(slots)
    unique = _count(found, "unique_node_count")
    if unique is not None and unique != len(hosts):
        hosts = []
    nodes = unique if unique is not None else len(hosts) or _leading(found.get("Resource_List.nodect", ""))
    requests = _requests(found)
    cpus = (
        sum(_number(traits, "ncpus") for _, traits in chunks)
        or _count(found, "total_execution_slots")
        or sum(slots.values())
        or sum(each * _number(traits, "ppn") for each, traits in requests)
        or _count(found, "Resource_List.ncpus")
    )
    if exact:
        return Size(sum(exact.values()), _small(cpus), nodes, exact, estimated=False)
    gpus = _requested_gpus(found, requests)
    share = (gpus or 0.0) / len(hosts) if hosts else 0.0
    even = len({_gpus_of(traits) for _, traits in requests}) == 1 and sum(n for n, _ in requests) == len(hosts)
    estimated = bool(gpus) and len(hosts) > 1 and not even
    return Size(gpus, _small(cpus), nodes, dict.fromkeys(hosts, share), estimated=estimated)


def _small(number: int | None) -> int | None:
    return number if number and number <= LARGEST else None


def _count(found: dict[str, str], name: str) -> int | None:
    text = found.get(name, "")
    return int(text) if _COUNT.fullmatch(text) else None


def _leading(text: str) -> int | None:
    """``1:ppn=24:gpu=4``: the number of nodes before what each has."""
    head = text.partition(":")[0]
    return int(head) if _COUNT.fullmatch(head) else None


def _number(traits: dict[str, str], name: str) -> int:
    return int(traits[name]) if _COUNT.fullmatch(traits.get(name, "")) else 0


def _gpus_of(traits: dict[str, str]) -> float:
    return float(next((n for n in (_number(traits, name) for name in _GPUS) if n), 0) or ("xk" in traits))


def _traits(parts: list[str]) -> dict[str, str]:
    # a property may have the name of a resource: 1:gpu=4:gpu
    split = sorted((part.partition("=") for part in parts), key=lambda part: bool(part[1]))
    return {name: value for name, _, value in split}


def _chunks(text: str) -> list[tuple[str, dict[str, str]]]:
    """``(n1:ncpus=8:ngpus=4)+(n2[0]:ncpus=8+n2[1]:ncpus=8)``: the node of each virtual node, and what is taken."""
    found = []
    for part in text.replace("(", "").replace(")", "").split("+"):
        name, *traits = part.split(":")
        host = re.sub(r"(?<=.)\[\d{1,9}\]$", "", name)
        if host:
            found.append((host, _traits(traits)))
    return found


def _slots(text: str) -> dict[str, int]:
    """Count the CPUs of each node of ``n1/0*8``, ``n1/0-7``, ``n1/0,2`` or ``n1/0+n1/1``."""
    found: dict[str, int] = {}
    for part in text.split("+"):
        host, _, cores = part.partition("/")
        if host:
            found[host] = found.get(host, 0) + sum(map(_cores, cores.split(",")))
    return found


def _cores(text: str) -> int:
    times = re.fullmatch(r"\d{1,9}\*(\d{1,9})", text, re.ASCII)
    if times:
        return int(times[1])
    span = re.fullmatch(r"(\d{1,9})-(\d{1,9})", text, re.ASCII)
    return max(0, int(span[2]) - int(span[1]) + 1) if span else 1


def _exec_gpus(text: str) -> dict[str, float]:
    """``n1-gpu/0+n1-gpu/1``: Torque's GPUs of each node."""
    found: dict[str, float] = {}
    for part in filter(None, text.split("+")):
        host = part.partition("/")[0].removesuffix("-gpu")
        found[host] = found.get(host, 0.0) + 1.0
    return found


def _requests(found: dict[str, str]) -> list[tuple[int, dict[str, str]]]:
    """Return the parts of a request: how many, and what each has."""
    texts = [found.get(f"Resource_List.{name}", "") for name in ("select", "neednodes", "nodes", "nodect")]
    all_parts = [[_request(part) for part in text.split("+")] for text in texts if text]
    with_gpus = (parts for parts in all_parts if any(n and _gpus_of(traits) for n, traits in parts))
    return next(with_gpus, all_parts[0] if all_parts else [])


def _request(text: str) -> tuple[int, dict[str, str]]:
    # 2:ppn=16:gpus=4: the number of such nodes, or the name of one
    count, *traits = text.split(":")
    if "=" in count:
        return 1, _traits([count, *traits])
    return int(count) if _COUNT.fullmatch(count) else 1, _traits(traits)


def _requested_gpus(found: dict[str, str], requests: list[tuple[int, dict[str, str]]]) -> float | None:
    whole = next((n for n in (_count(found, f"Resource_List.{name}") for name in _GPUS) if n), None)
    if whole is not None:
        return float(whole)
    if not any(name.startswith("Resource_List.") for name in found) and "exec_vnode" not in found:
        return None
    return sum(count * _gpus_of(traits) for count, traits in requests) + 0.0


def ending(found: dict[str, str], *, over: bool) -> tuple[State, int | None, int | None]:
    """Return the state, exit code and signal of a run that ended.

    Args:
        found: attributes of the record of its end.
        over: whether it ran for as long as its limit allows.
    """
    text = found.get("Exit_status", "")
    if not _STATUS.fullmatch(text):
        return State.UNKNOWN, None, None
    code = int(text)
    if code < 0:
        states = _TORQUE_STATES if _PRO.isdisjoint(found) else _PRO_STATES
        return states.get(code, State.FAILED), None, None
    if code > 256:
        signal = code - 256
        killed = State.TIMEOUT if over else State.KILLED
        return (killed if signal in _KILLS else State.FAILED), None, signal
    return (State.FAILED if code else State.COMPLETED), code, None
