"""A real Prometheus with samples of GPUs, and `gpuctl ingest --from prometheus`: each sample arrives once.

What is wanted is in the text from which Debian's ``promtool`` makes the server's database.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.request import urlopen

import pytest

from gpuctl.store.database import Store
from tests import lab_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(300)]

FIRST = 1_793_401_200
"""2026-10-30T23:00:00Z: an hour before a day ends, so that windows and days are cut within the samples."""
STEP, ROUNDS, GPUS = 15, 960, 4


class Lab(NamedTuple):
    """A server, and its samples as (metric, GPU, time, value)."""

    url: str
    samples: list[tuple[str, int, float, float]]


def made() -> list[tuple[str, int, float, float]]:
    names = ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL")
    return [
        (name, gpu, FIRST + STEP * k + 0.125 * gpu, float((7 * k + gpu) % 101))
        for name in names for gpu in range(GPUS) for k in range(ROUNDS) if k % 97 or gpu
    ]  # fmt: skip


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    absent = [name for name in ("prometheus", "promtool") if shutil.which(name) is None]
    lab_requirements.skip_or_fail(f"{absent[0]} is not installed (Debian: prometheus)" if absent else None)
    folder = tmp_path_factory.mktemp("prometheus")
    samples = made()
    lines = [
        f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}",Hostname="n1",job="dcgm",cluster="c"}} {value} {t:.3f}'
        for name, gpu, t, value in samples
    ]
    others = [f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="x1",cluster="other"}} 50 {FIRST}', f"up{{}} 1 {FIRST}"]
    (folder / "samples.txt").write_text("\n".join([*lines, *others, "# EOF", ""]))
    (folder / "prometheus.yml").write_text("global: {}\n")
    make = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "samples.txt", "data"]
    subprocess.run(make, cwd=folder, check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    start = ["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}",
             "--query.max-samples=3000"]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(start, cwd=folder, stderr=log) as server:
        try:
            _wait(url, folder / "log")
            yield Lab(url, samples)
        finally:
            server.terminate()


def _wait(url: str, log: Path) -> None:
    for _ in range(120):
        try:
            with urlopen(f"{url}/-/ready", timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.5)
    pytest.fail(log.read_text()[-2000:])


def _stored(db: Path) -> list[tuple[str, int, float, float]]:
    sql = """
        SELECT s.gpu, epoch(r.ts) AS t, r.util, r.mem_mb FROM gpu_readings AS r JOIN gpu_series AS s USING (series)
        WHERE s.machine = 'n1'
    """
    with Store(db) as store:
        found = store.execute(sql).fetchall()
    utils = [("DCGM_FI_DEV_GPU_UTIL", gpu, t, util) for gpu, t, util, _ in found if util is not None]
    return sorted(utils + [("DCGM_FI_DEV_FB_USED", gpu, t, mem) for gpu, t, _, mem in found if mem is not None])


def test_each_sample_of_a_real_server_arrives_once(lab: Lab, tmp_path: Path, gpuctl: Gpuctl) -> None:
    db = tmp_path / "s.duckdb"
    # the server refuses more than 3,000 samples at a time: 6 hours have 3,836
    command = ("ingest", "--from", "prometheus", "--url", lab.url, "--match", 'cluster="c"', "--db", str(db))
    first = gpuctl(*command, "--since", "2026-10-30", "--until", "2026-10-30", "--cluster", "c")
    assert first.returncode == 0, first.stderr
    assert len(_stored(db)) == sum(t < 1_793_404_800 for _, _, t, _ in lab.samples)
    for _ in range(2):
        again = gpuctl(*command, "--since", "2026-10-30", "--until", "2026-10-31")
        assert again.returncode == 0, again.stderr
        assert _stored(db) == sorted(lab.samples)
    with Store(db) as store:
        assert store.value("SELECT count(*) FROM gpu_series WHERE machine = 'x1'") == 0


def test_a_server_without_metrics_of_gpus_is_named(lab: Lab, tmp_path: Path, gpuctl: Gpuctl) -> None:
    found = gpuctl(
        "ingest", "--from", "prometheus", "--url", lab.url, "--since", "2026-01-01", "--until", "2026-01-02",
        "--db", str(tmp_path / "s.duckdb"),
    )  # fmt: skip
    assert "no metric of GPUs that gpuctl reads" in found.stderr
