"""Plausibility checks of a cost table, and its costs per model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.research.accel.costs import KINDS, LAYERS
from gpuctl.research.accel.rows import name, number, read_rows
from gpuctl.research.row_tables import Row, column

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.research.accel.costs import Costs

PUBLISHED = {
    "resnet50": (4.1, 25.5), "mobilenetv2": (0.300, 3.47), "vgg16": (15.5, 138.3), "googlenet": (1.58, 7.0),
    "yolov3-tiny": (2.78, 8.85), "bert-base": (11.2, 85.0),
}  # fmt: skip
"""Commonly published multiplications (10^9) and weights (10^6) of the networks in our own table."""
NEAR = 0.02
ROUNDED_US = 0.001
"""Half of what times in tables are rounded to, doubled."""


def array_of(path: Path) -> dict[str, float]:
    """Return the multiplications per microsecond that each kind can do at most; kinds without an array are absent.

    Raises:
        InputError: it is not a table of kinds.
    """

    def row_of(row: dict[str, str], _: int) -> tuple[str, float]:
        columns = ("array_rows", "array_cols", "clock_mhz")
        if not all(row.get(column) for column in columns):
            return name(row, "kind"), 0.0
        return name(row, "kind"), float(np.prod([number(row, column, above=0) for column in columns]))

    rows = read_rows(path, ("kind",), row_of, "expected a CSV with the columns kind, array_rows, array_cols, clock_mhz")
    return {kind: most for kind, most in rows if most}


class ModelRow(
    Row, name="accel_models", section="accel", title="Costs of models",
    question="What does each model take on each kind of sub-accelerator?",
):  # fmt: skip
    """Costs of a model on a kind of sub-accelerator."""

    model: str = column("-", "Its name.")
    kind: str = column("-", "Kind of sub-accelerator.")
    layers: int = column("layers", "Layers, one after another.")
    giga_macs: float | None = column("-", "Multiplications in 10^9; empty: the table does not say.")
    weight_mb: float | None = column("MB", "Bytes of weights; empty: the table does not say.")
    compute_us: float = column("us", "Sum of its layers' computing times on this kind.")
    dram_mb: float = column("MB", "Sum of their traffic with the memory.")
    energy_mj: float = column("mJ", "Sum of their dynamic energy.")


def overview(costs: Costs) -> list[ModelRow]:
    """Return one row per model and kind."""
    rows = []
    for model in costs.models:
        for k, kind in enumerate(costs.kinds):
            compute = costs.compute_us[model][:, k]
            if np.isnan(compute).any():
                continue
            macs, weights = (costs.extra.get(c, {}).get(model) for c in ("macs", "weight_bytes"))
            rows.append(ModelRow(
                model=model, kind=kind, layers=compute.size,
                giga_macs=None if macs is None else float(macs[:, k].sum() / 1e9),
                weight_mb=None if weights is None else float(weights[:, k].sum() / 1e6),
                compute_us=float(compute.sum()), dram_mb=float(costs.dram_bytes[model][:, k].sum() / 1e6),
                energy_mj=float(costs.energy_uj[model][:, k].sum() / 1e3),
            ))  # fmt: skip
    return rows


def violations(costs: Costs, kinds: Path | None = None) -> list[str]:
    """Return the faults of a cost table, one sentence each.

    Computing must take at least the time of all multiplications on the whole array; a layer must read its weights and
    inputs and write its outputs once; utilisation is from 0 to 1. The networks of gpuctl's own table must have the
    commonly published multiplications and weights, within 2 %. Missing columns are not checked.
    """
    found: list[str] = []
    most = array_of(KINDS if kinds is None else kinds)
    extra = costs.extra
    for model in costs.models:
        for k, kind in enumerate(costs.kinds):
            column = {c: table[model][:, k] for c, table in extra.items()}
            compute, dram = costs.compute_us[model][:, k], costs.dram_bytes[model][:, k]
            if np.isnan(compute).any():
                continue
            bad: dict[str, Any] = {}
            if "macs" in column and kind in most:
                bad["computes faster than its array can"] = compute < column["macs"] / most[kind] - ROUNDED_US
            if {"weight_bytes", "in_bytes", "out_bytes"} <= column.keys():
                once = column["weight_bytes"] + column["in_bytes"] + column["out_bytes"]
                bad["moves less than its operands once"] = dram < once
            if "utilisation" in column:
                bad["has a utilisation outside 0 to 1"] = (column["utilisation"] <= 0) | (column["utilisation"] > 1)
            found += [f"{model}, layer {i}, {kind}: {what}" for what, rows in bad.items() for i in np.flatnonzero(rows)]
    if costs.path == str(LAYERS):
        found += _unlike_published(costs)
    return found


def _unlike_published(costs: Costs) -> list[str]:
    found = []
    for model, published in PUBLISHED.items():
        for field, value, unit in zip(("macs", "weight_bytes"), published, (1e9, 1e6), strict=True):
            computed = float(costs.extra[field][model][:, 0].sum() / unit)
            if abs(computed / value - 1) > NEAR:
                found.append(f"{model}: {field} {computed:.3f}, published {value:g}")
    return found
