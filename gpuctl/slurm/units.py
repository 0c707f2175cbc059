"""Numbers, times and trackable resources in Slurm's configuration."""

from __future__ import annotations

import math
import re

from gpuctl.core.durations import slurm_limit
from gpuctl.core.errors import InputError

_WHOLE = re.compile(r"[0-9]{1,10}")
_AMOUNT = re.compile(r"(-?[\d.]+)([KMGTP]?)B?", re.IGNORECASE)
_UNITS = "KMGTP"
_IN_MIB = ("mem", "bb/")
"""Resources that Slurm counts in MiB; all others are counted one by one."""


def whole(name: str, text: str) -> int:
    """Return an integer of at most 32 bits.

    Raises:
        InputError: it is not an integer, negative, or larger.
    """
    if not _WHOLE.fullmatch(text.strip()) or int(text) >= 2**32:
        raise InputError(f"{name}={text[:60]}: expected a whole number up to 4294967295")
    return int(text)


def number(name: str, text: str) -> float:
    """Return a finite number.

    Raises:
        InputError: it is not a finite number.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f"{name}={text[:60]}: expected a number")
    return found


def minutes(name: str, text: str) -> float | None:
    """Parse a time (`slurm_limit`) as minutes; seconds are rounded up to a minute, as in Slurm; None for no limit.

    Raises:
        InputError: it is not such a time.
    """
    found = slurm_limit(name, text)
    return None if found is None else float(-(-found // 60))


def exact_seconds(name: str, text: str) -> float | None:
    """Parse a time (`slurm_limit`) as seconds, not rounded; None for no limit.

    Raises:
        InputError: it is not such a time.
    """
    found = slurm_limit(name, text)
    return None if found is None else float(found)


def seconds(name: str, text: str) -> float:
    """Parse a time (`slurm_limit`) as whole minutes, in seconds; it must be finite.

    Raises:
        InputError: it is not such a time, or unlimited.
    """
    found = minutes(name, text)
    if found is None:
        raise InputError(f"{name}={text}: expected a time, not a time without end")
    return found * 60.0


def tres_weights(name: str, text: str) -> dict[str, float]:
    """Parse weights of resources, ``CPU=1.0,Mem=0.25G,GRES/gpu=2.0``, per unit of each; names in lower case.

    The unit of memory is MiB: a weight of 0.25G is 0.25 per GiB. Other resources' units are 1 (K is 1024).

    Raises:
        InputError: a weight cannot be parsed, or its suffix is below the resource's own unit.
    """
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        resource, _, weight = item.partition("=")
        amount = _AMOUNT.fullmatch(weight.strip())
        if amount is None:
            raise InputError(f"{name}: {item}: expected RESOURCE=WEIGHT, the weight a number with K, M, G, T or P")
        resource = resource.strip().lower()
        found[resource] = number(name, amount[1]) / _unit(name, resource, amount[2].upper())
    return found


def _unit(name: str, resource: str, suffix: str) -> float:
    if not suffix:
        return 1.0
    power = _UNITS.index(suffix) - (_UNITS.index("M") if resource.startswith(_IN_MIB) else -1)
    if power < 0:
        raise InputError(f"{name}: {resource} is counted in MiB: a weight takes M, G, T or P")
    return float(1024**power)


def tres_amounts(text: str) -> dict[str, float]:
    """Parse amounts of resources, ``cpu=192,mem=1500000M,node=4,gres/gpu=24``; memory in MiB.

    Raises:
        InputError: an amount cannot be parsed.
    """
    found = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        resource, _, value = item.partition("=")
        amount = _AMOUNT.fullmatch(value)
        if amount is None:
            raise InputError(f"TRES: {item}: expected RESOURCE=AMOUNT")
        resource, suffix = resource.lower(), amount[2].upper()
        power = _UNITS.index(suffix) - (_UNITS.index("M") if resource.startswith(_IN_MIB) else -1) if suffix else 0
        found[resource] = number("TRES", amount[1]) * 1024.0**power
    return found
