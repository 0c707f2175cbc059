"""Files read side by side on workers of Dask: one store, with the same contents."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.ahead import Ahead, Asked
from gpuctl.ingest.read.codecs import Limits
from gpuctl.ingest.read.files import Candidate, Opener, walk
from gpuctl.spread.engine import parse
from tests.dask_cluster import Cluster
from tests.fake_format import contents

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run

_ABSENT = importlib.util.find_spec("distributed") is None
pytestmark = [pytest.mark.slow, pytest.mark.skipif(_ABSENT, reason="no distributed: pip install -e '.[dask]'")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("dask"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def logs(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Also a file that is cut off, and one that is no telemetry past its header."""
    folder = tmp_path_factory.mktemp("logs") / "philly"
    shutil.copytree(sample_data / "philly", folder, ignore=shutil.ignore_patterns("truth"))
    whole = (folder / "cluster_gpu_util.gz").read_bytes()
    (folder / "cut_gpu_util.gz").write_bytes(whole[: len(whole) // 3])
    first = gzip.decompress(whole).split(b"\n", 1)[0]
    (folder / "bad_gpu_util").write_bytes(first + b"\nnothing,of,it\n")
    return folder


def test_the_store_has_the_same_contents(gpuctl: Run, cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.duckdb", tmp_path / "there.duckdb"
    told = [gpuctl("ingest", logs, "--db", here), gpuctl("ingest", logs, "--db", there, "--engine", cluster.engine)]
    assert told[0].stdout == told[1].stdout
    assert "workers could not read" not in told[1].stderr
    expected = contents(here)
    assert len(expected["gpu_samples"]) > 60_000
    assert contents(there) == expected
    again = gpuctl("ingest", logs, "--db", there, "--engine", cluster.engine)
    assert again.stdout.count("unchanged") == len(expected["sources"])
    assert contents(there) == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == [here.name, there.name]


def test_with_a_lake_a_killed_worker_loses_nothing(gpuctl: Run, cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    here, there = tmp_path / "here.duckdb", tmp_path / "there.duckdb"
    cluster.workers[0].kill()
    gpuctl("ingest", logs, "--db", here)
    gpuctl("ingest", logs, "--db", there, "--engine", cluster.engine, "--lake", tmp_path / "lake")
    sql = "SELECT count(*) AS rows, count(DISTINCT machine) AS machines, sum(util::DECIMAL(18,6)) AS util FROM gpu_util"
    answers = [gpuctl("query", db, sql, "--json").stdout for db in (here, there)]
    assert answers[0] == answers[1]


def test_workers_do_read_the_files(cluster: Cluster, logs: Path, tmp_path: Path) -> None:
    asked = {
        found.path: Asked(found, "philly-gpu-util", "America/Los_Angeles", stamps=True)
        for found in walk([logs], Opener())
        if isinstance(found, Candidate) and found.name.endswith("gpu_util")
    }
    ahead = Ahead(tmp_path / "s.duckdb", asked, Limits(), parse(cluster.engine), print)
    found = {path: ahead.take(path, "America/Los_Angeles") for path in asked}
    ahead.close()
    read = [one for one in found.values() if one is not None]
    assert len(read) == 3
    assert not ahead.not_read
    assert max(one.rows_loaded for one in read) > 60_000
    assert sum(one.damage is not None for one in read) == 1
    assert all(one.local is False for one in read if one.rows_loaded)
    assert not list(tmp_path.iterdir())
