"""Times of a node's own clock as UTC."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_BACK_S = 1800


class LocalStamps:
    """Local times of one file as UTC, in the order of its rows.

    An hour that occurs twice is told apart by the file's order: once the clock went back, times are of the second hour.

    Args:
        zone: IANA name.
    """

    def __init__(self, zone: str) -> None:
        self._zone = zone
        self._latest: int | None = None
        self._went_back = False

    def utc(self, cells: pl.Series, form: str) -> pl.Series:
        """Microseconds since 1970 of stamps; null where one is none.

        Args:
            cells: text.
            form: of the stamps, as strptime of Polars has it.
        """
        import polars as pl

        some = cells.unique(maintain_order=True).drop_nulls()
        # most rows share their time with those of other GPUs
        naive = some.str.strip_chars().str.to_datetime(form, time_unit="us", strict=False)
        steps = naive.to_physical().to_list()
        order: list[str] = []
        for at in steps:
            if at is not None:
                if self._latest is not None and at < self._latest - _BACK_S * 1_000_000:
                    self._went_back = True
                self._latest = at
            order.append("latest" if self._went_back else "earliest")
        rows = pl.DataFrame({"cell": some, "naive": naive, "which": order})
        made = rows.select(
            "cell",
            utc=pl.col("naive")
            .dt.replace_time_zone(self._zone, ambiguous=pl.col("which"), non_existent="null")
            .dt.convert_time_zone("UTC").dt.epoch("us"),
        )  # fmt: skip
        return pl.DataFrame({"cell": cells}).join(made, on="cell", how="left", maintain_order="left")["utc"]
