"""Slurm's limits on the GPUs of accounts, users and QOS, replayed along with the quotas of queues.

A job's limits follow from its account, user and QOS. Holdings of their jobs are replayed like all others; a limit on
one GPU type counts and binds only jobs of that type. Limits are those of the newest file: earlier ones are unknown.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpuctl.analyze.occupancy import step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from gpuctl.analyze.occupancy import Bools, Floats, Ints


class Cap(NamedTuple):
    """One limit, and what its holders held.

    Attributes:
        limit: GPUs.
        at: seconds at which the held GPUs change.
        change: the changes.
    """

    limit: float
    at: Floats
    change: Floats


@dataclass(frozen=True)
class Caps:
    """Limits by wait.

    Attributes:
        group: of each wait, the number of its set of limits; -1: none. Empty if there are no limits at all.
        sets: the limits of each number.
    """

    group: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    sets: tuple[tuple[Cap, ...], ...] = ()

    def parts(self, waits: Ints) -> Iterator[tuple[int, Ints]]:
        """Return some waits by their set of limits: its number and the waits."""
        if not self.sets:
            yield -1, waits
            return
        for number in np.unique(self.group[waits]):
            yield int(number), waits[self.group[waits] == number]

    def over(self, number: int, demand: int, times: Floats) -> Bools | None:
        """Return whether a gang of `demand` GPUs would exceed a limit of the set at some times; None if it has none."""
        if number < 0:
            return None
        found = np.zeros(times.size, bool)
        for cap in self.sets[number]:
            found |= step(times, cap.at, cap.change) + demand > cap.limit
        return found


def caps(waited: pl.DataFrame, held: pl.DataFrame, limits: pl.DataFrame, owners: pl.DataFrame) -> Caps:
    """Return the limits on each wait.

    Args:
        waited: the waits: job, gpu_type, user, queue.
        held: holdings of attempts: job, gpus, gpu_type, user, held_from_c, held_until_c.
        limits: ``base_gpu_limits``.
        owners: ``base_owners``.
    """
    if limits.is_empty():
        return Caps()
    known = list(limits.iter_rows(named=True))
    whose = {row["job"]: row for row in owners.iter_rows(named=True)}
    changes: dict[tuple[int, str | None], list[tuple[float, float]]] = defaultdict(list)
    for row in held.iter_rows(named=True):
        for key in keys(known, whose.get(row["job"]), row):
            changes[key] += [(row["held_from_c"], row["gpus"]), (row["held_until_c"], -row["gpus"])]
    numbers: dict[tuple[tuple[int, str | None], ...], int] = {}
    group = np.full(waited.height, -1, np.int64)
    for wait, row in enumerate(waited.select("job", "gpu_type", "user", "queue").iter_rows(named=True)):
        under = tuple(keys(known, whose.get(row["job"]), row))
        if under:
            group[wait] = numbers.setdefault(under, len(numbers))
    return Caps(group, tuple(tuple(_cap(known, changes, key) for key in under) for under in numbers))


def _cap(
    known: Sequence[Mapping[str, float]],
    changes: Mapping[tuple[int, str | None], list[tuple[float, float]]],
    key: tuple[int, str | None],
) -> Cap:
    pairs = np.array(changes.get(key, []), np.float64).reshape(-1, 2)
    return Cap(known[key[0]]["gpus"], pairs[:, 0], pairs[:, 1])


def keys(
    known: Sequence[Mapping[str, str | None]], whose: Mapping[str, object] | None, job: Mapping[str, str | None]
) -> Iterator[tuple[int, str | None]]:
    """Return the limits on a job: each one's number, and the sharing owner if it is set per owner.

    Args:
        known: rows of ``base_gpu_limits``.
        whose: the job's row of ``base_owners``; None: unknown.
        job: its ``gpu_type``, ``user`` and ``queue``.
    """
    if whose is None:
        return
    own = (whose["qos"], whose["partition_qos"])
    for number, limit in enumerate(known):
        if limit["gpu_type"] not in {None, job["gpu_type"]} or limit["partition"] not in {None, job["queue"]}:
            continue
        kind, scope = limit["limit_kind"], limit["scope"]
        if scope == "qos" and limit["qos"] in own:
            if kind == "per_user":
                yield number, job["user"]
            elif kind == "per_account":
                yield number, str(whose["account"])
            elif limit["qos"] == whose["qos"]:
                # the limit of the partition's own QOS is the partition's quota
                yield number, None
        elif kind == "group" and (
            scope == "cluster"
            or (scope == "account" and limit["account"] in whose["accounts"])  # type: ignore[operator]
            or (scope == "user" and limit["account"] == whose["account"] and limit["user"] == job["user"])
        ):
            yield number, None
