"""Trees from LightGBM's text: they answer as LightGBM does, and a text that is not one is refused."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.predictors import trees

NAMES = ["a", "b", "c"]


def trained(leaves: int = 7, count: int = 20, *, missing: bool = True) -> tuple[lightgbm.Booster, np.ndarray]:
    random = np.random.default_rng(0)
    rows = random.normal(size=(600, 3)).astype(np.float32)
    if missing:
        rows[::5, 1] = np.nan
    target = rows[:, 0] + np.nan_to_num(rows[:, 1]) * rows[:, 2]
    given = {"objective": "quantile", "alpha": 0.3, "num_leaves": leaves, "verbose": -1, "min_data_in_leaf": 5}
    return lightgbm.train(given, lightgbm.Dataset(rows, target, feature_name=NAMES), num_boost_round=count), rows


@pytest.fixture(scope="module")
def text() -> str:
    return trees.strip(trained()[0].model_to_string())


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("leaves", [2, 7, 31])
def test_trees_answer_as_lightgbm_does(leaves: int, missing: bool) -> None:
    booster, rows = trained(leaves, missing=missing)
    forest = trees.parse(booster.model_to_string(), NAMES, "m.txt")
    random = np.random.default_rng(1)
    asked = np.vstack([rows, 10 * random.normal(size=(300, 3))]).astype(np.float32)
    asked[random.random(asked.shape) < 0.2] = np.nan
    asked[:3] = [[0, 0, 0], [np.inf, -np.inf, 1e-40], [np.nan] * 3]
    assert forest.answer(asked) == pytest.approx(booster.predict(asked), abs=1e-12)
    assert forest.answer(asked[7:8]) == pytest.approx(booster.predict(asked[7:8]), abs=1e-12)


def test_many_rows_are_walked_in_pieces(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    forest = trees.parse(text, NAMES, "m.txt")
    rows = np.random.default_rng(2).normal(size=(100, 3))
    whole = forest.answer(rows)
    monkeypatch.setattr(trees, "_LARGEST", 7 * len(forest.root))
    assert (forest.answer(rows) == whole).all()
    assert forest.answer(rows[:0]).shape == (0,)


def test_trees_that_do_not_split() -> None:
    rows = np.random.default_rng(3).normal(size=(100, 3))
    booster = lightgbm.train({"verbose": -1}, lightgbm.Dataset(rows, np.full(100, 2.5), feature_name=NAMES), 3)
    forest = trees.parse(booster.model_to_string(), NAMES, "m.txt")
    assert forest.answer(rows) == pytest.approx(booster.predict(rows))


def test_lightgbm_reads_what_is_kept_of_its_text(text: str) -> None:
    booster, rows = trained()
    assert "parameters" not in text
    assert (lightgbm.Booster(model_str=text).predict(rows) == booster.predict(rows)).all()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tree\n", "forest\n", "expected 'tree'"),
        ("\nend of trees", "\n", "truncated"),
        ("version=v4", "version=v9", "found 'v9', expected 'v4'"),
        ("feature_names=a b c", "feature_names=a b", "other features"),
        ("objective=quantile", "objective=binary", "found 'binary'"),
        ("Tree=1\n", "Tree=7\n", "expected 'Tree=1'"),
        ("num_leaves=7", "num_leaves=8", "expected 7"),
        ("num_leaves=7", "num_leaves=1e9", "not a whole number from 1 to"),
        ("num_leaves=7", "num_leaves=nan", "not a number"),
        ("num_cat=0", "num_cat=1", "num_cat"),
        ("is_linear=0", "is_linear=1", "is_linear"),
        ("split_feature=", "split_feature=3 ", "split_feature has 7 values"),
        ("left_child=", "left_child=x ", "left_child has 7 values"),
        ("leaf_value=", "leaf_value=inf ", "leaf_value has 8 values"),
        ("threshold=", "threshold=0 ", "threshold has 7 values"),
        ("shrinkage=1", "shrinkage=1\nshrinkage=1", "occurs twice"),
    ],
)  # fmt: skip
def test_errors_are_reported(text: str, old: str, new: str, said: str) -> None:
    assert old in text
    with pytest.raises(InputError, match=said) as error:
        trees.parse(text.replace(old, new, 1), NAMES, "m.txt")
    assert error.value.message.startswith("m.txt")
    assert error.value.hint


def field(text: str, key: str, change: dict[int, str]) -> str:
    """The text with some values of the first line of that key changed."""
    lines = text.split("\n")
    at = next(k for k, line in enumerate(lines) if line.startswith(f"{key}="))
    values = lines[at].removeprefix(f"{key}=").split(" ")
    for k, value in change.items():
        values[k] = value
    lines[at] = f"{key}={' '.join(values)}"
    return "\n".join(lines)


@pytest.mark.parametrize(
    "key", ["split_feature", "left_child", "right_child", "decision_type", "threshold", "leaf_value"]
)
@pytest.mark.parametrize("value", ["-99", "99", "1.5", "nan", "1e400", "0x1", "9" * 400, "=", "٣٣"])
def test_no_index_leads_outside(text: str, key: str, value: str) -> None:
    changed = field(text, key, {0: value})
    # LightGBM itself writes thresholds without bound; an answer must be a finite number
    boundless = key == "threshold" and value in {"1e400", "9" * 400}
    harmless = boundless or (key in {"threshold", "leaf_value"} and value in {"-99", "99", "1.5", "٣٣"})
    if harmless:
        assert np.isfinite(trees.parse(changed, NAMES, "m.txt").answer(np.zeros((1, 3)))).all()
    else:
        with pytest.raises(InputError):
            trees.parse(changed, NAMES, "m.txt")


def test_a_tree_that_leads_back_to_itself_is_refused(text: str) -> None:
    for key in ("left_child", "right_child"):
        for value in ("0", "1", "-1"):
            changed = field(text, key, {3: value})
            if changed != text:
                with pytest.raises(InputError, match=r"name each node once|comes before its parent"):
                    trees.parse(changed, NAMES, "m.txt")


def test_every_truncation_is_refused(text: str) -> None:
    for size in range(0, len(text) - 1, 37):
        with pytest.raises(InputError):
            trees.parse(text[:size], NAMES, "m.txt")
