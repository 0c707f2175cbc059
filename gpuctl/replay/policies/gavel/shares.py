"""Shares of time on each GPU type: linear programs, solved by HiGHS; a single type has a closed form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Truths = NDArray[np.bool_]

SLACK = 1e-6
"""Relative slack of fixed shares, so that rounding does not make the next program infeasible."""

PRICE = 1e-9
"""Dual price above which a job's share limits the others."""

LEAST_NEED = 1e-6
"""Least speed relative to a job's highest: coefficients of the programs stay within a million."""

CLOSE = 1e-9
"""Relative tolerance of a search for rho, and its most steps."""
STEPS = 60


@dataclass(frozen=True)
class _Division:
    """The division problem: (jobs, types) value of all time on a type to each job, its GPUs, and those of the types."""

    worth: Floats
    gpus: Floats
    room: Floats


def fair_shares(speeds: Floats, gpus: Floats, room: Floats) -> tuple[Floats, Floats]:
    """Max-min fair shares of time, lexicographically.

    A job's value is its GPUs x its speed relative to an even mixture of all GPUs, as in Gavel.

    Args:
        speeds: (jobs, types); 0 if the job may not run there; each job has some speed above 0.
        gpus: (jobs) of each gang, at most those of every type on which it has a speed.
        room: (types) of each type.

    Returns:
        (jobs, types), as even over the types as possible; and each job's value in GPUs.
    """
    if room.size == 1:
        level = np.minimum(gpus, _filled(gpus, room[0]))
        return (level / gpus)[:, None], level
    worth = gpus[:, None] * speeds / (speeds @ room / room.sum())[:, None]
    time = _Division(worth, gpus, room)
    level, rises = np.zeros(len(gpus)), np.ones(len(gpus), bool)
    while rises.any():
        level[rises], price = _most(time, level, rises)
        stuck = rises & (price > PRICE)
        rises &= ~stuck if stuck.any() else False
    return _even(time, level), level


def finish_time_shares(
    speeds: Floats, gpus: Floats, room: Floats, *, left: Floats, since: Floats, alone: Floats
) -> tuple[Floats, Floats]:
    """Shares of time that minimize the largest rho, then that of the jobs not bound by it, and so on.

    rho of a job = (since + left / its speed by its shares) / alone. A job that cannot reach the others' rho runs as
    fast as possible.

    Args:
        speeds: see `fair_shares`.
        gpus: see there.
        room: see there.
        left: (jobs) seconds of work that each has left at speed 1, above 0.
        since: (jobs) seconds since its submission.
        alone: (jobs) seconds that it would take in total on an isolated part of the cluster, above 0.

    Returns:
        (jobs, types), as even over the types as possible; and the rho guaranteed to each job.
    """
    best = speeds.max(axis=1)

    def needs(rho: float) -> Floats:
        # shares of its highest speed that bring each job to that rho
        rest = np.maximum(rho * alone - since, 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.clip(left / (rest * best), LEAST_NEED, 1.0))

    if room.size == 1:
        rho = _root(lambda rho: float(gpus @ needs(rho)), float(room[0]), _highest(left, since, alone, best))
        part = needs(rho)
        return part[:, None], (since + left / (part * best)) / alone
    time = _Division(speeds / best[:, None], gpus, room)
    highest = _highest(left, since, alone, best)
    level, rises = np.zeros(len(gpus)), np.ones(len(gpus), bool)
    while rises.any():
        need, price = _least_rho(needs, time, level, rises, highest)
        stuck = rises & ((price > PRICE) | (need >= 1.0))
        stuck = stuck if stuck.any() else rises
        level[stuck] = need[stuck]
        rises = rises & ~stuck
    return _even(time, level), (since + left / (level * best)) / alone


def _highest(left: Floats, since: Floats, alone: Floats, best: Floats) -> float:
    """A rho at which every job needs at most the least relevant share."""
    return float(((since + left / (LEAST_NEED * best)) / alone).max())


