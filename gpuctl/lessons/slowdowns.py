"""How much slower gangs are on more nodes, and jobs with neighbours: by GPU utilization of similar attempts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.notes import note
from gpuctl.lessons.finding import Estimate
from gpuctl.lessons.ratios import NOTHING, Ratio, ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.lessons.utilization import Use
    from gpuctl.replay.models.records import Floats, Ints

SIZES = ("2-4", "5-8", ">8")
LEVELS = ("more nodes", "several racks")
ENOUGH_UNITS = 10
"""Fewest spread attempts for a size's own ratio; with fewer, the ratio of all sizes is used."""
FEW_USERS = 10
"""Fewest users; with fewer, kinds of jobs (same user, name and GPUs) are resampled."""


NAME, USER, JOB = "name", "user", "job"
LIKENESS = {
    NAME: note("alike: same user, name and GPUs"),
    USER: note("alike: same user and GPUs alone, as jobs have no names; unlike jobs of one user may explain it: the "
               "interval reaches to 1"),
    JOB: note("alike: attempts of the same job"),
}  # fmt: skip
"""What makes attempts similar."""


@dataclass(frozen=True)
class Slowdowns:
    """Ratios of GPU utilization.

    Attributes:
        all_sizes: on more nodes of one rack, and in several racks, over the fewest nodes: one of each, all gangs.
        by_size: the same by size of gang; its keys are (size, level from 1).
        shared: with a neighbour, over alone.
        attempts: number of attempts with telemetry.
        gangs: number of these with more than one GPU.
        spread: number of these on more than the fewest nodes.
        clusters: the resampled units: users, or kinds of jobs.
        likeness: the criterion of similarity, a key of `LIKENESS`.
    """

    all_sizes: tuple[Ratio, Ratio]
    by_size: dict[tuple[str, int], Ratio]
    shared: Ratio
    attempts: int
    gangs: int
    spread: int
    clusters: str
    likeness: str = NAME


def size_of(gpus: Ints) -> Ints:
    """The size class of gangs: 0 for 2 to 4 GPUs, 1 for 5 to 8, 2 for more; -1 for one GPU."""
    return np.where(gpus <= 1, -1, np.where(gpus <= 4, 0, np.where(gpus <= 8, 1, 2))).astype(np.int64)


def measure(use: Use) -> Slowdowns:
    """Compare similar attempts.

    Placement: similar attempts on more than the fewest nodes and on the fewest; each attempt counts once, with the loss
    to neighbours added back. Similar attempts have the same user, name and GPUs. If jobs have no names, or attempts of
    the same job disagree, only attempts of the same job count; if they are too few, the jobs rather than the nodes may
    differ: the interval then reaches to equal speed. Interference: the same attempt, while it had a neighbour on one of
    its nodes and while it had none.
    """
    gang = use.gpus > 1
    shared = _shared(use)
    if not gang.any():
        return Slowdowns((NOTHING, NOTHING), {}, shared, use.gpus.size, 0, 0, "users")
    level, size = use.level[gang], size_of(use.gpus[gang])
    like, user, share = use.like[gang], use.user[gang], use.shared_share[gang]
    # its utilization if it had been alone
    y = use.pct[gang] / (1 - share * (1 - (shared.estimate.value or 1.0)))
    two = np.stack([level == 1, level == 2], axis=1).astype(np.float64)
    cluster_of, kind = _clusters(user, like, (level > 0).astype(np.int64))
    likeness, alike = _similarity(y, two, use.job[gang], like, cluster_of, named=bool(use.named[gang].all()))
    first = alike(np.ones(y.size, bool))
    by_size: dict[tuple[str, int], Ratio] = {}
    for number, name in enumerate(SIZES):
        here = size == number
        if here.any():
            own = alike(here)
            by_size |= {(name, at + 1): own[at] for at in range(2)}
    return Slowdowns(
        (first[0], first[1]), by_size, shared, use.gpus.size, int(gang.sum()), int((level > 0).sum()), kind, likeness
    )


