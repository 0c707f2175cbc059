"""Shared by the policies for elastic deep-learning jobs: instants, levels of a cluster, and bounds of GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.state import INSTANT_S
from gpuctl.replay.models.speed import best_level

if TYPE_CHECKING:
    from gpuctl.replay.engine.setup import Settings
    from gpuctl.replay.engine.state import State
    from gpuctl.replay.models.records import Cluster, Ints


def begin(policy: str, state: State, settings: Settings) -> None:
    """Set the instants of a simulation to the grain.

    Raises:
        UsageError: a placement is set: these policies choose nodes themselves.
    """
    if settings.placement is not None:
        raise UsageError(f"{policy} chooses nodes itself: it does not go with --placement {settings.placement}")
    state.g.grain = INSTANT_S


def levels(cluster: Cluster) -> Ints:
    """The best level (0 node, 1 rack, 2 racks) of 0, 1, 2 … GPUs, up to the cluster's total."""
    return best_level(np.arange(cluster.total_gpus + 1), cluster)


def bounds(state: Any, least: Ints, most: Ints) -> None:
    """Set each job's bounds of GPUs in the simulation."""
    state.jobs.least, state.jobs.most = least, most
