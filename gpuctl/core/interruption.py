"""Runs what must not be left half done, so that Ctrl-C ends it in a defined state."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_T = TypeVar("_T")
_AGAIN_S = 0.05


def uninterrupted(work: Callable[[], _T], interrupt: Callable[[], None] | None = None) -> _T:
    """Run `work` to its end, whatever signals arrive meanwhile.

    An exception that a signal raises inside DuckDB becomes an error of DuckDB, or leaves a statement running that then
    blocks the connection. Here the signal is recorded instead, and raised when `work` has ended. DuckDB lets Python
    handle signals between the pieces of a statement, so that `interrupt` reaches it. Threads other than the main one
    receive no signals: there `work` is simply called.

    Args:
        work: runs a statement.
        interrupt: called repeatedly to make `work` end early: DuckDB forgets an interruption that arrives before the
            statement, or between its planning and its execution. None if `work` must not end early.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; `work` has ended.
    """
    before = signal.getsignal(signal.SIGINT)
    # an ignored signal stays ignored: a script that runs in the background makes its children ignore Ctrl-C
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return work()
    pressed: list[tuple[int, FrameType | None]] = []
    ended, insistent = threading.Event(), list[threading.Thread]()

    def insist(interrupt: Callable[[], None]) -> None:
        while not ended.wait(_AGAIN_S):
            interrupt()

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append((number, frame))
        if interrupt is not None:
            interrupt()
            if not insistent:
                insistent.append(threading.Thread(target=insist, args=(interrupt,)))
                insistent[0].start()

    signal.signal(signal.SIGINT, note)
    try:
        found = work()
    except BaseException:
        # the error caused by the interruption is not reported
        if not pressed:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
        ended.set()
        for thread in insistent:
            thread.join()
    if pressed:
        before(*pressed[0])
    return found
