"""Work done once per distinct value of a column, for columns of few distinct values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars as pl


class Distinct:
    """The distinct values of a column of text; nulls count as the empty text.

    Args:
        column: strings.
    """

    def __init__(self, column: pl.Series) -> None:
        import polars as pl

        values = column.unique()
        self.texts: list[str] = [text or "" for text in values]
        numbers = pl.Series(range(len(values)), dtype=pl.UInt32)
        self._at = column.replace_strict(values, numbers, return_dtype=pl.UInt32)

    def each(self, work: Callable[[str], Any], dtype: Any) -> pl.Series:
        """Return the column of what `work` makes of every value."""
        return self.spread([work(text) for text in self.texts], dtype)

    def fields(self, work: Callable[[str], Sequence[Any]], dtypes: dict[str, Any]) -> dict[str, pl.Series]:
        """Return one column per field of the tuples that `work` makes of every value."""
        made = [work(text) for text in self.texts]
        return {name: self.spread([row[i] for row in made], dtype) for i, (name, dtype) in enumerate(dtypes.items())}

    def spread(self, values: Sequence[Any], dtype: Any) -> pl.Series:
        """Return the column that has, for each distinct value, the one at its place in `values`."""
        import polars as pl

        return pl.Series(values, dtype=dtype).gather(self._at)

    def lists(self, work: Callable[[str], list[str]]) -> pl.Series:
        """Return the column of the lists that `work` makes of every value."""
        import polars as pl
        import pyarrow as pa

        # Arrow takes lists of lists much faster than Polars
        made = pa.array([work(text) for text in self.texts], pa.large_list(pa.large_string()))
        return pl.Series(made).gather(self._at)
