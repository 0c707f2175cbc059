"""A Dask cluster of several processes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

WORKERS = 2


class Cluster:
    """A scheduler and workers, each a process of its own.

    Args:
        folder: for what they print.
        workers: how many.
        env: variables that they have beside those of the tests.
    """

    def __init__(self, folder: Path, workers: int = WORKERS, env: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._env = {**os.environ, **(env or {})}
        file = folder / "scheduler.json"
        here = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
        self.scheduler = self._started("scheduler", *here, "--port", "0", "--dashboard-address", "127.0.0.1:0")
        self.workers = [self._started("worker", *here, "--nthreads", "1", "--no-nanny") for _ in range(workers)]
        wait_for(lambda: file.exists() and file.stat().st_size > 0)
        self.engine = "dask://" + json.loads(file.read_text())["address"].removeprefix("tcp://")

    def _started(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options],
                cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.05)
