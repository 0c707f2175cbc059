"""Regression trees read from LightGBM's text format, and their evaluation.

LightGBM's own reader trusts its input: LightGBM 4.7 ends the process (SIGABRT) on a truncated text and on an index that
is out of range, and reads outside its memory (SIGSEGV) if a tree's length is wrong. A model folder may be untrusted, so
this module parses its text, checks every index, and walks the trees with NumPy, or by a compiled loop for many rows.
LightGBM itself only loads models that this process has trained.
"""

from __future__ import annotations

import math
import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.core.whole_imports import whole_imports

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_Value = TypeVar("_Value", bound="np.generic")

VERSION = "v4"
"""Of the text format: LightGBM 4 writes it."""

MOST_TREES = 10_000
MOST_LEAVES = 100_000
"""Of all trees together 100 times as many."""

MOST_VALUE = 1e9
"""Of a leaf: sums stay finite."""

_END = "end of trees"
_LARGEST = 1_000_000
"""Jobs times trees that NumPy walks at once."""
_COMPILED_FROM = 400_000
"""Jobs times trees from which a compiled loop walks: to load it takes half a second."""

# decision_type: bit 0 a category, bit 1 whether missing values go left, bits 2 and 3 which values count as missing
_CATEGORY, _LEFT, _MISSING_NAN, _MISSING_NONE = 1, 2, 2, 0


def load_lightgbm() -> Any:
    """Import LightGBM; its waiting threads yield their processors to others, which halves the time on a shared node.

    OpenMP reads how threads wait from the environment when it is loaded, and only then: the user's environment stays.
    """
    name = "OMP_WAIT_POLICY"
    with whole_imports():
        if name in os.environ:
            return import_module("lightgbm")
        os.environ[name] = "passive"
        try:
            return import_module("lightgbm")
        finally:
            del os.environ[name]


