"""Events of GPUs, without duplicates, and the attempts that they hit."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.analyze.gpu_usage.holds import Holds
    from gpuctl.analyze.gpu_usage.lost import Lost
    from gpuctl.store.database import Store

BURST_US = 60_000_000
"""Lines of one GPU, XID and process that follow one another within this time are one event (XID 45: one a channel)."""
BEFORE_US = 60_000_000
AFTER_US = 600_000_000
"""An event is of the attempt that holds the GPU, else of one that starts or ended within these times."""
_EVENTS = """
    SELECT epoch_us(ts) AS us, epoch_us(since_ts) AS since_us, machine, gpu, uuid, pci_bus_id, instance, signal, code,
           text, pid, origin, source
    FROM gpu_events WHERE cluster = $cluster ORDER BY origin <> 'log', us, source
"""
_KINDS: dict[str, Any] = {
    "ts": pl.Datetime("us", "UTC"), "machine": pl.String, "gpu": pl.Int32, "instance": pl.String, "signal": pl.String,
    "code": pl.Int32, "text": pl.String, "origin": pl.String, "jobs": pl.List(pl.String),
    "attempts": pl.List(pl.Int32), "source": pl.Int32,
}  # fmt: skip


def found(store: Store, cluster: str, holds: Holds, lost: Sequence[Lost]) -> pl.DataFrame:
    """Return the rows of ``gpu_faults``.

    The kernel's log has every XID; a gauge of the last one, and counters, add only what it lacks.

    Args:
        store: open.
        cluster: its name there.
        holds: who held which GPUs.
        lost: GPUs whose samples ended while those of their nodes went on.
    """
    by_node = _by_node(holds)
    last: dict[tuple[Any, ...], int] = {}
    logged: dict[tuple[Any, ...], dict[str, list[int]]] = defaultdict(dict)
    rows = []
    for event in store.execute(_EVENTS, {"cluster": cluster}).fetchall():
        us, since, machine, gpu, uuid, pci, instance, signal, code, text, pid, origin, source = event
        machine, gpu = _place(holds, machine, gpu, uuid, pci)
        what = machine, gpu, instance, signal, code
        if origin == "log":
            burst = (*what, pid)
            seen, last[burst] = last.get(burst), us
            if seen is not None and us - seen <= BURST_US:
                continue
        elif _seen(logged[what], origin, (since or us) - BURST_US, us + BURST_US):
            continue
        # of each origin events come in the order of their times
        logged[what].setdefault(origin, []).append(us)
        hit = _hit(holds, by_node.get(machine or ""), gpu, since or us, us)
        jobs = [holds.attempts[at].job for at in hit]
        attempts = [holds.attempts[at].attempt for at in hit]
        rows.append((us, machine, gpu, instance, signal, code, text, origin, jobs, attempts, source))
    for machine, gpu, end, until in lost:
        us = round(end * 1e6)
        hit = _hit(holds, by_node.get(machine), gpu, us, us)
        jobs, attempts = [holds.attempts[at].job for at in hit], [holds.attempts[at].attempt for at in hit]
        text = f"no samples for {(until - end) / 3600:.1f} h, while the node's other GPUs had them"
        rows.append((us, machine, gpu, None, "lost", None, text, "gap", jobs, attempts, 0))
    return pl.DataFrame(rows, schema=_KINDS, orient="row")


def _seen(logged: dict[str, list[int]], origin: str, begin: int, end: int) -> bool:
    """Whether another origin has the event, too: `logged` has ascending times by origin."""
    for by, times in logged.items():
        at = bisect_left(times, begin)
        if by != origin and at < len(times) and times[at] <= end:
            return True
    return False


def _place(
    holds: Holds, machine: str | None, gpu: int | None, uuid: str | None, pci: str | None
) -> tuple[str | None, int | None]:
    """Return node and NVML index of an event, from any of its names."""
    mapped = holds.inventory.by_uuid.get(uuid.upper()) if uuid else None
    machine = machine or (mapped[0] if mapped else None)
    if gpu is None and mapped is not None:
        gpu = mapped[1]
    if gpu is None and machine and pci:
        gpu = holds.inventory.by_pci.get((machine, pci))
    return machine, gpu


class _OnNode(NamedTuple):
    """The holdings of a node, by begin: positions in `Holds.on_nodes`, when an event may concern them (microseconds).

    ``latest``: the last end of each and of all before it.
    """

    at: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    latest: NDArray[np.int64]


def _by_node(holds: Holds) -> dict[str, _OnNode]:
    rows: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for at, hold in enumerate(holds.on_nodes):
        attempt = holds.attempts[hold.attempt]
        end = np.iinfo(np.int64).max if attempt.end is None else attempt.end + AFTER_US
        rows[hold.machine].append((at, attempt.start - BEFORE_US, end))
    found = {}
    for machine, some in rows.items():
        at, begin, end = np.array(some, np.int64).T
        order = np.argsort(begin, kind="stable")
        found[machine] = _OnNode(at[order], begin[order], end[order], np.maximum.accumulate(end[order]))
    return found


def _hit(holds: Holds, of_node: _OnNode | None, gpu: int | None, since: int, us: int) -> list[int]:
    """Return the attempts that an event hit; all that may have held the GPU if their GPUs are unknown."""
    if of_node is None:
        return []
    sure: list[int] = []
    near: list[tuple[int, int]] = []
    first = min(since, us)
    near_it = slice(np.searchsorted(of_node.latest, first), np.searchsorted(of_node.begin, us, "right"))
    for at in of_node.at[near_it][of_node.end[near_it] >= first]:
        hold = holds.on_nodes[at]
        if gpu is not None and hold.devices is not None and gpu not in {device[0] for device in hold.devices}:
            continue
        attempt = holds.attempts[hold.attempt]
        end = attempt.end
        if attempt.start <= us and (end is None or since < end):
            sure.append(hold.attempt)
        elif attempt.start - BEFORE_US <= us and end is not None and us <= end + AFTER_US:
            near.append((abs(us - (end if us >= end else attempt.start)), hold.attempt))
    return sorted(set(sure)) if sure else [at for _, at in sorted(near)[:1]]
