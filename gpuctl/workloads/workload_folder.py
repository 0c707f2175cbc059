"""The folder of a workload model: its files, and the checks on loading them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.predictors.card import load_folder, save_folder
from gpuctl.workloads import lublin, mixture
from gpuctl.workloads.jobs import UNITS, Jobs
from gpuctl.workloads.lublin import Laws, Lublin
from gpuctl.workloads.parametric import ARRIVALS, HOURS, Parametric
from gpuctl.workloads.resample import Resampling

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from gpuctl.predictors.card import Folder
    from gpuctl.workloads.synth import Model

    Check = Callable[[str, Any, str], Any]

KIND = "workload"
SETTINGS = "model.json"
_HINT = "fit the model again, or ask its author for the whole folder"
_ARRAYS = {
    "submit_s": "float64", "size": "int64", "run_s": "float64", "limit_s": "float64", "user": "int64",
    "queue": "int64", "gpu_type": "int64", "state": "int64",
}  # fmt: skip
_NUMBERS = (
    "capacity", "offered_", "jobs_a_week", "single", "more", "same_inside", "same_across", "within", "rho_size",
    "limited", "rho_limit",
)  # fmt: skip
_LISTS = ("rate", "sizes", "kind_queue", "kind_gpu_type", "kind_share", "class_top", "longest", "limits", "limit_share")
_WHOLE = frozenset({"sizes", "kind_queue", "kind_gpu_type", "class_top"})
_MOST = 1e15


def save(path: Path, model: Model, about: Mapping[str, Any]) -> None:
    """Save a model; an existing one is replaced.

    Args:
        path: of the folder.
        model: fitted or loaded.
        about: content of its card, see `gpuctl.predictors.card.save_folder`.

    Raises:
        UsageError: something else is there, or it is not writable.
    """
    save_folder(path, KIND, about, contents(model))


def contents(model: Model) -> dict[str, Any]:
    """Return the files of a model except its card, by name."""
    if isinstance(model, Resampling):
        return _of_resampled(model)
    if isinstance(model, Parametric):
        return {SETTINGS: _of_parametric(model)}
    laws = {name: float(value) for name, value in vars(model.laws).items()}
    common = {"unit": model.unit, "capacity": model.capacity, "capacity_from": model.capacity_from, "name": model.name}
    return {SETTINGS: {"method": "lublin", **common, "laws": laws}}


def _of_resampled(model: Resampling) -> dict[str, Any]:
    jobs = model.jobs
    states, state = np.unique(jobs.state, return_inverse=True)
    settings = {
        "method": model.method, "near_weeks": model.near if np.isfinite(model.near) else None, "block": model.block,
        "trend": [value if np.isfinite(value) else None for value in model.trend], **_common(jobs),
        "queues": list(jobs.queues), "gpu_types": list(jobs.gpu_types), "states": [str(word) for word in states],
    }  # fmt: skip
    arrays = {f"{name}.npy": getattr(jobs, name) for name in _ARRAYS if name != "state"}
    return {SETTINGS: settings, **arrays, "state.npy": state.astype(np.int64)}


def _common(jobs: Jobs) -> dict[str, Any]:
    capacity = jobs.capacity if np.isfinite(jobs.capacity) else None
    return {
        "name": jobs.name, "unit": jobs.unit, "capacity": capacity, "capacity_from": jobs.capacity_from,
        "calendar": jobs.calendar,
    }  # fmt: skip


def _of_parametric(model: Parametric) -> dict[str, Any]:
    numbers = {name: float(getattr(model, name)) for name in _NUMBERS}
    lists = {name: getattr(model, name).tolist() for name in _LISTS}
    return {
        "method": "parametric", "name": model.name, "unit": model.unit, "capacity_from": model.capacity_from,
        "calendar": model.calendar, "arrivals": model.arrivals, **numbers, **lists,
        "day_shape": model.day_shape if np.isfinite(model.day_shape) else None, "gap": model.gap.plain(),
        "users": model.users, "zipf": list(model.zipf), "runs": [each.plain() for each in model.runs],
        "queues": list(model.queues), "gpu_types": list(model.gpu_types),
    }  # fmt: skip


def load(path: Path) -> tuple[Model, dict[str, Any]]:
    """Load a model and its card; nothing in its folder is run, and all of it is checked.

    Raises:
        InputError: it is missing, truncated, changed, of another kind, or of another version.
    """
    folder = load_folder(path, KIND)
    found = folder.json(SETTINGS)
    place = str(path / SETTINGS)
    if not isinstance(found, dict):
        raise InputError("expected an object", path=place, hint=_HINT)

    def checked(key: str, good: Any, expected: str) -> Any:
        if not good:
            raise InputError(f"{key}: found {found.get(key)!r:.80}, expected {expected}", path=place, hint=_HINT)
        return found.get(key)

    method = checked(
        "method", found.get("method") in {"users", "weeks", "jobs", "parametric", "lublin"}, "a method of gpuctl fit"
    )
    for key in ("name", "unit", "capacity_from"):
        checked(key, isinstance(found.get(key), str) and len(found[key]) <= 1_000, "text")
    checked("unit", found["unit"] in UNITS, f"one of {', '.join(UNITS)}")
    if method == "lublin":
        return _to_lublin(found, checked), folder.card
    checked("calendar", isinstance(found.get("calendar"), bool), "true or false")
    for key in ("queues", "gpu_types"):
        names = found.get(key)
        checked(key, isinstance(names, list) and all(isinstance(name, str) for name in names), "a list of names")
    if method == "parametric":
        return _to_parametric(found, checked, place), folder.card
    return _to_resampled(folder, found, checked), folder.card


def _number(value: Any, low: float = -_MOST, high: float = _MOST) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high


def _whole(value: Any, low: int, high: int) -> bool:
    return isinstance(value, int) and _number(value, low, high)


def _to_resampled(folder: Folder, found: dict[str, Any], checked: Check) -> Resampling:
    arrays = {name: folder.array(f"{name}.npy", kind) for name, kind in _ARRAYS.items()}
    size = arrays["submit_s"].size
    states = checked("states", isinstance(found.get("states"), list) and len(found["states"]) < 100, "a list of states")
    good = size > 0 and all(values.size == size for values in arrays.values())
    checked("method", good, "arrays of one length, above 0")
    submit, run = arrays["submit_s"], arrays["run_s"]
    good = bool(np.isfinite(submit).all() and (np.diff(submit) >= 0).all() and submit[0] >= 0 and submit[-1] < _MOST)
    good = good and bool(np.isfinite(run).all() and (run > 0).all() and (arrays["size"] > 0).all())
    good = good and bool((arrays["size"] < _MOST).all() and (run < _MOST).all())
    checked("method", good, "times in order, run times and sizes above 0")
    limit, user = arrays["limit_s"], arrays["user"]
    checked("method", (np.isnan(limit) | ((limit > 0) & (limit < _MOST))).all(), "time limits above 0, or none")
    checked("method", ((user >= -1) & (user <= size)).all(), "numbers of users")
    for key, names in (("queue", found["queues"]), ("gpu_type", found["gpu_types"]), ("state", states)):
        values = arrays[key]
        checked(f"{key}s", bool((values >= -1).all() and (values < max(len(names), 1)).all()), "names for all numbers")
    near = checked("near_weeks", found.get("near_weeks") is None or _number(found["near_weeks"], 0, 1e4), "weeks")
    block = checked("block", _whole(found.get("block"), 1, 10**9), "a number of jobs")
    capacity = checked("capacity", found.get("capacity") is None or _number(found["capacity"], 0), "a number from 0")
    trend = found.get("trend")
    good = isinstance(trend, list) and len(trend) == 2 and all(t is None or _number(t, 0) for t in trend)
    checked("trend", good and (trend[1] is None or trend[1] <= 1), "a ratio and a share")  # type: ignore[index]
    jobs = Jobs(
        name=found["name"], submit_s=submit, size=arrays["size"], run_s=run, limit_s=arrays["limit_s"],
        user=arrays["user"], queue=arrays["queue"], gpu_type=arrays["gpu_type"],
        state=np.array([str(word) for word in states], np.str_)[arrays["state"]], queues=tuple(found["queues"]),
        gpu_types=tuple(found["gpu_types"]), unit=found["unit"], capacity=np.nan if capacity is None else capacity,
        capacity_from=found["capacity_from"], calendar=found["calendar"],
    )  # fmt: skip
    trend_values = (np.nan if trend[0] is None else trend[0], np.nan if trend[1] is None else trend[1])  # type: ignore[index]
    return Resampling(jobs, found["method"], np.inf if near is None else float(near), block, trend_values)


def _to_parametric(found: dict[str, Any], checked: Check, place: str) -> Parametric:
    numbers: dict[str, Any] = {}
    for key in _NUMBERS:
        numbers[key] = float(checked(key, _number(found.get(key)), "a number"))
    for key in ("single", "same_inside", "same_across", "within", "limited"):
        checked(key, 0 <= numbers[key] <= 1, "a share from 0 to 1")
    for key in ("rho_size", "rho_limit"):
        checked(key, -1 < numbers[key] < 1, "a correlation")
    for key in ("capacity", "offered_", "jobs_a_week", "more"):
        checked(key, numbers[key] >= 0, "at least 0")
    lists: dict[str, Any] = {}
    for key in _LISTS:
        values = found.get(key)
        good = isinstance(values, list) and len(values) <= 1_000_000 and all(_number(value) for value in values)
        if key in _WHOLE:
            checked(key, good and all(isinstance(value, int) for value in values), "a list of whole numbers")  # type: ignore[union-attr]
        lists[key] = np.array(checked(key, good, "a list of numbers"), np.int64 if key in _WHOLE else np.float64)
    kinds, classes = lists["sizes"].size, lists["class_top"].size
    same = kinds > 0 and all(lists[key].size == kinds for key in ("kind_queue", "kind_gpu_type", "kind_share"))
    checked("sizes", same and (lists["sizes"] > 0).all(), "as many as kinds, above 0")
    checked("kind_share", (lists["kind_share"] >= 0).all() and lists["kind_share"].sum() > 0, "shares")
    checked("rate", lists["rate"].size == HOURS and (lists["rate"] >= 0).all(), f"{HOURS} rates")
    checked("rate", bool((lists["rate"] < 1e9).all() and lists["rate"].sum() > 0), "rates above 0")
    good = isinstance(found.get("runs"), list) and len(found["runs"]) == classes == lists["longest"].size > 0
    checked("runs", good and bool((np.diff(lists["class_top"]) > 0).all()), "a mixture for each class")
    checked("class_top", lists["class_top"][-1] >= lists["sizes"].max(), "classes for all sizes")
    checked("longest", (lists["longest"] >= 1).all(), "seconds, at least 1")
    checked("limits", lists["limits"].size == lists["limit_share"].size, "as many as shares")
    checked("limits", (lists["limits"] > 0).all(), "seconds above 0")
    good = not lists["limits"].size or ((lists["limit_share"] >= 0).all() and lists["limit_share"].sum() > 0)
    checked("limit_share", good, "shares")
    checked("arrivals", found.get("arrivals") in ARRIVALS, f"one of {', '.join(ARRIVALS)}")
    checked("users", _whole(found.get("users"), 0, 10**7), "a number of users")
    zipf = found.get("zipf")
    checked("zipf", isinstance(zipf, list) and len(zipf) == 2 and all(_number(z, 0, 1e6) for z in zipf), "two numbers")
    shape = checked(
        "day_shape", found.get("day_shape") is None or _number(found["day_shape"], 1e-6), "a number above 0"
    )
    for key, names in (("kind_queue", found["queues"]), ("kind_gpu_type", found["gpu_types"])):
        checked(key, bool(((lists[key] >= -1) & (lists[key] < len(names))).all()), "names for all numbers")
    return Parametric(
        name=found["name"], unit=found["unit"], capacity_from=found["capacity_from"], calendar=found["calendar"],
        arrivals=found["arrivals"], day_shape=np.inf if shape is None else float(shape),
        gap=mixture.read(found.get("gap"), place), users=found["users"], zipf=(float(zipf[0]), float(zipf[1])),  # type: ignore[index]
        runs=tuple(mixture.read(each, place) for each in found["runs"]), queues=tuple(found["queues"]),
        gpu_types=tuple(found["gpu_types"]), **numbers, **lists,
    )  # fmt: skip


def _to_lublin(found: dict[str, Any], checked: Check) -> Lublin:
    laws = found.get("laws")
    names = set(vars(lublin.PUBLISHED))
    good = isinstance(laws, dict) and set(laws) == names and all(_number(value, -1e6, 1e6) for value in laws.values())
    checked("laws", good, f"numbers for {', '.join(sorted(names))}")
    read = Laws(**{name: float(value) for name, value in laws.items()})  # type: ignore[union-attr]
    positive = (read.a1, read.b1, read.a2, read.b2, read.aarr, read.barr, read.anum, read.bnum)
    checked("laws", min(positive) > 0 and 0 <= read.low < read.medium < read.high < 40, "laws of the model")
    shares = (read.serial, read.pow2, read.prob)
    checked("laws", all(0 <= share <= 1 for share in shares), "serial, pow2 and prob from 0 to 1")
    with np.errstate(all="ignore"):
        checked("laws", np.isfinite(lublin.cycle(read)).all(), "a daily cycle from anum and bnum")
    capacity = checked("capacity", _number(found.get("capacity"), 1), "a number, at least 1")
    return Lublin(read, found["unit"], float(capacity), found["name"], found["capacity_from"])
