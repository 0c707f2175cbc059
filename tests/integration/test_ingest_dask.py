"""Files read side by side on workers of Dask: one store, with the same contents."""

from __future__ import annotations

import gzip
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.parallel_reader import FileToRead, ParallelReader
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.files import Candidate, Opener, walk
from gpuctl.spread.engine import parse
from tests.dask_cluster import Cluster, wait_for
from tests.fake_format import contents

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

_ABSENT = importlib.util.find_spec("distributed") is None
pytestmark = [pytest.mark.slow, pytest.mark.skipif(_ABSENT, reason="no distributed: pip install -e '.[dask]'")]


@pytest.fixture(scope="module")
def logs(thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Also a file that is cut off, and one whose last row is no telemetry."""
    folder = tmp_path_factory.mktemp("logs") / "philly"
    shutil.copytree(thin_data / "philly", folder, ignore=shutil.ignore_patterns("truth"))
    whole = (folder / "cluster_gpu_util.gz").read_bytes()
    (folder / "cut_gpu_util.gz").write_bytes(whole[: len(whole) // 3])
    first, row = gzip.decompress(whole).split(b"\n", 2)[:2]
    (folder / "bad_gpu_util").write_bytes(first + b"\n" + row + b"\nnothing,of,it\n")
    return folder


def test_the_store_has_the_same_contents(gpuctl: Run, cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.duckdb", tmp_path / "there.duckdb"
    told = [gpuctl("ingest", logs, "--db", here), gpuctl("ingest", logs, "--db", there, "--engine", cluster.engine)]
    assert told[0].stdout == told[1].stdout
    assert "workers could not read" not in told[1].stderr
    expected = contents(here)
    assert len(expected["gpu_samples"]) > 20_000
    assert contents(there) == expected
    again = gpuctl("ingest", logs, "--db", there, "--engine", cluster.engine)
    assert again.stdout.count("unchanged") == len(expected["sources"])
    assert contents(there) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [here.name, there.name]


def test_workers_do_read_the_files(cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    asked = {
        found.path: FileToRead(found, "philly-gpu-util", "America/Los_Angeles", stamps=True)
        for found in walk([logs], Opener())
        if isinstance(found, Candidate) and found.name.endswith("gpu_util")
    }
    ahead = ParallelReader(tmp_path / "s.duckdb", "philly", asked, Limits(), engine=parse(cluster.engine), notify=print)
    found = {path: ahead.take(path, "America/Los_Angeles") for path in asked}
    ahead.close()
    read = [one for one in found.values() if one is not None]
    assert len(read) == 3
    assert not ahead.not_read
    assert max(one.rows_loaded for one in read) > 20_000
    assert sum(one.damage is not None for one in read) == 1
    assert all(one.local is False for one in read if one.rows_loaded)
    assert not list(tmp_path.iterdir())


def test_another_worker_reads_what_a_killed_one_had_taken(
    gpuctl: Run, cluster: Cluster, logs: Path, tmp_path: Path, root: Path
) -> None:
    here, there = tmp_path / "here.duckdb", tmp_path / "there.duckdb"
    gpuctl("ingest", logs, "--db", here)
    victim = cluster.workers[0]
    distributed = pytest.importorskip("distributed")
    with distributed.Client(cluster.engine.replace("dask", "tcp"), set_as_default=False) as client:
        address = next(at for at, pid in client.run(os.getpid).items() if pid == victim.pid)
        # it takes files and reads none: it is killed while they are its own
        victim.send_signal(signal.SIGSTOP)
        command = [
            "ingest",
            str(logs),
            "--db",
            str(there),
            "--engine",
            cluster.engine,
            "--lake",
            str(tmp_path / "lake"),
        ]
        with subprocess.Popen(
            [sys.executable, "-m", "gpuctl", *command],
            cwd=root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            wait_for(lambda: process.poll() is not None or len(client.processing().get(address, ())) > 0)
            assert process.poll() is None
            victim.kill()
            _, told = process.communicate(timeout=200)
    assert process.returncode == 0, told
    assert "workers could not read" not in told
    sql = "SELECT count(*) AS rows, count(DISTINCT machine) AS machines, sum(util::DECIMAL(18,6)) AS util FROM gpu_util"
    answers = [gpuctl("query", db, sql, "--json").stdout for db in (here, there)]
    assert answers[0] == answers[1]
