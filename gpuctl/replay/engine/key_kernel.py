"""Compiled: keys such as seconds as whole numbers, so that comparisons are exact."""

from __future__ import annotations

import numpy as np

from gpuctl.compiled.jit import inner


@inner
def micro(x):  # type: ignore[no-untyped-def]
    """A number in whole millionths: finish-time fairness, or seconds as microseconds."""
    return np.int64(np.floor(x * 1e6 + 0.5))


@inner
def nano(x):  # type: ignore[no-untyped-def]
    """A number in whole billionths: logarithms."""
    return np.int64(np.floor(x * 1e9 + 0.5))
