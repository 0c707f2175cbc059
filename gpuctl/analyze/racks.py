"""Infers racks from shared gangs of nodes, if the site does not state them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.numbers import lasting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gpuctl.analyze.occupancy import Bools, Floats, Ints, Nodes

CUTS_S = (0.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0, 115200.0, np.inf)
"""Guesses at how long gangs are restricted to one rack, in seconds of waiting."""
SURELY = 0.02
"""A rule is valid until this share of its exceptions has occurred: a few are odd for other reasons."""
LARGEST_GANG = 32
"""Maximum nodes of a gang used to infer racks: larger ones add little and cost the square of their nodes."""


def infer_racks(gangs: Iterable[Sequence[str]]) -> dict[str, str]:
    """Group nodes so that most gangs stay within one group.

    Schedulers prefer one rack for a gang, so nodes that share gangs more often than by chance form a rack: communities
    of the co-placement graph by the Louvain method (Blondel et al., J. Stat. Mech. 2008), each gang spreading a weight
    of 1 over its pairs. Deterministic.

    Args:
        gangs: by attempt on at least two nodes, their names.

    Returns:
        rack of each node that shared a gang; the names (``guess-1`` …) mark them as inferred.
    """
    import networkx as nx

    members = [sorted(set(machines)) for machines in gangs]
    members = [each for each in members if 2 <= len(each) <= LARGEST_GANG]
    graph = nx.Graph()
    graph.add_weighted_edges_from(_pairs(members))
    groups = nx.community.louvain_communities(graph, seed=0) if graph.number_of_edges() else []
    ordered = sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))
    return {machine: f"guess-{number}" for number, group in enumerate(ordered, 1) for machine in group}


def _pairs(gangs: Sequence[Sequence[str]]) -> list[tuple[str, str, float]]:
    """Return pairs of nodes that shared gangs, in order, with weights; each gang is a sorted list."""
    names = sorted({name for members in gangs for name in members})
    number = {name: k for k, name in enumerate(names)}
    sizes = np.array([len(members) for members in gangs], np.int64)
    flat = np.array([number[name] for members in gangs for name in members], np.int64)
    begins = np.cumsum(sizes) - sizes
    parts = []
    for size in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == size)
        rows = flat[begins[which][:, None] + np.arange(size)]
        one, two = np.triu_indices(size, 1)
        codes = rows[:, one] * len(names) + rows[:, two]
        parts.append((np.repeat(which, one.size), codes.reshape(-1), np.full(codes.size, 1 / one.size)))
    if not parts:
        return []
    gang, code, weight = (np.concatenate(each) for each in zip(*parts, strict=True))
    # sums of fractions depend on their order: use that of the gangs
    order = np.argsort(gang, kind="stable")
    pairs, place = np.unique(code[order], return_inverse=True)
    weights = np.bincount(place.reshape(-1), weights=weight[order])
    firsts, seconds = np.divmod(pairs, len(names))
    return [
        (names[one], names[two], total)
        for one, two, total in zip(firsts.tolist(), seconds.tolist(), weights.tolist(), strict=True)
    ]


@dataclass(frozen=True)
class Gangs:
    """Gangs that started on two or more nodes, with a known wait; one element each.

    Attributes:
        nodes: numbers of the nodes.
        waited: seconds.
        spread: whether fewer nodes could have held it.
    """

    nodes: tuple[Ints, ...]
    waited: Floats
    spread: Bools


@dataclass(frozen=True)
class Layout:
    """An assumption on racks, and on when gangs accept worse placements.

    Attributes:
        name: for readers.
        nodes: with those racks.
        relax: seconds of waiting after which a gang accepts any nodes of one rack, and any nodes at all; inf: never.
        forbidden: number of gangs whose placement this forbids.
    """

    name: str
    nodes: Nodes
    relax: tuple[float, float]
    forbidden: int


def guess_layouts(nodes: Nodes, gangs: Gangs) -> list[Layout]:
    """Infer layouts of racks from nodes of gangs that waited less than some time, or that share many gangs."""
    layouts: list[Layout] = []
    seen: set[bytes] = set()
    for cut in CUTS_S:
        within = [members for members, waited in zip(gangs.nodes, gangs.waited, strict=True) if waited <= cut]
        racks = _joined(nodes.gpus.size, within)
        if racks.tobytes() not in seen:
            seen.add(racks.tobytes())
            name = (
                f"gangs that waited at most {lasting(cut)} are in one rack"
                if np.isfinite(cut)
                else "every gang is in one rack"
            )
            layouts.append(_relaxed(name, replace(nodes, rack=racks), gangs, first=True))
    names = infer_racks([[f"{number:09d}" for number in members] for members in gangs.nodes])
    numbers = {name: k for k, name in enumerate(sorted(set(names.values())))}
    if numbers:
        racks = np.array([numbers[names[f"{k:09d}"]] if f"{k:09d}" in names else -1 for k in range(nodes.gpus.size)])
        layouts.append(_relaxed("nodes that share gangs more often than chance", replace(nodes, rack=racks), gangs))
    return layouts


def layouts_of_known_racks(nodes: Nodes, gangs: Gangs) -> list[Layout]:
    """Return layouts with known racks: gangs accept worse placements after a while, or never."""
    relaxed = _relaxed("known racks", nodes, gangs)
    odd = gangs.spread | _across(nodes, gangs)
    never = Layout("known racks, never relaxed", nodes, (np.inf, np.inf), int(odd.sum()))
    return [relaxed, never] if odd.any() else [relaxed]


def _relaxed(name: str, nodes: Nodes, gangs: Gangs, *, first: bool = False) -> Layout:
    """Infer when gangs spread over more nodes than necessary, and over racks: the first, or nearly the first time."""
    across = np.sort(gangs.waited[_across(nodes, gangs)])
    spread = gangs.waited[gangs.spread]
    one = float(np.quantile(spread, SURELY)) if spread.size else np.inf
    two = float(np.quantile(across, 0.0 if first else SURELY)) if across.size else np.inf
    return Layout(name, nodes, (one, max(one, two)), int((across < two).sum()))


def _across(nodes: Nodes, gangs: Gangs) -> Bools:
    """Return whether each gang was in several racks; a node of unknown rack is its own rack."""
    racks = np.where(nodes.rack >= 0, nodes.rack, nodes.rack.max(initial=-1) + 1 + np.arange(nodes.rack.size))
    return np.array([np.unique(racks[members]).size > 1 for members in gangs.nodes], bool)


def _joined(nodes: int, gangs: Iterable[Ints]) -> Ints:
    """Return the number of each node's group, if nodes of one gang share a group; -1 for a group of one."""
    parent = list(range(nodes))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for members in gangs:
        for other in members[1:]:
            one, two = sorted((root(int(members[0])), root(int(other))))
            parent[two] = one
    _, group, size = np.unique([root(node) for node in range(nodes)], return_inverse=True, return_counts=True)
    _, number = np.unique(np.where(size[group] > 1, group, -1), return_inverse=True)
    return number.astype(np.int64) - int((size == 1).any())
