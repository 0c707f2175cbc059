"""Limits of QOS and associations as sacctmgr writes them: their names, owners and inheritance.

Sources: sacctmgr(1) of Slurm 22.05; SchedMD's page *Resource Limits*: a ``Max`` limit of an account applies to those
below it without their own, resource by resource, while a ``Grp`` limit applies to the account itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

from gpuctl.slurm.units import minutes, tres_amounts, whole

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Limits:
    """Limits of one QOS or one association; None, or a missing resource: no limit.

    Resources are by name in lower case (``cpu``, ``mem`` in MiB, ``node``, ``gres/gpu``, ``gres/gpu:a100``,
    ``billing``, ``license/x``); numbers of jobs are whole; times are minutes.

    Attributes:
        grp_tres: ``GrpTRES``: total resources of its running jobs; for an association, including all below it.
        grp_jobs: ``GrpJobs``: running jobs.
        grp_submit: ``GrpSubmit``: waiting and running jobs.
        grp_wall_min: ``GrpWall``: wall time used, decayed, minutes.
        max_tres: ``MaxTRES``: of one job.
        max_tres_node: ``MaxTRESPerNode``: of one job on one node.
        max_tres_user: ``MaxTRESPerUser`` (QOS): resources of the running jobs of one user.
        max_tres_account: ``MaxTRESPerAccount`` (QOS): the same of one account.
        max_jobs: ``MaxJobs`` (associations): running jobs of this association itself.
        max_jobs_user: ``MaxJobsPerUser`` (QOS).
        max_jobs_account: ``MaxJobsPerAccount`` (QOS).
        max_submit: ``MaxSubmitJobs`` (associations): waiting and running jobs.
        max_submit_user: ``MaxSubmitJobsPerUser`` (QOS).
        max_submit_account: ``MaxSubmitJobsPerAccount`` (QOS).
        max_wall_min: ``MaxWall``: the longest time limit of a job.
        min_tres: ``MinTRES`` (QOS): least resources that a job must request.
        min_priority: ``MinPrioThreshold``: jobs below it get no reservation.
    """

    grp_tres: Mapping[str, float] = field(default_factory=dict)
    grp_jobs: int | None = None
    grp_submit: int | None = None
    grp_wall_min: float | None = None
    max_tres: Mapping[str, float] = field(default_factory=dict)
    max_tres_node: Mapping[str, float] = field(default_factory=dict)
    max_tres_user: Mapping[str, float] = field(default_factory=dict)
    max_tres_account: Mapping[str, float] = field(default_factory=dict)
    max_jobs: int | None = None
    max_jobs_user: int | None = None
    max_jobs_account: int | None = None
    max_submit: int | None = None
    max_submit_user: int | None = None
    max_submit_account: int | None = None
    max_wall_min: float | None = None
    min_tres: Mapping[str, float] = field(default_factory=dict)
    min_priority: int | None = None

    def below(self, account: Limits) -> Limits:
        """Return the limits of an association with these limits, below an account with those limits.

        Missing ``Max`` limits are the account's; ``Grp`` limits are not inherited.
        """
        if account == NO_LIMITS:
            return self
        handed: dict[str, object] = {}
        for one in fields(Limits):
            if one.name.startswith("grp_"):
                continue
            own, above = getattr(self, one.name), getattr(account, one.name)
            if isinstance(own, dict):
                handed[one.name] = {**above, **own}
            elif own is None:
                handed[one.name] = above
        return replace(self, **handed)  # type: ignore[arg-type]


NO_LIMITS = Limits()
"""What has no limit at all."""

_TRES = {
    "grp_tres": ("grptres",),
    "max_tres": ("maxtres", "maxtresperjob", "maxtrespj"),
    "max_tres_node": ("maxtrespernode", "maxtrespn"),
    "max_tres_user": ("maxtrespu", "maxtresperuser"),
    "max_tres_account": ("maxtrespa", "maxtresperaccount", "maxtresperacct"),
    "min_tres": ("mintres", "mintresperjob", "mintrespj"),
}
_COUNTS = {
    "grp_jobs": ("grpjobs",),
    "grp_submit": ("grpsubmit", "grpsubmitjobs"),
    "max_jobs": ("maxjobs",),
    "max_jobs_user": ("maxjobspu", "maxjobsperuser"),
    "max_jobs_account": ("maxjobspa", "maxjobsperaccount", "maxjobsperacct"),
    "max_submit": ("maxsubmit", "maxsubmitjobs"),
    "max_submit_user": ("maxsubmitpu", "maxsubmitjobspu", "maxsubmitjobsperuser"),
    "max_submit_account": ("maxsubmitpa", "maxsubmitjobspa", "maxsubmitjobsperaccount", "maxsubmitjobsperacct"),
    "min_priority": ("minpriothres", "minpriothreshold"),
}
_TIMES = {
    "grp_wall_min": ("grpwall",),
    "max_wall_min": ("maxwall", "maxwalldurationperjob", "maxwallpj"),
}
_OLD = {
    "grpcpus": ("grp_tres", "cpu"),
    "grpnodes": ("grp_tres", "node"),
    "grpmem": ("grp_tres", "mem"),
    "maxcpus": ("max_tres", "cpu"),
    "maxcpusperjob": ("max_tres", "cpu"),
    "maxnodes": ("max_tres", "node"),
    "maxnodesperjob": ("max_tres", "node"),
    "maxcpuspu": ("max_tres_user", "cpu"),
    "maxcpusperuser": ("max_tres_user", "cpu"),
    "maxnodespu": ("max_tres_user", "node"),
    "maxnodesperuser": ("max_tres_user", "node"),
    "mincpus": ("min_tres", "cpu"),
}
"""Columns and options of before 15.08, which one may still ask sacctmgr for."""
KNOWN = frozenset(name for table in (_TRES, _COUNTS, _TIMES) for names in table.values() for name in names) | set(_OLD)
"""Columns of ``sacctmgr show`` and options of ``sacctmgr dump``, in lower case, that `limits_of` reads."""


def limits_of(cells: Mapping[str, str]) -> Limits:
    """Parse limits in the cells of a row of ``sacctmgr show``, or the options of a line of ``sacctmgr dump``.

    An empty cell, -1 and a resource with -1 mean no limit.

    Args:
        cells: by column or option in lower case; those not in `KNOWN` are skipped.

    Raises:
        InputError: one cannot be parsed.
    """
    found: dict[str, object] = {}
    for name, (one, resource) in _OLD.items():
        if not _none(cells.get(name)):
            found[one] = {**_resources(found.get(one)), **_amounts(f"{resource}={cells[name]}")}
    for one, names in _TRES.items():
        for name in names:
            if not _none(cells.get(name)):
                found[one] = {**_resources(found.get(one)), **_amounts(cells[name])}
    for table, read in ((_COUNTS, whole), (_TIMES, minutes)):
        for one, names in table.items():
            for name in names:
                if not _none(cells.get(name)):
                    found[one] = read(name, cells[name])
    return Limits(**found) if found else NO_LIMITS  # type: ignore[arg-type]


def _none(text: str | None) -> bool:
    return text is None or text.strip().lower() in {"", "-1", "n/a", "(null)"}


def _resources(found: object) -> Mapping[str, float]:
    return found if isinstance(found, dict) else {}


def _amounts(text: str) -> dict[str, float]:
    return {name: amount for name, amount in tres_amounts(text).items() if amount >= 0}
