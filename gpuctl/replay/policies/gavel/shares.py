"""Shares of time on each GPU type: linear programs, solved by HiGHS; of a single type there is a formula."""

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
"""What jobs that have their share give way by, as a part of it, for rounding not to leave the next program without a
solution."""

PRICE = 1e-9
"""A job whose share has a greater price in the program's dual keeps the others down."""

LEAST_NEED = 1e-6
"""Of its highest speed: coefficients of the programs stay within a million."""

CLOSE = 1e-9
"""Relative distance at which a search for rho is over, and the most steps that one takes."""
STEPS = 60


@dataclass(frozen=True)
class _Division:
    """Time to be divided: (jobs, types) what each job has of all time on a type, its GPUs, and those of the types."""

    worth: Floats
    gpus: Floats
    room: Floats


def fair_shares(speeds: Floats, gpus: Floats, room: Floats) -> tuple[Floats, Floats]:
    """Shares of time for which the job that fares worst fares best, then the next one, and so on.

    How a job fares is its GPUs x its speed for its speed on an even mixture of all GPUs, as Gavel has it.

    Args:
        speeds: (jobs, types); 0 where the job may not run; of each job some speed is above 0.
        gpus: (jobs) of each gang, at most those of every type on which it has a speed.
        room: (types) of each type.

    Returns:
        (jobs, types), as even over the types as can be; and of each job the GPUs' worth that it gets.
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
    """Shares of time for which the largest rho is least, then that of the jobs which do not keep it up, and so on.

    rho of a job = (since + left / its speed by its shares) / alone. Who cannot come down to the others' rho is as fast
    as it can be.

    Args:
        speeds: see `fair_shares`, and so on:
        gpus: see there.
        room: see there.
        left: (jobs) seconds of work that each has left at speed 1, above 0.
        since: (jobs) seconds since its submission.
        alone: (jobs) seconds that it would take in all with its part of the cluster for itself, above 0.

    Returns:
        (jobs, types), as even over the types as can be; and rho of each job that it gets at least.
    """
    best = speeds.max(axis=1)

    def needs(rho: float) -> Floats:
        # parts of its highest speed that bring each job to that rho
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
    """A rho at which every job needs no more than the least that counts."""
    return float(((since + left / (LEAST_NEED * best)) / alone).max())


def _least_rho(
    needs: Callable[[float], Floats], time: _Division, level: Floats, rises: Truths, highest: float
) -> tuple[Floats, Floats]:
    """What jobs need at the least rho to which all that rise can come, and what their needs cost there.

    A program says how much of their needs at some rho can be met. Its prices hold at any rho: the needs that they pay
    for are met in full at none below the one that is tried next. So it comes from below, and ends where all are met.
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
    """The least rho at which a falling function has come down to its goal, within `CLOSE` of itself; or `highest`."""
    if value(0.0) <= goal:
        return 0.0
    low, high = 0.0, highest
    while high - low > CLOSE / 100 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if value(middle) <= goal else (middle, high)
    return high


def _filled(gpus: Floats, room: float) -> float:
    """The level to which gangs fill the room, where none takes more than its GPUs; inf where they do not fill it."""
    ordered = np.sort(gpus)
    before = np.concatenate([[0.0], np.cumsum(ordered)])
    for k, most in enumerate(ordered):
        level = (room - before[k]) / (ordered.size - k)
        if level < most:
            return float(level)
    return np.inf


def _most(time: _Division, level: Floats, rises: Truths) -> tuple[float, Floats]:
    """The most that all jobs that rise can get, where the others get their level; and what each job's part costs."""
    found = _solved(time, np.where(rises, 0.0, level), rises.astype(np.float64), None)
    return float(found.x[-1]), np.asarray(-found.ineqlin.marginals[: len(level)])


def _even(time: _Division, level: Floats) -> Floats:
    """Shares that give each job its level and are as even over the types as can be: the least part is the most."""
    part = (time.worth > 0) * time.room * (level / time.gpus)[:, None]
    found = _solved(time, level, np.zeros(len(level)), part)
    return np.asarray(found.x[:-1].reshape(part.shape)).clip(0.0, 1.0)


def _solved(time: _Division, level: Floats, rises: Floats, part: Floats | None) -> Any:
    """The program for the most that there can be of the last variable, what jobs rise by or their part of each type."""
    from scipy.optimize import linprog
    from scipy.sparse import coo_array

    worth, gpus, room = time.worth.ravel(), time.gpus, time.room
    jobs, types = time.worth.shape
    at = np.arange(jobs * types)
    job, kind = at // types, at % types
    # rows: what each job gets; its shares are at most 1; each type has so many GPUs
    row = [job, np.arange(jobs), jobs + job, 2 * jobs + kind]
    column = [at, np.full(jobs, at.size), at, at]
    value = [-worth, rises, np.ones(at.size), gpus[job]]
    bounds = [-level * (1 - SLACK), np.ones(jobs), room]
    if part is not None:
        # and: each share is at least so much of the type's part
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