def _similarity(
    y: Floats, two: Floats, job: Ints, like: Ints, cluster: Ints, *, named: bool
) -> tuple[str, Callable[[NDArray[np.bool_]], list[Ratio]]]:
    """Return the criterion of similarity, and a function for the ratios of some attempts."""

    def kinds(here: NDArray[np.bool_]) -> list[Ratio]:
        return ratios(y[here], two[here], like[here], cluster[here])

    def jobs(here: NDArray[np.bool_]) -> list[Ratio]:
        return ratios(y[here], two[here], job[here], cluster[here])

    def up_to_one(here: NDArray[np.bool_]) -> list[Ratio]:
        return [_up_to_one(ratio) for ratio in kinds(here)]

    every = np.ones(y.size, bool)
    same, other = jobs(every)[0].estimate, kinds(every)[0].estimate
    if same.low is None or same.high is None:
        return (NAME, kinds) if named else (USER, up_to_one)
    agree = other.low is None or other.high is None or (other.low <= same.high and same.low <= other.high)
    return (NAME, kinds) if named and agree else (JOB, jobs)


def _up_to_one(ratio: Ratio) -> Ratio:
    """Return a ratio that differences between jobs may explain: it is not proven to differ from 1."""
    own = ratio.estimate
    if own.low is None or own.high is None:
        return ratio
    return replace(ratio, estimate=Estimate(own.value, min(own.low, 1.0), max(own.high, 1.0)), p=1.0)


def _clusters(user: Ints, like: Ints, changed: Ints) -> tuple[Ints, str]:
    """Return the units to resample, and their name."""
    telling = {u for u in np.unique(user).tolist() if 0 < changed[user == u].mean() < 1}
    return (user, "users") if len(telling) >= FEW_USERS else (like, "kinds of jobs")


def _shared(use: Use) -> Ratio:
    both = (use.alone > 0) & (use.shared > 0)
    if not both.any():
        return NOTHING
    n = int(both.sum())
    # of two periods, the shorter one limits the information in their ratio
    weight = 1 / (1 / use.alone[both] + 1 / use.shared[both])
    y = np.concatenate([use.alone_pct[both], use.shared_pct[both]])
    x = np.concatenate([np.zeros(n), np.ones(n)])[:, None]
    group = np.tile(np.arange(n), 2)
    users = np.unique(use.user[both]).size
    cluster = use.user[both] if users >= FEW_USERS else np.arange(n)
    return ratios(y, x, group, np.tile(cluster, 2), np.tile(weight, 2))[0]


def bucket(gpus: Ints) -> Ints:
    """The size class of jobs: 0 for one GPU, then as `size_of`, one higher."""
    return size_of(gpus) + 1


BUCKETS = ("1", *SIZES)


def speed_of(measured: Slowdowns, size: str, level: int, end: str = "value") -> tuple[float, str]:
    """Return the speed for replays of a gang, relative to the fewest nodes, and its origin.

    Args:
        measured: the ratios.
        size: one of `SIZES`.
        level: 1: more nodes of one rack; 2: several racks.
        end: ``value``, or an end of its interval: ``low``, ``high``. While no ratio of all sizes is shown to be below
            1, the high end is at least 1: no saving rests on it then.

    Returns:
        the ratio of that size if enough attempts show it, else that of all sizes (``extrapolated``), of level 1
        for level 2 if no gang was in several racks; 1 (``assumed``) if nothing was measured.
    """
    own = measured.by_size.get((size, level), NOTHING)
    known = own.estimate.low is not None and own.units >= ENOUGH_UNITS
    choices = [(own, "measured")] if known else []
    choices += [(measured.all_sizes[at], "extrapolated") for at in range(level - 1, -1, -1)]
    for ratio, origin in choices:
        value = getattr(ratio.estimate, end)
        if value is not None:
            shown = end != "high" or any(each.shown for each in measured.all_sizes)
            return float(value if shown else max(value, 1.0)), origin
    return 1.0, "assumed"


def shared_ends(measured: Slowdowns) -> tuple[float, float]:
    """Return the ends of the speed with a neighbour; the upper one at least 1 unless proven to be below."""
    low, high = measured.shared.estimate.low, measured.shared.estimate.high
    assert low is not None and high is not None  # noqa: S101, PT018 - whoever asks has looked
    return low, high if measured.shared.shown else max(high, 1.0)
