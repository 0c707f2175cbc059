"""A policy whose process is killed, as by the kernel where memory is short."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

from gpuctl.replay.contract.python_policy import PythonPolicy

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View


class Killed(PythonPolicy):
    """Kills its process at its first decision, with a job."""

    name = "killed"

    def decide(self, view: View) -> None:
        """Kill this process."""
        if view.waiting:
            os.kill(os.getpid(), signal.SIGKILL)
