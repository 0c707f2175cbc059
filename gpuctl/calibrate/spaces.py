"""The search space of each policy: parameter values, quotas, and whether scattered jobs run slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from gpuctl.calibrate.hints import Hints

QUOTAS, LOCALITY, QUOTA = "@quotas", "@locality", "@quota "
"""Names of choices that are not parameters of a policy; `QUOTA` is followed by the name of a queue."""
CONFIGURED, HELD, NONE = "configured", "held", "none"
"""Origins of quotas: as given, the most GPUs that each queue held at once, or none."""

WEIGHT = "weight_"
"""Prefix of the names of Slurm's priority weights."""

Value = str
Rules = dict[str, Value]
"""Values as ``--param`` takes them, by name; absent ones have their default."""


@dataclass(frozen=True)
class Choice:
    """One dimension of the search space.

    Attributes:
        name: of a parameter, `QUOTAS` or `LOCALITY`.
        values: as texts, the default among them.
        default: the value if nothing is chosen.
        steps: whether values in between are also tried once the rest is settled.
        only: values of other parameters under which it matters; empty: always.
        least: the smallest allowed number.
        most: the largest allowed number.
    """

    name: str
    values: tuple[Value, ...]
    default: Value
    steps: bool = False
    only: tuple[tuple[str, tuple[Value, ...]], ...] = ()
    least: float = 0.0
    most: float = 1e9

    def matters(self, rules: Rules, defaults: Rules) -> bool:
        """Return whether it makes a difference under these rules."""
        return all(rules.get(name, defaults.get(name)) in values for name, values in self.only)


_LEFT = ("conf", "patience", "limits_from", "unlimited", "masters", "am_mb", "am_vcores", "am_heartbeat", "phase",
         "minimum_mb", "minimum_vcores", "maximum_mb", "maximum_vcores", "maximum_gpus", "prerun", "pool", "retry",
         "defragment", "worth", "locality", "offswitch", "small", "learn", "packlimit", "shares", "ends")  # fmt: skip
"""Parameters that describe a site or do not affect when jobs start."""

_TIMED = (("relax", ("time",)),)
_GATHERS = (("relax", ("tries", "retry")),)
_BORROWS = (("borrow", ("true",)),)
_TAKES = (*_BORROWS, ("take_back", ("true",)))

_DECADES = ("0", "1000", "10000", "100000")
_WEIGHTS = ("100", *_DECADES)
_SLURM = {
    "backfill": ("true", "false"),
    "weight_age": _WEIGHTS,
    "weight_fairshare": _WEIGHTS,
    "weight_job_size": _WEIGHTS,
    "weight_partition": _WEIGHTS,
    "weight_qos": _WEIGHTS,
    "half_life_d": ("1", "7", "14"),
    "max_age_d": ("1", "7", "14"),
    "bf_interval": ("10", "30", "60", "300"),
    "bf_max_job_test": ("10", "100", "1000"),
    "bf_window": ("240", "1440", "10080"),
    "default_queue_depth": ("1", "10", "100", "1000"),
    "sched_interval": ("30", "60", "300"),
}
_YARN = {
    "maximum_capacity": ("0", "100"),
    "user_limit_factor": ("-1", "0.5", "1", "2"),
    "minimum_user_limit_percent": ("100", "50", "25"),
    "ordering_policy": ("fifo", "fair"),
    "scheduling_policy": ("", "fifo", "fair", "drf"),
    "heartbeat": ("0.5", "1", "3"),
    "max_running_apps": ("0", "1", "2", "4", "8"),
    "max_parallel_apps": ("0", "1", "2", "4", "8"),
    "size_based_weight": ("false", "true"),
    "preemption": ("false", "true"),
}
_OF: dict[str, dict[str, tuple[Value, ...]]] = {"slurm": _SLURM, "yarn-capacity": _YARN, "yarn-fair": _YARN}


def space(policy: str, hints: Hints) -> tuple[Choice, ...]:
    """Return a policy's choices, the most informative first.

    Args:
        policy: its name.
        hints: values that the trace alone shows.

    Raises:
        UsageError: no such policy.
    """
    kind = find(policy)
    shared = _shared(hints)
    if kind.name == "philly":
        return (*_philly(hints), *shared, *_own_quotas(hints))
    own = []
    for parameter in kind.parameters:
        given = _OF.get(kind.name)
        if parameter.name in (*_LEFT, *hints.alike) or (given is not None and parameter.name not in given):
            continue
        default = _text(parameter.default)
        values = given[parameter.name] if given else _usual(parameter.default, parameter.choices)
        values = tuple(dict.fromkeys((default, *values)))
        if len(values) > 1:
            number = isinstance(parameter.default, float) or parameter.name.startswith(WEIGHT)
            own.append(
                Choice(parameter.name, values, default, steps=number, least=parameter.least, most=parameter.most)
            )
    return (*own, *shared)


