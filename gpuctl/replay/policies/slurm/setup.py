"""Settings of the policy ``slurm``: a site's configuration or its default, with overrides.

Without a configuration the queues of the workload are the partitions, accounts or users have equal shares, and the
weights are those of the example on SchedMD's page *Multifactor Priority Plugin*: age 1000, fair-share 10000, job size
1000, partition 1000, QOS 0. Times are Slurm's own defaults.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import UsageError
from gpuctl.slurm.config import Multifactor, Preemption, Site
from gpuctl.slurm.parameters import Parameters
from gpuctl.slurm.partitions import Partition
from gpuctl.slurm.site import conf_paths, read_site

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpuctl.replay.models.records import Workload

EXAMPLE = Multifactor(weight_age=1000, weight_fairshare=10_000, weight_job_size=1000, weight_partition=1000)
"""Without a configuration: the weights of SchedMD's example."""
DAY_S = 86_400.0
REQUEUE_DELAY_S = 121.0
"""Until a preempted job is eligible again: ``cred_expire`` (120 s) and one second, as seen in 22.05 and 24.11."""
_WEIGHTS = ("age", "fairshare", "job_size", "partition", "qos")
_TIMES = (
    ("half_life_d", "half_life_s", DAY_S),
    ("max_age_d", "max_age_s", DAY_S),
    ("calc_period", "calc_period_s", 1.0),
)
_NUMBERS = {
    "bf_window": "bf_window_min",
    "bf_max_job_test": "bf_max_job_test",
    "bf_interval": "bf_interval_s",
    "bf_resolution": "bf_resolution_s",
    "bf_max_job_user": "bf_max_job_user",
    "bf_max_job_part": "bf_max_job_part",
    "bf_max_job_start": "bf_max_job_start",
    "bf_job_part_count_reserve": "bf_job_part_count_reserve",
    "bf_min_age_reserve": "bf_min_age_reserve_s",
    "default_queue_depth": "default_queue_depth",
    "sched_interval": "sched_interval_s",
    "batch_sched_delay": "batch_sched_delay_s",
}
"""Parameters of the policy, and what they are called in `Parameters`."""
MOST = 2**32 - 1
"""The greatest number, as in slurm.conf."""

_LEAST = {"bf_window": 1, "bf_max_job_test": 0, "bf_interval": 1, "bf_resolution": 1, "sched_interval": 1}
_MOST_NOTES = 12


@dataclass(frozen=True)
class Setup:
    """A configuration with all overrides.

    Attributes:
        site: the configuration; a default one if none is given.
        given: whether one was given.
        multifactor: its priority plugin.
        parameters: its scheduler parameters.
        fair_share: ``tree`` | ``classic`` | ``none``.
        by: who has equal shares if the configuration names no accounts: ``account`` | ``user``.
        backfill: whether there are backfill passes.
        preempt: ``none`` | ``partition`` | ``qos``.
        mode: ``PreemptMode`` for all; None: as configured for each partition or QOS.
        exempt_s: ``PreemptExemptTime`` for all; None: as configured.
        requeue_delay_s: seconds until a preempted job is eligible again.
        unlimited_s: planned time of a job without any time limit.
        groups: ends of running jobs are tried in groups, as in select/cons_tres.
    """

    site: Site
    given: bool
    multifactor: Multifactor
    parameters: Parameters
    fair_share: str
    by: str
    backfill: bool
    preempt: str
    mode: str | None
    exempt_s: float | None
    requeue_delay_s: float
    unlimited_s: float
    groups: bool


