"""Speeds by class of jobs and GPU type: the table, the engine, and what policies see of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import run, violations
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.check import check, unplaceable
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import SpeedTable, rates, read_speeds
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

SPEEDS = (
    "job_class,gpu_type,speed,speed_in_rack,speed_across_racks\n,V100,1,,\n,K80,.25,,\nlm,V100,1,.5,.2\nlm,K80,.5,,\n"
)
NODES = """
nodes = [{name = "v", gpus = 2, gpu_type = "V100", rack = "a"}, {name = "k", gpus = 4, gpu_type = "K80", rack = "a"},
           {name = "w", gpus = 2, gpu_type = "V100", rack = "b"}]
"""
V, K, W = range(3)
TABLE = {("", "V100"): (1.0,) * 3, ("", "K80"): (0.25,) * 3, ("lm", "V100"): (1.0,) * 3, ("lm", "K80"): (0.5,) * 3}

Case = tuple["Workload", "Cluster", Settings]


@pytest.fixture
def case(tmp_path: Path) -> Callable[..., Case]:
    def made(jobs: str, speeds: str = SPEEDS, cost: str = "none") -> Case:
        for name, text in (("jobs.csv", jobs), ("speeds.csv", speeds), ("servers.toml", NODES)):
            (tmp_path / name).write_text(text)
        workload = read_jobs(tmp_path / "jobs.csv")
        cluster = parse_cluster(str(tmp_path / "servers.toml"), workload)
        table = read_speeds(tmp_path / "speeds.csv")
        return workload, cluster, Settings(rates(table, workload, cluster), overhead(cost, workload, cluster))

    return made


class Puts(PythonPolicy):
    """Puts each job where it is told, and moves it where it is told at some second; keeps the rates that it sees."""

    name = "puts"
    always = True
    where: tuple[dict[int, int], ...] = ()
    moves: tuple[tuple[float, int, dict[int, int]], ...] = ()

    def begin(self, view: View) -> None:
        type(self).rates, type(self).view = [], view
        for k, (second, _, _) in enumerate(self.moves):
            view.timer(second, k)

    def decide(self, view: View) -> None:
        for job in list(view.waiting):
            view.start(job, nodes=self.where[job])
        for second, job, nodes in self.moves:
            if view.now == second:
                assert view.migrate(job, nodes)
        type(self).rates.append((view.now, [view.rate(job) for job in view.gpus]))

    rates: Any
    view: Any


def put(where: tuple[dict[int, int], ...], moves: tuple[Any, ...] = ()) -> Any:
    return type("PutsThem", (Puts,), {"where": where, "moves": moves})()


def ends(outcome: Outcome) -> list[float]:
    return outcome.jobs["end_s"].to_list()


JOBS = "job_id,submit_time,duration,num_gpus,job_class\na,0,100,2,lm\nb,0,100,1,other\nc,0,100,2,\n"


def test_a_job_is_as_fast_as_its_class_is_on_the_slowest_type_that_it_holds(case: Callable[..., Case]) -> None:
    made = case(JOBS)
    outcome = run(put(({K: 2}, {K: 1}, {V: 1, K: 1})), *made)
    assert ends(outcome) == [200.0, 400.0, 400.0]
    assert violations(outcome, *made) == []
    # one node, two of one rack, two racks
    far = "job_id,submit_time,duration,num_gpus,job_class\na,0,100,1,lm\nb,0,100,2,lm\nc,0,100,2,lm\n"
    assert ends(run(put(({V: 1}, {V: 1, K: 1}, {K: 1, W: 1})), *case(far))) == [100.0, 200.0, 500.0]
    fast = far.replace("b,0,100,2,lm\n", "")
    assert ends(run(put(({W: 1}, {V: 1, W: 1})), *case(fast))) == [100.0, 500.0]


def test_progress_is_kept_when_a_job_moves_to_another_type_and_its_rate_shows(case: Callable[..., Case]) -> None:
    made = case("job_id,submit_time,duration,num_gpus,job_class\na,0,100,2,lm\n", cost="const:30")
    policy = put(({K: 2},), ((80.0, 0, {V: 2}),))
    outcome = run(policy, *made)
    # 40 of 100 s done on K80; 30 s of overhead; 60 s on V100
    assert ends(outcome) == [170.0]
    # at 80 its checkpoint is moved: it comes forward by nothing
    assert policy.rates == [(0.0, [0.5]), (80.0, [0.0]), (170.0, [0.0])]
    assert violations(outcome, *made) == []


def test_types_and_classes_in_the_view_of_a_policy(case: Callable[..., Case]) -> None:
    policy = put(({K: 2}, {K: 1}, {V: 1, K: 1}))
    run(policy, *case(JOBS.replace("c,0", "c,7")))
    view = policy.view
    assert view.types == ("K80", "V100")
    assert [view.gpu_type(k) for k in (V, K, W)] == [1, 0, 1]
    # classes as they come; a job without one has none
    assert [view.job_class[job] for job in range(3)] == [0, 1, -1]
    assert [
        view.type_speed(0, 1),
        view.type_speed(0, 1, "rack"),
        view.type_speed(0, 1, "racks"),
        view.type_speed(2, 0),
    ] == [
        1,
        0.5,
        0.2,
        0.25,
    ]
    for wrong in (lambda: view.type_speed(0, 2), lambda: view.type_speed(0, 0, "far"), lambda: view.gpu_type(3)):
        with pytest.raises(InputError, match=r"^puts: .*expected"):
            wrong()


def test_a_job_that_needs_a_type_suits_nodes_of_that_type_only(case: Callable[..., Case]) -> None:
    policy = put(({K: 1}, {W: 1}))
    run(policy, *case("job_id,submit_time,duration,num_gpus,gpu_type\na,0,100,1,\nb,0,100,1,V100\n"))
    assert [[policy.view.suits(job, k) for k in (V, K, W)] for job in range(2)] == [[True] * 3, [True, False, True]]


def test_where_run_times_were_recorded_a_replay_there_takes_as_long_as_recorded(case: Callable[..., Case]) -> None:
    workload, cluster, shared = case("job_id,submit_time,duration,num_gpus,job_class\na,0,100,2,lm\nb,0,60,1,\n")
    # a ran on K80, b on V100
    workload = replace(
        workload, piece_start=np.array([0, 1, 2]), piece_node=np.array([K, V]), piece_gpus=np.array([2, 1])
    )
    shared = replace(shared, rates=rates(SpeedTable("t", "t", TABLE), workload, cluster))
    assert ends(run(put(({K: 2}, {V: 1})), workload, cluster, shared)) == [100.0, 60.0]
    assert ends(run(put(({V: 2}, {K: 1})), workload, cluster, shared)) == [50.0, 240.0]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "is empty"),
        ("job_class,gpu_type\n", 1, "the header is 'job_class,gpu_type'"),
        ("job_class,gpu_type,speed,colour\n", 1, "the header is"),
        ("job_class,gpu_type,speed\n", None, "has a header but no speeds"),
        ("job_class,gpu_type,speed\n,V100,1\nlm,V100,fast\n", 3, "speed is 'fast', expected a number from 1e-06 to 1e"),
        ("job_class,gpu_type,speed\nlm,V100,-0.1\n", 2, "speed is '-0.1'"),
        ("job_class,gpu_type,speed\nlm,V100,nan\n", 2, "speed is 'nan'"),
        ("job_class,gpu_type,speed\nlm,V100,\n", 2, "speed is ''"),
        ("job_class,gpu_type,speed,speed_in_rack\nlm,V100,1,-1\n", 2, "speed_in_rack is '-1'"),
        ("job_class,gpu_type,speed\nlm,V100,1\n\nlm,V100,2\n", 4, "class 'lm' on 'V100' has a second line"),
        ("job_class,gpu_type,speed\nlm,V100\n", 2, "has 2 cells, the header has 3"),
        (
            "job_class,gpu_type,speed\nlm,V100,1\n",
            None,
            "has no speed of class 'lm' on 'K80', class",
        ),
    ],
)
def test_a_wrong_table_is_an_error_that_states_where(
    case: Callable[..., Case], text: str, line: int | None, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        case(JOBS, text)
    assert f"speeds.csv{'' if line is None else f':{line}'}: {message}" in str(caught.value)


def test_srtf_follows_the_time_left_on_the_gpus_that_jobs_have(case: Callable[..., Case]) -> None:
    """Its order of running jobs is no longer fixed once they come forward at different speeds."""
    text = "job_id,submit_time,duration,num_gpus,job_class\n"
    made = case(
        text + "".join(f"j{k},{k % 7},{20 + 13 * k % 50},{1 + k % 2},{'lm' if k % 3 else ''}\n" for k in range(40))
    )
    for name in ("srtf", "fifo-skip", "tiresias", "pickyman"):
        outcome = run(find(name)(), *made)
        assert violations(outcome, *made) == []


def test_a_class_with_speed_0_on_a_type_is_not_put_there(case: Callable[..., Case]) -> None:
    made = case(JOBS, SPEEDS.replace("lm,K80,.5", "lm,K80,0"))
    policy = put(({K: 2}, {K: 1}, {V: 1, K: 1}))
    made[0].time_limit[:] = np.nan
    outcome = run(find("fifo-skip")(), *made)
    assert ends(outcome)[0] == 100.0
    with pytest.raises(InputError, match="class 'lm' has speed 0 on all GPU types"):
        case(JOBS, SPEEDS.replace("lm,K80,.5", "lm,K80,0").replace("lm,V100,1,.5,.2", "lm,V100,0,,"))
    assert not run(policy, *made).attempts.filter(pl.col("job") == 0).height


def test_a_gang_larger_than_the_gpus_on_which_it_runs_is_found_before_the_replay(case: Callable[..., Case]) -> None:
    speeds = SPEEDS.replace("lm,K80,.5", "lm,K80,0")
    workload, cluster, _ = case("job_id,submit_time,duration,num_gpus,job_class\na,0,9,5,lm\nb,0,9,5,\n", speeds)
    table = SpeedTable("t", "t", {**TABLE, ("lm", "K80"): (0.0,) * 3})
    assert unplaceable(workload, cluster).tolist() == []
    assert unplaceable(workload, cluster, speeds=table).tolist() == [0]
    with pytest.raises(InputError, match=r"1 job asks for more GPUs .* and speed there allow: 'a' \(5 of 4, queue"):
        check(workload, cluster, speeds=table)


class Lends(Puts):
    """Tries to lend the K80 node to those of V100, and says whether it could."""

    def begin(self, view: View) -> None:
        super().begin(view)
        type(self).lent = []

    def decide(self, view: View) -> None:
        type(self).lent.append(view.loan(K, view.node_class(V)))

    lent: Any


def test_a_node_is_not_lent_to_a_class_of_which_some_jobs_do_not_run_on_it(case: Callable[..., Case]) -> None:
    jobs = "job_id,submit_time,duration,num_gpus,job_class,gpu_type\na,0,9,1,lm,V100\n"
    for speeds, expected in ((SPEEDS, True), (SPEEDS.replace("lm,K80,.5", "lm,K80,0"), False)):
        policy = type("LendsIt", (Lends,), {})()
        workload, cluster, shared = case(jobs, speeds)
        simulation = Simulation(workload, cluster, policy, shared)
        simulation.advance(0.0)
        assert policy.lent == [expected]
