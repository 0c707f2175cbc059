"""Metrics of GPU faults: counters whose rise is an event, and gauges that become true.

Sources: DCGM 4.6 dcgm_fields.h; NVML nvml.h (nvmlClocksEventReasons); NVIDIA/dcgm-exporter (DCGM_EXP_XID_ERRORS_COUNT);
utkuozdemir/nvidia_gpu_exporter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import polars as pl

_BLANK_32, _BLANK_64 = 0x7FFFFFF0, 2.0**62
"""From here on, DCGM's integers stand for "no value"; of 32 bits, 4 in a row."""
HARDWARE_SLOWDOWN = 0x08 | 0x40 | 0x80
"""Reasons for lower clocks that are faults: hardware slowdown, heat, power brake."""


class Signal(NamedTuple):
    """How a metric shows a fault.

    Attributes:
        name: `signal` of ``gpu_events``.
        kind: ``rise`` (a counter; a fall is a reset), ``window`` (a count of the last minutes; a fall is none),
            ``flag`` (a gauge that is not 0), ``reasons`` (bits of clock reasons).
    """

    name: str
    kind: str


_NVLINK = ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
SIGNALS: dict[str, Signal] = {
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL": Signal("ecc_dbe", "rise"),
    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS": Signal("remap", "rise"),
    "DCGM_FI_DEV_ROW_REMAP_FAILURE": Signal("remap", "flag"),
    "DCGM_FI_DEV_THERMAL_VIOLATION": Signal("throttle", "rise"),
    "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": Signal("throttle", "reasons"),
    "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": Signal("throttle", "reasons"),
    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER": Signal("pcie", "rise"),
    **{f"DCGM_FI_DEV_NVLINK_{kind}_ERROR_COUNT_TOTAL": Signal("nvlink", "rise") for kind in _NVLINK},
    "DCGM_EXP_XID_ERRORS_COUNT": Signal("xid", "window"),
    "nvidia_smi_xid_errors_total": Signal("xid", "rise"),
    **{
        f"nvidia_smi_clocks_{word}_reasons_{reason}": Signal("throttle", "flag")
        for word in ("event", "throttle")
        for reason in ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
    },
}
"""By metric."""


class Last(NamedTuple):
    """The last sample of a series."""

    ts: int
    value: float


def known(rows: pl.DataFrame) -> pl.DataFrame:
    """Leave out samples without a value or a time: ``ts`` (microseconds), ``value``."""
    import polars as pl

    value = pl.col("value")
    blank = (value >= _BLANK_64) | value.is_between(_BLANK_32, _BLANK_32 + 3)
    return rows.select("ts", "value").filter(pl.col("ts").is_not_null() & value.is_finite() & ~blank)


def events(rows: pl.DataFrame, signal: Signal, before: Last | None) -> pl.DataFrame:
    """Find events in consecutive samples of a series; rises in a row are one.

    Args:
        rows: as `known` returns them, sorted by time.
        signal: of the metric.
        before: the last sample of earlier rows. The first sample of all is history, and no event.

    Returns:
        ``ts`` (the first sample that shows it), ``since_ts`` (the sample before), ``value`` (the rise of a counter).
    """
    import polars as pl

    value = pl.col("value")
    if signal.kind == "reasons":
        value = (value.cast(pl.Int64) & HARDWARE_SLOWDOWN).cast(pl.Float64)
    if signal.kind in {"reasons", "flag"}:
        value = (value > 0).cast(pl.Float64)
    first = rows.with_columns(value.alias("value"))
    if before is not None:
        first = pl.concat([pl.DataFrame([before], schema=first.schema, orient="row").with_columns(value), first])
    step = pl.col("value") - pl.col("value").shift()
    fallen = pl.col("value") if signal.kind == "rise" else pl.lit(0.0)
    rise = pl.when(step > 0).then(step).when(step < 0).then(fallen).otherwise(0.0)
    found = first.with_columns(since_ts=pl.col("ts").shift(), rise=rise)
    rising = pl.col("rise") > 0
    found = found.with_columns(run=(rising & ~rising.shift(fill_value=False)).cum_sum()).filter(rising)
    return (
        found.group_by("run", maintain_order=True)
        .agg(pl.col("ts", "since_ts").first(), value=pl.col("rise").sum())
        .drop("run")
    )
