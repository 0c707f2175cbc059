"""The folder of a model of run times: its files, and the checks on loading them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.predictors import history, trees
from gpuctl.predictors.card import Folder, load_folder, save_folder
from gpuctl.predictors.features import NUMBERED, RECENT, State

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.predictors.history import Model

SETTINGS = "settings.json"
_ARRAYS = {"hashes": "uint64", "count": "int64", "log_sum": "float64", "run_sum": "float64", "last_end": "float64"}
_SIZES = ("GPUs", "nodes")
_MOST_JOBS, _MOST_S = 10**12, 1e13
_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
_HINT = "train the model again, or ask its author for the whole folder"


def save(path: Path, model: Model, about: Mapping[str, Any]) -> None:
    """Save a trained model; an existing one is replaced.

    Args:
        path: of the folder.
        model: trained, not loaded.
        about: entries of its card, see `gpuctl.predictors.card.save_folder`.

    Raises:
        UsageError: something else is there, or it is not writable.
    """
    settings = {
        "quantiles": list(model.quantiles),
        "features": list(model.features),
        "fill": [None if np.isnan(value) else float(value) for value in model.fill],
        "widen": list(model.widen),
        "zone": model.zone,
        "clock": model.clock,
        "size": model.size,
        "typical_s": model.typical_s,
    }
    state = model.state
    arrays = {f"{name}.npy": getattr(state, name) for name in (*_ARRAYS, "recent")}
    numbered = {f"{name}_numbers.npy": state.numbered[name] for name in NUMBERED}
    forests = {f"{end}.txt": text for end, text in zip(history.ENDS, model.texts, strict=True)}
    save_folder(path, history.KIND, about, {SETTINGS: settings, **arrays, **numbered, **forests})


def load(path: Path) -> Model:
    """Load a model of run times; nothing in its folder is run, and all of it is checked.

    Raises:
        InputError: it is missing, truncated, changed, of another kind, or of another version.
    """
    folder = load_folder(path, history.KIND)
    settings = _Settings(folder)
    names = settings.features()
    texts = tuple(folder.text(f"{end}.txt") for end in history.ENDS)
    return history.Model(
        quantiles=settings.quantiles(),
        features=tuple(names),
        fill=settings.fill(len(names)),
        forests=tuple(
            trees.parse(text, names, str(path / f"{end}.txt")) for end, text in zip(history.ENDS, texts, strict=True)
        ),
        widen=settings.widen(),
        state=_state(folder),
        zone=settings.zone("zone"),
        clock=settings.zone("clock"),
        size=settings.size(),
        typical_s=settings.numbers("typical_s", [settings.found.get("typical_s")], 1, 1e-3, 1e12)[0],
        texts=texts,
    )


class _Settings:
    """The settings of a model, checked one by one."""

    def __init__(self, folder: Folder) -> None:
        self.path = str(folder.path / SETTINGS)
        self.found: dict[str, Any] = folder.json(SETTINGS)
        if not isinstance(self.found, dict):
            raise InputError("expected an object", path=self.path, hint=_HINT)

    def wrong(self, key: str, expected: str) -> InputError:
        """Return the error for one setting."""
        found = repr(self.found.get(key))[:80]
        return InputError(f"{key}: found {found}, expected {expected}", path=self.path, hint=_HINT)

    def numbers(self, key: str, values: Any, count: int, low: float, high: float) -> list[float]:
        """Return a list of `count` finite numbers from `low` to `high`."""
        if not isinstance(values, list) or len(values) != count:
            raise self.wrong(key, f"{count} numbers")
        if not all(trees.finite(value) and low <= value <= high for value in values):
            raise self.wrong(key, f"numbers from {low:g} to {high:g}")
        return [float(value) for value in values]

    def quantiles(self) -> tuple[float, float, float]:
        """Return three ascending numbers."""
        low, middle, high = self.numbers("quantiles", self.found.get("quantiles"), len(history.ENDS), 1e-6, 1 - 1e-6)
        if not low < middle < high:
            raise self.wrong("quantiles", "numbers that rise")
        return low, middle, high

    def widen(self) -> tuple[float, float]:
        """Return the widening of both ends, in the logarithm; negative values would narrow the interval to a point."""
        low, high = self.numbers("widen", self.found.get("widen"), 2, 0, 100)
        return low, high

    def features(self) -> list[str]:
        """Return names of known features, without duplicates."""
        names = self.found.get("features")
        known = history.described()
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise self.wrong("features", "a list of names")
        strange = [name for name in names if name not in known]
        if strange or len(set(names)) < len(names):
            raise self.wrong("features", f"each of them once, and none but those of this gpuctl: {strange[:3]}"[:200])
        return names

    def fill(self, count: int) -> NDArray[np.float64]:
        """Return the replacements of unknown features."""
        values = self.found.get("fill")
        entries = [0.0 if value is None else value for value in values] if isinstance(values, list) else values
        numbers = np.array(self.numbers("fill", entries, count, -1e12, 1e12))
        return np.where([value is None for value in values or ()], np.nan, numbers)

    def zone(self, key: str) -> str:
        """Return a time zone."""
        name = self.found.get(key)
        if not isinstance(name, str) or not _ZONE.fullmatch(name):
            raise self.wrong(key, "an IANA time zone")
        try:
            pl.select(pl.lit(0).cast(pl.Datetime("us")).dt.replace_time_zone(name))
        except pl.exceptions.PolarsError:
            raise self.wrong(key, "an IANA time zone") from None
        return name

    def size(self) -> str:
        """Return the unit of a job's size."""
        if self.found.get("size") not in _SIZES:
            raise self.wrong("size", " or ".join(_SIZES))
        return str(self.found["size"])


