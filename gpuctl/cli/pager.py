"""Long output page by page, on a terminal."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from typing import TextIO


class Show(Protocol):
    """Writes a result to a stream, in colour if told so."""

    def __call__(self, file: TextIO, *, color: bool | None = None) -> None:
        """Write."""


def page(show: Show) -> None:
    """Show what is written to a stream through ``$PAGER``, else ``less``; where there is neither, all at once.

    ``less`` ends by itself if everything fits on one screen, and shows colours.
    """
    from gpuctl.reports.terminal.printer import wants_color

    given = shlex.split(os.environ.get("PAGER", ""))
    command = given or ["less"]
    if os.environ.get("TERM", "dumb") == "dumb" or shutil.which(command[0]) is None:
        show(sys.stdout)
        return
    text = io.StringIO()
    show(text, color=wants_color(sys.stdout, os.environ))
    environ = {"LESS": "FRX", **os.environ}
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, env=environ)  # noqa: S603 - the user's own pager
    # whoever has read enough leaves: no error of ours
    with reader, suppress(BrokenPipeError):
        reader.communicate(text.getvalue().encode(sys.stdout.encoding or "utf-8", "replace"))
