"""Numbers that are too large for the store's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

LARGEST = 2**31 - 1
"""What a column of 32 bits holds at most."""


def out_of_range(frame: pl.DataFrame, limits: Mapping[str, int], reason: Callable[[str, int], str]) -> list[pl.Expr]:
    """Find rows with a number beyond a limit: one expression per column that has such a row, NULL elsewhere.

    Args:
        frame: rows; columns that it lacks, and those that hold no numbers, are skipped.
        limits: the largest absolute value of each column.
        reason: why a row with a larger one is rejected, of a column and its limit.
    """
    import polars as pl

    return [
        pl.when(beyond).then(pl.lit(reason(name, limit)))
        for name, limit in limits.items()
        if name in frame.columns and frame[name].dtype.is_numeric() and (beyond := frame[name].abs() > limit).any()
    ]
