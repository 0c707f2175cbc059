"""The compiled walk of rows through regression trees."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import compiled


@compiled
def walk(rows, root, feature, threshold, nan_left, left, right, value, total):  # type: ignore[no-untyped-def]
    """Sum the values of trees for each row, one tree after the other, as LightGBM adds them.

    Args:
        rows: shape (rows, features); NaN: unknown.
        root: first node of each tree; this and the following as in `gpuctl.predictors.trees.Trees`.
        feature: column that a node tests.
        threshold: a value up to this one goes left.
        nan_left: whether an unknown value goes left.
        left: left child; a leaf is its own child.
        right: right child.
        value: of a leaf.
        total: written, shape (rows,); zeros at first.
    """
    for k in range(root.size):
        for row in range(rows.shape[0]):
            node = root[k]
            while left[node] != node:
                seen = rows[row, feature[node]]
                goes_left = nan_left[node] if np.isnan(seen) else seen <= threshold[node]
                node = left[node] if goes_left else right[node]
            total[row] += value[node]
