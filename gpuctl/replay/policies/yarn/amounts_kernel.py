"""Arithmetic of resource amounts in the capacity scheduler: its DominantResourceCalculator.

An amount is a triple: MB, thousandths of a vcore, GPUs. Resources that the cluster lacks do not count. Hadoop has whole
vcores, so roundings are to whole vcores.
"""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner

MILLI = 1000


@inner
def at(table, row):  # type: ignore[no-untyped-def]
    """The amount in a row of a table [rows, 3]."""
    return (table[row, 0], table[row, 1], table[row, 2])


@inner
def put(table, row, a):  # type: ignore[no-untyped-def]
    """Write an amount into a row of a table."""
    table[row, 0], table[row, 1], table[row, 2] = a[0], a[1], a[2]


@inner
def add_to(table, row, a, sign):  # type: ignore[no-untyped-def]
    """Add an amount to a row of a table, or subtract it (sign -1)."""
    table[row, 0] += sign * a[0]
    table[row, 1] += sign * a[1]
    table[row, 2] += sign * a[2]


@inner
def plus(a, b):  # type: ignore[no-untyped-def]
    """The sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@inner
def minus(a, b):  # type: ignore[no-untyped-def]
    """The difference, which may be negative."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@inner
def least(a, b):  # type: ignore[no-untyped-def]
    """Minimum per resource."""
    return (min(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2]))


@inner
def most(a, b):  # type: ignore[no-untyped-def]
    """Maximum per resource."""
    return (max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]))


@inner
def fits_in(a, b):  # type: ignore[no-untyped-def]
    """Whether every resource of the first is at most that of the second."""
    return a[0] <= b[0] and a[1] <= b[1] and a[2] <= b[2]


@inner
def is_none(a):  # type: ignore[no-untyped-def]
    """Whether the amount is zero."""
    return a[0] == 0 and a[1] == 0 and a[2] == 0


@inner
def _share(cap, a):  # type: ignore[no-untyped-def]
    return a / cap if cap > 0 else -np.inf


@inner
def _sorted(cap, a):  # type: ignore[no-untyped-def]
    x, y, z = _share(cap[0], a[0]), _share(cap[1], a[1]), _share(cap[2], a[2])
    if x < y:
        x, y = y, x
    if y < z:
        y, z = z, y
    if x < y:
        x, y = y, x
    return x, y, z


@inner
def compare(cap, a, b):  # type: ignore[no-untyped-def]
    """-1, 0 or 1 if the first is less, equal or more: largest shares first, then the next ones."""
    x, y = _sorted(cap, a), _sorted(cap, b)
    for k in range(3):
        if x[k] != y[k]:
            return -1 if x[k] < y[k] else 1
    return 0


@inner
def smaller(cap, a, b):  # type: ignore[no-untyped-def]
    """The smaller of two amounts."""
    return a if compare(cap, a, b) < 0 else b


@inner
def larger(cap, a, b):  # type: ignore[no-untyped-def]
    """The larger of two amounts."""
    return a if compare(cap, a, b) > 0 else b


@inner
def dominant(cap, a):  # type: ignore[no-untyped-def]
    """The largest share of any resource, 0 at least."""
    return max(0.0, _share(cap[0], a[0]), _share(cap[1], a[1]), _share(cap[2], a[2]))


@inner
def divide(cap, a, b):  # type: ignore[no-untyped-def]
    """Dominant share of one over that of the other, in single precision as in Hadoop."""
    below = dominant(cap, b)
    above = dominant(cap, a)
    if below == 0:
        return np.float32(np.inf) if above > 0 else np.float32(0.0)
    return np.float32(above / below)


@inner
def ratio(a, b):  # type: ignore[no-untyped-def]
    """The largest quotient of any resource."""
    found = np.float32(0.0)
    for k in range(3):
        if b[k] > 0:
            found = max(found, np.float32(np.float32(a[k]) / np.float32(b[k])))
    return found


# ---- rounding: to whole vcores and whole others, then to steps where these are not 0


@inner
def _up(value, step):  # type: ignore[no-untyped-def]
    return value if step <= 0 else (value + step - 1) // step * step


@inner
def _down(value, step):  # type: ignore[no-untyped-def]
    return value if step <= 0 else value // step * step


@inner
def round_up(a, step):  # type: ignore[no-untyped-def]
    """Up to whole steps."""
    return (_up(a[0], step[0]), _up(a[1], step[1]), _up(a[2], step[2]))


@inner
def round_down(a, step):  # type: ignore[no-untyped-def]
    """Down to whole steps."""
    return (_down(a[0], step[0]), _down(a[1], step[1]), _down(a[2], step[2]))


@inner
def _cut(value, by, unit):  # type: ignore[no-untyped-def]
    return np.int64(np.trunc(value / unit * by + (1e-9 if value > 0 else -1e-9))) * unit


@inner
def _ceil(value, by, unit):  # type: ignore[no-untyped-def]
    return np.int64(np.ceil(np.float32(value / unit * by))) * unit


@inner
def times(a, by):  # type: ignore[no-untyped-def]
    """A multiple, rounded towards 0."""
    return (_cut(a[0], by, 1), _cut(a[1], by, MILLI), _cut(a[2], by, 1))


@inner
def times_up(a, by, step):  # type: ignore[no-untyped-def]
    """A multiple, rounded up to whole steps."""
    return round_up((_ceil(a[0], by, 1), _ceil(a[1], by, MILLI), _ceil(a[2], by, 1)), step)


@inner
def over(a, by):  # type: ignore[no-untyped-def]
    """The quotient, rounded up."""
    return (
        np.int64(np.ceil(a[0] / by)),
        np.int64(np.ceil(a[1] / MILLI / by)) * MILLI,
        np.int64(np.ceil(a[2] / by)),
    )
