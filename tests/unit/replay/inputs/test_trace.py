from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.ingest.formats import philly_jobs
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.replay.inputs.check import check, unplaceable
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.inputs.transforms import offered_gpus
from gpuctl.replay.results.comparison import recorded
from gpuctl.store.database import Store
from gpuctl.store.schema import STORED
from tests.philly_log import attempt, job, load, log

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuctl.replay.models.records import Workload

REAL = Path("..") / "shared" / "data" / "philly" / "sia_philly.csv"


@pytest.fixture(scope="module")
def sample(sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("sample") / "sample.duckdb"
    ingest([sample_data / "philly" / "cluster_job_log", sample_data / "philly" / "cluster_machine_list"], path)
    with Store(path) as store:
        yield store


def fill(store: Store, table: str, *rows: dict[str, Any]) -> None:
    for row in rows:
        names = ", ".join(f'"{name}"' for name in row)
        store.execute(
            f"INSERT INTO {STORED.get(table, table)} ({names}) VALUES ({', '.join('?' * len(row))})", list(row.values())
        )


def at(second: float) -> str:
    return f"{datetime(2026, 3, 2, 10) + timedelta(seconds=second)}+00"


def a_cluster(
    store: Store, name: str = "c", zone: str = "UTC", clock: str = "utc", source: str = "slurm-sacct"
) -> None:
    fill(store, "clusters", {"cluster": name, "source_format": source, "timezone": zone, "clock": clock})


def a_job(
    store: Store, name: str, submit: float | None, *runs: tuple[float | None, float | None, str], **other: Any
) -> None:
    """A job with attempts (start, end, state)."""
    gpus = other.get("gpus", 1)
    row = {"cluster": "c", "job": name, "submit_ts": None if submit is None else at(submit), "gpus": gpus, "quirks": []}
    fill(store, "jobs", {**row, "state": "completed", "attempts": len(runs), "source": 1, **other})
    for number, (start, end, state) in enumerate(runs):
        begin, stop = (None if t is None else at(t) for t in (start, end))
        run = None if start is None or end is None or end < start else end - start
        times = {"start_ts": begin, "end_ts": stop, "released_ts": stop if start is None or run is not None else begin}
        what = {"cluster": "c", "job": name, "attempt": number, "gpus": gpus, "servers": 1, "quirks": [], "source": 1}
        fill(store, "attempts", {**what, **times, "state": state, "run_s": run})


def placed(store: Store, name: str, number: int, **machines: float) -> None:
    for machine, gpus in machines.items():
        where = {"cluster": "c", "job": name, "attempt": number, "machine": machine, "gpus": gpus, "source": 1}
        fill(store, "placements", where)


def work(jobs: Workload) -> np.ndarray:
    return np.add.reduceat(jobs.segment_s, jobs.segment_start[:-1])


def column(store: Store, jobs: Workload, name: str) -> np.ndarray:
    rows = dict(store.execute(f"SELECT job, {name} FROM jobs").fetchall())
    return np.array([rows[i] for i in jobs.ids], object)


def test_the_sample_is_what_the_store_says(sample: Store) -> None:
    jobs, cluster = read_trace(sample)
    assert jobs.notes == (
        "1,955 of 1,962 jobs are replayed; left out: 7 have no start in the log",
        "1 job still ran at the end of the log: its run time is taken up to then",
        "3 attempts have no end in the log: they last until the next known time of their job",
    )
    assert (jobs.size, jobs.segment_s.size, jobs.origin) == (
        1955,
        2182,
        datetime.fromisoformat("2017-10-02T00:00-07:00"),
    )
    assert (np.diff(jobs.submit) >= 0).all()
    waits = jobs.recorded_start[jobs.segment_start[:-1]] - jobs.submit
    assert np.array_equal(waits, column(sample, jobs, "wait_s").astype(float))
    sums = np.array([np.nan if x is None else x for x in column(sample, jobs, "run_sum_s")], float)
    # of four jobs an attempt has no end, so the store's sum leaves it out
    assert (work(jobs) != sums).sum() == 4
    assert jobs.state.count("running") == 1
    # failures are requeued but for the last attempt of a job, which may fail too
    last = jobs.segment_start[1:] - 1
    assert jobs.segment_fails.sum() - jobs.segment_fails[last].sum() == jobs.segment_s.size - jobs.size
    assert np.array_equal(jobs.segment_fails[last], np.array(jobs.state) == "failed")
    check(jobs, cluster)


def test_the_sample_in_recorded_order_shows_no_node_overfull(sample: Store) -> None:
    jobs, cluster = read_trace(sample)
    assert (len(cluster.nodes), cluster.total_gpus) == (21, 114)
    owner = np.repeat(np.arange(jobs.segment_s.size), np.diff(jobs.piece_start))
    gang = np.repeat(jobs.gpus, np.diff(jobs.segment_start))
    assert np.array_equal(np.bincount(owner, jobs.piece_gpus), gang)
    start, end = (jobs.recorded_start[owner], (jobs.recorded_start + jobs.segment_s)[owner])
    for node in range(21):
        mine = jobs.piece_node == node
        t = np.concatenate([start[mine], end[mine]])
        change = np.concatenate([jobs.piece_gpus[mine], -jobs.piece_gpus[mine]])
        held = np.cumsum(change[np.lexsort((change, t))])
        assert held.max() <= cluster.gpus[node]
        assert held[-1] == 0


def test_quotas_of_the_sample_are_the_most_that_was_held(sample: Store) -> None:
    jobs, cluster = read_trace(sample)
    assert cluster.quota_source == "inferred"
    owner = np.repeat(np.arange(jobs.size), np.diff(jobs.segment_start))
    start, end = jobs.recorded_start, jobs.recorded_start + jobs.segment_s
    for queue in range(len(jobs.queues)):
        mine = jobs.queue[owner] == queue
        gpus = jobs.gpus[owner[mine]]
        most = max(gpus[(start[mine] <= t) & (t < end[mine])].sum() for t in start[mine])
        assert cluster.quota[queue] == most


def test_quotas_and_racks_that_the_user_gives(sample: Store, sample_data: Path) -> None:
    truth = sample_data / "philly" / "truth"
    quotas, racks = (
        dict(line.split(",") for line in (truth / f"{name}.csv").read_text().splitlines()[1:])
        for name in ("quotas", "racks")
    )
    given = {queue: float(gpus) for queue, gpus in quotas.items()}
    jobs, cluster = read_trace(sample, quotas={**given, "nobody": 1}, racks=racks)
    assert (cluster.quota_source, cluster.racks) == ("configured", ("r0", "r1", "r2"))
    assert dict(zip(jobs.queues, cluster.quota.tolist(), strict=True)) == given
    assert {name: cluster.racks[r] for name, r in zip(cluster.nodes, cluster.rack, strict=True)} == racks
    assert cluster.notes == ("quotas of queues that no job is in: nobody",)
    _, again = read_trace(sample, racks=racks)
    assert (again.nodes, again.racks, again.quota_source) == (cluster.nodes, cluster.racks, "inferred")


@pytest.mark.parametrize("how", ["last", "span"])
def test_other_run_times(sample: Store, how: Any) -> None:
    jobs, cluster = read_trace(sample, work=how)
    check(jobs, cluster)
    assert jobs.segment_start.tolist() == list(range(jobs.size + 1))
    known = column(sample, jobs, f"run_{how}_s")
    assert [x for x in known if x is None] == [None]  # still runs
    ours = jobs.segment_s[known != None]  # noqa: E711 - element by element
    assert np.array_equal(ours, [x for x in known if x is not None])


def test_recorded_values_round_trip(sample: Store) -> None:
    jobs, _ = read_trace(sample)
    rows = recorded(jobs)
    ended = [state != "running" for state in jobs.state]
    ends = column(sample, jobs, "epoch(end_ts) - epoch(submit_ts)").astype(float)
    assert np.array_equal(rows["jct_s"].to_numpy()[ended], ends[ended])


def test_the_odd_jobs_of_a_philly_log(store: Store) -> None:
    a_cluster(store, "philly", "America/Los_Angeles", "wall", "philly-jobs")
    day = "2017-10-02 "
    one = ("m1", [0])
    two = (day + "02:00:00", one)
    larger = attempt(day + "00:40:00", day + "00:50:00", ("m2", [0, 1]))
    load(
        philly_jobs.FORMAT,
        log(
            job("overlap", day + "00:00:00", attempt(day + "00:00:10", *two), attempt(day + "01:00:10", *two)),
            job("running", day + "00:00:01", attempt(day + "00:10:00", None, one), status="Running"),
            job("no end", day + "00:00:02", attempt(day + "00:20:00", None, one), larger),
            job("no start", day + "00:00:03", attempt(None, day + "00:50:00", one)),
            job("never", day + "00:00:04"),
            job("zero", day + "00:00:05", attempt(day + "00:30:00", day + "00:30:00", one)),
            job("backwards", day + "00:00:06", attempt(day + "00:30:00", day + "00:29:00", one)),
            job("no submission", None, attempt(day + "00:30:00", day + "00:31:00", one)),
            job("early", day + "00:00:07", attempt(day + "00:00:00", day + "00:00:09", one)),
            # the clock is put back an hour on 2017-11-05 at 02:00
            job("hour", "2017-11-04 23:00:00", attempt("2017-11-05 00:30:00", "2017-11-05 02:30:00", ("m2", [7]))),
        ),
        store,
    )  # fmt: skip
    jobs, cluster = read_trace(store)
    runs = {name: jobs.segment_s[slice(*jobs.segment_start[j : j + 2])].tolist() for j, name in enumerate(jobs.ids)}
    assert runs == {
        "overlap": [3600, 3590],
        "running": [34 * 86400 + 2 * 3600 + 20 * 60],
        "no end": [1200, 600],
        "early": [9],
        "hour": [7200],
    }
    assert jobs.notes == (
        "5 of 10 jobs are replayed; left out: 2 have no start in the log, 1 has an unknown start or end, 1 has no "
        "submission time, 1 ran for 0 s",
        "1 job still ran at the end of the log: its run time is taken up to then",
        "1 job started before its submission according to the log",
        "1 attempt has no end in the log: it lasts until the next known time of its job",
        "1 of 7 attempts held another number of GPUs than their job requests: the job's number is used",
        "the placement of 1 of 7 attempts is not used: unknown, shared or of another size",
    )
    hour = jobs.ids.index("hour")
    assert (jobs.origin + timedelta(seconds=jobs.submit[hour])).isoformat() == "2017-11-04T23:00:00-07:00"
    assert jobs.recorded_start[jobs.segment_start[hour]] - jobs.submit[hour] == 5400
    assert jobs.eligible.tolist() == jobs.submit.tolist()
    assert (cluster.nodes, cluster.gpus.tolist()) == (("m1", "m2"), [1, 8])


def test_requeues_preemptions_limits_and_holds(store: Store) -> None:
    a_cluster(store)
    a_job(
        store,
        "9",
        0.5,
        (60, 70, "failed"),
        (80, 100, "preempted"),
        (120, 150, "node_fail"),
        gpus=2,
        user="u",
        account="vision",
        qos="high",
        nodes=2,
        time_limit_s=3600,
        eligible_ts=at(20),
    )
    a_job(store, "10", 0.5, (60, 70, "killed"), (80, 100, "timeout"), queue="q", eligible_ts=at(99), time_limit_s=0)
    placed(store, "9", 0, n1=1, n2=1)
    placed(store, "9", 1, n1=2)
    placed(store, "9", 2, n1=1.5, n2=0.5)
    jobs, cluster = read_trace(store)
    assert jobs.ids == ("9", "10")
    assert jobs.submit.tolist() == [0.5, 0.5]
    assert jobs.eligible.tolist() == [20, 60]
    assert jobs.segment_fails.tolist() == [True, False, True, True, False]
    assert jobs.segment_s.tolist() == [10, 20, 30, 10, 20]
    assert jobs.recorded_start.tolist() == [60, 80, 120, 60, 80]
    assert jobs.piece_start.tolist() == [0, 2, 3, 3, 3, 3]
    assert (jobs.piece_node.tolist(), jobs.piece_gpus.tolist()) == ([0, 1, 0], [1, 1, 2])
    assert np.array_equal(jobs.time_limit, [3600, np.nan], equal_nan=True)
    assert (jobs.queues, jobs.queue.tolist()) == (("(none)", "q"), [0, 1])
    assert (jobs.users, jobs.user.tolist()) == (("u",), [0, -1])
    assert jobs.account is not None
    assert jobs.qos is not None
    assert jobs.min_nodes is not None
    assert (jobs.accounts, jobs.account.tolist(), jobs.qos_names, jobs.qos.tolist(), jobs.min_nodes.tolist()) == (
        ("vision",), [0, -1], ("high",), [0, -1], [2, 0],
    )  # fmt: skip
    # the most that was held there at once
    assert (cluster.nodes, cluster.gpus.tolist()) == (("n1", "n2"), [2, 1])
    assert "the GPUs of 2 nodes are inferred" in cluster.notes[0]


def test_jobs_that_cannot_be_replayed(store: Store) -> None:
    a_cluster(store)
    fill(
        store,
        "machines",
        {"cluster": "c", "machine": "n", "gpus_labelled": 4},
        {"cluster": "c", "machine": "cpu", "gpus_labelled": 0},
    )
    for name, gpus in (("good", 4), ("none", 0), ("half", 0.5), ("more", 2.5), ("unknown", None), ("large", 5)):
        a_job(store, name, 0, (1, 2, "completed"), gpus=gpus)
    a_job(store, "waits", 0, (None, None, "pending"), state="pending")
    a_job(store, "lost", 0, (3, None, "completed"))
    jobs, cluster = read_trace(store)
    assert jobs.ids == ("good",)
    assert jobs.notes == (
        "2 of 8 jobs are replayed; left out: 2 ask for a fraction of a GPU, 1 asks for no GPUs, 1 has an unknown "
        "number of GPUs, 1 has an unknown start or end, 1 has no start in the log",
        "left out 1 job larger than all nodes of the trace that they may use",
    )
    assert cluster.notes == (
        "1 node without GPUs is left out",
        "the quotas of 1 queue are inferred: the most GPUs that each held at once; give them with --quotas",
        "racks are unknown: all nodes are assumed to share one",
    )
    everything, _ = read_trace(store, own_cluster=False)
    assert everything.ids == ("good", "large")
    assert unplaceable(everything, cluster).tolist() == [1]


def test_nodes_queues_types_and_times_down(store: Store) -> None:
    a_cluster(store)
    for name, rack, kind in (("n1", "r1", "a100"), ("n2", "r1", "v100"), ("n3", None, "v100")):
        fill(store, "machines", {"cluster": "c", "machine": name, "gpus_labelled": 8, "rack": rack, "gpu_type": kind})
    fill(store, "queues", {"cluster": "c", "queue": "p", "quota_gpus": 6.0}, {"cluster": "c", "queue": "q"})
    fill(
        store,
        "queue_machines",
        {"cluster": "c", "queue": "p", "machine": "n3"},
        {"cluster": "c", "queue": "p", "machine": "n1"},
    )
    down = {"cluster": "c", "source": 1, "state": "DOWN"}
    fill(
        store,
        "machine_events",
        {**down, "machine": "n2", "from_ts": at(50), "to_ts": at(70)},
        {**down, "machine": "n2", "from_ts": at(60), "to_ts": at(80), "state": "DRAIN"},
        {**down, "machine": "n1", "from_ts": at(90)},
        {**down, "machine": "n1", "from_ts": at(-90), "to_ts": at(-80)},
    )
    a_job(store, "a", 5, (10, 20, "completed"), queue="p", gpu_type="v100")
    a_job(store, "b", 6, (10, 20, "completed"), queue="q", gpu_type="tesla")
    a_job(store, "c", 7, (10, 20, "completed"), queue="q")
    jobs, cluster = read_trace(store)
    assert (jobs.gpu_types, jobs.gpu_type.tolist()) == (("a100", "v100"), [1, -1, -1])
    assert "1 job names GPU types that no node has (tesla): it may use any type" in jobs.notes
    assert cluster.gpu_type.tolist() == [0, 1, 1]
    assert [cluster.racks[r] for r in cluster.rack] == ["r1", "r1", "(unknown rack of n3)"]
    assert (cluster.quota.tolist(), cluster.quota_source) == ([6, np.inf], "configured")
    assert np.array_equal(cluster.queue_nodes[0], [0, 2])
    assert cluster.queue_nodes[1] is None
    assert np.array_equal(cluster.down, [[0, 85, np.inf], [1, 45, 75]])
    assert cluster.notes == (
        "1 of 2 queues has no quota",
        "the racks of 1 of 3 nodes are unknown: each counts as a separate rack",
        "nodes go down 2 times according to the log (DOWN, DRAIN); 1 of them to the end of the log, assumed permanent",
    )
    check(jobs, cluster)


def test_where_cpus_count_jobs_and_nodes_without_gpus_are_there(store: Store) -> None:
    a_cluster(store)
    for name, gpus, cpus in (("gpu1", 4, 32), ("cpu1", 0, 64), ("gpu2", 2, None), ("none", 0, None)):
        machine = {"cluster": "c", "machine": name, "gpus_labelled": gpus, "cpus": cpus}
        fill(store, "machines", machine | {"mem_mb": cpus and cpus * 1000})
    a_job(store, "train", 0, (0, 10, "completed"), gpus=2, cpus=8, mem_mb=500)
    a_job(store, "table", 1, (1, 5, "completed"), gpus=0, cpus=4)
    jobs, nodes = read_trace(store)
    assert (jobs.ids, nodes.nodes) == (("train",), ("gpu1", "gpu2"))
    assert "1 of 2 jobs is replayed; left out: 1 asks for no GPUs" in jobs.notes
    jobs, nodes = read_trace(store, resources=("gpu", "cpu", "mem"))
    assert (jobs.ids, nodes.nodes) == (("train", "table"), ("cpu1", "gpu1", "gpu2"))
    assert jobs.cpus is not None
    assert jobs.mem_mb is not None
    assert nodes.cpus is not None
    np.testing.assert_array_equal(jobs.cpus, [8, 4])
    np.testing.assert_array_equal(jobs.mem_mb, [500, np.nan])
    np.testing.assert_array_equal(nodes.gpus, [0, 4, 2])
    np.testing.assert_array_equal(nodes.cpus, [64, 32, np.nan])
    check(jobs, nodes, ("gpu", "cpu", "mem"))


def test_partitions_of_slurm_have_the_nodes_that_their_jobs_ran_on(store: Store) -> None:
    a_cluster(store)
    for name, queue, machine in (("1", "p", "n1"), ("2", "q", "n2"), ("3", "q", "n1")):
        a_job(store, name, 0, (1, 9, "completed"), queue=queue)
        placed(store, name, 0, **{machine: 1})
    jobs, cluster = read_trace(store)
    assert [own.tolist() for own in cluster.queue_nodes if own is not None] == [[0], [0, 1]]
    assert (cluster.quota_source, cluster.gpus.tolist(), jobs.queues) == ("none", [2, 1], ("p", "q"))
    assert any("the nodes of 2 queues are inferred" in note for note in cluster.notes)


def test_which_cluster(store: Store) -> None:
    with pytest.raises(UsageError, match="no cluster yet"):
        read_trace(store)
    a_cluster(store)
    a_job(store, "a", 0, (1, 2, "completed"))
    a_cluster(store, "d")
    with pytest.raises(UsageError, match="2 clusters: c, d"):
        read_trace(store)
    with pytest.raises(UsageError, match="no cluster 'x'"):
        read_trace(store, "x")
    with pytest.raises(InputError, match="d: none of its 0 jobs can be replayed: there are none"):
        read_trace(store, "d")
    with pytest.raises(UsageError, match="no run time 'mean'"):
        read_trace(store, "c", "mean")  # type: ignore[arg-type]
    jobs, cluster = read_trace(store, "c")
    assert (jobs.size, cluster.total_gpus, cluster.notes[0]) == (1, 0, "the log names no nodes")


def test_the_real_philly_trace(root: Path, tmp_path: Path) -> None:
    path = root / REAL
    if not path.exists():
        pytest.skip(f"{REAL} is not on this machine")
    ingest([path], tmp_path / "philly.duckdb")
    with Store(tmp_path / "philly.duckdb") as store:
        jobs, cluster = read_trace(store)
        with pytest.raises(InputError, match="82,247 have no run time by --work last"):
            read_trace(store, work="last")
    lines = [line.split(",") for line in path.read_text().splitlines()]
    place = np.array([int(name.removeprefix("row-")) - 1 for name in jobs.ids])
    duration, gpus = (
        np.array([float(lines[line][lines[0].index(name)]) for line in place]) for name in ("duration", "num_gpus")
    )
    assert (jobs.size, len(jobs.queues), len(cluster.nodes)) == (82_247, 15, 0)
    assert np.isnan(jobs.recorded_start).all()
    assert np.array_equal(jobs.segment_s, duration)
    assert np.array_equal(jobs.gpus, gpus)
    # equal submissions stay in the order of the file
    same = np.diff(jobs.submit) == 0
    assert same.sum() > 1000
    assert (np.diff(place)[same] > 0).all()
    assert jobs.origin is not None
    assert jobs.origin.isoformat() == "2017-09-04T10:30:41-07:00"
    assert (jobs.segment_s * jobs.gpus).sum() == pytest.approx(3.521e9, rel=1e-3)
    assert offered_gpus(jobs) == pytest.approx(374.2, abs=0.1)


def test_what_infrastructure_ended_does_not_fail_again_where_nodes_fail_in_the_replay(tmp_path: Path) -> None:
    """A lost node by its state, an attempt that evidence explains, and one that failed by itself."""
    with Store(tmp_path / "s.duckdb", write=True) as store:
        a_cluster(store)
        a_job(store, "lost", 0, (0, 100, "node_fail"), (150, 400, "completed"))
        a_job(store, "explained", 0, (0, 100, "failed"), (150, 400, "completed"))
        a_job(store, "last", 0, (0, 100, "failed"))
        a_job(store, "own", 0, (0, 100, "failed"), (150, 400, "failed"))
        interrupted = pl.DataFrame({"job": ["explained", "last"], "attempt": [0, 0]})
        plain, _ = read_trace(store, own_cluster=False)
        spared, _ = read_trace(store, own_cluster=False, failing=True, interrupted=interrupted)
        by_state, _ = read_trace(store, own_cluster=False, failing=True)

    def fails(jobs: Workload) -> dict[str, list[bool]]:
        ends = zip(jobs.segment_start[:-1], jobs.segment_start[1:], strict=True)
        return {name: jobs.segment_fails[a:b].tolist() for name, (a, b) in zip(jobs.ids, ends, strict=True)}

    assert fails(plain) == {
        "lost": [True, False], "explained": [True, False], "last": [True], "own": [True, True]
    }  # fmt: skip
    assert fails(spared) == {
        "lost": [False, False], "explained": [False, False], "last": [False], "own": [True, True]
    }  # fmt: skip
    assert fails(by_state)["explained"] == [True, False]
    assert any("3 attempts that infrastructure ended" in str(text) for text in spared.notes)
    assert work(spared).sum() == work(plain).sum()
