"""A lake in object storage, read from a real server of S3's protocol; where DuckDB's `httpfs` and `moto` are there."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import pytest

from gpuctl.ingest.pipeline.load import ingest
from tests.dask_cluster import wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run


def _has_httpfs() -> bool:
    try:
        duckdb.connect().execute("LOAD httpfs")
    except duckdb.Error:
        return False
    return True


_LACKS = [name for name in ("moto", "boto3") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_LACKS), reason="no S3 server: pip install 'moto[server]' boto3"),
    pytest.mark.skipif(not _has_httpfs(), reason="DuckDB's extension httpfs is not installed"),
]
_KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
_COUNT = "SELECT count(*) AS rows, count(DISTINCT machine) AS machines, sum(util::DECIMAL(18,6)) AS util FROM gpu_util"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log = tmp_path_factory.mktemp("s3") / "log"
    with (
        log.open("wb") as out,
        subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out,
        ) as process,
    ):  # fmt: skip
        try:
            wait_for(lambda: process.poll() is not None or b"Running on http://" in log.read_bytes())
            assert process.poll() is None, log.read_text()
            yield "http://" + log.read_text().partition("Running on http://")[2].split()[0]
        finally:
            process.kill()


def test_a_lake_is_read_where_it_was_copied_to(
    gpuctl: Run, server: str, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import boto3

    db, lake = tmp_path / "s.duckdb", tmp_path / "lake"
    ingest([sample_data / "philly" / name for name in ("cluster_job_log", "cluster_gpu_util.gz")], db, lake=str(lake))
    told = [gpuctl(*command).stdout for command in (("query", db, _COUNT, "--json"), ("analyze", "--db", db, "--json"))]
    for name, value in _KEYS.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket="telemetry")
    for path in lake.rglob("*.parquet"):
        client.upload_file(str(path), "telemetry", f"copy/{path.relative_to(lake)}")
    lake.rename(tmp_path / "away")
    monkeypatch.setenv("GPUCTL_LAKE", "s3://telemetry/copy")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    assert gpuctl("query", db, _COUNT, "--json").stdout == told[0]
    assert json.loads(gpuctl("analyze", "--db", db, "--json").stdout)["tables"] == json.loads(told[1])["tables"]
    asked = "SELECT * FROM read_parquet('s3://telemetry/other/x.parquet')"
    assert "Cannot access file" in gpuctl("query", db, asked, check=False).stderr
    assert "secret=redacted" in gpuctl("query", db, "SELECT secret_string FROM duckdb_secrets()", "--json").stdout
    written = gpuctl("ingest", sample_data / "philly", "--db", db, check=False)
    assert written.returncode == 2
    assert "a lake in object storage is only read, and " in written.stderr
    client.delete_object(
        Bucket="telemetry",
        Key=f"copy/{next(iter((tmp_path / 'away').rglob('*.parquet'))).relative_to(tmp_path / 'away')}",
    )
    gone = gpuctl("query", db, _COUNT, check=False)
    assert gone.returncode == 4
    assert "its lake s3://telemetry/copy cannot be read" in gone.stderr
    assert "check GPUCTL_LAKE, the network and the credentials" in gone.stderr
