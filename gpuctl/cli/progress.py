"""A progress bar on stderr for work that takes longer than a moment; only where a person can see it."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING

from gpuctl.cli.common import message, visible

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 0.5
"""Nothing is shown before this many seconds have gone by."""
_NAME_WIDTH = 40
_ROOM_FOR_A_BAR = 76


class Bar:
    """Shows what is at hand, how much of it is done, and for how long it has been at work; a context manager.

    What is at hand may take a minute of which nothing is heard, as compiling does: a thread of Rich's draws the seconds
    meanwhile, and a timer sees to it that there is something to draw.

    Args:
        steps: count in steps rather than in bytes.
        wanted: false keeps it silent; without a terminal on stderr it is silent anyway.
        color: use colours.
    """

    def __init__(self, *, wanted: bool = True, color: bool = True, steps: bool = False) -> None:
        self._quiet = not wanted
        self._wanted = wanted and sys.stderr.isatty()
        self._color = color
        self._steps = steps
        self._timer = threading.Timer(PATIENCE_S, self._begin)
        self._timer.daemon = True
        self._begun = False
        self._lock = threading.RLock()
        self._progress: Progress | None = None
        self._task: TaskID | None = None
        self._what = ""
        self._total: int | None = None
        self._done = 0

    def __enter__(self) -> Bar:
        if self._wanted:
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._begun = False
            if self._progress is not None:
                self._progress.stop()

    def start(self, what: str, total: int) -> None:
        """Begin with a file of `total` bytes (0 where that is not known)."""
        text = visible(what)
        self._what = text if len(text) <= _NAME_WIDTH else "…" + text[1 - _NAME_WIDTH :]
        self._total = total or None
        self._done = 0
        self._show()

    def at(self, what: str, done: int, total: int) -> None:
        """Be at `done` of `total` steps."""
        self._what, self._done, self._total = visible(what), done, total
        self._show()

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""
        self._done += size
        self._show()

    def tell(self, text: str) -> None:
        """Print a line for the user, which stays, and show that this is what goes on."""
        message(text, quiet=self._quiet)
        self._what, self._total, self._done = visible(text.partition(" (")[0]), None, 0
        self._show()

    def _begin(self) -> None:
        self._begun = True
        self._show()

    def _show(self) -> None:
        with self._lock:
            if not (self._begun and self._what):
                return
            if self._progress is None:
                self._progress = _bar(color=self._color, steps=self._steps)
                self._task = self._progress.add_task("", total=None)
                self._progress.start()
            if self._task is not None:
                self._progress.update(self._task, description=self._what, total=self._total, completed=self._done)


def _bar(*, color: bool, steps: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False, highlight=False, emoji=False, color_system="auto" if color else None)
    done = MofNCompleteColumn() if steps else DownloadColumn()
    what, time = TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    # on a narrow terminal, a bar would break the numbers beside it into lines
    columns = (what, BarColumn(), done, time) if console.width >= _ROOM_FOR_A_BAR else (what, done, time)
    return Progress(*columns, console=console, transient=True)
