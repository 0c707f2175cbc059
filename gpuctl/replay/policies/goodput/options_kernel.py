"""Compiled: what each job may have under Sia and Pollux, and what each option costs."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner

MOST_COST = 3000.0
MOST_GPUS = 64
"""Of one job."""
POOL = 4096
"""Keys whose options are kept; if there are more, all are made again."""


@inner
def _cap(m, j):  # type: ignore[no-untyped-def]
    about = m.about[j]
    return min(about.cap, max(1, 2 * about.most)) if m.p[0].explore == 1 else about.cap


@inner
def key_of(m, j):  # type: ignore[no-untyped-def]
    """Number that jobs with the same options have in common."""
    about = m.about[j]
    return (about.kind * 10 + about.tenth) * (MOST_GPUS + 1) + _cap(m, j)


@inner
def factor_of(s, m, j):  # type: ignore[no-untyped-def]
    """What a change leaves of a job's goodput, by how often it has been restarted in its life so far."""
    about = m.about[j]
    age = s.g[0].now - s.jobs[j].submit
    if m.p[0].pollux == 0 and age < about.penalty:
        return 1.0
    span = age + about.penalty
    return max(age - max(about.restarts, 0) * about.penalty, 0.0) / span if span > 0 else 0.0


@inner
def cost_of(m, gain):  # type: ignore[no-untyped-def]
    """Cost of an option by its goodput and factor: as Sia, for its job's least; as Pollux, for the fair share."""
    p = m.p[0]
    if p.pollux == 1:
        return np.int64(np.floor(1e6 / (gain + 1e-3) + 0.5))
    part = MOST_COST if gain <= 0 else min(gain**p.power, MOST_COST)
    return np.int64(np.floor(100.0 * part + 0.5))


@inner
def _option(c, at, group, gpus, cost):  # type: ignore[no-untyped-def]
    c.group[at], c.gpus[at], c.cost[at] = group, gpus, cost
    return at + 1


@inner
def _may_use(s, m, j, group):  # type: ignore[no-untyped-def]
    return m.about[j].mask >> np.uint64(s.nodes[m.node[m.first_node[group]]].cls) & np.uint64(1) != 0


@inner
def _made(s, m, j):  # type: ignore[no-untyped-def]
    """The place in `listed` of the options of a job's key under Sia, at their costs without a change."""
    p, about = m.p[0], m.about[j]
    key, cap = key_of(m, j), _cap(m, j)
    if m.place[key] >= 0:
        return m.place[key]
    if p.made == m.made.size:
        for k in range(p.made):
            m.place[m.made[k]] = -1
        p.made = 0
    place = p.made
    p.made += 1
    m.made[place], m.place[key] = key, place
    first = at = place * (m.gain.size // m.made.size)
    unit = np.inf
    for t in range(m.size.size):
        if not _may_use(s, m, j, t):
            continue
        for k in range(m.count.shape[1]):
            gpus = m.count[t, k]
            there = m.goodput[about.app, t, k, about.tenth]
            if 0 < gpus <= cap and there > 0:
                m.in_group[at], m.of_gpus[at], m.gain[at] = t, gpus, there
                unit = min(unit, there)
                at += 1
    for k in range(first, at):
        m.gain[k] /= unit
        m.power[k] = m.gain[k] ** p.power
        m.plain[k] = cost_of(m, m.gain[k])
    m.listed[place] = at - first
    return place


@inner
def _changed(m, k, factor, power):  # type: ignore[no-untyped-def]
    """Cost of an option of `gain` after a change: its power times that of the factor, unless that is near a half."""
    part = m.power[k] * power
    if part < MOST_COST - 1.0:
        cost = 100.0 * part + 0.5
        if abs(cost - np.floor(cost + 0.5)) > 1e-6:
            return np.int64(np.floor(cost))
    return cost_of(m, m.gain[k] * factor)


@inner
def _options_of_sia(s, m, c, j, at):  # type: ignore[no-untyped-def]
    """List what a job may have under Sia, from a place on; returns the place behind them."""
    p, about = m.p[0], m.about[j]
    place = _made(s, m, j)
    held = s.jobs[j].held if about.group >= 0 else 0
    factor = factor_of(s, m, j) if held > 0 else 1.0
    power = factor**p.power if factor > 0 else np.inf
    first = at
    if held > 0:
        at += 1
    begin = place * (m.gain.size // m.made.size)
    for k in range(begin, begin + m.listed[place]):
        group, gpus = m.in_group[k], m.of_gpus[k]
        if group == about.group and gpus == held:
            _option(c, first, group, gpus, m.plain[k])
        elif factor == 1.0:
            at = _option(c, at, group, gpus, m.plain[k])
        else:
            at = _option(c, at, group, gpus, _changed(m, k, factor, power))
    return _option(c, at, -1, 0, np.int64(np.floor(100.0 * p.no_alloc + 0.5)))


@inner
def _options_of_pollux(s, m, c, j, fair, at):  # type: ignore[no-untyped-def]
    """The same under Pollux, with the GPUs of a fair share."""
    about = m.about[j]
    cap = _cap(m, j)
    held = s.jobs[j].held if about.group >= 0 else 0
    while fair > 1 and m.fair[about.app, fair, about.tenth] <= 0:
        fair -= 1
    unit = m.fair[about.app, fair, about.tenth]
    factor = factor_of(s, m, j)
    first = at
    if held > 0:
        at += 1
    at = _option(c, at, -1, 0, 10**9)
    for t in range(m.size.size):
        if not _may_use(s, m, j, t):
            continue
        for k in range(m.count.shape[1]):
            gpus = m.count[t, k]
            there = m.goodput[about.app, t, k, about.tenth]
            if gpus == 0 or gpus > cap or there <= 0:
                continue
            gain = there / unit / m.size[t]
            if t == about.group and gpus == held:
                _option(c, first, t, gpus, cost_of(m, gain))
            else:
                at = _option(c, at, t, gpus, cost_of(m, gain * factor))
    return at


@inner
def options(s, m, c, j, fair, at):  # type: ignore[no-untyped-def]
    """List what a job may have, and what each costs, from a place on; returns the place behind them."""
    if m.p[0].pollux == 1:
        return _options_of_pollux(s, m, c, j, fair, at)
    return _options_of_sia(s, m, c, j, at)
