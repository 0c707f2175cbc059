"""Free GPUs over time, the largest gang that would fit, and free GPUs that no waiting job could use.

A gang fits by the definition of the cause ``fragmentation`` (`gpuctl.analyze.delays`): on the fewest nodes
that can hold it, all in one rack of the nodes that its queue may use. So a gang of 12 on nodes of 8 GPUs needs two
nodes of one rack with 12 free GPUs between them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delay_table, occupancy
from gpuctl.analyze.fragmentation_kernel import sweep
from gpuctl.compiled.jit import interpreted, is_compiled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from numpy.typing import NDArray

    from gpuctl.analyze.occupancy import Bools, Floats, Ints, Nodes
    from gpuctl.store.database import Store

_EDGES = """
    SELECT epoch(edge)::DOUBLE AS edge_s
    FROM (
        SELECT last_ts + step AS end_ts,
               unnest(generate_series(date_trunc($by, first_ts), last_ts + step, step)) AS edge
        FROM base_log_span CROSS JOIN (SELECT CAST('1 ' || $by AS INTERVAL) AS step)
        WHERE first_ts IS NOT NULL
    )
    WHERE edge < end_ts
"""
_FEW = 4_000
"""Instants that Python sweeps while compiled code is being loaded; compiling takes ten times as long."""


@dataclass(frozen=True)
class Demand:
    """Gangs that wait for GPUs; one element each.

    Attributes:
        start: seconds, when it began to wait only for GPUs.
        end: seconds, when it got them, gave up, or the log ended.
        gpus: the gang's size, whole GPUs.
        pool: number of the pool of nodes that it may run on.
    """

    start: Floats
    end: Floats
    gpus: Ints
    pool: Ints


@dataclass(frozen=True)
class Levels:
    """Levels on each interval; arrays over the intervals.

    Attributes:
        free: free GPUs of all nodes.
        largest: GPUs of the largest gang that would fit.
        stranded: free GPUs that no waiting gang could use; 0 if none waits.
        waiting: GPUs that waiting gangs request.
    """

    free: Floats
    largest: Floats
    stranded: Floats
    waiting: Floats


def build(store: Store, by: str) -> None:
    """Create ``base_fragmentation``: the time-weighted means of `Levels` for every period (UTC) of the log.

    Args:
        store: an open store with base_machines, base_racks (made with the delays), base_placements,
            base_holdings, base_machines_down, base_queue_machines, base_waiting_gangs and base_log_span.
        by: length of the periods: hour, day, week, month or quarter.
    """
    machines = store.frame(
        "SELECT m.machine, coalesce(m.gpus, 0) AS gpus, m.gpu_type, r.rack FROM base_machines AS m "
        "LEFT JOIN base_racks AS r USING (machine) ORDER BY m.machine"
    )
    placements = store.frame(
        "SELECT machine, gpus, epoch(held_from_ts) AS held_from_c, epoch(held_until_ts) AS held_until_c "
        "FROM base_placements WHERE held_until_ts > held_from_ts AND NOT by_container UNION ALL "
        "SELECT machine, gpus, epoch(held_from_ts), epoch(held_until_ts) "
        "FROM base_holdings WHERE held_until_ts > held_from_ts AND machine IS NOT NULL"
    )
    down = store.frame("SELECT machine, epoch(from_ts) AS from_c, epoch(to_ts) AS to_c FROM base_machines_down")
    own = store.frame("SELECT queue, machine FROM base_queue_machines")
    gangs, pools = delay_table.pools_of(
        store.frame("SELECT queue, gpu_type, false AS is_open, gpus, from_s, to_s FROM base_waiting_gangs"),
        machines,
        own,
    )
    nodes = delay_table.nodes_of(machines, placements, down)
    demand = Demand(
        gangs["from_s"].to_numpy(),
        gangs["to_s"].to_numpy(),
        np.ceil(gangs["gpus"].to_numpy()).astype(np.int64),
        gangs["pool"].to_numpy(),
    )
    edges = store.frame(_EDGES, {"by": by})["edge_s"].to_numpy()
    [(first, last)] = store.frame("SELECT epoch(first_ts), epoch(last_ts) FROM base_log_span").rows()
    found = means(nodes, [*pools, *delay_table.queues_of(machines, own)], demand, np.clip(edges, first, last))
    rows = pl.DataFrame({"start_s": edges[:-1], **{name: getattr(found, name) for name in Levels.__dataclass_fields__}})
    store.keep("base_fragmentation", rows)


def means(nodes: Nodes, pools: Sequence[Bools], demand: Demand, edges: Floats) -> Levels:
    """Return the time-weighted means of `Levels` over the periods between `edges`.

    Args:
        nodes: all nodes, and the holdings on them.
        pools: the nodes of each pool; first those that ``demand.pool`` numbers. A gang runs in one.
        demand: the gangs that wait.
        edges: seconds, ascending; periods lie between neighbours, and an empty one has zeros.
    """
    if edges.size < 2:
        return Levels(*(np.zeros(0) for _ in range(4)))
    pools, demand = _distinct(pools, demand)
    times = np.unique(np.concatenate([edges, nodes.start, nodes.end, demand.start, demand.end]))
    times = times[(times >= edges[0]) & (times <= edges[-1])]
    period = np.searchsorted(edges, times, side="right") - 1
    changes, sites = _changes(nodes), _sites(nodes, pools)
    with interpreted(_python_is_faster(times.size)):
        sums = sweep(
            times,
            period,
            edges.size - 1,
            *_events(changes, sites, nodes),
            *_waits(demand, len(pools)),
            *sites.arrays,
        )
    whole = np.diff(edges)
    return Levels(*np.divide(sums, whole, out=np.zeros_like(sums), where=whole > 0))


def _distinct(pools: Sequence[Bools], demand: Demand) -> tuple[list[Bools], Demand]:
    """Return the distinct pools, and the gangs with their numbers among these."""
    numbers: dict[bytes, int] = {}
    places = np.array([numbers.setdefault(members.tobytes(), len(numbers)) for members in pools], np.int64)
    return [np.frombuffer(members, bool) for members in numbers], replace(demand, pool=places[demand.pool])


def _python_is_faster(instants: int) -> bool:
    """Return whether Python sweeps this many instants in less time than loading or compiling the kernel takes."""
    return instants <= _FEW or (instants <= 10 * _FEW and not is_compiled(sweep))


@dataclass(frozen=True)
class _Sites:
    """Racks from the view of pools, and groups of interchangeable nodes.

    Nodes of a group are in one rack and in the same pools. The nodes of unknown rack form rack -1, in which no gang may
    have two of them.

    Attributes:
        of_node: the group of each node.
        groups: number of groups.
        arrays: the sites' arrays for `fragmentation_kernel.sweep`.
    """

    of_node: Ints
    groups: int
    arrays: tuple[NDArray[Any], ...]


def _sites(nodes: Nodes, pools: Sequence[Bools]) -> _Sites:
    keys, of_node = np.unique(np.column_stack([nodes.rack, *pools]), axis=0, return_inverse=True)
    rack, within = keys[:, 0], keys[:, 1:].astype(bool)
    found = [
        (pool, size, at, np.flatnonzero(within[:, pool] & (rack == at)))
        for pool, size in enumerate(int(nodes.gpus[members].max(initial=0)) for members in pools)
        if size
        for at in np.unique(rack[within[:, pool]]).tolist()
    ]
    of_group: list[list[int]] = [[] for _ in rack]
    for site, (*_, groups) in enumerate(found):
        for group in groups.tolist():
            of_group[group].append(site)
    pool, size, at = (np.array([each[k] for each in found], np.int64) for k in range(3))
    arrays = (pool, size, at >= 0, *_rows(of_group), *_rows([groups.tolist() for *_, groups in found]))
    return _Sites(of_node.reshape(-1), rack.size, arrays)


def _rows(lists: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Concatenate lists: the begin and end of each, and the array."""
    begins = np.cumsum([0, *map(len, lists)])
    return begins, np.array([each for one in lists for each in one], np.int64)


