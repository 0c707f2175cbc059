"""The unit of processors in sources that count nothing else (SWF, Batsim): ``--swf-unit`` sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

Unit = Literal["core", "gpu", "node"]
"""What a processor is."""
UNITS: tuple[Unit, ...] = ("core", "gpu", "node")


def unit_of(text: str) -> Unit:
    """Return the unit of this name.

    Raises:
        UsageError: there is no such unit.
    """
    found = next((known for known in UNITS if known == text), None)
    if found is None:
        raise UsageError(f"--swf-unit {text!r}: expected one of {', '.join(UNITS)}")
    return found


def sizes(processors: pl.Expr, unit: Unit) -> dict[str, pl.Expr]:
    """Return the columns ``gpus``, ``cpus`` and ``nodes`` of jobs with this number of processors.

    Cores and nodes are no GPUs; how many CPUs a node or a GPU has is unknown.
    """
    import polars as pl

    return {
        "gpus": processors.cast(pl.Float64) if unit == "gpu" else pl.lit(0.0),
        "cpus": processors.round().cast(pl.Int64, strict=False) if unit == "core" else pl.lit(None, pl.Int64),
        "nodes": processors.round().cast(pl.Int32, strict=False) if unit == "node" else pl.lit(None, pl.Int32),
    }
