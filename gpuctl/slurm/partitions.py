"""Partitions in slurm.conf and scontrol's output.

Source: slurm.conf(5) of Slurm 22.05, *PARTITION CONFIGURATION*.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.slurm.conf import hosts
from gpuctl.slurm.scontrol import name_of
from gpuctl.slurm.units import minutes, tres_amounts, tres_weights, whole

if TYPE_CHECKING:
    from collections.abc import Mapping

PREEMPT_MODES = ("OFF", "CANCEL", "REQUEUE", "SUSPEND")
"""What can be done to a job that is preempted; GANG and WITHIN may be added."""
_STATES = ("UP", "DOWN", "DRAIN", "INACTIVE")


@dataclass(frozen=True)
class Partition:
    """The settings of a partition that priorities, limits and scheduling need.

    Attributes:
        name: its name.
        nodes: names of its nodes; empty for ``ALL``, see ``all_nodes``.
        job_factor: ``PriorityJobFactor``.
        tier: ``PriorityTier``.
        billing: ``TRESBillingWeights``; None if CPUs are billed.
        qos: its own QOS.
        max_time_min: ``MaxTime`` in minutes; None for no limit.
        default_time_min: ``DefaultTime`` in minutes; None: that of ``max_time_min``.
        tres: its total resources, if stated (``scontrol show partition``); memory in MiB.
        all_nodes: whether it has all of the cluster's nodes.
        max_nodes: ``MaxNodes`` of one job; None for no limit.
        min_nodes: ``MinNodes`` of one job.
        preempt_mode: one of `PREEMPT_MODES`; None: the cluster's.
        grace_s: ``GraceTime``: grace period of its preempted jobs, seconds.
        oversubscribe: ``NO`` | ``EXCLUSIVE`` (whole nodes) | ``YES`` | ``FORCE``.
        allow_accounts: ``AllowAccounts``; None for all.
        deny_accounts: ``DenyAccounts``; empty if there is ``AllowAccounts``, which takes precedence.
        allow_qos: ``AllowQos``; None for all.
        deny_qos: ``DenyQos``; empty if there is ``AllowQos``.
        state: ``UP`` | ``DOWN`` (jobs queue, none starts) | ``DRAIN`` (no job queues, those that wait start) |
            ``INACTIVE`` (neither).
        default: whether jobs without a partition use it.
        over_time_min: ``OverTimeLimit`` in minutes, infinity for ``UNLIMITED``; None: the cluster's.
        least_loaded: ``LLN``: among nodes of equal ``Weight``, prefer the one with the largest share of idle CPUs.
    """

    name: str
    nodes: tuple[str, ...] = ()
    job_factor: int = 1
    tier: int = 1
    billing: Mapping[str, float] | None = None
    qos: str | None = None
    max_time_min: float | None = None
    default_time_min: float | None = None
    tres: Mapping[str, float] = field(default_factory=dict)
    all_nodes: bool = False
    max_nodes: int | None = None
    min_nodes: int = 0
    preempt_mode: str | None = None
    grace_s: float = 0.0
    oversubscribe: str = "NO"
    allow_accounts: frozenset[str] | None = None
    deny_accounts: frozenset[str] = frozenset()
    allow_qos: frozenset[str] | None = None
    deny_qos: frozenset[str] = frozenset()
    state: str = "UP"
    default: bool = False
    over_time_min: float | None = None
    least_loaded: bool = False


def value_of(settings: Mapping[str, str], name: str) -> str:
    """Return a setting's text; empty if it is missing or scontrol prints a word for none."""
    value = settings.get(name, "").strip()
    return "" if value.lower() in {"(null)", "n/a", "none"} else value


