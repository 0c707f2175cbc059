"""YARN logs and dumps of a lab whose client, masters and daemons wrote down what happened (labs/yarn).

Recorded of Hadoop 2.10.2 (its daemons in Asia/Kolkata) and 3.5.0 (in UTC); and of a real 3.5.0 that is started here.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import shutil
import zipfile
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.yarn.live import fetch
from gpuctl.store.database import Store
from labs.yarn import check, jars, manifest, workload
from labs.yarn.lab import Lab
from tests import lab_requirements

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

    from gpuctl.ingest.pipeline.report import IngestReport

TABLES = {
    "jobs": "cluster, job",
    "attempts": "cluster, job, attempt",
    "containers": "cluster, job, container",
    "placements": "cluster, job, attempt, machine",
    "machines": "cluster, machine",
    "machine_events": "cluster, machine, from_ts",
    "queues": "cluster, queue",
}


class Recorded:
    """One recorded run: its answer key and its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: dict[str, Any] = json.loads(gzip.decompress((folder / "manifest.json.gz").read_bytes()))
        self.rm_log = self.files("*-resourcemanager-*.log.gz")[0]
        self.node_logs = self.files("*-nodemanager-*.log.gz")
        self.timeline = folder / "rest-timeline.zip"
        # of the moments at which the nodes were asked, the busiest and the end
        self.rest = [folder / f"rest-{when}.zip" for when in ("busy", "end")]
        self.everything = [self.rm_log, *self.node_logs, *self.rest, self.timeline]

    def files(self, pattern: str) -> list[Path]:
        found = sorted(self.folder.glob(pattern))
        assert found, pattern
        return found

    def zone_of(self) -> str:
        return str(self.manifest["timezone"])


@pytest.fixture(params=[jars.OLD, jars.NEWEST])
def run(request: pytest.FixtureRequest, root: Path) -> Recorded:
    return Recorded(root / "tests" / "fixtures" / "yarn" / request.param)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "store.duckdb"


