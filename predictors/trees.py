"""Regression trees read from LightGBM's text format, and their answers.

LightGBM's own reader trusts what it is given: LightGBM 4.7 ends the process (SIGABRT) on a truncated text and on an
index that is out of range, and reads outside its memory (SIGSEGV) where a tree's length is wrong. A model folder may
come from anyone, so its text is read here, every index is checked, and the trees are walked with NumPy, or by a
compiled loop where there are many rows. LightGBM itself only ever sees models that this process has trained.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

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

# decision_type: bit 0 a category, bit 1 whether what is missing goes left, bits 2 and 3 what counts as missing
_CATEGORY, _LEFT, _MISSING_NAN, _MISSING_NONE = 1, 2, 2, 0


@dataclass(frozen=True)
class Trees:
    """Trees whose answers add up; nodes of all trees one after the other, every tree's root first.

    Attributes:
        features: names of the columns that the trees look at.
        root: first node of each tree, shape (trees,).
        feature: column that a node looks at; shape (nodes,), as all that follow. A leaf has column 0.
        threshold: a value up to this one goes left.
        nan_left: whether a value that is not known goes left.
        left: node that follows; a leaf follows itself.
        right: node that follows.
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
        """The sum of what the trees say of each row, shape (rows,).

        Args:
            rows: shape (rows, features); NaN is what is not known.
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
    """A model's text without what follows its trees: parameters, which the card tells, and importances."""
    trees, end, _ = text.partition(f"\n{_END}\n")
    return trees + end


def parse(text: str, features: Sequence[str], path: str) -> Trees:
    """Read trees from LightGBM's text format, trusting nothing in it.

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
    parts = _Parts([], [], [], [], [], [], [])
    first, depth = 0, 0
    for number, (at, until) in enumerate(zip(starts, [*starts[1:], lines.index(_END)], strict=True)):
        if lines[at] != f"Tree={number}" or until <= at:
            raise InputError(f"expected 'Tree={number}', found {lines[at][:40]!r}", path=path, line=at + 1, hint=_HINT)
        size, steps = _tree(_Section(lines[at:until], at, path), len(features), first, parts)
        first, depth = first + size, max(depth, steps)
        if first > 100 * MOST_LEAVES:
            raise InputError(f"has more than {100 * MOST_LEAVES:,} nodes", path=path, line=at + 1, hint=_HINT)
    return Trees(
        features=tuple(features),
        root=np.array(parts.root, np.int64),
        feature=np.concatenate(parts.feature),
        threshold=np.concatenate(parts.threshold),
        nan_left=np.concatenate(parts.nan_left),
        left=np.concatenate(parts.left),
        right=np.concatenate(parts.right),
        value=np.concatenate(parts.value),
        depth=depth,
    )


_HINT = "train the model again, or ask its author for the whole folder"


@dataclass(frozen=True)
class _Parts:
    """Arrays of each tree, as `Trees` has them for all."""

    root: list[int]
    feature: list[Ints]
    threshold: list[Floats]
    nan_left: list[NDArray[np.bool_]]
    left: list[Ints]
    right: list[Ints]
    value: list[Floats]


class _Section:
    """The lines ``key=value`` of one tree."""

    def __init__(self, lines: list[str], at: int, path: str) -> None:
        self.at, self.path = at, path
        self.fields: dict[str, str] = {}
        for line in filter(None, lines):
            key, _, value = line.partition("=")
            if key in self.fields:
                raise self.wrong(f"{key[:40]} occurs twice")
            self.fields[key] = value

    def wrong(self, text: str) -> InputError:
        """What is wrong with this tree."""
        return InputError(text, path=self.path, line=self.at + 1, hint=_HINT)

    def floats(self, key: str, count: int, most: float = math.inf) -> Floats:
        """Numbers, none of them beyond `most`."""
        words = self.fields.get(key, "").split()
        if len(words) != count:
            raise self.wrong(f"{key} has {len(words):,} values, expected {count:,}")
        try:
            found = np.array([float(word) for word in words])
        except ValueError:
            raise self.wrong(f"{key} has a value that is not a number") from None
        if not (np.abs(found) <= most).all():
            raise self.wrong(f"{key} has a value that is not a number, or beyond {most:g}")
        return found

    def ints(self, key: str, count: int, low: int, high: int) -> Ints:
        """Whole numbers from `low` to `high`."""
        found = self.floats(key, count, 1e9)
        if not ((found == np.floor(found)) & (found >= low) & (found <= high)).all():
            raise self.wrong(f"{key} has a value that is not a whole number from {low} to {high}")
        return found.astype(np.int64)


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


def _tree(section: _Section, features: int, first: int, parts: _Parts) -> tuple[int, int]:
    """Add a tree whose nodes begin at `first`; return how many nodes it has, and its depth."""
    leaves = int(section.ints("num_leaves", 1, 1, MOST_LEAVES)[0])
    section.ints("num_cat", 1, 0, 0)
    section.ints("is_linear", 1, 0, 0)
    inner = leaves - 1
    kinds = section.ints("decision_type", inner, 0, 15)
    missing = kinds >> 2
    if (kinds & _CATEGORY).any() or not np.isin(missing, (_MISSING_NONE, _MISSING_NAN)).all():
        raise section.wrong("decision_type asks for categories, or takes zeros as missing; expected neither")
    # infinity parts what is known from what is not
    threshold = section.floats("threshold", inner)
    column = section.ints("split_feature", inner, 0, features - 1)
    left, right = (section.ints(f"{side}_child", inner, -leaves, inner - 1) for side in ("left", "right"))
    steps = _depth(section, left, right)
    # where nothing was missing in training, LightGBM takes what is missing for 0
    nan_left = np.where(missing == _MISSING_NAN, (kinds & _LEFT) > 0, threshold >= 0)
    itself = np.arange(inner, inner + leaves)
    parts.root.append(first)
    parts.feature.append(np.append(column, np.zeros(leaves, np.int64)))
    parts.threshold.append(np.append(threshold, np.zeros(leaves)))
    parts.nan_left.append(np.append(nan_left, np.ones(leaves, bool)))
    # leaf k is written as -k - 1
    parts.left.append(first + np.append(np.where(left < 0, inner - left - 1, left), itself))
    parts.right.append(first + np.append(np.where(right < 0, inner - right - 1, right), itself))
    parts.value.append(np.append(np.zeros(inner), section.floats("leaf_value", leaves, MOST_VALUE)))
    return inner + leaves, steps


def _depth(section: _Section, left: Ints, right: Ints) -> int:
    """The longest way down, after seeing that each node but the root has one parent, which comes before it."""
    children = np.concatenate([left, right])
    inner = len(left)
    expected = np.concatenate([np.arange(-inner - 1, 0), np.arange(1, inner)]) if inner else children
    if len(children) != len(expected) or (np.sort(children) != np.sort(expected)).any():
        raise section.wrong("left_child and right_child do not name each node once")
    depth = [0] * inner
    deepest = 0
    for parent, pair in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        for child in pair:
            if 0 <= child <= parent:
                raise section.wrong(f"node {child} comes before its parent {parent}")
            if child > 0:
                depth[child] = depth[parent] + 1
        deepest = max(deepest, depth[parent] + 1)
    return deepest


def finite(value: object) -> bool:
    """Whether a value read from JSON is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
