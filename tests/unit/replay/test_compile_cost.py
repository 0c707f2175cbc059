"""A replay that begins as Python and goes on compiled decides alike, and small ones need no compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpuctl.replay import compile_cost
from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import BUILT_IN, find

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["srtf", "tiresias"])
def test_a_replay_may_go_on_compiled_at_any_instant(name: str, seed: int) -> None:
    workload, cluster, settings = random_case(seed)
    logs = []
    for switch in (0, 1, 7, 10**6):
        simulation = Simulation(workload, cluster, find(name)({}), settings, interpreted=switch > 0)
        simulation.advance(steps=switch)
        simulation.interpreted = False
        simulation.run()
        outcome = simulation.outcome()
        logs.append([frame.write_ndjson() for frame in (outcome.decisions, outcome.attempts, outcome.jobs)])
    assert logs[1:] == logs[:1] * 3


def test_the_sample_needs_no_compiler(root: Path) -> None:
    code = "import sys; from gpuctl.cli.main import main; sys.argv[0] = 'gpuctl'\ntry: main()\n"
    code += "finally: assert 'numba' not in sys.modules"
    arguments = ["replay", "sample_data/jobs.csv", "--cluster", "4x8", "--policy", "fifo,srtf"]
    environ = {**os.environ, "NUMBA_DISABLE_JIT": "0", "NUMBA_BOUNDSCHECK": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=root, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_policy_but_the_recorded_one_was_measured() -> None:
    assert set(compile_cost.INTERPRETED_S) == set(BUILT_IN) - {"recorded"}
    # where nothing is compiled the sample is not worth compiling for, under any of them
    assert all(compile_cost.interpreted_s(find(name), compile_cost.SAMPLE) < 5 for name in compile_cost.INTERPRETED_S)
