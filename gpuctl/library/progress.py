"""Shows the progress of long work in a notebook, and nothing anywhere else; warns of faults of the input."""

from __future__ import annotations

import sys
import time
import warnings
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from gpuctl.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.pipeline.report import IngestReport, SourceReport

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

    def tell(self, text: str) -> None:
        """Show what goes on for some time now."""
        self.at(text.partition(" (")[0], 0, 0)

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


class Notebook:
    """How services report to a notebook or a script (`gpuctl.services.frontend.Frontend`): nothing is printed."""

    def progress(self, *, steps: bool = True) -> NotebookProgress:
        """One line below the cell; bytes and steps look alike."""
        del steps
        return NotebookProgress()

    def tell(self, text: str, *, fault: bool = False) -> None:
        """Warn of a fault of the input; results say the rest in their notes."""
        if fault:
            warnings.warn(text, stacklevel=2)

    def loaded(self, report: IngestReport, store: Path, *, brief: bool = False) -> None:
        """Warn of logs that could not be read.

        Raises:
            InputError: nothing was loaded.
        """
        del store, brief
        rowless = {each.path for each in report.rowless if each.rows_in or report.nothing_loaded}
        lost = (each for each in report.sources if each.status == "failed" or each.path in rowless)
        faults = [f"  {each.path}: {_why(each)}" for each in lost]
        faults += [f"  {each.shown}: {each.why}" for each in report.not_read if each.failed]
        if report.nothing_loaded:
            raise InputError("\n".join(["nothing could be loaded:", *faults[:12]]))
        if faults:
            self.tell("\n".join(["some logs could not be read:", *faults[:12]]), fault=True)

    def interrupted(self, report: IngestReport, store: Path) -> None:
        """Do nothing: the exception has the report."""


NOTEBOOK = Notebook()


def _why(source: SourceReport) -> str:
    return source.message or ", ".join(why for why, _ in source.reasons) or "no rows"
