"""Workers of Dask whose results an experiment does not take, or that give none."""

from __future__ import annotations

import importlib.util
import json
import operator
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.spread import dask_cluster
from gpuctl.spread.engine import parse as parse_engine
from tests.dask_cluster import Cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

_ABSENT = importlib.util.find_spec("distributed") is None
pytestmark = [pytest.mark.slow, pytest.mark.skipif(_ABSENT, reason="no distributed: pip install -e '.[dask]'")]
_KILLED = """
import os, signal
from gpuctl.replay.contract.python_policy import PythonPolicy

class Policy(PythonPolicy):
    name = "killed"

    def decide(self, view):
        with open({pids!r}, "a") as file:
            print(os.getpid(), file=file)
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_with_another_version_is_refused(gpuctl: Run, root: Path, tmp_path: Path) -> None:
    """It might come to other bytes: what the worker says of itself is looked at, not where it was started."""
    meta = tmp_path / "other" / "polars-0.0.1.dist-info"
    meta.mkdir(parents=True)
    (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: polars\nVersion: 0.0.1\n")
    cluster = Cluster(tmp_path, workers=1, env={"PYTHONPATH": str(meta.parent)})
    try:
        command = ["replay", root / "sample_data/jobs.csv", "--cluster", "2x8", "--policy", "fifo", "--seed", "1..2"]
        done = gpuctl(*command, "--engine", cluster.engine, "--parquet", tmp_path / "out", check=False)
    finally:
        cluster.end()
    assert done.returncode == 3
    assert "polars 0.0.1 in place of" in done.stderr
    assert "its results might differ" in done.stderr
    assert "start the workers from an installation with the same versions" in done.stderr
    assert not list((tmp_path / "out").glob("cells/*.json"))


def test_a_task_that_kills_its_workers_ends_and_the_others_are_kept(gpuctl: Run, root: Path, tmp_path: Path) -> None:
    policy, pids = tmp_path / "killed.py", tmp_path / "pids"
    policy.write_text(_KILLED.format(pids=str(pids)))
    # of the two tasks one has killed two when three are gone; with fewer the experiment would wait for new ones
    cluster = Cluster(tmp_path, workers=3, env={"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"})
    command = ["replay", root / "sample_data/jobs.csv", "--cluster", "2x8", "--seed", "1..2", "--json"]
    try:
        where = ["--engine", cluster.engine, "--parquet", tmp_path / "out"]
        done = gpuctl(*command, "--policy", f"fifo,{policy}:Policy", *where, check=False)
    finally:
        cluster.end()
    assert done.returncode == 3
    assert "2 workers were killed one after the other at the same task" in done.stderr
    assert "with workers that have more memory" in done.stderr
    assert not done.stdout
    assert len(set(pids.read_text().split())) >= 2
    rest = gpuctl(*command, "--policy", "fifo", "--parquet", tmp_path / "out")
    assert json.loads(rest.stdout)["tables"]


def test_a_cluster_without_workers_is_waited_for_with_a_word_and_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(tmp_path, workers=1)
    said: list[str] = []
    distributed = pytest.importorskip("distributed")
    try:
        with distributed.Client(cluster.engine.replace("dask", "tcp"), set_as_default=False) as client:
            # on a busy machine it comes later than the first look
            client.wait_for_workers(1, timeout=60)
        done = dask_cluster.run(operator.add, 1, {"a": 2, "b": 3}, parse_engine(cluster.engine), said.append)
        assert sorted(done) == [("a", 3), ("b", 4)]
        assert not said
        # only now, for the same reason
        monkeypatch.setattr(dask_cluster, "ALONE_S", 0.6)
        monkeypatch.setattr(dask_cluster, "LOOK_S", 0.1)
        for worker in cluster.workers:
            worker.kill()
            worker.wait()
        with pytest.raises(InputError, match=r"no worker for 0\.01 min") as refused:
            list(dask_cluster.run(operator.add, 1, {"a": 2}, parse_engine(cluster.engine), said.append))
    finally:
        cluster.end()
    assert "dask worker HOST:PORT" in str(refused.value.hint)
    assert [line.split(":")[0] for line in said] == ["there is no worker at the moment"]
