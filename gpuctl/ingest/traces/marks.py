"""Words for oddities of rows (quirks), as text separated by commas or as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_CODES = "bits of words"


def words(rows: pl.DataFrame, marks: Mapping[str, pl.Expr]) -> pl.Series:
    """Join, per row, the words of the conditions that are true with commas; NULL if none is.

    Args:
        rows: the columns of the conditions.
        marks: word -> its condition; NULL counts as false.
    """
    import polars as pl

    bits = [pl.when(condition).then(1 << bit).otherwise(0) for bit, condition in enumerate(marks.values())]
    # a select of constants alone would have one row
    codes = rows.with_columns(pl.sum_horizontal(bits).cast(pl.UInt32).alias(_CODES))[_CODES]
    # one text per sum of bits that occurs, not per row
    there = codes.unique().sort()
    texts = [",".join(word for bit, word in enumerate(marks) if code >> bit & 1) or None for code in there]
    if len(texts) == 1:
        return pl.Series(texts, dtype=pl.String).new_from_index(0, codes.len())
    return pl.Series(texts, dtype=pl.String).gather(there.search_sorted(codes))


def as_text(marked: pl.Series) -> pl.Series:
    """Convert lists of words to the text that `words` returns; such text is returned unchanged."""
    import polars as pl

    if marked.dtype == pl.String:
        return marked
    texts = marked.list.join(",")
    return texts.set(texts == "", None)


def as_lists(texts: pl.Series) -> pl.Series:
    """Convert what `words` returns to lists, empty if there are no words."""
    import polars as pl

    lists = texts.str.split(",")
    none = pl.Series(texts.name, [[]], dtype=pl.List(pl.String)).new_from_index(0, texts.len())
    return lists.zip_with(texts.is_not_null(), none)
