"""Imports Numba with the first loop that runs compiled, and then declares what the loops call."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from gpuctl.core.whole_imports import whole_imports

if TYPE_CHECKING:
    from collections.abc import Callable

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}
"""Nothing runs compiled in this process."""
LOCK = threading.RLock()
"""Held while functions are compiled or loaded."""

_pending: list[Callable[[], None]] | None = []


def when_compiling(declare: Callable[[], None]) -> None:
    """Call a function before anything is compiled: when Numba is imported, or now if it already is."""
    with LOCK:
        if _pending is not None:
            _pending.append(declare)
            return
    declare()


def load_compiler() -> None:
    """Import Numba, and declare to it what the loops call."""
    global _pending  # once per process
    with LOCK:
        if _pending is not None and not UNCOMPILED:
            # Ctrl-C in the middle would leave a Numba with which nothing compiles until the process ends
            with whole_imports():
                pending, _pending = _pending, None
                for declare in pending:
                    declare()
                _load_registries()


def _load_registries() -> None:
    """Import the rest of Numba, which it does itself when it first compiles or loads something."""
    from numba.core.registry import cpu_target

    contexts: tuple[Any, ...] = (cpu_target.typing_context, cpu_target.target_context)
    for context in contexts:
        context.refresh()
