"""Words for what is odd in rows, as lists in the store's columns ``quirks``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_CODES = "bits of words"


def words(rows: pl.DataFrame, marks: Mapping[str, pl.Expr]) -> pl.Series:
    """A list of the words whose conditions hold, for each row.

    Args:
        rows: what the conditions are over.
        marks: word -> where it holds; NULL is where it does not.
    """
    import polars as pl

    bits = [pl.when(condition).then(1 << bit).otherwise(0) for bit, condition in enumerate(marks.values())]
    # with the rows beside them: a condition may be the same for all
    codes = rows.with_columns(pl.sum_horizontal(bits).cast(pl.UInt32).alias(_CODES))[_CODES]
    if codes.max() == 0:
        return pl.Series([[]], dtype=pl.List(pl.String)).new_from_index(0, codes.len())
    # a list for each sum of bits that occurs: lists made row by row take a second for a million rows
    there = codes.unique().sort()
    lists = [[word for bit, word in enumerate(marks) if code >> bit & 1] for code in there]
    return pl.Series(lists, dtype=pl.List(pl.String)).gather(there.search_sorted(codes))
