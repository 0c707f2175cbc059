"""The loop of jobs of stages: by hand, against recorded cases, and against every schedule of tiny cases."""

from __future__ import annotations

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.research.dag.features import Limit, features_of
from gpuctl.research.dag.imported import read as read_trace
from gpuctl.research.dag.jobs import Job, Stage, generate, in_order, read, write
from gpuctl.research.dag.policies import PLAIN, Policy, by_rules, parse
from gpuctl.research.dag.simulate import Outcome, simulate
from gpuctl.research.learn.repeated_runs import u
from gpuctl.trees.rules import read_text
from tests.dag_reference import every_schedule, world

ORACLES = Path(__file__).resolve().parents[5] / "shared" / "oracles" / "dag"
HAND = [
    Job("a", 0, (Stage(2, 3000), Stage(1, 2000, (0,)))),
    Job("b", 1000, (Stage(1, 1000), Stage(2, 1000, (0,)))),
]


def tasks_of(jobs: list[Job], outcome: Outcome) -> list[tuple[int, int, str, int, int]]:
    stages = [(jobs[k].name, v) for k in in_order(jobs) for v in range(len(jobs[k].stages))]
    return [(start, end, *stages[v], e) for start, end, v, e in outcome.log.tolist()]


def test_fifo_by_hand() -> None:
    outcome = simulate(HAND, Policy("fifo", PLAIN["fifo"]), executors=2, delay_ms=2000, logged=True)
    assert tasks_of(HAND, outcome) == [
        (2000, 5000, "a", 0, 0), (2000, 5000, "a", 0, 1), (5000, 7000, "a", 1, 0), (7000, 8000, "b", 0, 1),
        (8000, 9000, "b", 1, 1), (10_000, 11_000, "b", 1, 0),
    ]  # fmt: skip
    assert (outcome.end.tolist(), outcome.moves, outcome.decisions) == ([7000, 11_000], 4, 4)
    assert min(every_schedule(world(HAND, 2, 2000))) == 15_000 < outcome.completion.sum() == 17_000


def test_numbers_of_the_generator_are_the_same_everywhere() -> None:
    assert (round(u(1, 0, "gap"), 12), round(u(1, 0, "model"), 12)) == (0.411453451845, 0.841728916275)


def tiny() -> st.SearchStrategy[list[Job]]:
    """Two jobs of six tasks at most."""

    @st.composite
    def made(draw: st.DrawFn) -> list[Job]:
        jobs = []
        for name, most in (("a", 2), ("b", 1)):
            stages: list[Stage] = []
            for v in range(draw(st.integers(1, most))):
                parents = tuple(p for p in range(v) if draw(st.booleans()))
                stages.append(Stage(draw(st.integers(1, 2)), 100 * draw(st.integers(1, 9)), parents))
            jobs.append(Job(name, 100 * draw(st.integers(0, 5)), tuple(stages)))
        return jobs

    return made()


