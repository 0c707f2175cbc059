from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.formats import philly_jobs, philly_machines
from tests.philly_log import OneFile, load, new_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RETRY_S = 7  # the made-up cluster queues a failed job again after this long; the log's wait begins with the failure
CAUSES = ("fair_share_s", "capacity_s", "fragmentation_s")


@pytest.fixture(scope="module")
def folder(sample_data: Path) -> Path:
    return sample_data / "philly"


@pytest.fixture(scope="module")
def loaded(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneFile]:
    with new_store(tmp_path_factory.mktemp("sample")) as store:
        for fmt, name in ((philly_machines.FORMAT, "cluster_machine_list"), (philly_jobs.FORMAT, "cluster_job_log")):
            data = (folder / name).read_bytes()
            assert fmt.sniff(name, data[:65536]) is not None
            sink = load(fmt, data, store)
            assert sink.rejects == []
        yield sink


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as lines:
        return list(csv.DictReader(lines))


def test_it_is_small(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 3_000_000


def test_it_has_what_the_analyses_need(loaded: OneFile) -> None:
    store = loaded.store
    sizes = {int(row[0]) for row in store.execute("SELECT DISTINCT gpus FROM jobs WHERE gpus IS NOT NULL").fetchall()}
    assert sizes == {1, 2, 4, 8, 16, 32}
    assert store.value("SELECT count(*) FROM queues") == 6
    assert {row["state"] for row in loaded.rows("jobs")} == {"completed", "killed", "failed"}
    quirks = {quirk for row in loaded.rows("jobs") for quirk in row["quirks"]}
    assert quirks == {"no_attempts", "missing_time", "overlap"}
    assert store.value("SELECT count(*) FROM attempts WHERE state = 'running'") > 0
    wrong = store.execute("SELECT machine, gpus FROM machines WHERE gpus_labelled < gpus_observed").fetchall()
    assert wrong == [("m0", 8)]


def test_every_cause_of_waiting_has_hours(folder: Path) -> None:
    truth = table(folder / "truth" / "delays.csv")
    assert all(sum(float(row[cause]) for row in truth) > 100 * 3600 for cause in CAUSES)


def test_the_waits_are_those_of_the_truth(folder: Path, loaded: OneFile) -> None:
    truth = {(r["jobid"], int(r["attempt"])): float(r["wait_s"]) for r in table(folder / "truth" / "delays.csv")}
    odd = {(row["jobid_or_machine"], row["attempt"]) for row in table(folder / "truth" / "quirks.csv")}
    plain: list[dict[str, Any]] = []
    marked: list[dict[str, Any]] = []
    for row in loaded.rows("attempts"):
        (marked if (row["job"], str(row["attempt"])) in odd else plain).append(row)
    assert len(plain) > 2000
    for row in plain:
        pause = RETRY_S if row["attempt"] > 0 else 0
        assert row["wait_s"] == pytest.approx(truth[row["job"], row["attempt"]] + pause, abs=1)
    assert all(row["quirks"] or row["wait_s"] is None for row in marked)


def test_quotas_and_racks_name_what_is_in_the_log(folder: Path, loaded: OneFile) -> None:
    assert {row["vc"] for row in table(folder / "truth" / "quotas.csv")} == {
        row["queue"] for row in loaded.rows("queues")
    }
    assert {row["machine"] for row in table(folder / "truth" / "racks.csv")} == {
        m["machine"] for m in loaded.rows("machines")
    }
