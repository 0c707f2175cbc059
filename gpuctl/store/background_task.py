"""Runs work in a thread while its owner continues; the owner later collects its result or its error."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpuctl.core.interruption import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable


class BackgroundTask:
    """One piece of work at a time."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._fault: BaseException | None = None

    def start(self, work: Callable[[], None]) -> None:
        """Start; the previous task must have been waited for."""

        def run() -> None:
            try:
                work()
            except BaseException as fault:
                self._fault = fault

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def is_here(self) -> bool:
        """Return whether the caller runs in the task's own thread."""
        return self._thread is threading.current_thread()

    def wait(self, interrupt: Callable[[], None]) -> None:
        """Wait until it is done.

        Args:
            interrupt: called on Ctrl-C to make it end early.

        Raises:
            KeyboardInterrupt: Ctrl-C; it has ended.
            BaseException: what it raised.
        """
        if self._thread is None:
            return
        uninterrupted(self._thread.join, interrupt)
        if fault := self.end():
            raise fault

    def end(self) -> BaseException | None:
        """Wait until it is done, whatever signals arrive, and return the exception that it raised."""
        if self._thread is not None:
            self._thread.join()
        fault, self._thread, self._fault = self._fault, None, None
        return fault
