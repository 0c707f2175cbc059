"""Where calls run, as set by ``--engine``; results are the same everywhere."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gpuctl.core.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    S = TypeVar("S")
    T = TypeVar("T")
    R = TypeVar("R")

LOCAL, DASK, SLURM = "local", "dask", "slurm"
SLURM_JOBS = 8
"""Default number of Slurm jobs."""
_DASK = re.compile(r"dask(\+tls)?://(\[[0-9A-Fa-f:]+\]|[\w.-]+):(\d{1,5})/?")


@dataclass(frozen=True)
class Engine:
    """Where calls run.

    Attributes:
        kind: `LOCAL`, `DASK` or `SLURM`.
        address: of a Dask scheduler, as Dask writes it: ``tcp://HOST:PORT`` or ``tls://HOST:PORT``.
        processes: most calls at a time; None: one per processor, or `SLURM_JOBS`. An existing Dask cluster has its own
            workers.
        folder: for output of Slurm jobs and TLS keys; None: no output, and keys in the working directory.
    """

    kind: str = LOCAL
    address: str = ""
    processes: int | None = None
    folder: Path | None = None


def parse(text: str, processes: int | None = None, folder: Path | None = None) -> Engine:
    """Return the engine that ``--engine`` names.

    Raises:
        UsageError: there is none of that name.
    """
    if text in {LOCAL, SLURM}:
        return Engine(text, processes=processes, folder=folder)
    found = _DASK.fullmatch(text)
    if found is None or not 0 < int(found[3]) < 65_536:
        raise UsageError(
            f"--engine {text}: expected local, slurm or dask://HOST:PORT",
            hint="dask://HOST:PORT is where `dask scheduler` listens; dask+tls://HOST:PORT with Dask's TLS",
        )
    if processes is not None:
        raise UsageError(f"--jobs {processes}: a Dask cluster runs as many as it has workers", hint="leave --jobs out")
    return Engine(DASK, f"{'tls' if found[1] else 'tcp'}://{found[2]}:{int(found[3])}")
