"""Cost tables: the cost of each layer of each model on each kind of sub-accelerator, and the kinds themselves."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.suggestions import meant
from gpuctl.research.accel.rows import name, number, read_rows
from gpuctl.research.accel.state import FREE_US, MOST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

HERE = Path(__file__).parent / "data"
LAYERS, KINDS = HERE / "layers.csv", HERE / "kinds.csv"
"""The tables that come with gpuctl: computed from a model of costs, see docs/research/accel.md."""

NEEDED = ("model", "idx", "kind", "compute_us", "dram_bytes", "energy_uj")
_HINT = f"expected a CSV with the columns {', '.join(NEEDED)}, one row a layer and kind"
_OF_KINDS = ("kind", "static_mw")

SIX = "simba-l:1,simba-s:2,eyeriss-l:1,eyeriss-s:2@16000"
BANDWIDTH = 16000.0
"""Bytes a microsecond of a system that names none."""
MOST_ACCELS = 64


@dataclass(frozen=True)
class Costs:
    """A cost table, by model, layer and kind.

    Attributes:
        path: of its file.
        models: names, in the order of the file.
        kinds: names, in the order of the file.
        compute_us: time at full speed, by model [layers, kinds]; NaN: the file lacks a kind.
        dram_bytes: traffic [layers, kinds].
        energy_uj: dynamic energy [layers, kinds].
        extra: other numeric columns, by name [layers, kinds]; for checks.
    """

    path: str
    models: tuple[str, ...]
    kinds: tuple[str, ...]
    compute_us: dict[str, Floats]
    dram_bytes: dict[str, Floats]
    energy_uj: dict[str, Floats]
    extra: dict[str, dict[str, Floats]] = field(default_factory=dict)

    def digest(self) -> str:
        """Return a digest of all costs: results of different tables must not be compared."""
        found = hashlib.sha256("|".join([*self.models, *self.kinds]).encode())
        for table in (self.compute_us, self.dram_bytes, self.energy_uj):
            for model in self.models:
                found.update(np.ascontiguousarray(table[model]).tobytes())
        return found.hexdigest()


CHECKED = ("macs", "weight_bytes", "in_bytes", "out_bytes", "utilisation")


def read_costs(path: Path | None = None) -> Costs:
    """Read a cost table.

    Args:
        path: of a CSV; None: the table that comes with gpuctl.

    Raises:
        InputError: it is not a cost table; a row appears twice; a layer's number or a kind is missing.
    """
    place = LAYERS if path is None else path
    rows = read_rows(place, NEEDED, _row, _HINT)
    models = tuple(dict.fromkeys(row["model"] for row in rows))
    kinds = tuple(dict.fromkeys(row["kind"] for row in rows))
    size = {model: 1 + max(row["idx"] for row in rows if row["model"] == model) for model in models}
    if max(size.values()) > len(rows):
        raise InputError("numbers its layers with gaps", path=str(place), hint="expected idx 0, 1, 2 … of each model")
    columns = [*NEEDED[3:], *(c for c in CHECKED if all(row[c] is not None for row in rows))]
    tables = {c: {m: np.full((size[m], len(kinds)), np.nan) for m in models} for c in columns}
    for line, row in enumerate(rows, 2):
        at = row["idx"], kinds.index(row["kind"])
        if not np.isnan(tables["compute_us"][row["model"]][at]):
            raise InputError(
                f"{row['model']}, layer {row['idx']}, {row['kind']}: appears twice", path=str(place), line=line
            )  # fmt: skip
        for column in columns:
            tables[column][row["model"]][at] = row[column]
    _check_gaps(place, models, kinds, tables["compute_us"])
    return Costs(
        str(place), models, kinds, tables.pop("compute_us"), tables.pop("dram_bytes"), tables.pop("energy_uj"), tables
    )


def _row(row: dict[str, str], _: int) -> dict[str, Any]:
    idx = number(row, "idx", least=0)
    if idx != int(idx):
        raise ValueError(f"idx is {row['idx'][:30]}, expected a whole number")
    found: dict[str, Any] = {"model": name(row, "model"), "kind": name(row, "kind"), "idx": int(idx)}
    found["compute_us"] = number(row, "compute_us", above=0)
    found |= {column: number(row, column, least=0) for column in ("dram_bytes", "energy_uj")}
    found |= {column: number(row, column, least=0) if row.get(column) else None for column in CHECKED}
    return found


def _check_gaps(path: Path, models: Sequence[str], kinds: Sequence[str], compute: dict[str, Floats]) -> None:
    """Check that each model has all its layers on each kind that the table has for it.

    Raises:
        InputError: a layer is missing.
    """
    for model in models:
        for k, kind in enumerate(kinds):
            gaps = np.flatnonzero(np.isnan(compute[model][:, k]))
            if 0 < gaps.size < len(compute[model]) or (gaps.size and (np.isnan(compute[model]).all(axis=1)).any()):
                raise InputError(
                    f"{model}: layer {gaps[0]} has no row for {kind}", path=str(path),
                    hint="expected idx 0, 1, 2 … of each model, on each of its kinds",
                )  # fmt: skip


@dataclass(frozen=True)
class System:
    """Sub-accelerators that share one memory.

    Attributes:
        text: as the user wrote it.
        kinds: of each sub-accelerator, in the order of their ids.
        bandwidth: bytes per microsecond.
    """

    text: str
    kinds: tuple[str, ...]
    bandwidth: float

    @property
    def plain(self) -> str:
        """Return the system in canonical form."""
        return f"{','.join(self.kinds)}@{self.bandwidth:g}"


def parse_system(text: str) -> System:
    """Parse a system, ``six`` or ``kind:count,kind:count@bandwidth``; ids follow that order.

    Raises:
        UsageError: it is not a system.
    """
    hint = f"six, or KIND:COUNT,…@BYTES_PER_US like {SIX}"
    parts, _, bandwidth = (SIX if text.strip() == "six" else text).partition("@")
    kinds: list[str] = []
    for part in parts.split(","):
        kind, _, count = part.strip().rpartition(":")
        if not kind or not count.isdecimal() or not count.isascii() or not 0 < int(count) <= MOST_ACCELS:
            raise UsageError(f"--system: {part.strip()[:40]!r} is no KIND:COUNT", hint=hint)
        kinds += [kind.strip()] * int(count)
    try:
        rate = float(bandwidth) if "@" in text or text.strip() == "six" else BANDWIDTH
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise UsageError(f"--system: {bandwidth[:30]!r} is no bandwidth", hint=hint)
    if len(kinds) > MOST_ACCELS:
        raise UsageError(f"--system: {len(kinds)} sub-accelerators, expected at most {MOST_ACCELS}")
    return System(text.strip(), tuple(kinds), rate)


@dataclass(frozen=True)
class Machine:
    """A system and the costs of models on it: flat layers, those of a model in sequence.

    Attributes:
        system: the sub-accelerators.
        models: that can run on it.
        first: flat index of each model's first layer [models].
        count: layers of each model [models].
        compute: microseconds at full speed [layers, accels].
        dram: bytes [layers, accels].
        alone: microseconds alone: max(compute, bytes / bandwidth) [layers, accels].
        energy: microjoules [layers, accels].
        best: least of `alone` [layers].
        rest: sum of `best` from a layer to its model's last [layers].
        traits: input of nets for each layer, see `gpuctl.research.accel.state.TRAITS` [layers, TRAITS accels].
        static_mw: of the whole system; None: the kinds are unknown.
        digest: of the cost table.
    """

    system: System
    models: tuple[str, ...]
    first: NDArray[np.int64]
    count: NDArray[np.int64]
    compute: Floats
    dram: Floats
    alone: Floats
    energy: Floats
    best: Floats
    rest: Floats
    traits: Floats
    static_mw: float | None
    digest: str

    def model(self, name: str) -> int:
        """Return the number of a model.

        Raises:
            KeyError: the table lacks it.
        """
        return self.models.index(name) if name in self.models else self._missing(name)

    def _missing(self, name: str) -> int:
        raise KeyError(name)

    def whole_us(self) -> Floats:
        """Return each model's least time: the sum of its layers' best [models]."""
        return self.rest[self.first]


def machine_of(system: System, costs: Costs, kinds: Path | None = None) -> Machine:
    """Combine a system and costs.

    Args:
        system: the sub-accelerators.
        costs: of layers.
        kinds: a CSV with the columns kind, static_mw; None: that of gpuctl.

    Raises:
        UsageError: the costs lack one of the system's kinds.
        InputError: `kinds` is not such a table.
    """
    unknown = next((kind for kind in system.kinds if kind not in costs.kinds), None)
    if unknown is not None:
        raise UsageError(
            f"--system: {costs.path} has no costs of {unknown[:40]!r}", hint=meant(unknown, costs.kinds)
        )  # fmt: skip
    columns = [costs.kinds.index(kind) for kind in system.kinds]
    models = tuple(m for m in costs.models if not np.isnan(costs.compute_us[m][:, columns]).any())
    if not models:
        raise UsageError(f"--system: {costs.path} has no model with costs of all its kinds", hint="name other kinds")
    compute, dram, energy = (
        np.concatenate([table[m][:, columns] for m in models])
        for table in (costs.compute_us, costs.dram_bytes, costs.energy_uj)
    )
    count = np.array([len(costs.compute_us[m]) for m in models], np.int64)
    first = np.cumsum(count) - count
    alone = np.maximum(compute, dram / system.bandwidth)
    best = alone.min(axis=1)
    rest = np.concatenate([np.cumsum(best[at : at + n][::-1])[::-1] for at, n in zip(first, count, strict=True)])
    seen = (
        np.log(alone / best[:, None]), np.minimum(dram / compute / system.bandwidth, MOST), np.log1p(alone / FREE_US),
        compute / alone,
    )  # fmt: skip
    power = static_power(KINDS if kinds is None else kinds)
    known = all(kind in power for kind in system.kinds)
    static = sum(power[kind] for kind in system.kinds) if known else None
    return Machine(
        system, models, first, count, compute, dram, alone, energy, best, rest,
        np.stack(seen, 2).reshape(rest.size, -1), static, costs.digest(),
    )  # fmt: skip


def static_power(path: Path) -> dict[str, float]:
    """Return the static power of each kind in a table, mW.

    Raises:
        InputError: it is not such a table.
    """
    rows = read_rows(
        path, _OF_KINDS, lambda row, _: (name(row, "kind"), number(row, "static_mw", least=0)),
        "expected a CSV with the columns kind, static_mw",
    )  # fmt: skip
    return dict(rows)
