"""A policy that takes half a second a replay and says in which process: copied to where ``pids`` lies beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpuctl.replay.contract.python_policy import PythonPolicy

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View


class Slow(PythonPolicy):
    """Starts jobs as they come."""

    name = "slow"
    begun = False

    def decide(self, view: View) -> None:
        """Start what fits, in order of submission."""
        if not self.begun:
            self.begun = True
            (Path(__file__).parent / "pids" / str(os.getpid())).touch()
            time.sleep(0.5)
        for job in view.waiting:
            if not view.start(job):
                break
