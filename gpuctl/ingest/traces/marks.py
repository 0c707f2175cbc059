"""Words for what is odd in rows, as text with commas between them, or as lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

_CODES = "bits of words"


def words(rows: pl.DataFrame, marks: Mapping[str, pl.Expr]) -> pl.Series:
    """The words whose conditions hold, with commas between them, for each row; NULL where none does.

    Args:
        rows: what the conditions are over.
        marks: word -> where it holds; NULL is where it does not.
    """
    import polars as pl

    bits = [pl.when(condition).then(1 << bit).otherwise(0) for bit, condition in enumerate(marks.values())]
    # with the rows beside them: a condition may be the same for all
    codes = rows.with_columns(pl.sum_horizontal(bits).cast(pl.UInt32).alias(_CODES))[_CODES]
    # a text for each sum of bits that occurs, and not for each row
    there = codes.unique().sort()
    texts = [",".join(word for bit, word in enumerate(marks) if code >> bit & 1) or None for code in there]
    if len(texts) == 1:
        return pl.Series(texts, dtype=pl.String).new_from_index(0, codes.len())
    return pl.Series(texts, dtype=pl.String).gather(there.search_sorted(codes))


def as_text(marked: pl.Series) -> pl.Series:
    """Words as `words` gives them, of such or of lists of words."""
    import polars as pl

    if marked.dtype == pl.String:
        return marked
    texts = marked.list.join(",")
    return texts.set(texts == "", None)


def as_lists(texts: pl.Series) -> pl.Series:
    """Words as lists, empty where there are none, of what `words` gives."""
    import polars as pl

    lists = texts.str.split(",")
    none = pl.Series(texts.name, [[]], dtype=pl.List(pl.String)).new_from_index(0, texts.len())
    return lists.zip_with(texts.is_not_null(), none)