def _least_rho(
    needs: Callable[[float], Floats], time: _Division, level: Floats, rises: Truths, highest: float
) -> tuple[Floats, Floats]:
    """Needs of the jobs at the least rho that all free jobs can reach, and their dual prices.

    A program gives the part of their needs that can be met at some rho. Its prices hold at any rho and bound the rho
    from below, which is tried next. So the search rises from below, and ends when all needs are met.
    """
    rho = 0.0
    for _ in range(STEPS):
        need = needs(rho)
        met, price = _most(replace(time, worth=time.worth / np.where(rises, need, 1.0)[:, None]), level, rises)
        if met >= 1.0 - CLOSE:
            break
        paid = np.where(rises, price / need, 0.0)
        after = _root(lambda rho, paid=paid: float(paid @ needs(rho)), met, highest)  # type: ignore[misc]
        if after <= rho * (1 + CLOSE):
            break
        rho = after
    return need, price


def _root(value: Callable[[float], float], goal: float, highest: float) -> float:
    """The least rho at which a decreasing function reaches its goal, within a relative `CLOSE`; or `highest`."""
    if value(0.0) <= goal:
        return 0.0
    low, high = 0.0, highest
    while high - low > CLOSE / 100 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if value(middle) <= goal else (middle, high)
    return high


def _filled(gpus: Floats, room: float) -> float:
    """The level to which gangs fill the room, each up to its GPUs; inf if they do not fill it."""
    ordered = np.sort(gpus)
    before = np.concatenate([[0.0], np.cumsum(ordered)])
    for k, most in enumerate(ordered):
        level = (room - before[k]) / (ordered.size - k)
        if level < most:
            return float(level)
    return np.inf


def _most(time: _Division, level: Floats, rises: Truths) -> tuple[float, Floats]:
    """The most that all free jobs can get if the others get their level, and each job's dual price."""
    found = _solved(time, np.where(rises, 0.0, level), rises.astype(np.float64), None)
    return float(found.x[-1]), np.asarray(-found.ineqlin.marginals[: len(level)])


def _even(time: _Division, level: Floats) -> Floats:
    """Shares that give each job its level and are as even over the types as possible: maximize the least part."""
    part = (time.worth > 0) * time.room * (level / time.gpus)[:, None]
    found = _solved(time, level, np.zeros(len(level)), part)
    return np.asarray(found.x[:-1].reshape(part.shape)).clip(0.0, 1.0)


def _solved(time: _Division, level: Floats, rises: Floats, part: Floats | None) -> Any:
    """Maximize the last variable: the rise of jobs, or their part of each type."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    worth, gpus, room = time.worth.ravel(), time.gpus, time.room
    jobs, types = time.worth.shape
    at = np.arange(jobs * types)
    job, kind = at // types, at % types
    # rows: each job's value; its shares are at most 1; the GPUs of each type
    row = [job, np.arange(jobs), jobs + job, 2 * jobs + kind]
    column = [at, np.full(jobs, at.size), at, at]
    value = [-worth, rises, np.ones(at.size), gpus[job]]
    bounds = [-level * (1 - SLACK), np.ones(jobs), room]
    if part is not None:
        # and: each share is at least that much of the type's part
        runs = np.flatnonzero(worth > 0)
        row += 2 * [2 * jobs + types + np.arange(runs.size)]
        column += [runs, np.full(runs.size, at.size)]
        value += [-np.ones(runs.size), part.ravel()[runs]]
        bounds += [np.zeros(runs.size)]
    rows = coo_array((np.concatenate(value), (np.concatenate(row), np.concatenate(column)))).tocsr()
    cost = np.zeros(at.size + 1)
    cost[-1] = -1.0
    limits = np.column_stack([np.zeros(at.size + 1), np.append(worth > 0, np.inf)])
    found = linprog(cost, A_ub=rows, b_ub=np.concatenate(bounds), bounds=limits, method="highs")
    if found.x is None:
        raise ArithmeticError(f"HiGHS found no shares of {jobs} jobs: {found.message}")
    return found
