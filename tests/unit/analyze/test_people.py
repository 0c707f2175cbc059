"""Who held, lost and used GPUs, and when, on a store whose answer can be worked out on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.store.database import Store
from tests.unit.analyze.failure_store import Site, at

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One machine of 4 GPUs from noon; times in minutes.

    ann: 1 GPU at 40 % from 0 to 120, completed; 1 GPU at 2 % from 0 to 60, killed.
    bob: 2 GPUs from 60 to 90, failed, and again from 90 to 150, completed; nobody measured them.
    """
    path = tmp_path_factory.mktemp("people") / "s.duckdb"
    with Store(path, write=True) as store:
        made = Site(store)
        made.machine("m1", 4)
        made.job("good", ("completed", 0, 120), user="ann", account="vision", queue="p")
        made.job("idle", ("killed", 0, 60), user="ann", account="speech", queue="p")
        made.job("twice", ("failed", 60, 90), ("completed", 90, 150), gpus=2, user="bob", account="vision", queue="q")
        for job, gpu in (("good", 0), ("idle", 1)):
            store.execute("UPDATE placements SET gpu_indices = [$gpu] WHERE job = $job", {"gpu": gpu, "job": job})
        for minute in range(120):
            made.insert(
                "gpu_samples", ts=at(minute), machine="m1", util=[40.0, 2.0 if minute < 60 else None, None, None]
            )
    return path


def rows(site: Path, name: str, **options: Any) -> list[dict[str, Any]]:
    with Store(site) as store:
        table = analyze(store, Options(tables=(name,), **options)).table(name)
    assert table is not None
    return table.frame.to_dicts()


def test_users(site: Path) -> None:
    ann, bob = sorted(rows(site, "users"), key=lambda row: str(row["user"]))
    assert ann["user"] == "ann"
    figures = ("jobs", "gpu_hours", "lost_gpu_hours", "lost_pct", "failed_h", "killed_h", "retried_h", "failed_jobs")
    assert [ann[name] for name in figures] == pytest.approx([2, 3, 1, 50, 0, 1, 0, 0])
    assert [bob[name] for name in figures] == pytest.approx([1, 3, 1, 50, 0, 0, 1, 0])
    used = ("measured_jobs", "util_mean_pct", "util_p10_pct", "idle_jobs", "idle_gpu_hours")
    assert [ann[name] for name in used] == pytest.approx([2, (120 * 40 + 60 * 2) / 180, 2 + 0.1 * 38, 1, 1])
    assert [bob[name] for name in used] == [None] * 5
    # bob's two waits: an hour, then none
    assert (bob["wait_p50_min"], ann["wait_p95_min"]) == (30, 0)


def test_the_user_sets_the_threshold_of_idleness(site: Path) -> None:
    assert {row["user"]: row["idle_jobs"] for row in rows(site, "users", idle_below=50)} == {"ann": 2, "bob": None}
    assert {row["user"]: row["idle_jobs"] for row in rows(site, "users", idle_below=2)} == {"ann": 0, "bob": None}


def test_queues_and_accounts_have_the_same_figures(site: Path) -> None:
    queues = {row["queue"]: row for row in rows(site, "queues")}
    assert (queues["p"]["lost_gpu_hours"], queues["q"]["lost_gpu_hours"], queues["p"]["idle_jobs"]) == (1, 1, 1)
    accounts = {row["account"]: row for row in rows(site, "accounts")}
    assert {name: (row["jobs"], row["gpu_hours"], row["killed_h"]) for name, row in accounts.items()} == {
        "vision": (2, 5, 0),
        "speech": (1, 1, 1),
    }


def test_the_first_screen_reads_no_telemetry(site: Path) -> None:
    assert all(row["util_mean_pct"] is None and row["gpu_hours"] for row in rows(site, "users", brief=True))


def test_activity(site: Path) -> None:
    first, second, third = rows(site, "activity")
    names = ("gpus_busy", "allocated_pct", "util_mean_pct", "submitted", "waiting", "waiting_gpus", "failures")
    assert [first[name] for name in names] == pytest.approx([2, 50, 21, 3, 1, 2, 0])
    assert [second[name] for name in names] == pytest.approx([3, 75, 40, 0, 0, 0, 1])
    # the log ends at 14:30: the mean is of the half hour that it covers
    assert [third[name] for name in names] == pytest.approx([2, 50, None, 0, 0, 0, 0], nan_ok=True)
    [day] = rows(site, "activity", by="day")
    assert day["gpus_busy"] == pytest.approx(6 / 2.5)
    assert (day["submitted"], day["failures"]) == (3, 1)


def test_activity_by_owner(site: Path) -> None:
    found = {(row["ts"].hour, row["user"]): row for row in rows(site, "activity_by_user")}
    assert {key: row["gpu_hours"] for key, row in found.items()} == {
        (12, "ann"): 2, (12, "bob"): 0, (13, "ann"): 1, (13, "bob"): 2, (14, "bob"): 1
    }  # fmt: skip
    assert found[12, "ann"]["util_mean_pct"] == pytest.approx(21)
    assert {row["queue"]: row["gpu_hours"] for row in rows(site, "activity_by_queue", by="day")} == {"p": 3, "q": 3}


def test_fragmentation(site: Path) -> None:
    # bob's gang of 2 waits for the first hour, beside 2 free GPUs of the same node
    assert [tuple(row.values())[1:] for row in rows(site, "fragmentation")] == [
        (2, 2, 0, 2),
        (1, 1, 0, 0),
        (2, 2, 0, 0),
    ]
