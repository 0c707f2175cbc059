"""The bounds of what a folder of a model of run times may say: at each of them, and just beyond."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors import history_folder
from gpuctl.predictors.features import NUMBERED, RECENT

if TYPE_CHECKING:
    from gpuctl.predictors.card import Folder
    from gpuctl.predictors.features import State


class Kept:
    """A folder of two groups of jobs, two jobs of the one and one of the other, and of those never seen."""

    path = Path("m")

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        self.arrays: dict[str, Any] = {
            "hashes": np.array([3, 7], np.uint64),
            "count": np.array([2, 1, 0]),
            "log_sum": np.array([4.0, 2.0, 0.0]),
            "run_sum": np.array([20.0, 9.0, 0.0]),
            "last_end": np.array([100.0, 50.0, 0.0]),
            "recent": np.zeros((3, RECENT), np.float32),
        } | {f"{name}_numbers": np.array([1, 2], np.uint64) for name in NUMBERED}

    def json(self, name: str) -> Any:
        return self.settings

    def array(self, name: str, kind: str, dimensions: int = 1) -> Any:
        return self.arrays[name.removesuffix(".npy")]


def state(kept: Kept) -> State:
    return history_folder._state(cast("Folder", kept))


def settings(**said: Any) -> history_folder._Settings:
    return history_folder._Settings(cast("Folder", Kept(**said)))


GOOD = [
    ("count", 0, 10**12), ("count", 0, 0), ("log_sum", 0, 200), ("log_sum", 0, -200), ("log_sum", 2, np.nan),
    ("run_sum", 0, 2e13), ("run_sum", 0, 0), ("run_sum", 2, np.inf), ("last_end", 0, 1e13), ("last_end", 0, -1e13),
    ("last_end", 2, np.nan), ("recent", 0, 99.9), ("recent", 0, -99.9),
]  # fmt: skip
BAD = [
    ("hashes", 0, 7), ("hashes", 0, 9), ("count", 0, 10**12 + 1), ("count", 0, -1), ("count", 2, 1),
    ("log_sum", 0, 200.1), ("log_sum", 0, -200.1), ("log_sum", 1, 100.1), ("log_sum", 1, np.nan),
    ("run_sum", 0, 2.001e13), ("run_sum", 1, 1.001e13), ("run_sum", 0, -1), ("run_sum", 0, np.inf),
    ("last_end", 0, 1.001e13), ("last_end", 0, -1.001e13), ("last_end", 0, np.nan), ("recent", 0, 100),
    ("recent", 0, -100), ("recent", 2, np.nan),
]  # fmt: skip


@pytest.mark.parametrize(("name", "at", "value"), GOOD)
def test_a_figure_of_past_jobs_may_be_as_large_as_its_bound(name: str, at: int, value: float) -> None:
    kept = Kept()
    kept.arrays[name][at] = value
    assert np.array_equal(getattr(state(kept), name), kept.arrays[name], equal_nan=True)


@pytest.mark.parametrize(("name", "at", "value"), BAD)
def test_a_figure_of_past_jobs_beyond_its_bound_is_refused(name: str, at: int, value: float) -> None:
    kept = Kept()
    kept.arrays[name][at] = value
    with pytest.raises(InputError, match="expected") as refused:
        state(kept)
    assert refused.value.path == str(Path("m") / f"{name}.npy")


@pytest.mark.parametrize("name", ["count", "log_sum", "run_sum", "last_end", "recent"])
def test_every_group_has_one_row_and_those_never_seen_another(name: str) -> None:
    for change in (lambda rows: rows[:-1], lambda rows: np.concatenate([rows[:1] * 0, rows])):
        kept = Kept()
        kept.arrays[name] = change(kept.arrays[name])
        with pytest.raises(InputError, match=r"expected 3 (values|rows of)"):
            state(kept)
    narrow = Kept()
    narrow.arrays["recent"] = narrow.arrays["recent"][:, 1:]
    with pytest.raises(InputError, match=f"3 rows of {RECENT}"):
        state(narrow)


def test_a_model_may_know_of_no_job_at_all() -> None:
    kept = Kept()
    kept.arrays["hashes"] = kept.arrays["hashes"][:0]
    for name in ("count", "log_sum", "run_sum", "last_end", "recent"):
        kept.arrays[name] = kept.arrays[name][2:]
    assert state(kept).count.tolist() == [0]


@pytest.mark.parametrize(
    ("key", "good", "bad"),
    [
        (
            "quantiles",
            [[1e-6, 0.5, 1 - 1e-6]],
            [[0.9e-6, 0.5, 0.9], [0.1, 0.5, 1 - 0.9e-6], [0.1, 0.1, 0.9], [0.1, 0.9, 0.9]],
        ),
        ("widen", [[0, 100], [100, 0]], [[-1e-9, 1], [1, 100.1], [1], [1, 1, 1]]),
    ],
)
def test_a_setting_may_be_as_large_as_its_bound(key: str, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        assert getattr(settings(**{key: value}), key)() == tuple(value)
    for value in bad:
        with pytest.raises(InputError, match=f"{key}: found"):
            getattr(settings(**{key: value}), key)()


def test_gaps_are_filled_by_a_number_or_unknown() -> None:
    found = settings(fill=[None, -1e12, 1e12]).fill(3)
    assert np.array_equal(found, [np.nan, -1e12, 1e12], equal_nan=True)
    for wrong in ([None, -1.1e12, 0], [None, 0, 1.1e12], [None, 0], "abc", None):
        with pytest.raises(InputError, match="fill: found"):
            settings(fill=wrong).fill(3)
