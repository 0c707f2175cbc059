"""Limits on GPUs as rows of ``gpu_limits``; three of sacctmgr's outputs hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gpuctl.core.line_reader import RowError
from gpuctl.ingest.slurm.site.machines import Rows
from gpuctl.slurm.gres import read_tres

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.ingest.core.format import Sink

KINDS = {
    "grptres": "group",
    "maxtres": "job",
    "maxtresperjob": "job",
    "maxtrespj": "job",
    "maxtrespernode": "node",
    "maxtrespn": "node",
    "maxtrespu": "per_user",
    "maxtresperuser": "per_user",
    "maxtrespa": "per_account",
    "maxtresperaccount": "per_account",
}
"""sacctmgr's column or option, in lower case -> ``gpu_limits.limit_kind``.

Not among them, for they bound GPU time, wall time or numbers of jobs and not GPUs: Grp/MaxTRESMins,
GrpTRESRunMins, GrpWall, MaxWall, Grp/MaxJobs, Grp/MaxSubmit, MinTRES.
"""


PARENT = "sacctmgr.parent."
"""``settings`` have the account above an account under this and its name."""


class Holder(NamedTuple):
    """Whom a limit is for; see ``gpu_limits``."""

    scope: str
    account: str | None = None
    parent: str | None = None
    user: str | None = None
    partition: str | None = None
    qos: str | None = None


class LimitRows(Rows):
    """Rows of ``gpu_limits``, and, in ``settings``, which account each account is part of: its limits bind both."""

    def __init__(self, sink: Sink) -> None:
        names = [*Holder._fields, "limit_kind", "gpu_type"]
        super().__init__(sink, "gpu_limits", {**dict.fromkeys(names, "text"), "gpus": "real"})
        self._parents = Rows(sink, "settings", {"name": "text", "value": "text"})

    def take(self, holder: Holder, cells: Mapping[str, str]) -> None:
        """Add the limits on GPUs in some cells, ignoring other cells.

        Raises:
            RowError: a limit on GPUs is not a number.
        """
        try:
            found = [(KINDS[name], read_tres(value)) for name, value in cells.items() if name in KINDS]
        except ValueError as bad:
            raise RowError(str(bad)) from None
        if holder.scope == "account" and holder.account and holder.parent:
            self._parents.add(PARENT + holder.account, holder.parent)
        for kind, limits in found:
            for gpu_type, gpus in limits.items():
                self.add(*holder, kind, gpu_type, gpus)

    def flush(self) -> None:
        """Write what was added."""
        super().flush()
        self._parents.flush()
