"""The owner of a log file from its path: the user's patterns first, then the layouts of Slurm and YARN."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gpuctl.ingest.joboutput.patterns import Log, Pattern
from gpuctl.ingest.read.files import plain_name
from gpuctl.ingest.yarn.ids import container_id

if TYPE_CHECKING:
    from gpuctl.ingest.core.format import Place

NO_OUTPUT = frozenset({"launch_container.sh", "directory.info"})
"""Files that YARN itself puts next to the logs of a container: the script that started it, and what its folder held."""
_WORK_FOLDERS = frozenset({"usercache", "filecache", "nmPrivate"})
_SLURM = ("slurm-%A_%a.out", "slurm-%j.out", "slurm-%A_%a.err", "slurm-%j.err")


@cache
def _slurm() -> tuple[Pattern, ...]:
    return tuple(Pattern(text) for text in _SLURM)


def by_layout(place: Place) -> tuple[Log, str] | None:
    """Recognise the default names of Slurm and YARN; return whose log it is, and by what."""
    parts = place.path.replace("!", "/").split("/")
    name = plain_name(parts[-1])
    for pattern in _slurm() if name.startswith("slurm-") else ():
        found = pattern.match(name)
        if found is not None:
            return found, f"named {pattern.text}"
    container = container_id(parts[-2]) if len(parts) > 1 else None
    if container is None or name in NO_OUTPUT or not _WORK_FOLDERS.isdisjoint(parts):
        return None
    return Log(container.job, container.attempt, f"{name}:{parts[-2]}"), "in the folder of a container"


def of_container(container: str, name: str) -> Log | None:
    """Whose log a container's log of that name is; None if it is no container's id, or the log is no output."""
    known = container_id(container)
    if known is None or name in NO_OUTPUT:
        return None
    return Log(known.job, known.attempt, f"{name}:{container}")
