"""The folder of a model of waits: its files, and the checks on loading them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gpuctl.core.errors import InputError
from gpuctl.predictors import history, limit_share, trees
from gpuctl.predictors.card import load_folder, save_folder
from gpuctl.waits import adaptive_quantiles, features, forward, learn, quantiles
from gpuctl.waits.quantiles import Forests

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gpuctl.predictors.card import Folder

SETTINGS = "settings.json"
_HINT = "train the model again, or ask its author for the whole folder"
_ZONE = re.compile(r"[A-Za-z0-9_+/-]{1,64}")
_SETS = {"blend": learn.BLENDED, "boosted": features.ALL, "job_only": features.OF_JOB}
"""What forests look at, by the beginning of their files' names."""


def save(path: Path, model: learn.Model, about: Mapping[str, Any]) -> None:
    """Save a trained model; an existing one is replaced.

    Args:
        path: of the folder.
        model: trained or loaded.
        about: entries of its card, see `gpuctl.predictors.card.save_folder`.

    Raises:
        UsageError: something else is there, or it is not writable.
    """
    forests = {name: getattr(model, name) for name in _SETS}
    settings = {
        "levels": {name: [list(row) for row in rows] for name, rows in model.levels.items()},
        "job_only_levels": list(model.job_only.levels),
        "method": model.method, "order": model.order, "unit": model.unit, "zone": model.zone, "clock": model.clock,
        "unlimited": model.unlimited, "largest": model.largest, "queues": list(model.queues),
        "trained_s": model.trained_s,
        "run_times_from": [] if model.run_times is None else list(model.run_times.features),
    }  # fmt: skip
    texts = {
        f"{name}_{round(100 * level):02}.txt": text
        for name, each in forests.items()
        for level, text in zip(quantiles.LEVELS, each.texts, strict=True)
    }
    if model.run_times is not None:
        texts |= dict(zip(map(_run_times, limit_share.LEVELS), model.run_times.texts, strict=True))
    save_folder(path, learn.KIND, about, {SETTINGS: settings, **texts})


def load(path: Path) -> learn.Model:
    """Load a model of waits; nothing in its folder is run, and all of it is checked.

    Raises:
        InputError: it is missing, truncated, changed, of another kind, or of another version.
    """
    folder = load_folder(path, learn.KIND)
    found = folder.json(SETTINGS)
    place = str(path / SETTINGS)
    if not isinstance(found, dict):
        raise InputError("expected an object", path=place, hint=_HINT)

    def checked(key: str, good: bool, expected: str) -> Any:
        if not good:
            raise InputError(f"{key}: found {found.get(key)!r:.80}, expected {expected}", path=place, hint=_HINT)
        return found[key]

    words = {"method": learn.WITH_QUEUE, "order": tuple(forward.ORDERS), "unit": ("GPUs", "nodes")}
    for key, known in words.items():
        checked(key, found.get(key) in known, " or ".join(known))
    for key in ("zone", "clock"):
        checked(key, _is_zone(found.get(key)), "an IANA time zone")
    checked("unlimited", isinstance(found.get("unlimited"), bool), "true or false")
    for key in ("largest", "trained_s"):
        checked(key, trees.finite(found.get(key)) and abs(found[key]) < 1e12, "a number")
    checked("largest", found["largest"] > 0, "a size above 0")
    queues = found.get("queues")
    named = isinstance(queues, list) and all(isinstance(name, str) for name in queues)
    checked("queues", named, "names of partitions")
    levels = found.get("levels")
    methods = isinstance(levels, dict) and set(levels) == set(_FOLLOWED)
    levels = checked("levels", methods, f"those of {', '.join(_FOLLOWED)}")
    for rows in levels.values():
        good = isinstance(rows, list) and len(rows) == adaptive_quantiles.GROUPS and all(map(_rises, rows))
        checked("levels", good, f"{adaptive_quantiles.GROUPS} times {_RISING}")
    only = checked("job_only_levels", _rises(found.get("job_only_levels")), _RISING)
    checked("run_times_from", _names_features(found.get("run_times_from")), "names of features, none twice")
    forests = {name: _forests(folder, name) for name in _SETS}
    return learn.Model(
        blend=forests["blend"], boosted=forests["boosted"],
        job_only=replace(forests["job_only"], levels=tuple(map(float, only))),
        levels={name: tuple(tuple(map(float, row)) for row in rows) for name, rows in levels.items()},
        order=found["order"], method=found["method"], run_times=_shares(folder, found["run_times_from"]),
        unit=found["unit"], zone=found["zone"], clock=found["clock"], unlimited=found["unlimited"],
        largest=float(found["largest"]), queues=tuple(found["queues"]), trained_s=float(found["trained_s"]),
    )  # fmt: skip


def _names_features(names: Any) -> bool:
    known = history.described()
    valid = isinstance(names, list) and all(isinstance(name, str) and name in known for name in names)
    return valid and len(set(names)) == len(names)


def _run_times(level: float) -> str:
    return f"run_times_{round(100 * level):02}.txt"


def _shares(folder: Folder, names: list[str]) -> limit_share.Shares | None:
    """Return the trees that forecast run times; None: draw run times from the past alone."""
    if not names:
        return None
    files = tuple(map(_run_times, limit_share.LEVELS))
    texts = tuple(map(folder.text, files))
    parsed = tuple(trees.parse(text, names, str(folder.path / file)) for text, file in zip(texts, files, strict=True))
    return limit_share.Shares(tuple(names), parsed, texts)


def _forests(folder: Folder, name: str) -> Forests:
    files = [f"{name}_{round(100 * level):02}.txt" for level in quantiles.LEVELS]
    texts = tuple(map(folder.text, files))
    names = _SETS[name]
    parsed = tuple(trees.parse(text, names, str(folder.path / file)) for text, file in zip(texts, files, strict=True))
    return Forests(tuple(names), parsed, texts)


_FOLLOWED = (learn.BLEND, learn.BOOSTED, learn.SIMULATED)
_RISING = f"{len(quantiles.ANSWERED)} numbers that rise between 0 and 1"


def _rises(levels: Any) -> bool:
    """Return whether these are ascending levels that can be used for `quantiles.ANSWERED`."""
    good = isinstance(levels, list) and len(levels) == len(quantiles.ANSWERED) and all(map(trees.finite, levels))
    return good and all(0 < a <= b < 1 for a, b in zip(levels, [*levels[1:], levels[-1]], strict=True))


def _is_zone(name: Any) -> bool:
    if not isinstance(name, str) or not _ZONE.fullmatch(name):
        return False
    try:
        pl.select(pl.lit(0).cast(pl.Datetime("us")).dt.replace_time_zone(name))
    except pl.exceptions.PolarsError:
        return False
    return True