def _between(values: NDArray[np.float64], low: float, high: float) -> np.bool_:
    return ((values >= low) & (values <= high)).all()


def _state(folder: Folder) -> State:
    parts = {name: folder.array(f"{name}.npy", kind) for name, kind in _ARRAYS.items()}
    recent = folder.array("recent.npy", "float32", 2)
    rows = len(parts["hashes"]) + 1

    def check(name: str, good: bool, expected: str) -> None:
        if not good:
            raise InputError(f"expected {expected}", path=str(folder.path / f"{name}.npy"), hint=_HINT)

    # differences of unsigned numbers are never below 0
    check("hashes", bool((parts["hashes"][1:] > parts["hashes"][:-1]).all()), "hashes that rise")
    for name in ("count", "log_sum", "run_sum", "last_end"):
        check(name, len(parts[name]) == rows, f"{rows:,} values")
    check("recent", recent.shape == (rows, RECENT), f"{rows:,} rows of {RECENT}")
    count, some = parts["count"], parts["count"] > 0
    check("count", bool((count >= 0).all() and count[-1] == 0), "counts, the last of them 0")
    for name in ("log_sum", "run_sum", "last_end"):
        check(name, bool(np.isfinite(parts[name][some]).all()), "finite numbers")
    check("count", bool((count <= _MOST_JOBS).all()), "counts of jobs")
    check("log_sum", bool((np.abs(parts["log_sum"][some]) <= 100.0 * count[some]).all()), "logarithms of seconds")
    check("run_sum", bool(_between(parts["run_sum"][some] / count[some], 0, _MOST_S)), "seconds")
    check("last_end", bool(_between(parts["last_end"][some], -_MOST_S, _MOST_S)), "seconds")
    check("recent", bool((np.abs(recent) < 100).all()), "logarithms of seconds")
    numbered = {name: folder.array(f"{name}_numbers.npy", "uint64") for name in NUMBERED}
    # arrays read from a file are read-only; the loop over jobs is compiled for writable ones
    return State(
        parts["hashes"].copy(), count.copy(), parts["log_sum"].copy(), parts["run_sum"].copy(),
        parts["last_end"].copy(), recent.copy(), numbered,
    )  # fmt: skip
