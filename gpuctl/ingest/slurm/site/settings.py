"""Which of Slurm's settings the store keeps: those that decide who starts when, and none that is a secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.slurm.site.machines import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.ingest.core.format import Sink

_BEGINNINGS = ("scheduler", "select", "priority", "preempt", "topology", "suspend", "resume")
_NAMES = frozenset(
    {
        *("clustername", "grestypes", "licenses", "jobrequeue", "requeueexit", "requeueexithold", "killwait"),
        *("overtimelimit", "maxarraysize", "maxjobcount", "slurmdtimeout", "enforcepartlimits", "slurm_version"),
        *(
            "accountingstorageenforce",
            "completewait",
            "batchstarttimeout",
            "returntoservice",
            "accountingstoragetres",
            "federationparameters",
        ),
    }
)


def is_stored(name: str) -> bool:
    """Check whether the store keeps a setting."""
    lower = name.lower()
    return lower in _NAMES or (lower.startswith(_BEGINNINGS) and not lower.endswith("program"))


def settings_rows(sink: Sink, settings: Mapping[str, str]) -> None:
    """Write settings, their names in lower case, values cut at 4 096 characters."""
    rows = Rows(sink, "settings", {"name": "text", "value": "text"})
    for name, value in settings.items():
        rows.add(name.lower(), value[:4096])
    rows.flush()
