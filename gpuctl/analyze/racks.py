"""Guesses racks from which machines share gangs, where the site does not give them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

LARGEST_GANG = 32
"""Gangs on more servers say little about racks and cost the square of their servers."""


def infer_racks(gangs: Iterable[Sequence[str]]) -> dict[str, str]:
    """Group machines so that gangs mostly stay within one group.

    Schedulers prefer one rack for a gang, so machines that share gangs more often than chance would have it
    are taken for one rack: communities of the co-placement graph by the Louvain method (Blondel et al.,
    J. Stat. Mech. 2008), each gang spreading a weight of 1 over its pairs. Deterministic.

    Args:
        gangs: for each attempt on at least two machines, their names.

    Returns:
        rack of each machine that shared a gang; the names (``guess-1`` …) say that they are guesses.
    """
    import networkx as nx

    weights: dict[tuple[str, str], float] = {}
    for machines in gangs:
        members = sorted(set(machines))
        if 2 <= len(members) <= LARGEST_GANG:
            pairs = list(combinations(members, 2))
            for pair in pairs:
                weights[pair] = weights.get(pair, 0.0) + 1 / len(pairs)
    graph = nx.Graph()
    graph.add_weighted_edges_from((a, b, w) for (a, b), w in sorted(weights.items()))
    groups = nx.community.louvain_communities(graph, seed=0) if graph.number_of_edges() else []
    ordered = sorted((sorted(group) for group in groups), key=lambda group: (-len(group), group))
    return {machine: f"guess-{number}" for number, group in enumerate(ordered, 1) for machine in group}
