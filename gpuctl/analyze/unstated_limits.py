"""How long each wait may have been for a limit on its owner that no source states.

A limit in force all the time was never exceeded. So it can have delayed an attempt only while its owner's holdings with
this attempt would have exceeded their maximum in the log. Owners are those for whom Slurm sets limits: users, accounts,
QOS, partitions and pairs of these; limits are on GPUs, CPUs and running jobs
(https://slurm.schedmd.com/resource_limits.html). The maximum over all jobs of a cluster or partition is not a limit if
it equals all of its GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze.occupancy import step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.analyze.occupancy import Bools, Floats, Ints

    Levels = tuple[Floats, Floats, float, int]

OWNERS = (
    ("user",), ("account",), ("qos",), ("queue",),
    ("user", "account"), ("user", "qos"), ("user", "queue"), ("account", "qos"), ("account", "queue"),
)  # fmt: skip
HELD = ("gpus", "cpus", "jobs")


def possible_s(attempts: pl.DataFrame, wait: Ints, queued: Floats, start: Floats, total: Floats) -> Floats:
    """Return the most seconds that each wait may have been for such a limit.

    Args:
        attempts: started attempts: user, account, qos, queue (null: unknown), gpus, cpus, held_from_c and
            held_until_c, seconds.
        wait: row of each wait's attempt.
        queued: of each wait, seconds.
        start: of each wait, seconds.
        total: by wait, the GPUs of the nodes that its gang may use; inf if unknown.
    """
    held = attempts.with_columns(jobs=pl.lit(1.0))
    groups = [_numbers(held, owners) for owners in OWNERS]
    levels = [_levels(held, group, name) for group in groups for name in HELD]
    requested = np.stack([held[name].cast(pl.Float64).fill_null(0.0).to_numpy() for name in HELD], axis=1)
    _, kind = np.unique(np.column_stack([*groups, requested])[wait], axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    found = np.zeros(wait.size)
    for some in _indices_by_number(kind):
        first = int(wait[some[0]])
        owners = [int(group[first]) for group in groups]
        spans = list(_spans(levels, owners, requested[first], float(total[some].max())))
        found[some] = _within(spans, queued[some], start[some])
    return found


def _indices_by_number(number: Ints) -> list[Ints]:
    """Return the indices of each number, ascending."""
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if number.size else []


def _numbers(held: pl.DataFrame, owners: tuple[str, ...]) -> Ints:
    """Return the number of each attempt's owner; -1 if unknown."""
    known = ~pl.any_horizontal(pl.col(name).is_null() for name in owners)
    number = pl.struct(owners).rank("dense").cast(pl.Int64)
    return held.select(pl.when(known).then(number).otherwise(-1)).to_series().to_numpy()


def _levels(held: pl.DataFrame, group: Ints, name: str) -> dict[int, Levels]:
    """Return, by owner: change times of its holdings, the level after each, the maximum, and a number.

    Owners of the same attempts have the same number.
    """
    amount = held[name].cast(pl.Float64).to_numpy()
    begin, end = held["held_from_c"].to_numpy(), held["held_until_c"].to_numpy()
    found = {}
    for some in _indices_by_number(group):
        if group[some[0]] >= 0 and not np.isnan(amount[some]).any():
            at = np.concatenate([begin[some], end[some]])
            times = np.unique(at)
            level = step(times, at, np.concatenate([amount[some], -amount[some]]))
            found[int(group[some[0]])] = times, level, float(level.max()), hash(some.tobytes())
    return found


def _spans(
    levels: list[dict[int, Levels]], owners: list[int], requested: Floats, total: float
) -> Iterator[tuple[Floats, Floats]]:
    """Return begins and ends of the periods in which one of the owners would have exceeded its maximum."""
    seen = set()
    for number, owner in enumerate(owners):
        for measure, name in enumerate(HELD):
            there = levels[number * len(HELD) + measure].get(owner)
            if there is None or requested[measure] <= 0:
                continue
            times, level, most, members = there
            if (name == "gpus" and most >= total) or (name, members) in seen:
                continue
            seen.add((name, members))
            over: Bools = level + requested[measure] > most * (1 + 1e-9)
            # before the first change and after the last one nothing is held
            turns = np.flatnonzero(np.diff(over.astype(np.int8), prepend=0, append=0))
            times = np.append(times, times[-1])
            if turns.size:
                yield times[turns[::2]], times[turns[1::2]]


def _within(spans: list[tuple[Floats, Floats]], queued: Floats, start: Floats) -> Floats:
    """Return the seconds between `queued` and `start` that lie in at least one of the spans."""
    if not spans:
        return np.zeros(queued.size)
    at = np.concatenate([each for span in spans for each in span])
    change = np.concatenate([np.repeat([1, -1], each[0].size) for each in spans])
    order = np.argsort(at, kind="stable")
    at = at[order]
    covered = np.diff(at, append=at[-1:]) * (np.cumsum(change[order]) > 0)
    before = np.concatenate([[0.0], np.cumsum(covered)])[:-1]
    return np.asarray(np.interp(start, at, before) - np.interp(queued, at, before))