def _shared(hints: Hints) -> tuple[Choice, ...]:
    quotas = (CONFIGURED,) if hints.configured else (HELD, *hints.quotas, NONE)
    return (Choice(QUOTAS, quotas, quotas[0]), Choice(LOCALITY, ("false", "true"), "false"))


def _own_quotas(hints: Hints) -> list[Choice]:
    if hints.configured:
        return []
    return [Choice(QUOTA + queue, ("", *(f"{gpus:g}" for gpus in held)), "", steps=True, least=1)
            for queue, held in hints.held.items() if held]  # fmt: skip


def crossed(policy: str, hints: Hints) -> tuple[tuple[str, tuple[Value, ...]], ...]:
    """Return the choices to try first in every combination: they are uninformative while the rest is wrong."""
    kind = find(policy).name
    if kind == "slurm":
        # only ratios of weights order a queue: one weight stays fixed
        weights = [name for name in ("weight_age", "weight_job_size", "weight_qos") if name not in hints.alike]
        return (("weight_fairshare", ("10000",)), *((name, _DECADES) for name in weights))
    if kind != "philly":
        return ()
    quotas = (CONFIGURED,) if hints.configured else tuple(hints.quotas)[2:]
    return (
        (QUOTAS, quotas),
        ("order", ("queued", "used")),
        ("places", ("racks", "tight")),
        ("take_back", ("false", "true")),
        ("lend", tuple(dict.fromkeys((*(f"{value:g}" for value in hints.lent), "0.9", "0.8", "0.7", "1")))),
        ("rack_after", ("-1", *(f"{value:g}" for value in hints.rack_relaxed[:2]))),
    )


def _text(value: object) -> Value:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(f"{each:g}" for each in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _usual(default: object, choices: tuple[str, ...]) -> tuple[Value, ...]:
    if choices:
        return choices
    if isinstance(default, bool):
        return ("true", "false")
    if isinstance(default, float):
        return tuple(f"{default * factor:g}" for factor in (0.25, 0.5, 2, 4)) if default > 0 else ("60", "600", "3600")
    return ()


def _philly(hints: Hints) -> tuple[Choice, ...]:
    """Return the parameters of philly, with values that the trace suggests, such as the waits of spread gangs."""
    spread = tuple(f"{value:g}" for value in hints.relaxed)
    rack = tuple(f"{value:g}" for value in hints.rack_relaxed)
    lend = tuple(f"{value:g}" for value in hints.lent)
    return (
        Choice("order", ("used", "queued"), "used"),
        Choice("take_back", ("true", "false"), "true", only=_BORROWS),
        Choice("relax", ("tries", "retry", "never", "time"), "tries"),
        Choice("relax_after", ("1800", *spread, "0", "600", "3600", "7200"), "1800", steps=True, only=_TIMED),
        Choice("rack_after", ("-1", *rack, "0", "3600", "14400", "36000"), "-1", steps=True, only=_TIMED, least=-1),
        Choice("lend", ("1", *lend, "0.9", "0.8", "0.7", "0.6", "0.5"), "1", steps=True, only=_BORROWS, most=1),
        Choice("borrow", ("true", "false"), "true"),
        Choice("places", ("tight", "racks"), "tight"),
        Choice("requeue", ("0", *(f"{value:g}" for value in hints.requeued)), "0"),
        Choice("interval", ("0", "30", "60", "120", "300"), "0", steps=True, only=_TIMED),
        Choice("busy", ("0.9", "0", "0.7", "0.8", "1"), "0.9", only=_TAKES, most=1),
        Choice("acquire", ("150", "0", "60", "300", "600"), "150", steps=True, only=_GATHERS),
        Choice("backoff", ("120", "30", "60", "300", "600"), "120", steps=True, only=_GATHERS),
        Choice("tries", ("3", "1", "2", "6", "12", "24"), "3", only=(("relax", ("tries",)),), least=1),
        Choice("dedicate", ("none", "small", "server"), "none"),
    )
