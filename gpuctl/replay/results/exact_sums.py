"""Sums and means of doubles with the same last digit on every machine.

Polars sums in as many parts as there are processors, and the order affects the last digit. So a figure is first the
list of its values, in the order of the rows, which one thread then adds up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuctl.replay.models.records import Floats


def listed(values: pl.Expr) -> pl.Expr:
    """The known values of each group, for `mean_of` or `sum_of`."""
    return values.drop_nulls().implode()


def mean_of(rows: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Replace lists of values by their means; null for an empty one."""
    return _added(rows, names, lambda values: float(values.mean()) if values.size else None)


def sum_of(rows: pl.DataFrame, names: Sequence[str], *, per: float = 1.0) -> pl.DataFrame:
    """Replace lists of values by their sums, divided by `per`."""
    return _added(rows, names, lambda values: float(values.sum()) / per)


def total(values: pl.Series) -> float:
    """The sum of a column without nulls."""
    return float(np.ascontiguousarray(values.to_numpy()).sum())


def _added(rows: pl.DataFrame, names: Sequence[str], what: Callable[[Floats], float | None]) -> pl.DataFrame:
    return rows.with_columns(
        pl.Series(name, [what(np.ascontiguousarray(values.to_numpy())) for values in rows[name]], pl.Float64)
        for name in names
    )
