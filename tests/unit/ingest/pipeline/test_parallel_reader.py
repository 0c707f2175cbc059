"""What workers read: a store has the same contents as if its own process had read it; no Dask is needed to see that."""

from __future__ import annotations

import gzip
import itertools
import logging
import pickle  # noqa: TID251 - of what this test has made
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline import parallel_reader
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.spread import engine
from gpuctl.spread import run as spread
from tests.example_counts import SEARCHING
from tests.fake_format import contents
from tests.unit.ingest.yarn import cluster as yarn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

ELSEWHERE = engine.Engine(engine.DASK, "tcp://127.0.0.1:1")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The formats of which a worker has read a file; it is this process, given and giving what can be sent."""
    formats: set[str] = set()

    def run(work: Any, shared: Any, tasks: Mapping[str, Any], *_: object) -> Iterator[tuple[str, Any]]:
        logger = logging.getLogger("gpuctl")
        for key, task in tasks.items():
            # what is said elsewhere is not said here
            logger.propagate = False
            found = pickle.loads(pickle.dumps(work(*pickle.loads(pickle.dumps((shared, task))))))
            formats.update({task.format} if not found.fault else ())
            logger.propagate = True
            yield key, found

    monkeypatch.setattr(spread, "run", run)
    return formats


YARN = {"yarn-rm-log", "yarn-nm-log", "yarn-rest-apps", "yarn-ats"}
SACCT = """JobIDRaw|Cluster|User|Partition|State|Submit|Start|End|AllocTRES|NodeList|ExitCode|Odd
1|lab|ann|gpu|COMPLETED|2024-05-01T10:00:00|2024-05-01T10:05:00|2024-05-01T11:00:00|gres/gpu=4|n1|0:0|x
2|lab|bob|gpu,cpu|FAILED|2024-05-01T10:00:00|2024-05-01T10:06:00|2024-05-01T11:00:00|gres/gpu=2|n[1-2]|1:0|x
2|lab|bob|gpu|COMPLETED|2024-05-01T12:00:00|2024-05-01T12:06:00|2024-05-01T13:00:00|gres/gpu=2|n2|0:0|x
2|lab|bob|gpu|COMPLETED|2024-05-01T12:00:00|2024-05-01T12:06:00|2024-05-01T13:00:00|gres/gpu=2|n2|0:0|x
3|lab|bob|gpu|NONSENSE|yesterday|2024-05-01T12:06:00|2024-05-01T13:00:00|gres/gpu=2|n2|0:0|x
4|lab|bob|gpu|PENDING|2024-05-01T12:00:00|Unknown|Unknown|||0:0|x
"""


@pytest.fixture
def logs(root: Path, sample_data: Path, tmp_path: Path, request: pytest.FixtureRequest) -> list[Path]:
    if request.param == "slurm":
        (tmp_path / "may").mkdir()
        (tmp_path / "may/sacct.txt").write_text(SACCT, "utf-8")
        # the same records once more, some of them further on
        (tmp_path / "may/sacct2.txt").write_text(SACCT.replace("PENDING", "CANCELLED").replace("|x", "|y"), "utf-8")
        (tmp_path / "may/cut.txt").write_bytes(SACCT[:-40].encode())
        return [tmp_path / "may"]
    if request.param == "yarn":
        apps, logs = yarn.everything(), tmp_path / "yarn"
        logs.mkdir()
        for name, data in {
            "rm.log": yarn.rm_log(apps, modern=True).text(),
            **{f"nm-{host}.log": yarn.nm_log(apps, host).text() for host in ("n1", "n2")},
            "apps.json": yarn.rest_apps(apps),
            "timeline.json": yarn.ats_apps(apps),
            "containers.json": yarn.ats_containers(apps[0]),
        }.items():
            (logs / name).write_bytes(data)
        return [logs]
    if request.param == "philly":
        (tmp_path / "philly").mkdir()
        for path in (sample_data / "philly").glob("cluster_*"):
            opened = gzip.open if path.suffix == ".gz" else open
            with opened(path, "rb") as file:
                (tmp_path / "philly" / path.stem).write_bytes(b"".join(itertools.islice(file, 6000)))
        return [tmp_path / "philly"]
    return {
        "slurm-json": [root / "tests/fixtures/slurm/other/sacct.json"],
        "yarn-2": [root / "tests/fixtures/yarn/2.10.2"],
        "yarn-3": [root / "tests/fixtures/yarn/3.5.0"],
    }[request.param]


@pytest.mark.parametrize(
    ("logs", "formats"),
    [
        ("slurm", {"slurm-sacct"}),
        ("slurm-json", {"slurm-sacct-json"}),
        ("yarn", YARN),
        *([("yarn-2", YARN - {"yarn-ats"}), ("yarn-3", YARN)] if SEARCHING else []),
        ("philly", {"philly-gpu-util", "philly-cpu-util", "philly-mem-util"}),
    ],
    indirect=["logs"],
)
def test_the_same_contents(
    logs: list[Path], formats: set[str], read: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "gpuctl")
    reports = []
    for name, where in (("here", None), ("there", ELSEWHERE)):
        caplog.clear()
        report = ingest(logs, tmp_path / f"{name}.duckdb", engine=where)
        reports.append((report, caplog.messages.copy()))
    assert reports[0] == reports[1]
    assert contents(tmp_path / "here.duckdb") == contents(tmp_path / "there.duckdb")
    assert read >= formats
    assert read <= {fmt.name for fmt in all_formats() if fmt.alone}
    assert not list(tmp_path.glob("*.read"))


def test_files_unreadable_on_workers_are_read_locally(
    sample_data: Path, read: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_reader, "_REJECTS", 0)
    files = [sample_data / "philly" / name for name in ("cluster_machine_list", "cluster_gpu_util.gz")]
    report = ingest(files, tmp_path / "s.duckdb", engine=ELSEWHERE)
    assert not read
    assert any("workers could not read 1 file" in line for line in report.warnings)
    ingest(files, tmp_path / "here.duckdb")
    assert contents(tmp_path / "s.duckdb") == contents(tmp_path / "here.duckdb")


def test_rows_that_workers_left_elsewhere_are_reported(
    sample_data: Path, read: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = parallel_reader.read

    def lost(shared: Any, request: Any) -> parallel_reader.ReadFile:
        found = own(shared, request)
        for path in (tmp_path / "s.duckdb.read").rglob("*.arrow"):
            path.unlink()
        return found

    monkeypatch.setattr(parallel_reader, "read", lost)
    monkeypatch.setattr(spread, "run", lambda work, shared, tasks, *_: ((k, work(shared, t)) for k, t in tasks.items()))
    report = ingest([sample_data / "philly" / "cluster_gpu_util.gz"], tmp_path / "s.duckdb", engine=ELSEWHERE)
    [source] = report.sources
    assert source.status == "failed"
    assert "what a worker read of it is not here" in source.message
    assert InputError.exit_code == 3
