"""Writes samples of GPUs by series, and what sources state of the GPUs' identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink

BATCH_ROWS = 983_040
"""Sixteen of the row groups that DuckDB writes at a time: each insert has a cost of its own."""
BLANK = 0x7FFFFFF0
"""From this number on DCGM's integers mean: no value (dcgm_structs.h, DCGM_INT32_BLANK)."""
BLANK_ENERGY = 1e15
"""The same of a counter of energy (J), whose blanks have 64 bits."""
MOST = {"util": 100.5, "sm_pct": 100.5, "tensor_pct": 100.5, "mem_mb": 16e6, "power_w": 1e5}
"""No sample is larger: percent, MiB, W. What passes it has another unit."""
VALUES = ("util", "mem_mb", "power_w", "energy_j", "sm_pct", "tensor_pct")


class Identity(NamedTuple):
    """What all samples of a series have in common; the columns of ``gpu_series``."""

    reader: str
    machine: str | None = None
    gpu: int | None = None
    uuid: str | None = None
    instance: str | None = None
    job: str | None = None
    slot: str | None = None
    util_kind: str = "kernel"


class Device(NamedTuple):
    """One map of a GPU's names; the columns of ``gpu_devices``."""

    machine: str | None
    gpu: int | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    minor: int | None = None
    instance: str | None = None
    profile: str | None = None
    model: str | None = None
    mem_mb: float | None = None


class Recorder:
    """Takes samples in frames and inserts them in batches; `finish` writes the series and devices.

    Args:
        sink: where they go.
        node_clock: the times are of the node's own clock.
    """

    def __init__(self, sink: Sink, *, node_clock: bool) -> None:
        self._sink = sink
        self._node_clock = node_clock
        self._numbers: dict[Identity, int] = {}
        self._devices: dict[Device, None] = {}
        self._frames: list[pl.DataFrame] = []
        self._rows = 0

    def number(self, identity: Identity) -> int:
        """The number of a series in the store."""
        return self._numbers.setdefault(identity, (self._sink.source << 32) + len(self._numbers))

    def device(self, device: Device) -> None:
        """Note a map of a GPU's names."""
        self._devices.setdefault(device)

    def add(self, rows: pl.DataFrame) -> None:
        """Take samples: ``ts`` (microseconds since 1970, UTC), ``series`` and some of `VALUES`."""
        import polars as pl

        kinds: dict[str, Any] = dict.fromkeys(VALUES, pl.Float32) | {"energy_j": pl.Float64, "series": pl.Int64}
        there = [name for name in rows.columns if name in kinds]
        self._frames.append(
            rows.select(pl.col("ts").cast(pl.Datetime("us", "UTC")), *(pl.col(n).cast(kinds[n]) for n in there))
        )
        self._rows += rows.height
        if self._rows >= BATCH_ROWS:
            self._flush()

    def event(self, rows: list[dict[str, Any]]) -> None:
        """Insert events of GPUs (rows of ``gpu_events``; times are microseconds)."""
        import polars as pl

        kinds = {
            **dict.fromkeys(("ts", "since_ts"), pl.Int64), "machine": pl.String, "gpu": pl.Int32, "uuid": pl.String,
            "pci_bus_id": pl.String, "instance": pl.String, "signal": pl.String, "code": pl.Int32, "value": pl.Float64,
            "text": pl.String, "pid": pl.String, "origin": pl.String,
        }  # fmt: skip
        if rows:
            frame = pl.DataFrame(rows, schema=kinds)
            self._sink.insert("gpu_events", frame.with_columns(pl.col("ts", "since_ts").cast(pl.Datetime("us", "UTC"))))

    def finish(self) -> None:
        """Write what has not been written yet."""
        import polars as pl

        self._flush()
        if self._numbers:
            kinds: dict[str, Any] = {name: pl.Int32 if name == "gpu" else pl.String for name in Identity._fields}
            series = pl.DataFrame(list(self._numbers), schema=kinds, orient="row")
            numbers = pl.Series(list(self._numbers.values()), dtype=pl.Int64)
            self._sink.insert("gpu_series", series.with_columns(series=numbers, node_clock=self._node_clock))
        if self._devices:
            kinds = dict.fromkeys(Device._fields, pl.String)
            kinds |= {"gpu": pl.Int32, "minor": pl.Int32, "mem_mb": pl.Float64}
            self._sink.insert("gpu_devices", pl.DataFrame(list(self._devices), schema=kinds, orient="row"))

    def _flush(self) -> None:
        import polars as pl

        if self._frames:
            self._sink.insert("gpu_readings", pl.concat(self._frames, how="diagonal"))
        self._frames, self._rows = [], 0


def cleaned(column: str, values: pl.Expr) -> pl.Expr:
    """The values of a column, in its unit, without those that stand for none: NaN and DCGM's blanks."""
    import polars as pl

    blank = BLANK_ENERGY if column == "energy_j" else BLANK
    return pl.when(values.is_finite() & (values < blank)).then(values).otherwise(None)


def fault(column: str, values: pl.Expr) -> pl.Expr:
    """Whether a value that is there cannot be of its column's unit."""
    return ((values < 0) | (values > MOST.get(column, float("inf")))).fill_null(value=False)


def uuid_of(text: str | None) -> str | None:
    """A GPU's UUID as NVML writes it; exporters cut ``GPU-`` off."""
    if not text:
        return None
    return text if text.upper().startswith(("GPU-", "MIG-")) else f"GPU-{text}"


def pci_of(text: str | None) -> str | None:
    """A PCI address as domain:bus:device without function, in small letters: 0000:07:00; None where it is none."""
    parts = (text or "").strip().lower().split(".")[0].split(":")
    try:
        numbers = [int(part, 16) for part in parts]
    except ValueError:
        return None
    if len(numbers) == 2:
        numbers = [0, *numbers]
    return "{:04x}:{:02x}:{:02x}".format(*numbers) if len(numbers) == 3 else None
