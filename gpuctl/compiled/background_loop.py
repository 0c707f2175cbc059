"""Compiled loops on a thread of their own, so that Ctrl-C is answered and progress is shown while they run."""

from __future__ import annotations

import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

DONE, STOP, EFFORT = range(3)
"""Elements of a watch: steps done, whether to stop, and the loop's own count of its work."""
EVERY_S = 0.1


def watch() -> NDArray[np.int64]:
    """Numbers shared by a loop and the thread that started it; the loop returns soon after STOP is set."""
    return np.zeros(3, np.int64)


def aside(
    loop: Callable[..., Any], *args: Any, watched: NDArray[np.int64], on_progress: Callable[[int], None] | None = None
) -> None:
    """Run a loop on a thread of its own until it ends.

    Args:
        loop: compiled, or interpreted within `gpuctl.compiled.jit.interpreted`.
        args: of the loop; the watch is added as the last one.
        watched: made by `watch`.
        on_progress: called about ten times a second with the steps done.

    Raises:
        KeyboardInterrupt: Ctrl-C; the loop has been stopped.
        Exception: whatever the loop raises.
    """
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loop(*args, watched)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(EVERY_S)
            if on_progress is not None:
                on_progress(int(watched[DONE]))
    except BaseException:
        watched[STOP] = 1
        raise
    if failed:
        raise failed[0]