@settings(max_examples=12, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(jobs=tiny(), delay=st.sampled_from([0, 150, 700]), rule=st.sampled_from(["> 0", "<= 0", "> 1", "<= 2"]))
def test_no_policy_beats_every_schedule_and_none_breaks_the_rules(jobs: list[Job], delay: int, rule: str) -> None:
    least = min(every_schedule(world(jobs, 2, delay)))
    text = f"held {rule} -> prefer\njob_rank {rule} -> 30 %\notherwise -> 10 of 20"
    trees = [by_rules(limit.value, read_text(text, features_of(limit), "x"), limit) for limit in Limit]
    for policy in (*(Policy(name, kind) for name, kind in PLAIN.items()), *trees):
        outcome = simulate(jobs, policy, executors=2, delay_ms=delay, logged=True, slowly=True)
        assert outcome.completion.sum() >= least, policy.name
        check(jobs, outcome, delay)


def check(jobs: list[Job], outcome: Outcome, delay: int) -> None:
    """Each task runs once, after all tasks of its parents; executors run one at a time and move as they must."""
    found = tasks_of(jobs, outcome)
    for k, job in enumerate(jobs):
        for v, stage in enumerate(job.stages):
            mine = [t for t in found if t[2:4] == (job.name, v)]
            assert [t[1] - t[0] for t in mine] == [stage.task_ms] * stage.tasks
            before = [t[1] for t in found if t[2] == job.name and t[3] in stage.parents]
            assert min(t[0] for t in mine) >= max([job.arrival_ms, *before])
        assert outcome.end[k] == max(t[1] for t in found if t[2] == job.name)
        assert outcome.start[k] == min(t[0] for t in found if t[2] == job.name)
    for e in {t[4] for t in found}:
        mine = sorted(t for t in found if t[4] == e)
        for one, after in itertools.pairwise(mine):
            assert after[0] >= one[1] + (delay if one[2] != after[2] else 0)


@pytest.mark.parametrize(("name", "count"), [("wfair", 12), ("rollout", 3)])
def test_compiled_and_as_python_give_the_same(name: str, count: int) -> None:
    jobs, policy = generate(5, count, 6, 0.9), Policy(name, PLAIN[name])
    both = [simulate(jobs, policy, executors=6, delay_ms=500, slowly=slowly) for slowly in (False, True)]
    assert np.array_equal(both[0].end, both[1].end)


def recorded() -> list[list[str]]:
    """The rows of the oracle's table."""
    if not ORACLES.is_dir():
        return []
    lines = (ORACLES / "README.md").read_text().splitlines()
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith(("| hand", "| gen"))]


@pytest.mark.skipif(not ORACLES.is_dir(), reason="../shared is not there")
def test_recorded_cases_are_exact() -> None:
    rows = recorded()
    assert len(rows) > 30
    for case, source, executors, delay, name, *figures in rows:
        limit = Limit(case.partition("distilled-")[2]) if "distilled" in name else None
        tree = "distilled_tree" if limit else name
        policy = parse(name if name in PLAIN else f"tree:{ORACLES / tree}.json", limit)[0]
        jobs = read(ORACLES / f"{source}_stages.csv")
        found = simulate(jobs, policy, executors=int(executors), delay_ms=int(delay), logged=True)
        ends = [list(map(str, row)) for row in zip((j.name for j in jobs), found.arrival, found.start, found.end,
                                                   strict=True)]  # fmt: skip
        with (ORACLES / f"{case}_expected.csv").open() as file:
            assert ends == list(csv.reader(file))[1:], case
        mean = round(float(found.completion.mean()), 3)
        told = [len(jobs), mean, found.p95, found.makespan, found.moves, found.busy, found.decisions]
        assert list(map(str, told)) == figures, case
        log = ORACLES / f"{case}_log.csv"
        if log.exists():
            with log.open() as file:
                assert [list(map(str, task)) for task in tasks_of(jobs, found)] == list(csv.reader(file))[1:], case
    for name, seed, count, executors_, load in (("gen20", 1, 20, 10, 0.7), ("gen30_nodelay", 3, 30, 12, 0.8)):
        assert generate(seed, count, executors_, load) == read(ORACLES / f"{name}_stages.csv")
    for name, least in json.loads((ORACLES / "optimum.json").read_text()).items():
        jobs = read(ORACLES / f"{name}_stages.csv")
        every = every_schedule(world(jobs, 2, 2000 if name == "hand_two" else 500))
        assert (min(every), len(every)) == tuple(least.values())


HEAD = "job,arrival_ms,stage,tasks,task_ms,parents\n"


