"""Finds whose telemetry a file has, where only its name or folder shows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from typing import BinaryIO

    from gpuctl.ingest.core.format import Sink

_WORD = r"(?<![A-Za-z0-9]){}(?![A-Za-z0-9])"
_ID = re.compile(r"(?<![A-Za-z0-9])\d{2,12}(?:_\d{1,7})?(?![A-Za-z0-9])", re.ASCII)


_TOOLS = frozenset({"dmon", "dcgmi-dmon", "nvidia-smi", "nvidia-smi-q", "amd-smi"})


class Origin(NamedTuple):
    """The node of a file, and the job that it was recorded in; None: nothing shows it."""

    machine: str | None
    job: str | None


def origin_of(stream: BinaryIO, sink: Sink) -> Origin:
    """The node that a file's name, or the nearest of its folders, names; the job whose id its name has.

    Of a store without nodes the node is the name's first part that names no tool, without suffixes.
    """
    place = getattr(stream, "place", None)
    path = place.path if place is not None else str(getattr(stream, "name", "") or "")
    parts = [part for part in re.split(r"[/!]", path) if part]
    if not parts:
        return Origin(None, None)
    known = sink.query("SELECT machine FROM machines WHERE cluster = $c", {"c": sink.cluster})["machine"].to_list()
    sql = "SELECT job FROM jobs WHERE cluster = $c AND job IN (SELECT unnest($ids::VARCHAR[]))"
    jobs = sink.query(sql, {"c": sink.cluster, "ids": _ID.findall(parts[-1])})["job"].to_list()
    job = jobs[0] if len(jobs) == 1 else None
    if not known:
        return Origin(next((part for part in parts[-1].split(".") if part and part not in _TOOLS), None), job)
    for part in reversed(parts):
        named = [name for name in known if name in part and re.search(_WORD.format(re.escape(name)), part)]
        if named:
            return Origin(max(named, key=len), job)
    return Origin(None, job)
