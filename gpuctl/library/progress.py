"""Shows the progress of long work in a notebook, and nothing anywhere else."""

from __future__ import annotations

import sys
import time
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Sequence

PATIENCE_S = 0.5
"""Work that ends sooner shows nothing."""
_BETWEEN_S = 0.2


class NotebookProgress:
    """One line below the cell while work runs, removed at its end; a context manager.

    It displays only in a Jupyter kernel (`in_notebook`); elsewhere every call does nothing.
    """

    def __init__(self) -> None:
        self._wanted = in_notebook()
        self._begin = time.monotonic()
        self._last = 0.0
        self._handle: Any = None
        self._name = ""
        self._done = self._total = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._handle is not None:
            self._update("")

    def start(self, what: str, total: int) -> None:
        """Begin with a file of `total` bytes (0 if that is not known)."""
        self._name, self._done, self._total = what, 0, total
        self._show()

    def advance(self, size: int) -> None:
        """Note that `size` more bytes of it were read."""
        self._done += size
        self._show()

    def at(self, what: str, done: int, total: int) -> None:
        """Be at `done` of `total` steps."""
        self._name, self._done, self._total = what, done, total
        self._show()

    def replayed(self, ended: Sequence[int], size: int, _seconds: Sequence[float]) -> None:
        """Be at so many ended jobs of each policy, of `size` jobs each."""
        self.at("replaying", sum(ended), size * len(ended))

    def _show(self) -> None:
        now = time.monotonic()
        if not self._wanted or now - self._begin < PATIENCE_S or now - self._last < _BETWEEN_S:
            return
        self._last = now
        share = f" {self._done / self._total:.0%}" if self._total else ""
        self._update(f"{escape(self._name[:80])}{share}, {now - self._begin:.0f} s")

    def _update(self, text: str) -> None:
        # the kernel has it; gpuctl does not depend on it
        shown = import_module("IPython.display")
        if self._handle is None:
            self._handle = shown.display(shown.HTML(text), display_id=True)
        else:
            self._handle.update(shown.HTML(text))


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"
