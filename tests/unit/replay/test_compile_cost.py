"""A replay that begins as Python and goes on compiled decides alike, and small ones need no compiler."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuctl.compiled.loading import UNCOMPILED
from gpuctl.replay import run
from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.engine import simulation as engine_simulation
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.policies import BUILT_IN, find


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["srtf", "tiresias", "max-min"])
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


def test_no_policy_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "UNCOMPILED", False)
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "0")
    text = inspect.getsource(run.may_interpret) + inspect.getsource(run._interpreted)
    assert [name for name in BUILT_IN if f'"{name}"' in text] == []
    # the sample is worth loading no compiler, some hundred jobs are none to compile for, and many are
    assert run.may_interpret(run.SAMPLE, compiled=None)
    assert run.may_interpret(1000, compiled=False)
    assert not run.may_interpret(20_000, compiled=False)


@pytest.mark.skipif(UNCOMPILED, reason="nothing runs compiled")
def test_a_replay_that_takes_longer_than_expected_continues_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, cluster, _ = random_case(1)
    monkeypatch.setattr(run, "LOADING_S", -1.0)
    monkeypatch.setattr(engine_simulation, "SLOW_STEPS", 1)
    monkeypatch.setattr(run, "_interpreted", lambda _kind, _jobs: True)
    monkeypatch.setattr(run, "is_compiled", lambda _loop: True)
    task = run.Task(workload, cluster, run.Models(), (("fifo", {}),))
    assert not task.run(0, lambda *_: None).interpreted


@pytest.mark.skipif(UNCOMPILED, reason="nothing runs compiled")
def test_code_that_is_loaded_runs_no_matter_how_few_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, (workload, cluster, settings) = find("fifo"), random_case(1)
    Simulation(workload, cluster, kind({}), settings).run()
    assert not run._interpreted(kind, workload.size)
    monkeypatch.delitem(sys.modules, "numba")
    monkeypatch.setattr(run, "_AS_PYTHON_S", [])
    assert run._interpreted(kind, workload.size)


@pytest.mark.skipif(UNCOMPILED, reason="nothing runs compiled")
def test_code_is_loaded_once_many_small_replays_have_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numba", raising=False)
    for spent, there, expected in (([], True, True), ([60.0], True, False), ([60.0], False, True)):
        monkeypatch.setattr(run, "_AS_PYTHON_S", spent)
        monkeypatch.setattr(run, "is_compiled", lambda _loop, there=there: there)
        assert run._interpreted(find("fifo"), 10) is expected
    workload, cluster, _ = random_case(1)
    monkeypatch.setattr(run, "_AS_PYTHON_S", [])
    run.replay(workload, cluster, [("fifo", {})])
    assert len(run._AS_PYTHON_S) == 1
