"""Imports that Ctrl-C does not leave half done: a library that is half imported fails until the process ends."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


@contextmanager
def whole_imports() -> Iterator[None]:
    """Handle Ctrl-C at the end of this context. Only the main thread receives it; an ignored signal stays ignored.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; all imports are done.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: pressed.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        before(*pressed[0])
