"""How fast a job runs where it is put: the same for every policy of one comparison.

The work of a job is its recorded run time times its speed on the recorded placement, so that a replay on that placement
takes as long as recorded. See ``docs/replay.md`` for where the factors come from.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Cluster, Floats, Ints, Workload

SENSITIVE_PCT = 40
"""Share of jobs that are taken to be slowed down by a spread placement; which ones is a hash of the job's name."""

SPREAD_SPEED = 0.5
"""Speed over several servers of one rack, for one on a single server: median of Gavel's table for V100, 2 GPUs."""

RACK_EXPONENT = 1.3
"""Across racks the speed is that to this power."""

ALPHA = 0.08
"""n GPUs are n / (1 + ALPHA (n - 1)) times as fast as one: Gavel's table, medium class."""

PACK_SPEED = 0.69
"""Speed of a job beside another one on the same GPU: Gavel's table for V100, median."""


@dataclass(frozen=True)
class Rates:
    """Speeds of every job, for its speed on the recorded placement.

    Attributes:
        text: what holds, for headings.
        speed: (jobs, 3) on one server, on several of one rack, across racks.
        alpha: (jobs) how badly it scales with GPUs.
        pack: (jobs) beside another job on the same GPUs.
    """

    text: str
    speed: Floats
    alpha: Floats
    pack: Floats


def rates(name: str, workload: Workload, cluster: Cluster) -> Rates:
    """The speed model of that name: ``recorded`` (placement does not matter) or ``locality``.

    Raises:
        UsageError: no such model.
    """
    n = workload.size
    alpha, pack = np.full(n, ALPHA), np.full(n, PACK_SPEED)
    if name == "recorded" or cluster.pool:
        text = "recorded run times, wherever a job is put"
        return Rates(text, np.ones((n, 3)), alpha, pack)
    if name != "locality":
        raise UsageError(f"there is no speed model {name!r}", hint="there are: recorded, locality")
    sensitive = np.fromiter((zlib.crc32(i.encode()) % 100 < SENSITIVE_PCT for i in workload.ids), bool, n)
    at = np.array([1.0, SPREAD_SPEED, SPREAD_SPEED**RACK_EXPONENT])
    speed = np.where(sensitive[:, None], at[None, :], 1.0)
    level = recorded_level(workload, cluster)
    speed = speed / speed[np.arange(n), level][:, None]
    text = (
        f"{SENSITIVE_PCT} % of the jobs (by a hash of their names) run at {SPREAD_SPEED:g} of their speed over several "
        f"servers and at {SPREAD_SPEED**RACK_EXPONENT:.2g} over several racks; assumed, not measured"
    )
    return Rates(text, speed, alpha, pack)


def recorded_level(workload: Workload, cluster: Cluster) -> Ints:
    """Where each job ran in the trace: 0 one server, 1 several of one rack, 2 several racks.

    Of a job with several segments the first one counts. A job without a recorded placement is taken to have run
    consolidated: on one server where one can hold it, else in one rack.
    """
    biggest = int(cluster.gpus.max()) if cluster.gpus.size else 0
    level = np.where(workload.gpus <= biggest, 0, 1)
    first = workload.segment_start[:-1]
    at, end = workload.piece_start[first], workload.piece_start[first + 1]
    known = (end > at) & (workload.piece_server.size > 0)
    if not known.any():
        return level.astype(np.int64)
    rack = cluster.rack[workload.piece_server]
    starts = at[known]
    # pieces of first segments: compare the smallest and the largest rack of each
    owner = np.repeat(np.flatnonzero(known), (end - at)[known])
    index = np.concatenate([np.arange(a, b) for a, b in zip(starts, end[known], strict=True)]) if owner.size else owner
    low, high = np.full(workload.size, np.iinfo(np.int64).max), np.full(workload.size, -1)
    np.minimum.at(low, owner, rack[index])
    np.maximum.at(high, owner, rack[index])
    several = (end - at) > 1
    level = np.where(known, np.where(several, np.where(low == high, 1, 2), 0), level)
    return level.astype(np.int64)
