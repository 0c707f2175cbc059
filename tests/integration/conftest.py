"""What tests of the whole program share."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.dask_cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_IMPORTED = "import gpuctl.ingest.pipeline.load; from gpuctl.cli.main import main; print(flush=True); main()"
"""The program, which prints a line as soon as all that an ingest needs is imported."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A Dask cluster for the tests of one file."""
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.end()


@pytest.fixture(scope="session")
def kill_gpuctl(root: Path) -> Callable[..., float | None]:
    """Run gpuctl and kill it: ``kill_gpuctl("ingest", path, after_s=1.5)``.

    Returns after how many seconds it had ended by then, or None if it was killed; its imports do not count.
    """

    def run(*args: str | os.PathLike[str], after_s: float) -> float | None:
        with subprocess.Popen(
            [sys.executable, "-c", _IMPORTED, *args],
            env={**os.environ, "PYTHONPATH": str(root)}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            assert process.stdout is not None
            process.stdout.readline()
            begun = time.monotonic()
            try:
                process.communicate(timeout=after_s)
            except subprocess.TimeoutExpired:
                process.kill()
                return None
            return time.monotonic() - begun

    return run
