"""Environments by name: after ``import gpuctl.research.learn.environments``, Gymnasium can make ``gpuctl/NAME``.

An environment is defined next to the model that it wraps, and named here as text: it is imported when it is made.
"""

from __future__ import annotations

from importlib.util import find_spec

from gpuctl.research.learn.extra import needed

ENVIRONMENTS = {
    "Accel-v0": "gpuctl.research.accel.environment:Accel",
    "Deferrable-v0": "gpuctl.research.deferrable.environment:Deferrable",
    "Replay-v0": "gpuctl.replay.environment:Replay",
    "Chain-v0": "gpuctl.research.chain.environment:Chain",
}
"""Names in the namespace ``gpuctl``, and where each class is."""


def register() -> None:
    """Register all environments with Gymnasium; importing this module does so if Gymnasium is installed.

    Raises:
        DependencyError: Gymnasium is not installed.
    """
    gymnasium = needed("gymnasium", "a learning environment")
    for name, where in ENVIRONMENTS.items():
        if f"gpuctl/{name}" not in gymnasium.registry:
            gymnasium.register(id=f"gpuctl/{name}", entry_point=where)


if find_spec("gymnasium") is not None:
    register()
