"""A figure has the same last digit on any number of processors, and in whichever table it stands."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import polars as pl

from gpuctl.replay.results import metrics

PROGRAM = """
import numpy as np, polars as pl
from gpuctl.replay.results import metrics

draw = np.random.Generator(np.random.PCG64(3))
n = 100_000
names = ("jct_s", "wait_s", "delay_s", "slowdown", "t10_s", "gpu_s", "overhead_gpu_s", "lost_gpu_s")
jobs = pl.DataFrame({name: draw.lognormal(8, 2, n) for name in names}).with_columns(
    state=pl.Series(draw.choice(["finished", "rejected"], n, p=[0.99, 0.01])),
    queue=pl.Series(draw.choice(["a", "b", "c", "d"], n)),
    preemptions=pl.Series(draw.integers(0, 3, n)),
)
jobs = pl.concat([jobs.filter(pl.col("queue") == queue) for queue in "abcd"], rechunk=False)
print(metrics.figures(jobs).rows())
"""


def test_the_last_digit_does_not_depend_on_the_number_of_processors() -> None:
    found = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "POLARS_MAX_THREADS": threads}, capture_output=True,
            text=True, check=True,
        ).stdout
        for threads in ("1", "16")
    }  # fmt: skip
    assert len(found) == 1


def test_all_jobs_and_a_queue_that_has_all_jobs_have_the_same_figures() -> None:
    draw = np.random.Generator(np.random.PCG64(4))
    names = ("jct_s", "wait_s", "delay_s", "slowdown", "t10_s", "gpu_s", "overhead_gpu_s", "lost_gpu_s")
    for n in range(60, 360, 20):
        jobs = pl.DataFrame({name: draw.lognormal(8, 2, n) for name in names}).with_columns(
            state=pl.Series(["finished"] * n), preemptions=pl.Series([0] * n), queue=pl.Series(["only"] * n)
        )
        assert metrics.figures(jobs, "queue").drop("queue").rows() == metrics.figures(jobs).rows(), n
