"""GPU-hours have one definition in tables, SQL and single jobs; node-hours stand for those that are unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.held import provide_held
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.store.database import Store
from gpuctl.store.views import show
from tests.result_tables import table_of
from tests.unit.analyze.failure_store import Site, at

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.core.results import Analysis

SUMS = ("status", "queues", "users", "accounts", "gpu_hours_lost", "activity_by_user", "activity_by_queue", "held")
"""Tables whose rows, but for one of them all, add up to the GPU-hours of the overview."""


def write(path: Path) -> Path:
    """One machine of 8 GPUs; minutes after noon. In brackets: GPU-hours from allocation, and those from the start.

    booted: allocated at 0, started at 30, ended at 90 on 4 GPUs [6, 4]. retried: 2 GPUs from 0 to 30, failed, and from
    60 to 120 [3, 3]. endless: 1 GPU from 120, still runs at the end of the log, at 240 [2, 2]. Two more jobs are of
    unknown GPUs: nodes, on 3 nodes from 0 to 60, and lost, on 2 nodes from 0 to 30, failed.
    """
    with Store(path, write=True) as store:
        site = Site(store)
        site.machine("m1")
        site.job("booted", ("failed", 30, 90), gpus=4, user="ann", account="a", queue="p")
        store.execute("UPDATE attempt_rows SET allocated_ts = $ts WHERE job = 'booted'", {"ts": at(0)})
        site.job("retried", ("failed", 0, 30), ("completed", 60, 120), gpus=2, user="bob", account="b", queue="p")
        site.job("endless", ("running", 120, 240), gpus=1, user="bob", account="b", queue="q")
        store.execute("UPDATE attempt_rows SET end_ts = NULL, released_ts = NULL, run_s = NULL WHERE job = 'endless'")
        site.job("nodes", ("completed", 0, 60), gpus=0, user="cem", account="c", queue="q", nodes=3)
        site.job("lost", ("failed", 0, 30), gpus=0, user="cem", account="c", queue="r", nodes=2)
        for table in ("job_rows", "attempt_rows"):
            store.execute(f"UPDATE {table} SET gpus = NULL WHERE job IN ('nodes', 'lost')")
        store.execute("UPDATE attempt_rows SET servers = 0 WHERE job IN ('nodes', 'lost')")
        store.execute("DELETE FROM placements WHERE job IN ('nodes', 'lost')")
        for line, loss in enumerate((9.0, 8.0, 7.0, 6.0)):
            site.insert("progress", job="booted", attempt=0, line_no=line, epoch=float(line), loss=loss, metric="loss",
                        stream="stdout")  # fmt: skip
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("hours") / "s.duckdb")


@pytest.fixture(scope="module")
def found(made: Path) -> Analysis:
    with Store(made) as store:
        return analyze(store, Options(tables=(*SUMS[:-1], "overview", "failures", "loss_curves", "training_progress")))


def read_only_query(path: Path, sql: str) -> list[dict[str, Any]]:
    with Store(path) as store:
        provide_held(store, sql)
        show(store)
        return store.read_only_query(sql).to_dicts()


def held(path: Path, by: str = "1") -> dict[Any, float]:
    sql = f"SELECT {by} AS name, sum(gpu_hours) AS hours FROM held JOIN jobs USING (cluster, job) GROUP BY ALL"
    return {row["name"]: row["hours"] for row in read_only_query(path, sql)}


def rows(found: Analysis, name: str) -> list[dict[str, Any]]:
    every = table_of(found, name).frame.to_dicts()
    return [row for row in every if "all" not in {row.get("state"), row.get("size_bucket")}]


def test_every_table_and_sql_add_up_to_the_same_gpu_hours(made: Path, found: Analysis) -> None:
    [overview] = rows(found, "overview")
    assert overview["gpu_hours"] == pytest.approx(11)
    sums = {name: sum(row["gpu_hours"] or 0 for row in rows(found, name)) for name in SUMS[:-1]}
    sums["held"] = sum(hours or 0 for hours in held(made).values())
    assert sums == pytest.approx(dict.fromkeys(SUMS, 11))


@pytest.mark.parametrize(("table", "key"), [("users", '"user"'), ("queues", "queue"), ("accounts", "account")])
def test_sql_has_the_gpu_hours_of_each_owner(made: Path, found: Analysis, table: str, key: str) -> None:
    by_table = {row[key.strip('"')]: row["gpu_hours"] for row in rows(found, table)}
    assert by_table == pytest.approx(held(made, key))


def test_single_jobs_have_the_same_gpu_hours(made: Path, found: Analysis) -> None:
    by_sql = held(made, "job")
    assert by_sql == pytest.approx({"booted": 6, "retried": 3, "endless": 2, "nodes": None, "lost": None})
    with Store(made) as store:
        told = explain(store, "booted", Options())
    assert sum(one.gpu_hours or 0 for one in told.attempts) == pytest.approx(6)
    failures = {row["job"]: row["gpu_hours"] for row in rows(found, "failures")}
    assert failures == pytest.approx({"booted": 6, "retried": 1, "lost": None})
    [training] = rows(found, "training_progress")
    assert training["gpu_hours"] == pytest.approx(6)
    assert rows(found, "loss_curves")[-1]["gpu_hours"] == pytest.approx(6)


def test_gpu_hours_from_the_start_have_names_of_their_own(made: Path, found: Analysis) -> None:
    [row] = read_only_query(made, "SELECT sum(gpu_hours) AS held, sum(gpu_hours_from_start) AS run FROM held")
    assert (row["held"], row["run"]) == pytest.approx((11, 9))
    failed = next(row for row in rows(found, "status") if row["state"] == "failed")
    assert (failed["gpu_hours"], failed["gpu_hours_sum"]) == pytest.approx((6, 4))
    assert "from allocation to release" in table_of(found, "status").population
    assert "count from the start" in table_of(found, "status").population


def test_node_hours_stand_for_gpu_hours_that_are_unknown(made: Path, found: Analysis) -> None:
    [overview] = rows(found, "overview")
    assert overview["node_hours"] == pytest.approx(4)
    for name in ("status", "queues", "users", "accounts", "gpu_hours_lost"):
        assert sum(row["node_hours"] or 0 for row in rows(found, name)) == pytest.approx(4), name
    users = {row["user"]: row for row in rows(found, "users")}
    assert (users["cem"]["gpu_hours"], users["cem"]["lost_gpu_hours"]) == (None, None), "unknown, not 0"
    assert (users["cem"]["node_hours"], users["cem"]["lost_node_hours"]) == pytest.approx((4, 1))
    assert (users["bob"]["node_hours"], users["bob"]["lost_node_hours"]) == (None, None)
    [total] = [row for row in table_of(found, "gpu_hours_lost").frame.to_dicts() if row["size_bucket"] == "all"]
    assert (total["node_hours"], total["lost_node_pct"]) == pytest.approx((4, 25))
    [row] = read_only_query(made, "SELECT sum(node_hours) AS hours FROM held")
    assert row["hours"] == pytest.approx(4)


def test_nothing_is_lost_or_won_where_no_outcome_is_known(tmp_path: Path) -> None:
    path = write(tmp_path / "s.duckdb")
    with Store(path, write=True) as store:
        for table in ("job_rows", "attempt_rows"):
            store.execute(f"UPDATE {table} SET state = 'unknown' WHERE job <> 'retried'")
    with Store(path) as store:
        found = analyze(store, Options(tables=("users", "gpu_hours_lost")))
    users = {row["user"]: row for row in rows(found, "users")}
    names = ("lost_gpu_hours", "own_lost_pct", "failed_h", "lost_node_hours")
    assert [users["ann"][name] for name in names] == [None] * 4
    assert users["ann"]["gpu_hours"] == pytest.approx(6)
    [total] = [row for row in table_of(found, "gpu_hours_lost").frame.to_dicts() if row["size_bucket"] == "all"]
    assert (total["lost_pct"], total["lost_node_pct"]) == (pytest.approx(100 / 11), None)
