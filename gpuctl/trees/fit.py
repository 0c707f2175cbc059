"""A tree fitted to rows of whole numbers: CART with weights; its comparisons are exact, the same on every machine."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.trees.model import Leaf, Split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.trees.model import Tree

    Ints = NDArray[np.int64]


def fit(rows: Ints, chosen: Ints, weight: Ints, *, depth: int, leaf: int, leaves: int | None = None) -> Tree:
    """Fit a tree: each split maximizes the sum over both sides of (chosen² + other²) / (chosen + other).

    Ties take the lowest feature, then the lowest limit. The limit is the largest number on the low side.

    Args:
        rows: features [rows, features].
        chosen: 1 if the teacher chose the row [rows].
        weight: of each row, at least 1 [rows].
        depth: questions on the longest way to a leaf.
        leaf: least rows of each side of a split.
        leaves: most leaves; splits with the least gain are pruned. None: no limit.

    Raises:
        ValueError: there are no rows.
    """
    if not len(rows):
        raise ValueError("no rows to fit a tree to")
    rows = np.ascontiguousarray(rows, np.int64)
    positive = np.where(chosen == 1, weight, 0).astype(np.int64)
    negative = np.where(chosen == 1, 0, weight).astype(np.int64)
    tree = _grown(rows, positive, negative, depth, leaf)
    while leaves is not None and count_leaves(tree) > leaves:
        tree = _without_least(tree)
    return tree


def count_leaves(tree: Tree) -> int:
    """Return the number of leaves of a tree."""
    return 1 if isinstance(tree, Leaf) else count_leaves(tree.low) + count_leaves(tree.high)


def _grown(rows: Ints, positive: Ints, negative: Ints, depth: int, leaf: int) -> Tree:
    p, n = int(positive.sum()), int(negative.sum())
    here = Leaf(p, n, len(rows))
    if depth == 0 or p == 0 or n == 0 or len(rows) < 2 * leaf:
        return here
    found = _best(rows, positive, negative, leaf)
    if found is None or found[0] <= _worth(p, n):
        return here
    _, feature, limit = found
    low = rows[:, feature] <= limit
    sides = [_grown(rows[side], positive[side], negative[side], depth - 1, leaf) for side in (low, ~low)]
    return Split(feature, limit, *sides)


def _worth(p: int, n: int) -> Fraction:
    return Fraction(p * p + n * n, p + n)


def _best(rows: Ints, positive: Ints, negative: Ints, leaf: int) -> tuple[Fraction, int, int] | None:
    """Return the best split: its value, feature and limit. Floats select candidates, fractions decide exactly."""
    p, n = int(positive.sum()), int(negative.sum())
    best: tuple[Fraction, int, int] | None = None
    for feature in range(rows.shape[1]):
        order = np.argsort(rows[:, feature], kind="stable")
        value = rows[order, feature]
        # a split after position k: the next value is larger, and both sides are large enough
        places = np.flatnonzero(value[:-1] < value[1:])
        places = places[(places + 1 >= leaf) & (len(value) - places - 1 >= leaf)]
        if not places.size:
            continue
        p1, n1 = np.cumsum(positive[order])[places], np.cumsum(negative[order])[places]
        low, high = (p1 + n1).astype(float), (p + n - p1 - n1).astype(float)
        a, b = p1.astype(float), n1.astype(float)
        about = (a * a + b * b) / low + ((p - a) ** 2 + (n - b) ** 2) / high
        near = places.size and about >= about.max() * (1 - 1e-9)
        if best is not None and about.max() < float(best[0]) * (1 - 1e-9):
            continue
        for k in np.flatnonzero(near).tolist():
            worth = _worth(int(p1[k]), int(n1[k])) + _worth(p - int(p1[k]), n - int(n1[k]))
            if best is None or worth > best[0]:
                best = worth, feature, int(value[places[k]])
    return best


def _without_least(tree: Tree) -> Tree:
    """Prune the split with the least gain among those with two leaves; ties: the last, from low to high."""
    ends = _ends(tree)
    least = min(range(len(ends)), key=lambda k: (_gain(ends[k]), -k))
    return _replaced(tree, ends[least])


def _ends(tree: Tree) -> list[Split]:
    if isinstance(tree, Leaf):
        return []
    if isinstance(tree.low, Leaf) and isinstance(tree.high, Leaf):
        return [tree]
    return _ends(tree.low) + _ends(tree.high)


def _gain(split: Split) -> Fraction:
    both = _merged(split)
    sides = [each for each in (split.low, split.high) if isinstance(each, Leaf)]
    return sum((_worth(s.chosen, s.other) for s in sides), Fraction(0)) - _worth(both.chosen, both.other)


def _merged(split: Split) -> Leaf:
    low, high = split.low, split.high
    assert isinstance(low, Leaf) and isinstance(high, Leaf)  # noqa: S101, PT018 - as `_ends` finds them
    return Leaf(low.chosen + high.chosen, low.other + high.other, low.rows + high.rows)


def _replaced(tree: Tree, end: Split) -> Tree:
    if tree is end:
        return _merged(end)
    if isinstance(tree, Leaf):
        return tree
    return Split(tree.feature, tree.limit, _replaced(tree.low, end), _replaced(tree.high, end))