def setup_of(params: Mapping[str, Any], workload: Workload) -> Setup:
    """Read the configuration, if any, and apply the policy's parameters.

    Args:
        params: of the policy; empty text overrides nothing.
        workload: the jobs; its queues are the partitions if there is no configuration.

    Raises:
        UsageError: a parameter is not a number or too small, or an unknown name.
        InputError: the configuration cannot be read.
    """
    given = bool(params["conf"].strip())
    site = read_site(conf_paths(params["conf"])) if given else _default_site(workload)
    partitions = dict(site.partitions)
    for name, tier in _pairs("tiers", params["tiers"]).items():
        if name not in partitions:
            raise UsageError(f"slurm: tiers: there is no partition {name!r}", hint=_there(partitions))
        partitions[name] = replace(partitions[name], tier=tier)
    site = replace(site, partitions=partitions)
    multifactor = _weighted(params, site.multifactor or Multifactor())
    numbers: dict[str, Any] = {}
    for name, attribute in _NUMBERS.items():
        found = _whole(params, name, _LEAST.get(name, 0))
        if found is not None:
            numbers[attribute] = found
    parameters = replace(site.parameters, **numbers)
    fair = params["fair_share"] or ("tree" if multifactor.fair_tree else "classic")
    if multifactor.weight_fairshare == 0:
        fair = "none"
    preempt = params["preempt"] or site.preemption.by
    if params["preempt"] and site.preemption.mode == "OFF":
        # preemption implies some action on preempted jobs
        site = replace(site, preemption=replace(site.preemption, mode="REQUEUE"))
    _check_preemption(preempt, site)
    on = site.scheduler != "sched/builtin" and parameters.bf_interval_s > 0
    return Setup(
        site=site,
        given=given,
        multifactor=multifactor,
        parameters=parameters,
        fair_share=fair,
        by=params["shares"],
        backfill=params["backfill"] == "true" if params["backfill"] else on,
        preempt=preempt,
        mode=params["preempt_mode"].upper() or None,
        exempt_s=_number(params, "exempt", 0),
        requeue_delay_s=params["requeue_delay"],
        unlimited_s=params["unlimited"],
        groups=params["ends"] == "groups",
    )


def _weighted(params: Mapping[str, Any], plain: Multifactor) -> Multifactor:
    """The priority plugin's settings overridden by the policy's parameters."""
    over: dict[str, Any] = {}
    for name in _WEIGHTS:
        weight = _whole(params, f"weight_{name}", 0)
        if weight is not None:
            over[f"weight_{name}"] = weight
    for name, attribute, factor in _TIMES:
        found = _number(params, name, 0)
        if found is not None:
            if found == 0 and name != "half_life_d":
                raise UsageError(f"slurm: {name}=0: expected a number above 0")
            if 0 < found * factor < 1:
                raise UsageError(f"slurm: {name}={params[name].strip()[:60]}: expected a second or more")
            over[attribute] = found * factor
    return replace(plain, **over)


def _check_preemption(preempt: str, site: Site) -> None:
    if preempt == "qos" and not any(one.preempts or one.within for one in site.qos.values()):
        raise UsageError(
            "slurm: preempt=qos: no QOS is known that preempts another one",
            hint="name the output of `sacctmgr -P show qos` with --slurm-conf",
        )
    if preempt == "partition" and len({one.tier for one in site.partitions.values()}) < 2:
        raise UsageError(
            "slurm: preempt=partition: all partitions have one PriorityTier",
            hint="--param tiers=NAME:2,... says which go first",
        )


def _default_site(workload: Workload) -> Site:
    """The default site if no configuration is given."""
    partitions = {name: Partition(name, all_nodes=True) for name in workload.queues}
    return Site(EXAMPLE, partitions, Parameters(), "sched/backfill", (), (), preemption=Preemption())


def _number(params: Mapping[str, Any], name: str, least: float) -> float | None:
    text = params[name].strip()
    if not text:
        return None
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not least <= found <= MOST:
        raise UsageError(f"slurm: {name}={text[:60]}: expected a number from {least:g} to {MOST:.10g}")
    return found


def _whole(params: Mapping[str, Any], name: str, least: int) -> int | None:
    found = _number(params, name, least)
    if found is not None and found != int(found):
        raise UsageError(f"slurm: {name}={params[name].strip()[:60]}: expected a whole number, as in slurm.conf")
    return None if found is None else int(found)


def _pairs(name: str, text: str) -> dict[str, int]:
    found = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, colon, value = part.rpartition(":")
        if not colon or not value.strip().isdigit() or int(value) > 65_533:
            raise UsageError(f"slurm: {name}={part[:60]}: expected NAME:N with a whole number N up to 65533")
        found[key.strip()] = int(value)
    return found


def _there(names: Mapping[str, object]) -> str:
    return f"known: {', '.join(list(names)[:5]) or 'none'}"


def grouped(listed: Sequence[tuple[str, str]]) -> list[str]:
    """Lines on unmodelled settings: one per kind, with their number and an example."""
    kinds = Counter(where.split(" ", 1)[0] for where, _ in listed)
    first: dict[str, tuple[str, str]] = {}
    for where, what in listed:
        first.setdefault(where.split(" ", 1)[0], (where, what))
    lines = []
    for kind, count in kinds.items():
        where, what = first[kind]
        more = f" (and {count - 1:,} more of {kind})" if count > 1 else ""
        lines.append(f"{where}: {what}{more}")
    if len(lines) > _MOST_NOTES:
        lines = [*lines[:_MOST_NOTES], f"{len(lines) - _MOST_NOTES:,} more kinds of settings are not modelled"]
    return lines
