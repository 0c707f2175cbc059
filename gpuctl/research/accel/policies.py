"""Policies by name: an order and a placement, as ``edf-eft+h``."""

from __future__ import annotations

from typing import Final

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant
from gpuctl.research.accel import state as s
from gpuctl.research.accel.simulate import Policy

ORDERS: Final = {"fcfs": s.FCFS, "edf": s.EDF, "llf": s.LLF, "sjf": s.SJF, "mix": s.MIX, "random": s.RANDOM}
PLACES: Final = {"idle": s.IDLE, "eft": s.EFT, "best": s.BEST}
NAMES: Final = tuple(f"{order}-{place}{h}" for order in ORDERS for place in PLACES for h in ("", "+h"))
SIMPLE: Final = ("fcfs-eft", "edf-eft", "edf-eft+h", "llf-eft", "llf-eft+h", "sjf-eft", "mix-eft")
"""Rules that a learned policy is held against."""


def rule(name: str) -> Policy:
    """Return the policy of a simple rule.

    Raises:
        UsageError: the name is unknown.
    """
    if name not in NAMES:
        raise UsageError(f"--policy: there is no {name[:60]!r}", hint=meant(name, (*NAMES, *OTHERS)))
    order, _, rest = name.partition("-")
    place, _, h = rest.partition("+")
    return Policy(name, ORDERS[order], PLACES[place], behind=bool(h))


OTHERS: Final = ("genetic", "exhaustive", "relmas:MODEL")
