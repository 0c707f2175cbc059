"""Pairs of jobs: against the slow minute-by-minute simulator, and against what the authors' own one did."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gpuctl.core.durations import clock_s
from gpuctl.core.errors import InputError
from gpuctl.research.chain import episode_kernel as kernel
from gpuctl.research.chain.baselines import observe_start, online
from gpuctl.research.chain.cases import STATE_COLUMNS, read_cases, run
from gpuctl.research.chain.episode import Pair, Situation
from gpuctl.research.chain.log import Log, log_of
from tests.mirage_reference import Cluster, Job

ROOT = Path(__file__).resolve().parents[5] / "shared"
ORACLES, LS6 = ROOT / "oracles" / "mirage", ROOT / "data" / "slurm" / "ls6-a100.log"
CASE = "case,start,cluster_nodes,pair_nodes,pair_limit_min,p_submit_s,s_submit_s\n"


def queue(seed: int) -> list[Job]:
    draw = np.random.Generator(np.random.PCG64(seed))
    limit = draw.choice([30, 120, 300], 60)
    return [
        Job(f"{k * 7919 % 60}", float(draw.integers(0, 40_000)), float(60 * limit[k] * draw.random()),
            int(draw.choice([1, 1, 2, 3])), int(limit[k]))
        for k in range(60)
    ]  # fmt: skip


def log(jobs: list[Job]) -> Log:
    columns = {
        "submit_s": [int(job.submit) for job in jobs],
        "run_s": [int(job.run) for job in jobs],
        "nodes": [job.nodes for job in jobs],
        "limit_s": [60 * job.limit for job in jobs],
    }
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    return log_of("made up", [job.name for job in jobs], **arrays)  # type: ignore[arg-type]


def slowly(jobs: list[Job], nodes: int, pair: Pair, p_min: int, s_min: int) -> tuple[Job, Job, list[tuple[int, int]]]:
    """P and S by the slow simulator, and waiting and running jobs before the submissions of S's minute."""
    long = 60.0 * pair.limit_min
    # a name before all others as text
    p = Job("", 60.0 * p_min, long, pair.nodes, pair.limit_min)
    s = Job("", 60.0 * s_min, long, pair.nodes, pair.limit_min, first=True)
    cluster = Cluster(nodes, [*jobs, p, s])
    seen = []
    while p.start is None or s.start is None:
        if cluster.tick == s_min:
            seen = [(j.nodes, s_min - int(j.submit // 60)) for j in cluster.queue]
            seen += [(-j.nodes, s_min - (j.start or 0)) for j in cluster.running]
        cluster.step()
    return p, s, sorted(seen)


@pytest.mark.parametrize(("seed", "nodes", "pair"), [(1, 4, Pair(1, 300)), (2, 5, Pair(2, 200))])
def test_a_pair_is_that_of_the_slow_simulator(seed: int, nodes: int, pair: Pair) -> None:
    for s_min in (301, 430, 555):
        p, s, seen = slowly(queue(seed), nodes, pair, 300, s_min)
        situation = Situation(log(queue(seed)), 0, nodes, pair, p_submit_s=18_000)
        found = situation.outcome(situation.initial_state(), s_min)
        assert (found.p_start_s, found.s_start_s) == (60 * (p.start or 0), 60 * (s.start or 0))
        assert (found.p_backfilled, found.s_backfilled) == (p.backfilled, s.backfilled)
        assert found.interruption_s == 60 * ((s.start or 0) - (p.start or 0) - pair.limit_min)
        e = situation.initial_state()
        kernel.advance(e, s_min, kernel.NEVER)
        waiting = [(int(e.nodes[j]), s_min - int(e.minute[j])) for j in e.line[: e.c[kernel.WAITING]]]
        running = [(-int(e.held[k]), s_min - int(e.start[k])) for k in range(int(e.c[kernel.RUNNING]))]
        assert sorted(waiting + running) == seen
        assert seen


def test_many_submissions_from_one_cluster_are_as_those_from_clusters_of_their_own() -> None:
    situation = Situation(log(queue(3)), 0, 4, Pair(1, 300), p_submit_s=18_000)
    shared = situation.initial_state()
    for s_min in range(310, 650, 10):
        assert situation.outcome(shared, s_min) == situation.outcome(situation.initial_state(), s_min)


def test_a_state_holds_a_day_of_snapshots_and_the_present_pair() -> None:
    situation = Situation(log(queue(1)), 0, 4, Pair(1, 300), p_submit_s=30_000)
    e = situation.initial_state()
    kernel.advance(e, kernel.FAR, kernel.P_START)
    begun = int(e.c[kernel.P_START])
    now = begun + 100
    kernel.advance(e, now // 10 * 10, kernel.NEVER)
    state = situation.state(now)
    last = dict(zip(STATE_COLUMNS, state[-1].tolist(), strict=True))
    waits = [60 * (now // 10 * 10 - int(e.minute[j])) for j in e.line[: e.c[kernel.WAITING]]]
    assert len(waits) > 5
    assert last["queued_jobs"] == len(waits)
    assert [last[f"queued_wait_s_p{q}"] for q in (0, 25, 50, 75, 100)] == np.percentile(
        waits, [0, 25, 50, 75, 100]
    ).tolist()
    assert last["running_nodes"] == sum(int(n) for n in e.held[: e.c[kernel.RUNNING]])
    assert (last["p_limit_min"], last["p_wait_s"], last["p_elapsed_s"]) == (300, 60 * (begun - 500), 6000)
    # there was nobody before the start
    assert not state[: 144 - now // 10 - 1, :34].any()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("a,yesterday,4,1,60,0,60\n", "cases.csv:2"),
        ("a,2026-01-01,4,5,60,0,60\n", "pair_nodes is 5"),
        ("a,2026-01-01,4,1,60,0,59\n", "s_submit_s is 59"),
        ("a,2026-01-01,4,1,60,0\n", "cases.csv:2"),
        ("", "no cases"),
    ],
)
def test_bad_cases_are_reported_by_line(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "cases.csv"
    path.write_text(CASE + line)
    with pytest.raises(InputError) as error:
        read_cases(path)
    assert told in f"{error.value} {error.value.hint}"


# ---- the authors' own simulator


@pytest.fixture(scope="module")
def ls6(tmp_path_factory: pytest.TempPathFactory) -> Log:
    if not (ORACLES.is_dir() and LS6.is_file()):
        pytest.skip("shared/oracles/mirage is not beside the checkout")
    from gpuctl.ingest.pipeline.load import ingest
    from gpuctl.research.chain.log import from_store
    from gpuctl.store.database import Store

    place = tmp_path_factory.mktemp("ls6") / "ls6.duckdb"
    ingest([LS6], place)
    with Store(place) as store:
        return from_store(store, None)


def rows(name: str) -> list[dict[str, str]]:
    with (ORACLES / name).open() as file:
        return list(csv.DictReader(file))


def test_cases_states_and_baselines_are_the_authors(ls6: Log) -> None:
    cases, starts, states = run(ls6, read_cases(ORACLES / "cases_input.csv"))
    assert [{k: str(v) for k, v in row.items()} for row in cases.to_dicts()] == rows("cases_expected.csv")
    expected = rows("cases_states.csv")
    assert states.select("case", "what").rows() == [(row["case"], row["what"]) for row in expected]
    want = np.array([[float(row[name]) for name in STATE_COLUMNS] for row in expected])
    assert np.abs(states.select(STATE_COLUMNS).to_numpy() - want).max() <= 1e-6
    baselines = {(row["start"], row["cluster_nodes"], row["pair_nodes"]): row for row in rows("starts_expected.csv")}
    for row in starts.to_dicts():
        told = {k: str(v) for k, v in row.items()}
        assert baselines.pop((told["start"], told["cluster_nodes"], told["pair_nodes"])).items() <= told.items()
    assert not baselines


def test_the_online_loop_is_the_authors(ls6: Log) -> None:
    for row in rows("online_expected.csv"):
        situation = Situation(ls6, clock_s(row["start"]), int(row["cluster_nodes"]), Pair(int(row["pair_nodes"])))
        least = float(row["elapsed_s"] or "inf")
        outcome, asked = online(situation, lambda _, ran, least=least: ran is not None and 60 * ran >= least)  # type: ignore[misc]
        got = [asked, outcome.p_start_s, outcome.p_end_s, outcome.s_submit_s, outcome.s_start_s, outcome.interruption_s]
        assert got == [
            int(row[name])
            for name in ("decisions", "p_start_s", "p_end_s", "s_submit_s", "s_start_s", "interruption_s")
        ]


def test_features_of_a_start_need_no_later_submissions() -> None:
    jobs = queue(1)
    situation = Situation(log(jobs), 0, 4, Pair(1, 300), p_submit_s=60_000)
    at = observe_start(situation)
    assert at.p_end_s >= 78_000
    assert at.probes_s[0] == 60_060
    assert at.probes_s[-1] == at.p_end_s
    assert at.avg_wait_min > 0