def names_of(text: str) -> tuple[str, ...]:
    """Return comma-separated names."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def mode_of(where: str, text: str) -> tuple[str | None, frozenset[str]]:
    """Parse ``PreemptMode``: the treatment of a preempted job, None if unstated; and GANG or WITHIN.

    Raises:
        InputError: it is invalid, or names two.
    """
    words = [word.upper() for word in names_of(text)]
    modes = [{"ON": "SUSPEND"}.get(word, word) for word in words if word not in {"GANG", "WITHIN", "CLUSTER"}]
    if len(modes) > 1 or not set(modes) <= set(PREEMPT_MODES):
        raise InputError(f"{where}: PreemptMode={text[:60]}: expected one of {', '.join(PREEMPT_MODES)}")
    return modes[0] if modes else None, frozenset(words) & {"GANG", "WITHIN"}


def over_time(text: str) -> float | None:
    """Return ``OverTimeLimit`` in minutes, infinity for ``UNLIMITED``; None if missing.

    Raises:
        InputError: it is not a time.
    """
    if not text:
        return None
    found = minutes("OverTimeLimit", text.lower().removesuffix(" min"))
    return float("inf") if found is None else found


def read_partition(name: str, found: Mapping[str, str]) -> Partition:
    """Return a partition from its words in slurm.conf or in ``scontrol show partitions``, names in lower case.

    Raises:
        InputError: a relevant one cannot be parsed.
    """
    # before 16.05 one setting, Priority, served as both
    both = value_of(found, "priority") or "1"
    nodes, usual = value_of(found, "nodes"), value_of(found, "defaulttime")
    billing = value_of(found, "tresbillingweights")
    most = value_of(found, "maxnodes").upper()
    allow_accounts, allow_qos = (_all_or(value_of(found, key)) for key in ("allowaccounts", "allowqos"))
    shared = (value_of(found, "oversubscribe") or value_of(found, "shared") or "NO").upper().partition(":")[0]
    # scontrol prints OverSubscribe=EXCLUSIVE as in slurm.conf; before 17.02 both used Shared
    if shared not in {"NO", "EXCLUSIVE", "YES", "FORCE"}:
        raise InputError(f"partition {name}: OverSubscribe={shared}: expected NO, EXCLUSIVE, YES or FORCE")
    state = (value_of(found, "state") or "UP").upper()
    if state not in _STATES:
        raise InputError(f"partition {name}: State={state}: expected one of {', '.join(_STATES)}")
    try:
        members = () if nodes.upper() == "ALL" else tuple(hosts(nodes))
    except RowError as bad:
        raise InputError(f"partition {name}: {bad}") from None
    return Partition(
        name,
        members,
        job_factor=whole("PriorityJobFactor", found.get("priorityjobfactor", both)),
        tier=whole("PriorityTier", found.get("prioritytier", both)),
        billing=tres_weights("TRESBillingWeights", billing) if billing else None,
        qos=value_of(found, "qos") or None,
        max_time_min=minutes("MaxTime", value_of(found, "maxtime") or "UNLIMITED"),
        default_time_min=minutes("DefaultTime", usual) if usual else None,
        tres=tres_amounts(value_of(found, "tres")),
        all_nodes=nodes.upper() == "ALL",
        max_nodes=None if most in {"", "UNLIMITED", "INFINITE"} else whole("MaxNodes", most),
        min_nodes=whole("MinNodes", value_of(found, "minnodes") or "0"),
        preempt_mode=mode_of(f"partition {name}", value_of(found, "preemptmode"))[0],
        grace_s=float(whole("GraceTime", value_of(found, "gracetime") or "0")),
        oversubscribe=shared,
        allow_accounts=allow_accounts,
        deny_accounts=_denied(found, "denyaccounts", allow_accounts),
        allow_qos=allow_qos,
        deny_qos=_denied(found, "denyqos", allow_qos),
        state=state,
        default=value_of(found, "default").upper() in {"YES", "TRUE", "1"},
        over_time_min=over_time(value_of(found, "overtimelimit")),
        least_loaded=value_of(found, "lln").upper() in {"YES", "TRUE", "1"},
    )


def _all_or(text: str) -> frozenset[str] | None:
    return None if text.upper() in {"", "ALL"} else frozenset(names_of(text))


def _denied(found: Mapping[str, str], key: str, allowed: frozenset[str] | None) -> frozenset[str]:
    """Return denied names; Slurm ignores this list if there is an allow list."""
    return frozenset() if allowed is not None else frozenset(names_of(value_of(found, key)))


_NO_QOS = frozenset({"", "N/A", "(null)"})


def partition_of(found: dict[str, str]) -> tuple[str, str | None, list[str]]:
    """Return a partition's name, its own QOS, if any, and its nodes, from its fields.

    Raises:
        RowError: the name or the host list is invalid.
    """
    qos = found.get("QoS", "")
    name = name_of(found.get("PartitionName"), "partition name")
    return name, None if qos in _NO_QOS else qos, hosts(found.get("Nodes", ""))
