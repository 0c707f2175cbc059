"""Starts processes that import nothing of the program that starts them, and none of which a Ctrl-C leaves half made."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from multiprocessing import resource_tracker
from types import ModuleType
from typing import TYPE_CHECKING

from gpuctl.core.interruption import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.process import BaseProcess


def start(process: BaseProcess) -> None:
    """Start a process that never receives Ctrl-C: the process that starts it handles it.

    A Ctrl-C meanwhile is raised when the process runs: otherwise nothing would end it.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; the process has started.
    """

    def begin() -> None:
        # started first: its start unblocks SIGINT
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with without_main():
                process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    uninterrupted(begin)


@contextmanager
def without_main() -> Iterator[None]:
    """Keep processes that start in this context from importing the main module of this one.

    multiprocessing would: a script that calls gpuctl outside ``if __name__ == "__main__"`` would run again in each
    process. They need nothing of it, because they run functions of gpuctl.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