def _changes(nodes: Nodes) -> tuple[Ints, Floats, Ints, Ints]:
    """Return every change of a node's free GPUs, by time: node, seconds, GPUs before and after."""
    node, at, before, after = occupancy.vacancies(nodes)
    order = np.argsort(at, kind="stable")
    return node[order], at[order], before[order], after[order]


def _events(
    changes: tuple[Ints, Floats, Ints, Ints], sites: _Sites, nodes: Nodes
) -> tuple[Ints, Ints, Floats, Ints, Ints, Ints]:
    """Return levels, the number of empty nodes of each group by level, and the changes as levels of groups."""
    node, at, before, after = changes
    levels = np.unique(np.concatenate([[0], nodes.gpus, before, after])).astype(np.int64)
    count = np.zeros((sites.groups, levels.size), np.int64)
    np.add.at(count, (sites.of_node, np.searchsorted(levels, nodes.gpus)), 1)
    old, new = (np.searchsorted(levels, each) for each in (before, after))
    return levels, count, at, sites.of_node[node], old, new


def _waits(demand: Demand, pools: int) -> tuple[Floats, Ints, Ints, Ints, Ints, Ints]:
    """Return begins and ends of waits, by kind; the size and pool of each kind; the first kind of each pool."""
    kinds, kind = np.unique(np.column_stack([demand.pool, demand.gpus]), axis=0, return_inverse=True)
    at = np.concatenate([demand.start, demand.end])
    order = np.argsort(at, kind="stable")
    both = np.concatenate([kind.reshape(-1)] * 2)
    step = np.repeat(np.array([1, -1]), demand.start.size)
    pool, size = kinds[:, 0].copy(), kinds[:, 1].copy()
    return at[order], both[order], step[order], size, pool, np.searchsorted(pool, np.arange(pools + 1))
