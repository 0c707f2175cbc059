"""The rows of ``base_delays``: the split of delays, next to the attempts' own columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from gpuctl.analyze import delays
from gpuctl.core.causes import CAUSES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuctl.analyze import occupancy
    from gpuctl.analyze.delay_ranges import Ranges
    from gpuctl.store.database import Store

_NAMES = (
    "job", "attempt", "queue", "gpus", "servers", "size_bucket", "queued_ts", "start_ts", "wait_s", "source_reason",
)  # fmt: skip
"""Columns of ``base_delays`` that are those of ``base_attempts``; a million rows of each cost 8 to 16 MB."""


def keep(store: Store, rows: pl.DataFrame, wanted: frozenset[str] | None) -> None:
    """Create ``base_delays``: the result of `make_rows`, next to the attempts' own columns."""
    names = [name for name in _NAMES if wanted is None or name in wanted or name in {"job", "attempt"}]
    causes = [name for name in ("cause_at_arrival", "dominant_cause") if name in rows.columns]
    replaced = f"REPLACE ({', '.join(f'{name}::VARCHAR AS {name}' for name in causes)})" if causes else ""
    store.view("delay_rows", rows)
    # every part of this text is a constant of gpuctl
    store.execute(
        f"CREATE OR REPLACE TEMP TABLE base_delays AS SELECT {', '.join(f'a.{name}' for name in names)}, "  # noqa: S608
        f"d.* EXCLUDE (number) {replaced} FROM delay_rows AS d JOIN base_attempts AS a USING (number)"
    )
    store.drop_view("delay_rows")


def numbered(name: str, values: list[str]) -> pl.DataFrame:
    """Return names and their indices among `values`, as the column ``code``."""
    return pl.DataFrame({name: values, "code": range(len(values))}, schema={name: pl.String, "code": pl.Int64})


def make_rows(  # noqa: PLR0917
    waited: pl.DataFrame,
    waits: delays.Waits,
    found: delays.Delays,
    ranges: Ranges,
    pools: tuple[occupancy.Nodes, ...],
    stood: pl.DataFrame,
    machines: pl.DataFrame,
    wanted: frozenset[str] | None,
) -> pl.DataFrame:
    """Make the rows.

    Args:
        waited: number, gpus, largest (GPUs of the largest node of its pool), nodes (number that it ran on; 0 or null:
            unknown), start_c and wait_s of each wait.
        waits: the same waits, in the form of `delays.split`.
        found: their split.
        ranges: range of each cause.
        pools: the nodes of each pool.
        stood: number of the attempt and code of the node of every placement.
        machines: the nodes with their racks.
        wanted: the columns to make, and other words; None: all.
    """
    causes = pl.Series(CAUSES, dtype=pl.Enum([*CAUSES, "ineligible"]))
    begin = waited["start_c"].to_numpy()
    idle = pl.Series(begin <= waits.queued)
    seconds = ranges.seconds.copy()
    seconds[:, CAUSES.index("scheduler")] += begin - waits.start
    # seconds since 1970 have six decimals: further digits of their differences are noise
    before = np.round(waits.queued - (begin - waited["wait_s"].to_numpy()), 6)

    def dominant() -> pl.Series:
        held = pl.Series(before > seconds.max(axis=1, initial=0.0))
        return causes.gather(seconds.argmax(axis=1)).set(idle, None).set(held, "ineligible")

    def racks() -> pl.Series:
        return _racks_of(waited["number"].to_numpy(), stood, machines)

    makers: dict[str, Callable[[], pl.Series]] = {
        "fewest_servers": lambda: _fewest_nodes(waited),
        "ineligible_s": lambda: pl.Series(before),
        **{
            f"{cause}_s": lambda k=k: pl.Series(np.round(seconds[:, k], 6))  # type: ignore[misc]
            for k, cause in enumerate(CAUSES)
        },
        **{
            f"{cause}_{name}_s": lambda k=k, part=part: _width(part(k))  # type: ignore[misc]
            for k, cause in enumerate(CAUSES)
            for name, part in (
                ("less", lambda k: ranges.seconds[:, k] - ranges.low[:, k]),
                ("more", lambda k: ranges.high[:, k] - ranges.seconds[:, k]),
            )
        },
        "fewest_racks": lambda: _at_most(
            pl.Series(_fewest_racks(waits, pools), nan_to_null=True).cast(pl.Int32), racks()
        ),
        "cause_at_arrival": lambda: causes.gather(found.at_arrival).set(idle, None),
        "dominant_cause": dominant,
        "behind_s": lambda: pl.Series(np.round(found.behind, 6)),
        "overtook_gpus": lambda: pl.Series(found.overtook_gpus),
        "overtook_harmless": lambda: pl.Series(found.harmless),
        "racks": racks,
    }
    columns = {name: make() for name, make in makers.items() if wanted is None or name in wanted}
    return waited.select("number").with_columns(**columns)


def _width(seconds: np.ndarray) -> pl.Series:
    """Return the distance of one end of a range from the most likely seconds: a million of them in half the memory."""
    return pl.Series(np.round(np.maximum(seconds, 0.0), 6).astype(np.float32))


def _fewest_nodes(waited: pl.DataFrame) -> pl.Series:
    """Return the fewest nodes that can hold each gang; at most those it ran on, as listed sizes may be too small."""
    fewest = (pl.col("gpus") / pl.col("largest")).ceil().cast(pl.Int64)
    used = waited.select(pl.when(pl.col("servers") > 0).then("servers")).to_series()
    return _at_most(waited.select(fewest).to_series(), used)


def _at_most(fewest: pl.Series, used: pl.Series) -> pl.Series:
    """Return the fewest, but at most those used: a gang that ran on fewer shows that the listed sizes are too small."""
    return fewest.zip_with((fewest <= used).fill_null(value=True), used.cast(fewest.dtype))


def _racks_of(attempts: np.ndarray, stood: pl.DataFrame, machines: pl.DataFrame) -> pl.Series:
    """Return the number of racks that each attempt ran in; null if one of its nodes has no known rack."""
    names = numbered("rack", machines["rack"].drop_nulls().unique().to_list())
    known = machines.select("rack").join(names, on="rack", how="left", maintain_order="left")["code"].fill_null(-1)
    rack, number = known.to_numpy()[stood["code"].to_numpy()], stood["number"].to_numpy().astype(np.int64)
    size = 1 + max(int(number.max(initial=-1)), int(attempts.max(initial=-1)))
    # np.unique hashes, which takes ten times as long as sorting nearly sorted values
    pairs = np.sort(number * (names.height + 1) + rack + 1, kind="stable")
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    count = np.bincount(pairs // (names.height + 1), minlength=size)
    unknown = np.bincount(number[rack < 0], minlength=size) > 0
    found = np.where(unknown, 0, count)[attempts].astype(np.uint32)
    return pl.Series(found).replace(0, None)


def _fewest_racks(waits: delays.Waits, pools: tuple[occupancy.Nodes, ...]) -> np.ndarray:
    """Return the fewest racks of its pool that could hold each gang if empty; NaN if all together could not."""
    fewest = np.full(waits.gpus.size, np.nan)
    for number, pool in enumerate(pools):
        known = pool.rack >= 0
        sizes = np.bincount(pool.rack[known], weights=pool.gpus[known])
        held = np.cumsum(np.sort(sizes)[::-1])
        ours = np.flatnonzero(waits.pool == number)
        ours = ours[waits.gpus[ours] <= held[-1]] if held.size else ours[:0]
        fewest[ours] = np.searchsorted(held, waits.gpus[ours]) + 1
    return fewest
