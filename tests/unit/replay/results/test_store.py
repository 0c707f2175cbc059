"""Outcomes in the shape of a trace store: what is written, and what the analyses make of it."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import StoreError
from gpuctl.core.states import State
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.results.store import refuse, write_store
from gpuctl.replay.run import replay
from gpuctl.store.database import Store
from tests.example_counts import examples

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Outcome, Workload

CAUSES = ("fair_share_s", "capacity_s", "fragmentation_s", "scheduler_s", "ineligible_s")
TOML = """
quotas = { research = 16 }
[[nodes]]
name = "a"
count = 4
gpus = 8
gpu_type = "V100"
per_rack = 2
[[queues]]
name = "production"
nodes = ["a1", "a2", "a3"]
[[down]]
node = "a1"
from_s = 30000
until_s = 60000
[[down]]
node = "a4"
from_s = 70000
"""


@pytest.fixture(scope="module")
def workload(sample_data: Path) -> Workload:
    return read_jobs(sample_data / "jobs.csv")


def tables(path: Path, name: str, *wanted: str) -> dict[str, pl.DataFrame]:
    with Store(path) as store:
        result = analyze(store, Options(cluster=name, tables=wanted))
    found = {table.name: table.frame for table in result.tables}
    return {each: found[each] for each in wanted}


def check_waits(path: Path, name: str, outcome: Outcome) -> None:
    """The waits and delays that an analysis finds are those of the replay."""
    found = tables(path, name, "waits", "queue_delays", "job_times")
    jobs = outcome.jobs
    first = found["queue_delays"].filter(pl.col("attempt") == 0).select("job", "wait_s")
    started = jobs.filter(pl.col("start_s").is_not_null())
    expected = started.select("job", expected=pl.col("start_s") - pl.col("submit_s"))
    both = expected.join(first, on="job", how="full", coalesce=True)
    assert both.null_count().sum_horizontal()[0] == 0
    assert np.allclose(both["wait_s"], both["expected"], atol=1e-6, rtol=0)
    delays = found["queue_delays"]
    assert np.allclose(delays.select(pl.sum_horizontal(*CAUSES)).to_series(), delays["wait_s"], atol=2e-5, rtol=1e-9)
    assert delays.height == outcome.attempts.height


def test_waits_and_delays_of_an_analysis_are_those_of_the_replay(workload: Workload, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(TOML)
    # the last store is looked at below
    for spec, *policies in (("4x8", "las", "random"), ("pool:24", "fifo"), (tmp_path / "c.toml", "fifo", "philly")):
        cluster = parse_cluster(str(spec), workload)
        outcomes = replay(workload, cluster, [(name, {}) for name in policies], overhead="const")
        path = tmp_path / f"{'-'.join(policies)}.duckdb"
        written = write_store(path, outcomes, workload, cluster)
        assert written == tuple(f"jobs.csv@{name}" for name in policies)
        for name, outcome in zip(written, outcomes, strict=True):
            check_waits(path, name, outcome)
    with Store(path) as store:
        down = store.execute(
            "SELECT machine, epoch(from_ts), epoch(to_ts) FROM machine_events WHERE cluster LIKE '%fifo' ORDER BY 1"
        ).fetchall()
        assert down == [("a1", 30000, 60000), ("a4", 70000, None)]
        assert store.value("SELECT count(*) FROM queue_machines WHERE cluster LIKE '%fifo'") == 3
        racks = store.execute("SELECT DISTINCT rack, gpu_type FROM machines ORDER BY rack").fetchall()
        assert racks == [("a-rack1", "V100"), ("a-rack2", "V100")]
        limits = "SELECT quota_gpus, limit_gpus FROM queues WHERE queue = 'research' AND cluster LIKE ?"
        assert store.execute(limits, ["%@philly"]).fetchall() == [(16.0, 16.0)]
        assert store.execute(limits, ["%@fifo"]).fetchall() == [(16.0, float("inf"))]


def test_no_wait_is_for_quota_where_none_binds(workload: Workload, tmp_path: Path) -> None:
    cluster = parse_cluster("2x8", workload)
    outcomes = replay(workload, cluster, [("fifo-skip", {})])
    write_store(tmp_path / "r.duckdb", outcomes, workload, cluster)
    delays = tables(tmp_path / "r.duckdb", "jobs.csv@fifo-skip", "queue_delays")["queue_delays"]
    assert delays["fair_share_s"].sum() == 0
    assert delays["capacity_s"].sum() > 0


def test_the_ledger_and_the_states(workload: Workload, tmp_path: Path) -> None:
    small = parse_cluster("1x8", workload)
    outcomes = replay(workload, small, [("fifo", {}), ("srtf", {})], skip_unplaceable=True, limits=True)
    write_store(tmp_path / "r.duckdb", outcomes, workload, small)
    with Store(tmp_path / "r.duckdb") as store:
        rows = store.frame("SELECT * FROM sources ORDER BY source")
        assert rows["format"].to_list() == ["replay", "replay"]
        assert rows["sha256"].to_list() == [sha256(o.decisions.write_ndjson().encode()).hexdigest() for o in outcomes]
        assert rows["rows_in"].to_list() == [workload.size] * 2
        about = store.frame("SELECT * FROM clusters ORDER BY cluster")
        assert set(about["source_format"]) == {"replay"}
        assert about["first_ts"][0] == datetime.fromtimestamp(float(workload.submit[0]), UTC)
        states = dict(
            store.execute("SELECT state, count(*) FROM jobs WHERE cluster LIKE '%fifo' GROUP BY 1").fetchall()
        )
        large = int((workload.gpus > 8).sum())
        assert states == {"completed": workload.size - large, "pending": large}
        ends = store.execute("SELECT DISTINCT state FROM attempts WHERE cluster LIKE '%srtf'").fetchall()
        assert {end for (end,) in ends} == {"completed", "preempted"}


def test_accounts_and_qos_are_kept(sample_data: Path, tmp_path: Path) -> None:
    jobs = read_jobs(sample_data / "site" / "jobs.csv")
    cluster = parse_cluster("4x8", jobs)
    write_store(tmp_path / "r.duckdb", replay(jobs, cluster, [("fifo-skip", {})]), jobs, cluster)
    with Store(tmp_path / "r.duckdb") as store:
        again, _ = read_trace(store)
    assert jobs.account is not None
    assert jobs.qos is not None
    assert again.account is not None
    assert again.qos is not None
    rows = zip(jobs.ids, jobs.account, jobs.qos, strict=True)
    after = zip(again.ids, again.account, again.qos, strict=True)
    asked = {name: (jobs.accounts[account], jobs.qos_names[qos]) for name, account, qos in rows}
    found = {name: (again.accounts[account], again.qos_names[qos]) for name, account, qos in after}
    assert found == asked


def test_the_same_policy_twice_gets_two_names(workload: Workload, tmp_path: Path) -> None:
    cluster = parse_cluster("4x8", workload)
    outcomes = replay(workload, cluster, [("las", {}), ("las", {"quantum": "60"})])
    assert write_store(tmp_path / "r.duckdb", outcomes, workload, cluster) == ("jobs.csv@las", "jobs.csv@las#2")


@pytest.fixture(scope="module")
def trace(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Workload, Cluster]:
    path = tmp_path_factory.mktemp("trace") / "sample.duckdb"
    ingest([sample_data / "philly" / "cluster_job_log", sample_data / "philly" / "cluster_machine_list"], path)
    with Store(path) as store:
        return path, *read_trace(store)


def test_a_replay_of_the_recorded_starts_is_the_trace(trace: tuple[Path, Workload, Cluster], tmp_path: Path) -> None:
    _, workload, cluster = trace
    outcomes = replay(workload, cluster, [("recorded", {})])
    [name] = write_store(tmp_path / "r.duckdb", outcomes, workload, cluster)
    with Store(tmp_path / "r.duckdb") as store:
        again, nodes = read_trace(store)
    assert name == f"{workload.name}@recorded"
    assert again.ids == workload.ids
    assert nodes.nodes == cluster.nodes
    assert again.segment_s.size == workload.segment_s.size == outcomes[0].attempts.height
    for field in ("submit", "gpus", "segment_s", "recorded_start"):
        assert np.allclose(getattr(again, field), getattr(workload, field), atol=1e-5), field
    states = [s if s != State.RUNNING else State.COMPLETED for s in workload.state]
    assert list(again.state) == states


def test_calendar_times_of_a_trace_with_a_zone(trace: tuple[Path, Workload, Cluster], tmp_path: Path) -> None:
    path, workload, cluster = trace
    outcomes = replay(workload, cluster, [("fifo", {})])
    write_store(tmp_path / "r.duckdb", outcomes, workload, cluster)
    submit = "SELECT job, submit_ts FROM jobs WHERE job IN (SELECT unnest($jobs)) ORDER BY job"
    with Store(path) as store, Store(tmp_path / "r.duckdb") as written:
        asked = {"jobs": list(workload.ids)}
        assert store.frame(submit, asked).equals(written.frame(submit, asked))
    check_waits(tmp_path / "r.duckdb", f"{workload.name}@fifo", outcomes[0])


def test_only_replays_are_replaced(trace: tuple[Path, Workload, Cluster], workload: Workload, tmp_path: Path) -> None:
    cluster = parse_cluster("4x8", workload)
    outcomes = replay(workload, cluster, [("fifo", {})])
    mine = tmp_path / "mine.duckdb"
    mine.write_bytes(trace[0].read_bytes())
    text = tmp_path / "text.duckdb"
    text.write_text("my notes")
    empty = tmp_path / "empty.duckdb"
    with Store(empty, write=True):
        pass
    for path in (mine, text, empty):
        before = path.read_bytes()
        with pytest.raises(StoreError, match=path.name):
            write_store(path, outcomes, workload, cluster)
        assert path.read_bytes() == before
    ours = tmp_path / "ours.duckdb"
    write_store(ours, outcomes, workload, cluster)
    refuse(ours)
    write_store(ours, outcomes, workload, cluster)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["empty.duckdb", "mine.duckdb", "ours.duckdb", "text.duckdb"]


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, str]:
    count = draw(st.integers(1, 25))
    numbers: Sequence[tuple[int, int, int]] = draw(
        st.lists(st.tuples(st.integers(0, 500), st.integers(1, 400), st.integers(1, 8)), min_size=count, max_size=count)
    )
    rows = [f"j{k},{a / 10},{b / 4},{g},{'ab'[k % 2]}" for k, (a, b, g) in enumerate(numbers)]
    return "job_id,submit_time,duration,num_gpus,vc\n" + "\n".join(rows), draw(
        st.sampled_from(["pool:8", "2x4", "1x8"])
    )


@settings(max_examples=examples(25))
@given(_files(), st.sampled_from(["fifo", "srtf", "las", "fair", "tiresias"]))
def test_attempts_and_delays_of_any_replay(
    tmp_path_factory: pytest.TempPathFactory, given_file: tuple[str, str], policy: str
) -> None:
    folder = tmp_path_factory.mktemp("any")
    (folder / "j.csv").write_text(given_file[0])
    workload = read_jobs(folder / "j.csv")
    cluster = parse_cluster(given_file[1], workload)
    outcomes = replay(workload, cluster, [(policy, {})], overhead="const:3")
    [name] = write_store(folder / "r.duckdb", outcomes, workload, cluster)
    check_waits(folder / "r.duckdb", name, outcomes[0])
    with Store(folder / "r.duckdb") as store:
        assert store.value("SELECT sum(attempts) FROM jobs") == outcomes[0].attempts.height
        assert store.value("SELECT count(*) FROM placements") == outcomes[0].pieces.height
        lost = store.value("SELECT count(*) FROM attempts WHERE run_s IS NULL OR wait_s < -1e-9 OR servers IS NULL")
        assert lost == 0
