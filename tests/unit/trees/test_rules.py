"""Trees of whole numbers: fitted by hand and as recorded, as rules in text, and what is wrong with such a text."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.trees.fit import count_leaves, fit
from gpuctl.trees.model import Leaf, Split, Tree, json_of, read_json, rules_of
from gpuctl.trees.rules import Rule, Rules, Tier, read_text, text_of

ORACLES = Path(__file__).resolve().parents[4] / "shared" / "oracles" / "dag"
NAMES = ("left", "held")
LEAF = Leaf(1, 2, 3)


def answer(tree: Tree, row: list[int]) -> Leaf:
    while isinstance(tree, Split):
        tree = tree.low if row[tree.feature] <= tree.limit else tree.high
    return tree


def test_a_tree_is_fitted_by_hand() -> None:
    # (1,0)- (2,0)- (3,1)+ (4,1)+ (5,0)- (6,1)+, weights 1 and 2
    rows = np.array([(1, 0), (2, 0), (3, 1), (4, 1), (5, 0), (6, 1)])
    chosen = rows[:, 1]
    assert fit(rows, chosen, 1 + chosen, depth=2, leaf=1) == Split(1, 0, Leaf(0, 3, 3), Leaf(6, 0, 3))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(-2, 3), st.integers(0, 2), st.booleans(), st.integers(1, 3)), min_size=2, max_size=12
    ),
    st.integers(1, 3),
)
def test_no_single_split_is_better_than_the_fitted_one(table: list[tuple[int, int, bool, int]], leaf: int) -> None:
    rows = np.array([row[:2] for row in table])
    chosen, weight = np.array([int(row[2]) for row in table]), np.array([row[3] for row in table])

    def worth(side: list[bool]) -> float:
        p = sum(w for s, c, w in zip(side, chosen, weight, strict=True) if s and c)
        n = sum(w for s, c, w in zip(side, chosen, weight, strict=True) if s and not c)
        return float(p * p + n * n) / (p + n)

    def of(feature: int, limit: int) -> float:
        low = [bool(value <= limit) for value in rows[:, feature]]
        if min(sum(low), len(low) - sum(low)) < leaf:
            return -1
        return worth(low) + worth([not one for one in low])

    best = max(of(feature, limit) for feature, limit in itertools.product(range(2), range(-3, 4)))
    tree = fit(rows, chosen, weight, depth=1, leaf=leaf)
    whole = worth([True] * len(table))
    if isinstance(tree, Split):
        assert of(tree.feature, tree.limit) == pytest.approx(best)
        assert best > whole - 1e-9
    else:
        assert best <= whole + 1e-9 or len(set(chosen.tolist())) == 1 or len(table) < 2 * leaf


@pytest.mark.skipif(not ORACLES.is_dir(), reason="../shared is not there")
def test_the_recorded_tree_is_exact() -> None:
    with (ORACLES / "fit_rows.csv").open() as file:
        names, *rows = list(csv.reader(file))
    table = np.array(rows, np.int64)
    tree = fit(table[:, :11], table[:, 11], table[:, 12], depth=4, leaf=20)
    assert json_of(tree, names[:11]) == json.loads((ORACLES / "fit_tree.json").read_text())
    small = fit(table[:, :11], table[:, 11], table[:, 12], depth=6, leaf=5, leaves=31)
    assert count_leaves(small) == 31


def trees(depth: int) -> st.SearchStrategy[Tree]:
    leaf = st.builds(Leaf, st.integers(0, 50), st.integers(1, 50), st.integers(0, 99))
    if depth == 0:
        return leaf
    below = trees(depth - 1)
    return st.one_of(leaf, st.builds(Split, st.integers(0, 1), st.integers(-5, 5), below, below))


@settings(max_examples=60, deadline=None)
@given(trees(4), st.lists(st.integers(-7, 7), min_size=2, max_size=2))
def test_rules_as_text_are_read_back_and_state_what_the_tree_says(tree: Tree, row: list[int]) -> None:
    rules = rules_of(tree, NAMES)
    assert read_text(text_of(rules, ["a remark"]), NAMES, "r.txt") == rules
    rule, leaf = rules.rules[rules.first(row)], answer(tree, row)
    assert (rule.chosen, rule.other, rule.rows) == (leaf.chosen, leaf.other, leaf.rows)
    assert read_json(json_of(tree, NAMES), NAMES, "t.json") == (tree, NAMES)


def test_rules_by_hand() -> None:
    text = "# mine\n\nleft<5 and held >= 2 → prefer\nheld = 7 -> avoid\nheld > 0 -> 35 %\n"
    text += "left ≤ 3 -> 1 of 4\notherwise -> 0 %\n"
    rules = read_text(text, NAMES, "r.txt")
    assert [rules.first(row) for row in ([4, 2], [4, 1], [5, 7], [3, 0], [4, 0])] == [0, 2, 1, 3, 4]
    assert [rule.share for rule in rules.rules] == [1.0, 0.0, 0.35, 0.25, 0.0]
    assert [rule.tier for rule in rules.rules[:2]] == [Tier.PREFERRED, Tier.AVOIDED]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("left <= 3 -> 5 %\nleft > 4 -> 5 %", "no rule holds for left > 3 and left <= 4"),
        ("otherwise -> 5 %\nlength > 3 -> 5 %", "r.txt:2: there is no feature length; there are left, held"),
        ("otherwise -> 5 %\nleft > 3.5 -> 5 %", "r.txt:2: found 'left > 3.5', expected a condition"),
        ("# x\notherwise -> maybe", "r.txt:2: found 'maybe' after ->"),
        ("left > 3", "r.txt:1: found 'left > 3', expected conditions, ->"),
        ("otherwise -> 5 of 4", "A of B with A at most B"),
        ("otherwise -> 120 %", "at most 100 %"),
        ("otherwise -> 20 of 57 (36.0 %)", "20 of 57 is not 36.0 %"),
        ("left > 3 and -> 5 %", "r.txt:1"),
        ("", "has 0 rules"),
    ],
)
def test_wrong_rules_are_reported_by_line(text: str, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_text(text, NAMES, "r.txt")
    assert told in str(error.value)
    assert "->" in str(error.value.hint)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "no list of features"),
        ({"features": ["left", "x"], "tree": {"pos": 1, "neg": 1, "n": 1}}, "there is no feature 'x'"),
        ({"features": ["left"], "tree": {"f": 1, "t": 0}}, "f: found 1, expected a whole number from 0 to 0"),
        ({"features": ["left"], "tree": {"f": 0, "t": 0, "lo": {"pos": 1, "neg": 1, "n": 1}}}, "that is not a tree"),
        ({"features": ["left"], "tree": {"pos": 0, "neg": 0, "n": 1}}, "expected a weight"),
        ({"features": ["left"], "tree": {"pos": True, "neg": 0, "n": 1}}, "pos: found True"),
    ],
)
def test_wrong_trees_are_refused(value: object, told: str) -> None:
    with pytest.raises(InputError) as error:
        read_json(value, NAMES, "t.json")
    assert told in str(error.value)
    deep: dict[str, object] = {"pos": 1, "neg": 1, "n": 1}
    for _ in range(80):
        deep = {"f": 0, "t": 0, "lo": deep, "hi": {"pos": 1, "neg": 1, "n": 1}}
    with pytest.raises(InputError, match="deeper than"):
        read_json({"features": ["left"], "tree": deep}, NAMES, "t.json")


def test_features_are_found_by_name() -> None:
    tree, _ = read_json({"features": ["held"], "tree": {"f": 0, "t": 3, "lo": _leaf(), "hi": _leaf()}}, NAMES, "t.json")
    assert tree == Split(1, 3, LEAF, LEAF)
    assert Rules(NAMES, (Rule((), chosen=1, other=3),)).rules[0].share == 0.25


def _leaf() -> dict[str, int]:
    return {"pos": 1, "neg": 2, "n": 3}
