"""Ends a statement of a reader on Ctrl-C or after a time, even one that DuckDB does not interrupt."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

from gpuctl.cli.common import message
from gpuctl.core.errors import ExitCode, GpuctlError

if TYPE_CHECKING:
    from collections.abc import Callable

GRACE_S = 1.0
"""How long a statement that is interrupted may take to end before the process does."""


class TimeLimitError(GpuctlError):
    """A statement did not end within the time that the user gave it."""

    exit_code = ExitCode.CHECK_FAILED


class TimeLimit:
    """Interrupts what runs within it; if that does not end, the process does, which may only read.

    DuckDB looks for interruptions between pieces of a statement: a function of one huge value runs to its end, and
    Python's own signal handlers wait for it. So a thread reads the numbers of signals that arrive
    (`signal.set_wakeup_fd`).

    Args:
        seconds: after which what runs is interrupted; None: only on Ctrl-C.
        interrupt: asks what runs to end.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], None]) -> None:
        self._seconds = seconds
        self._interrupt = interrupt
        self._ended = threading.Event()
        self._expired = False

    def __enter__(self) -> TimeLimit:
        self._told, self._teller = socket.socketpair()
        for end in (self._told, self._teller):
            end.setblocking(False)
        main = threading.current_thread() is threading.main_thread()
        self._before = signal.set_wakeup_fd(self._teller.fileno(), warn_on_full_buffer=False) if main else None
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._ended.set()
        if self._before is not None:
            signal.set_wakeup_fd(self._before)
        with contextlib.suppress(OSError):
            self._teller.send(b"\0")
        self._thread.join()
        self._told.close()
        self._teller.close()
        if self._expired and error is not None:
            raise self._error() from None

    def _error(self) -> TimeLimitError:
        return TimeLimitError(
            f"the SQL did not end within {self._seconds:g} s (--timeout)", hint="ask for less, or allow more time"
        )

    def _watch(self) -> None:
        until = None if self._seconds is None else time.monotonic() + self._seconds
        interrupted = False
        while not interrupted and not self._ended.is_set():
            left = None if until is None else max(0.0, until - time.monotonic())
            ready, _, _ = select.select([self._told], [], [], left)
            if not ready:
                self._expired = True
                break
            interrupted = signal.SIGINT in self._told.recv(64)
        last = time.monotonic() + GRACE_S
        while not self._ended.wait(0.05):
            self._interrupt()
            if time.monotonic() > last:
                self._end_process()

    def _end_process(self) -> None:
        if self._expired:
            message(f"gpuctl: {self._error().message}")
            os._exit(ExitCode.CHECK_FAILED)
        message("gpuctl: interrupted")
        os._exit(ExitCode.INTERRUPTED)