def test_a_file_is_read_back_as_written(tmp_path: Path) -> None:
    jobs = generate(3, 9, 4, 0.5)[::-1]
    with (tmp_path / "s.csv").open("wb") as file:
        write(jobs, file)
    assert read(tmp_path / "s.csv") == jobs


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("a,0,0,1,100,\na,0,1,1,100,1\n", "s.csv:3: is not a valid stage: parents are '1'"),
        ("a,0,0,0,100,\n", "s.csv:2: is not a valid stage: tasks is 0"),
        ("a,0,0,1,100,\na,5,1,1,100,\n", "s.csv:3: is not a valid stage: job a came at 0"),
        ("a,0,0,1,100,\na,0,0,1,100,\n", "has a stage 0 already"),
        ("a,0,0,1,100,\na,0,2,1,100,\n", "s.csv:2: job a has no stage 1"),
        ("a,x,0,1,100,\n", "s.csv:2"),
        ("a,0,0\n", "s.csv:2"),
        ("", "no stages"),
    ],
)
def test_bad_stages_are_reported_by_line(tmp_path: Path, lines: str, told: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(HEAD + lines)
    with pytest.raises(InputError) as error:
        read(path)
    assert told in str(error.value)


def test_times_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text(HEAD + f"a,0,0,1000000,{10**14},\n")
    with pytest.raises(InputError, match="add up to more"):
        simulate(read(path), Policy("fifo", PLAIN["fifo"]), executors=2, delay_ms=0)


def test_alibabas_batch_tasks_become_stages(tmp_path: Path) -> None:
    path = tmp_path / "batch_task.csv"
    rows = [
        "M1,3,j_2,1,Terminated,200,210,100,0.5", "R2_1,1,j_2,1,Terminated,211,211,100,0.5",
        "task_ab,2,j_1,1,Terminated,100,130,50,0.2", "J7_2_1,1,j_2,1,Terminated,215,216,1,1",
        "M1,1,j_3,1,Failed,1,2,1,1", "R2_1,1,j_3,1,Terminated,2,3,1,1",
        "M1_2,1,j_4,1,Terminated,1,2,1,1", "M2_1,1,j_4,1,Terminated,1,2,1,1",
    ]  # fmt: skip
    path.write_text("\n".join(rows) + "\n")
    found = read_trace(path)
    assert found.jobs == [
        Job("j_1", 100_000, (Stage(2, 30_000),)),
        Job("j_2", 200_000, (Stage(3, 10_000), Stage(1, 1, (0,)), Stage(1, 1000, (0, 1)))),
    ]
    assert (found.rows, sorted(found.left_out.values()), found.raised) == (8, [2, 2], 1)
    path.write_text("M1,three,j,1,Terminated,1,2,1,1\n")
    with pytest.raises(InputError, match=r"batch_task\.csv:1"):
        read_trace(path)


def test_jobs_of_swf_that_come_after_each_other_become_one(tmp_path: Path) -> None:
    path = tmp_path / "t.swf"
    tail = "-1 -1 1 1 -1 1 1"
    path.write_text(
        f"; a remark\n1 10 0 60 4 -1 -1 4 60 {tail} -1 -1\n2 12 0 30 2 -1 -1 -1 60 {tail} 1 5\n"
        f"3 11 0 5 1 -1 -1 1 60 {tail} -1 -1\n4 12 0 -1 1 -1 -1 1 60 {tail} 3 -1\n"
    )
    found = read_trace(path)
    assert found.jobs == [Job("1", 10_000, (Stage(4, 60_000), Stage(2, 30_000, (0,))))]
    assert (found.rows, list(found.left_out.values())) == (4, [2])
    # as Alea writes them
    path.write_text(
        f"id submit ...\n1 0 0 2400 1 -1 -1 1 9 {tail} -1 0 DAG-1 1\n2 0 0 2400 1 -1 -1 1 9 {tail} -1 0 DAG-1 2\n"
        f"3 0 0 5400 2 -1 -1 2 9 {tail} 1&2 0 DAG-1 3\n4 5 0 60 8 -1 -1 8 9 {tail} -1 0 DAG-2 1\n"
    )
    assert read_trace(path).jobs == [
        Job("1", 0, (Stage(1, 2_400_000), Stage(1, 2_400_000), Stage(2, 5_400_000, (0, 1)))),
        Job("4", 5000, (Stage(8, 60_000),)),
    ]
    path.write_text(f"1 0 0 2400 1 -1 -1 1 9 {tail} 1&x 0\n")
    with pytest.raises(InputError, match=r"t\.swf:1"):
        read_trace(path)
