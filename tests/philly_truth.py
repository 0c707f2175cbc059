"""Compares queue_delays with the truth that a generator left beside its logs."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from pathlib import Path

CAUSES = ("fair_share_s", "capacity_s", "fragmentation_s")


def truth_of(directory: Path) -> pl.DataFrame:
    """truth/delays.csv less the attempts that quirks.csv (if there) says were spoilt on purpose."""
    truth = pl.read_csv(directory / "truth" / "delays.csv").rename({"jobid": "job"})
    quirks = directory / "truth" / "quirks.csv"
    if quirks.is_file():
        with quirks.open(newline="") as file:
            spoilt = {row["jobid_or_machine"] for row in csv.DictReader(file)}
        truth = truth.filter(~pl.col("job").is_in(list(spoilt)))
    return truth


def compare(found: pl.DataFrame, truth: pl.DataFrame) -> tuple[float, pl.DataFrame]:
    """Share of the attempts whose three causes are all within 1 % of the wait or 10 s; hours by size and cause."""
    both = found.join(truth, on=["job", "attempt"], suffix="_true")
    near = [
        (pl.col(cause) - pl.col(f"{cause}_true")).abs() <= pl.max_horizontal(pl.lit(10.0), 0.01 * pl.col("wait_s_true"))
        for cause in CAUSES
    ]
    share = both.select(pl.all_horizontal(near).mean()).item()
    hours = both.group_by("size_bucket").agg(
        (pl.col(name).sum() / 3600) for cause in CAUSES for name in (cause, f"{cause}_true")
    )
    return share, hours.sort("size_bucket")