@dataclass(frozen=True)
class Trees:
    """Trees whose values are summed; nodes of all trees in sequence, every tree's root first.

    Attributes:
        features: names of the columns that the trees use.
        root: first node of each tree, shape (trees,).
        feature: column that a node tests; shape (nodes,), as for the following. A leaf has column 0.
        threshold: a value up to this one goes left.
        nan_left: whether an unknown value goes left.
        left: left child; a leaf is its own child.
        right: right child.
        value: of a leaf.
        depth: most steps from a root to a leaf.
    """

    features: tuple[str, ...]
    root: Ints
    feature: Ints
    threshold: Floats
    nan_left: NDArray[np.bool_]
    left: Ints
    right: Ints
    value: Floats
    depth: int

    def answer(self, rows: NDArray[np.float32] | Floats) -> Floats:
        """Return the sum of the trees' values for each row, shape (rows,).

        Args:
            rows: shape (rows, features); NaN: unknown.
        """
        if len(rows) * len(self.root) >= _COMPILED_FROM:
            return self._walked(rows)
        step = max(1, _LARGEST // max(1, len(self.root)))
        parts = [self._answer(rows[at : at + step]) for at in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _walked(self, rows: NDArray[np.float32] | Floats) -> Floats:
        from gpuctl.predictors.walk_kernel import walk

        total = np.zeros(len(rows))
        whole = np.ascontiguousarray(rows, np.float64)
        nodes = self.feature, self.threshold, self.nan_left, self.left, self.right, self.value
        walk(whole, self.root, *nodes, total)
        return total

    def _answer(self, rows: NDArray[np.float32] | Floats) -> Floats:
        count, wide = rows.shape
        flat = np.ascontiguousarray(rows, np.float64).ravel()
        first = np.arange(count) * wide
        node = np.repeat(self.root[:, None], count, axis=1)
        for _ in range(self.depth):
            value = flat[first + self.feature[node]]
            left = np.where(np.isnan(value), self.nan_left[node], value <= self.threshold[node])
            node = np.where(left, self.left[node], self.right[node])
        # one tree after the other, as LightGBM adds them
        total = np.zeros(count)
        for leaves in self.value[node]:
            total += leaves
        return total


def strip(text: str) -> str:
    """Return a model's text up to its last tree: without parameters, which the card has, and importances."""
    trees, end, _ = text.partition(f"\n{_END}\n")
    return trees + end


def parse(text: str, features: Sequence[str], path: str) -> Trees:
    """Parse trees from LightGBM's text format; all of it is checked.

    Args:
        text: the whole model.
        features: names of the columns that it must have been trained on.
        path: of the file, for messages.

    Raises:
        InputError: the text is truncated, is no such model, is one of other features, or its trees are not trees.
    """
    lines = text.split("\n")
    if lines[0] != "tree":
        raise InputError("is not a LightGBM model: expected 'tree' on its first line", path=path, line=1, hint=_HINT)
    if _END not in lines:
        raise InputError(f"is truncated: expected a line {_END!r}", path=path, line=len(lines), hint=_HINT)
    starts = [k for k, line in enumerate(lines) if line.startswith("Tree=")]
    if not 0 < len(starts) <= MOST_TREES:
        raise InputError(f"has {len(starts)} trees, expected 1 to {MOST_TREES}", path=path, hint=_HINT)
    _check_head(lines[: starts[0]], features, path)
    sections = []
    for number, (at, until) in enumerate(zip(starts, [*starts[1:], lines.index(_END)], strict=True)):
        if lines[at] != f"Tree={number}" or until <= at:
            raise InputError(f"expected 'Tree={number}', found {lines[at][:40]!r}", path=path, line=at + 1, hint=_HINT)
        sections.append(_Section(lines[at:until], at, path))
    return _Sections(sections).trees(features)


_HINT = "train the model again, or ask its author for the whole folder"


class _Section:
    """The ``key=value`` lines of one tree."""

    def __init__(self, lines: list[str], at: int, path: str) -> None:
        self.at, self.path = at, path
        self.fields: dict[str, str] = {}
        for line in filter(None, lines):
            key, _, value = line.partition("=")
            if key in self.fields:
                raise self.wrong(f"{key[:40]} occurs twice")
            self.fields[key] = value

    def wrong(self, text: str) -> InputError:
        """Return the error for a fault of this tree."""
        return InputError(text, path=self.path, line=self.at + 1, hint=_HINT)


class _Sections:
    """All trees of a text, parsed together: a model has hundreds of small ones.

    Args:
        each: the lines of each tree.
    """

    def __init__(self, each: list[_Section]) -> None:
        self._each = each

    def trees(self, features: Sequence[str]) -> Trees:
        """Return the trees, after checking each number.

        Raises:
            InputError: they are not trees.
        """
        one = np.ones(len(self._each), np.int64)
        leaves = self._whole("num_leaves", one, 1, MOST_LEAVES)
        self._whole("num_cat", one, 0, 0)
        self._whole("is_linear", one, 0, 0)
        inner, size = leaves - 1, 2 * leaves - 1
        first = np.cumsum(size) - size
        total = int(size.sum())
        if total > 100 * MOST_LEAVES:
            raise self._each[-1].wrong(f"the trees have more than {100 * MOST_LEAVES:,} nodes")
        kinds = self._whole("decision_type", inner, 0, 15)
        missing = kinds >> 2
        other = (kinds & _CATEGORY).astype(bool) | ~np.isin(missing, (_MISSING_NONE, _MISSING_NAN))
        if other.any():
            problem = "decision_type asks for categories, or takes zeros as missing; expected neither"
            raise self._at(inner, other).wrong(problem)
        # infinity separates known from unknown values
        threshold = self._floats("threshold", inner)
        column = self._whole("split_feature", inner, 0, len(features) - 1)
        tree = np.repeat(np.arange(len(leaves)), inner)
        low, high = -leaves[tree], inner[tree] - 1
        left, right = (self._whole(f"{side}_child", inner, low, high) for side in ("left", "right"))
        node = np.arange(len(tree)) - (np.cumsum(inner) - inner)[tree]
        depth = self._depth(left, right, node, tree, inner)
        places, ends = first[tree] + node, np.ones(total, bool)
        ends[places] = False
        # if no value was missing in training, LightGBM treats a missing one as 0
        nan_left = np.where(missing == _MISSING_NAN, (kinds & _LEFT) > 0, threshold >= 0)
        # leaf k is written as -k - 1
        children = (first[tree] + np.where(side < 0, inner[tree] - side - 1, side) for side in (left, right))
        return Trees(
            features=tuple(features),
            root=first,
            feature=_put(np.zeros(total, np.int64), places, column),
            threshold=_put(np.zeros(total), places, threshold),
            nan_left=_put(np.ones(total, bool), places, nan_left),
            left=_put(np.arange(total), places, next(children)),
            right=_put(np.arange(total), places, next(children)),
            value=_put(np.zeros(total), ends, self._floats("leaf_value", leaves, MOST_VALUE)),
            depth=depth,
        )

    def _at(self, counts: Ints, wrong: NDArray[np.bool_]) -> _Section:
        """Return the tree of the first wrong value, given the number of values per tree."""
        return self._each[int(np.searchsorted(np.cumsum(counts), int(wrong.argmax()), "right"))]

    def _floats(self, key: str, counts: Ints, most: float = math.inf) -> Floats:
        """Return the numbers of all trees, with the given count per tree, none beyond `most` in magnitude."""
        words: list[str] = []
        for section, count in zip(self._each, counts.tolist(), strict=True):
            own = section.fields.get(key, "").split()
            if len(own) != count:
                raise section.wrong(f"{key} has {len(own):,} values, expected {count:,}")
            words += own
        try:
            found = np.array(list(map(float, words)))
        except ValueError:
            wrong = np.array([not _is_number(word) for word in words])
            raise self._at(counts, wrong).wrong(f"{key} has a value that is not a number") from None
        beyond = ~(np.abs(found) <= most)
        if beyond.any():
            raise self._at(counts, beyond).wrong(f"{key} has a value that is not a number, or beyond {most:g}")
        return found

    def _whole(self, key: str, counts: Ints, low: int | Ints, high: int | Ints) -> Ints:
        """Return the integers of all trees, each from `low` to `high`."""
        found = self._floats(key, counts, 1e9)
        outside = ~((found == np.floor(found)) & (found >= low) & (found <= high))
        if outside.any():
            at = int(outside.argmax())
            least, most = (int(np.broadcast_to(limit, found.shape)[at]) for limit in (low, high))
            problem = f"{key} has a value that is not a whole number from {least} to {most}"
            raise self._at(counts, outside).wrong(problem)
        return found.astype(np.int64)

    def _depth(self, left: Ints, right: Ints, node: Ints, tree: Ints, inner: Ints) -> int:
        """Return the depth, after checking that each node except the root has one parent, which precedes it.

        Args:
            left: child of each inner node, in its tree; a leaf is negative.
            right: the other child.
            node: the inner nodes, counted in their trees.
            tree: of each inner node.
            inner: how many inner nodes each tree has.
        """
        # an index for each leaf, from last to first, and each inner node of a tree
        places = 2 * inner + 1
        begin = np.cumsum(places) - places
        named = np.concatenate([begin[tree] + inner[tree] + 1 + side for side in (left, right)])
        times = np.bincount(named, minlength=int(places.sum()))
        # nothing refers to the root; if it is a leaf, that is the only index
        times[begin + np.minimum(inner + 1, 2 * inner)] += 1
        if (times != 1).any():
            raise self._at(places, times != 1).wrong("left_child and right_child do not name each node once")
        for side in (left, right):
            early = (side >= 0) & (side <= node)
            if early.any():
                at = int(early.argmax())
                raise self._each[tree[at]].wrong(f"node {side[at]} comes before its parent {node[at]}")
        steps, level = 0, np.flatnonzero(node == 0)
        while level.size:
            steps += 1
            # children that are inner nodes follow their parent by the difference of their numbers
            children = np.concatenate([left[level], right[level]])
            level = (np.tile(level - node[level], 2) + children)[children > 0]
        return steps


def _put(array: NDArray[_Value], places: Ints | NDArray[np.bool_], values: NDArray[_Value]) -> NDArray[_Value]:
    array[places] = values
    return array


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _check_head(lines: list[str], features: Sequence[str], path: str) -> None:
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    names = fields.get("feature_names", "").split()
    if names != list(features):
        raise InputError(
            f"was trained on other features: found {len(names)} ({', '.join(names[:5])} …)"[:300],
            path=path,
            hint=f"expected {len(features)}: {', '.join(features[:5])} …"[:300],
        )
    expected = {"version": VERSION, "num_class": "1", "num_tree_per_iteration": "1"}
    for key, value in expected.items():
        if fields.get(key) != value:
            found = fields.get(key, "nothing")[:40]
            raise InputError(f"{key}: found {found!r}, expected {value!r}", path=path, hint=_HINT)
    objective = fields.get("objective", "").split(" ")[0]
    if objective not in {"quantile", "regression"}:
        raise InputError(f"objective: found {objective[:40]!r}, expected quantile or regression", path=path, hint=_HINT)


def finite(value: object) -> bool:
    """Return whether a value from JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
