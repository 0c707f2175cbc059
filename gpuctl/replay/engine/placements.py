"""Names of placements of gangs, as policies and users write them."""

from __future__ import annotations

from gpuctl.core.errors import InputError
from gpuctl.replay.engine.state import ANY, CONSOLIDATE, FEWEST, FILL, RACK, SPREAD

PLACEMENTS = {"any": ANY, "consolidate": CONSOLIDATE, "spread": SPREAD, "fill": FILL, "rack": RACK, "fewest": FEWEST}
"""See `gpuctl.replay.engine.placement_kernel.find`; docs/how-to/replay.md explains them."""


def placement_number(name: str, whose: str = "") -> int:
    """The engine's number of a way to place gangs.

    Args:
        name: one of `PLACEMENTS`.
        whose: the policy's name, for the message.

    Raises:
        InputError: there is no such way.
    """
    if name not in PLACEMENTS:
        raise InputError(
            f"{whose}{': ' if whose else ''}placement {name!r}", hint=f"expected one of {', '.join(PLACEMENTS)}"
        )
    return PLACEMENTS[name]
