"""Compiles the few hot loops with numba; in the lowest room that may import more than the standard library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba

if TYPE_CHECKING:
    from collections.abc import Callable


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop over arrays; it runs without the GIL, and uncompiled with ``NUMBA_DISABLE_JIT=1``.

    The compiled code is kept beside the function's file, or in the user's cache where that cannot be written to;
    where neither can be, each process compiles it anew.
    """
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:
        return numba.njit(nogil=True)(function)


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether an earlier process left compiled code of this function that this one can load."""
    folder = getattr(getattr(function, "stats", None), "cache_path", None)
    module, name = function.__module__.rpartition(".")[2], function.__name__
    return folder is None or any(Path(folder).glob(f"{module}.{name}-*.nbi"))
