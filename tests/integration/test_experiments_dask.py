"""An experiment on workers of Dask: the same bytes as on one core, whatever happens to the workers."""

from __future__ import annotations

import importlib.util
import json
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dask_cluster import Cluster, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable

    Cli = Callable[..., subprocess.CompletedProcess[str]]

_ABSENT = importlib.util.find_spec("distributed") is None
pytestmark = [pytest.mark.slow, pytest.mark.skipif(_ABSENT, reason="no distributed: pip install -e '.[dask]'")]


@pytest.fixture(scope="module")
def command(root: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """An experiment of 12 replays, half of them by a policy that takes half a second."""
    folder = tmp_path_factory.mktemp("policy")
    (folder / "pids").mkdir()
    shutil.copy(root / "tests/slow_policy.py", folder)
    return [
        "replay", str(root / "sample_data/jobs.csv"), "--cluster", "2x8", "--json",
        "--policy", f"srtf,{folder / 'slow_policy.py'}:Slow", "--scale-load", "0.8:1.2:0.2", "--seed", "1..2",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def here(gpuctl: Cli, command: list[str]) -> Any:
    """Its tables, made on one core."""
    return json.loads(gpuctl(*command, "--jobs", "1").stdout)["tables"]


def begun(root: Path, command: list[str], cluster: Cluster, out: Path) -> subprocess.Popen[str]:
    """The experiment on the cluster, as soon as its first replay is kept."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuctl", *command, "--engine", cluster.engine, "--parquet", str(out)],
        cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        wait_for(lambda: process.poll() is not None or len(list(out.glob("cells/*.json"))) > 0)
    except BaseException:
        process.kill()
        process.communicate()
        raise
    return process


def test_the_same_bytes_as_on_one_core_and_a_killed_worker_loses_nothing(
    root: Path, tmp_path: Path, cluster: Cluster, command: list[str], here: Any
) -> None:
    process = begun(root, command, cluster, tmp_path)
    # whoever has begun with the slow policy is killed in the middle of it
    pids = Path(command[command.index("--policy") + 1].partition(",")[2]).parent / "pids"
    wait_for(lambda: any((pids / str(worker.pid)).exists() for worker in cluster.workers))
    victim = next(worker for worker in cluster.workers if (pids / str(worker.pid)).exists())
    victim.kill()
    there, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert json.loads(there)["tables"] == here
    assert len(list(tmp_path.glob("cells/*.json"))) == 12
    cluster.workers.remove(victim)
    assert victim.wait() == -signal.SIGKILL


def test_ctrl_c_keeps_what_is_done_and_leaves_nothing_on_the_cluster(
    gpuctl: Cli, root: Path, tmp_path: Path, cluster: Cluster, command: list[str], here: Any
) -> None:
    process = begun(root, command, cluster, tmp_path)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    kept = len(list(tmp_path.glob("cells/*.json")))
    assert f"interrupted; {kept} of 12 replays are done and saved" in told
    assert "Traceback" not in told
    rest = gpuctl(*command, "--jobs", "1", "--parquet", tmp_path)
    assert f"{kept} of 12 cells were already done" in rest.stderr
    assert json.loads(rest.stdout)["tables"] == here


def test_a_scheduler_that_goes_away_is_reported(
    root: Path, tmp_path: Path, cluster: Cluster, command: list[str]
) -> None:
    process = begun(root, command, cluster, tmp_path)
    cluster.scheduler.kill()
    _, told = process.communicate(timeout=60)
    assert process.returncode == 3, told
    assert "the connection to the scheduler of Dask is lost" in told
    assert "Traceback" not in told


def test_an_empty_queue_is_reported(gpuctl: Cli, command: list[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        refused = gpuctl(*command, "--engine", f"dask://127.0.0.1:{port}", check=False)
    assert refused.returncode == 3
    assert "no scheduler of Dask answers there" in refused.stderr


def test_ctrl_c_stays_ours_where_jobs_of_slurm_are_requested() -> None:
    """Importing dask-jobqueue makes SIGINT end the program as if all were done, with exit code 0."""
    pytest.importorskip("cryptography")
    code = (
        "import signal, gpuctl.spread.dask_cluster as d, gpuctl.spread.engine as e;"
        "was = signal.getsignal(signal.SIGINT); d._installed(e.Engine('slurm'));"
        "import dask_jobqueue.runner; assert signal.getsignal(signal.SIGINT) is was"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
