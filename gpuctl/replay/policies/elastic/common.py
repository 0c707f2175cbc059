"""What the policies of elastic deep-learning jobs share: instants, and what they need to know of a cluster."""

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
    """Let a simulation go by such instants.

    Raises:
        UsageError: a placement is asked for: these policies choose nodes themselves.
    """
    if settings.placement is not None:
        raise UsageError(f"{policy} chooses nodes itself: it does not go with --placement {settings.placement}")
    state.g.grain = INSTANT_S


def levels(cluster: Cluster) -> Ints:
    """The best level (0 node, 1 rack, 2 racks) that 0, 1, 2 … GPUs can have, up to all of the cluster's."""
    return best_level(np.arange(cluster.total_gpus + 1), cluster)


def bounds(state: Any, least: Ints, most: Ints) -> None:
    """Let the simulation know between how many GPUs the policy chooses."""
    state.jobs.least, state.jobs.most = least, most