def load(db: Path, *paths: Path, timezone: str | None = None) -> IngestReport:
    """Ingest as one cluster; no source may fail and no row may be rejected."""
    report = ingest(paths, db, cluster="lab", timezone=timezone)
    assert [(s.path, s.message) for s in report.sources if s.status == "failed"] == []
    assert [(s.path, s.reasons) for s in report.sources if s.rows_rejected] == []
    return report


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Give a store of some files, to be read only: made once for all tests."""
    folder = tmp_path_factory.mktemp("loaded")

    @cache
    def store_of(*paths: Path, timezone: str | None = None) -> Path:
        db = folder / f"{len(list(folder.iterdir()))}.duckdb"
        load(db, *paths, timezone=timezone)
        return db

    return store_of


def tables(db: Path) -> dict[str, pl.DataFrame]:
    """All that does not tell of the files themselves, in an order that does not depend on them."""
    with Store(db) as store:
        return {
            name: store.frame(f"SELECT * EXCLUDE (source) FROM {name} ORDER BY {key}")
            if name not in {"machines", "queues"}
            else store.frame(f"SELECT * FROM {name} ORDER BY {key}")
            for name, key in TABLES.items()
        }


def test_the_fixtures_are_of_what_they_should_be(run: Recorded) -> None:
    apps = run.manifest["applications"]
    assert [app["key"] for app in apps] == [job["key"] for job in workload.FULL.jobs]
    exits = {c.get("exit") for a in apps for t in a["attempts"] for c in t["containers"]}
    assert exits >= {0, 1, -100, -102, None}, "success, failure, lost node, preemption, killed"
    assert {app["final_status"] for app in apps} == {"SUCCEEDED", "FAILED", "KILLED", "UNDEFINED"}
    assert max(len(app["attempts"]) for app in apps) == 2
    assert {len({c["host"] for c in t["containers"]}) for a in apps for t in a["attempts"]} >= {0, 1, 2, 3, 4}
    assert sum(path.stat().st_size for path in run.folder.iterdir()) < 200_000


def test_rm_log_alone(run: Recorded, loaded: Callable[..., Path]) -> None:
    with Store(loaded(run.rm_log, timezone=run.zone_of())) as store:
        assert check.jobs(store, run.manifest, paths=False, names=False, exact=False) == []
        assert check.attempts(store, run.manifest) == []
        assert check.containers(store, run.manifest, hosts=True, exits=False) == []
        assert check.machines(store, run.manifest, racks=False) == []
        assert check.lost_nodes(store, run.manifest) == []
        assert check.gpus(store, run.manifest) == []


def test_the_zone_of_the_log_is_found_in_its_summaries(run: Recorded, db: Path) -> None:
    load(db, run.rm_log)
    with Store(db) as store:
        assert check.jobs(store, run.manifest, paths=False, names=False, exact=False) == []
        assert check.attempts(store, run.manifest) == []


def test_rm_log_in_rotated_pieces(run: Recorded, db: Path, tmp_path: Path, loaded: Callable[..., Path]) -> None:
    lines = gzip.decompress(run.rm_log.read_bytes()).splitlines(keepends=True)
    folder = tmp_path / "logs"
    folder.mkdir()
    cuts = [0, len(lines) // 5, len(lines) // 2, len(lines) * 4 // 5, len(lines)]
    for number, (low, high) in enumerate(itertools.pairwise(cuts)):
        # log4j calls the newest .log and counts up from there; a site may compress the oldest
        age = len(cuts) - 2 - number
        name = run.rm_log.name.removesuffix(".gz") + (f".{age}" if age else "")
        piece = b"".join(lines[low:high])
        (folder / (name + ".gz" * (number == 0))).write_bytes(gzip.compress(piece) if number == 0 else piece)
    load(db, folder, timezone=run.zone_of())
    pieces = tables(db)
    for name, frame in tables(loaded(run.rm_log, timezone=run.zone_of())).items():
        assert pieces[name].equals(frame), name


def test_rest_alone(run: Recorded, loaded: Callable[..., Path]) -> None:
    with Store(loaded(*run.rest)) as store:
        assert check.jobs(store, run.manifest, paths=True, names=True, exact=True) == []
        assert check.machines(store, run.manifest, racks=True) == []
        assert check.gpus(store, run.manifest) == []
        # 2.10 tells what share of the cluster a queue is guaranteed, and not how many GPUs that is
        assert check.quotas(store, run.manifest) == []
        queues = set(store.frame("SELECT queue FROM queues WHERE parent IS NOT NULL")["queue"])
    assert queues == {queue["path"] for queue in run.manifest["queues"]}


def test_timeline_alone(run: Recorded, loaded: Callable[..., Path]) -> None:
    """Its containers carry no GPUs in 2.10, and 0 whatever they had in 3.5: both mean that it does not know."""
    with Store(loaded(run.timeline)) as store:
        assert check.jobs(store, run.manifest, paths=False, names=True, exact=True) == []
        assert check.containers(store, run.manifest, hosts=True, exits=True, gpus=False) == []
        assert check.attempts(store, run.manifest, gpus=False) == []


def test_node_logs_alone(run: Recorded, db: Path) -> None:
    load(db, *run.node_logs, timezone=run.zone_of())
    attempts = [attempt for app in run.manifest["applications"] for attempt in app["attempts"]]
    ran = [c for t in attempts for c in t["containers"] if "started_ms" in c]
    hosts = {c["container"]: c["host"] for c in [*ran, *(t["master"] for t in attempts)] if c["host"]}
    with Store(db) as store:
        found = dict(store.frame("SELECT container, machine FROM containers").rows())
    assert {name: found.get(name) for name in hosts} == hosts


@pytest.mark.slow
def test_all_together_in_any_order(run: Recorded, db: Path, tmp_path: Path, loaded: Callable[..., Path]) -> None:
    load(db, *run.everything)
    with Store(db) as store:
        assert check.jobs(store, run.manifest, paths=True, names=True, exact=True) == []
        assert check.attempts(store, run.manifest) == []
        assert check.containers(store, run.manifest, hosts=True, exits=True) == []
        assert check.machines(store, run.manifest, racks=True) == []
        assert check.gpus(store, run.manifest) == []
        jobs = store.value("SELECT count(DISTINCT job) FROM field_sources")
    assert jobs == len(run.manifest["applications"])
    # one begins with what the nodes answered, the other with the timeline; then come the others in any order
    begun = run.rest if run.folder.name == jars.OLD else [run.timeline]
    again = tmp_path / "again.duckdb"
    shutil.copy(loaded(*begun), again)
    others = [path for path in run.everything if path not in begun]
    shuffled = random.Random(run.folder.name).sample(others, len(others))
    for some in (shuffled[::2], shuffled[1::2]):
        load(again, *some)
    first = tables(db)
    for name, frame in tables(again).items():
        assert frame.equals(first[name]), (name, [path.name for path in shuffled])


def test_containers_add_up_to_what_the_nodes_had_in_use(run: Recorded, loaded: Callable[..., Path]) -> None:
    samples = [event for event in run.manifest["lab"] if event["event"] == "sample" and event["when"] != "end"]
    assert samples
    with Store(loaded(run.rm_log, timezone=run.zone_of())) as store:
        for event in samples:
            with zipfile.ZipFile(run.folder / f"rest-{event['when']}.zip") as archive:
                nodes = json.loads(archive.read("nodes.json"))["nodes"]["node"]
            assert len(nodes) == len(run.manifest["nodes"])
            assert check.occupancy(store, nodes, event["ms"]) == [], event["when"]


def test_a_queue_at_its_maximum_is_told_from_a_full_cluster(
    run: Recorded, db: Path, loaded: Callable[..., Path]
) -> None:
    """`batch-b` asks a queue for more than is left of its 25 % of 32 GPUs; all other queues may have everything."""
    shutil.copy(loaded(*run.rest), db)
    load(db, run.rm_log)
    ids = {app["key"]: app["app"] for app in run.manifest["applications"]}
    with Store(db) as store:
        result = analyze(store, Options(tables=("queues", "queue_delays", "delay_reasons")))
    limits = {row["queue"]: row["limit_gpus"] for row in result.table("queues").frame.to_dicts()}
    assert limits == {**dict.fromkeys(limits), "root.batch": 8}
    delays = result.table("queue_delays").frame.to_dicts()
    assert {row["queue"] for row in delays if row["fair_share_s"] > 0} == {"root.batch"}
    (waited,) = [row for row in delays if row["job"] == ids["batch-b"]]
    assert (waited["dominant_cause"], waited["gpus"]) == ("fair_share", 8)
    assert result.table("delay_reasons").frame.is_empty(), "YARN tells why attempts ended, not why they waited"


@pytest.mark.slow
@pytest.mark.lab
@pytest.mark.timeout(600)
def test_a_real_yarn(db: Path, tmp_path: Path) -> None:
    lab_requirements.skip_or_fail(jars.missing())
    with Lab(tmp_path / "lab") as lab:
        lab.run(workload.SHORT)
        answers = fetch(lab.web, tmp_path / "answers")
        key = manifest.build(lab.folder, lab.version, lab.timezone)
    assert [app["key"] for app in key["applications"]] == [job["key"] for job in workload.SHORT.jobs]
    load(db, *answers)
    with Store(db) as store:
        assert check.jobs(store, key, paths=True, names=True, exact=True) == []
        assert check.machines(store, key, racks=True) == []
        assert check.quotas(store, key) == []
    logs = [path for kind in ("resourcemanager", "nodemanager") for path in lab.folder.glob(f"logs/*-lab-{kind}-*.log")]
    load(db, *logs)
    with Store(db) as store:
        assert check.jobs(store, key, paths=True, names=True, exact=True) == []
        assert check.attempts(store, key) == []
        assert check.containers(store, key, hosts=True, exits=False) == []
        assert check.gpus(store, key) == []
