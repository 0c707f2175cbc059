"""A node fails: what its jobs lose, how long they stall and load, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.node_failures import FailureOptions, NodeFailures, node_failures
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.results.failures import figures
from tests.unit.replay.engine.test_engine import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Cluster, Outcome

GANG = "run,0,4000,16"


def replayed(
    tmp_path: Path, *rows: str, failures: str, spec: str = "2x8", policy: str = "fifo", limits: bool = False,
    **options: Any,
) -> tuple[Outcome, Cluster]:  # fmt: skip
    """Replay jobs while nodes fail as a CSV says."""
    workload = jobs(tmp_path, *rows)
    cluster = parse_cluster(spec, workload)
    content = "\n".join(["time_s,node,until_s,kind", *failures.split()])
    given = FailureOptions("failures.csv", files={"failures.csv": content}, **options)
    model = node_failures(given, workload, cluster, 0)
    settings = Settings(
        rates("recorded", workload, cluster), overhead("none", workload, cluster), failures=model, limits=limits
    )
    simulation = Simulation(workload, cluster, find(policy)(), settings)
    simulation.run()
    return simulation.outcome(), cluster


def test_every_second_of_an_interrupted_run_is_accounted_for(tmp_path: Path) -> None:
    outcome, cluster = replayed(
        tmp_path, GANG, failures="3000,s1,3000", checkpoint="1000", write=50.0, restart=300.0, detect=300.0
    )
    # saved at 1,050 and 2,100; 900 s of work lost at 3,000, stalled to 3,300, loaded to 3,600; 1,000 + 50 + 1,000
    job = outcome.jobs.row(0, named=True)
    assert job["end_s"] == pytest.approx(5650)
    assert (job["interruptions"], job["lost_s"]) == (1, pytest.approx(900))
    of = figures(outcome, cluster)
    gpus = 16 / 3600
    kinds = ("productive", "checkpoint", "load", "lost", "stalled", "preemption", "down", "idle")
    hours = [of[f"{kind}_gpu_hours"] for kind in kinds]
    assert hours == pytest.approx([gpus * s for s in (4000, 150, 300, 900, 300, 0, 0, 0)])
    assert of["ettr"] == of["ettr_running"] == pytest.approx(4000 / 5650)
    assert of["mttf_h"] == pytest.approx(5650 / 3600)


@pytest.mark.parametrize(("second", "kept"), [("2099.9", 1000), ("2100", 2000), ("1049.9", 0)])
def test_a_failure_in_the_last_second_of_a_write_loses_the_checkpoint(tmp_path: Path, second: str, kept: float) -> None:
    outcome, _ = replayed(tmp_path, GANG, failures=f"{second},s2,{second}", checkpoint="1000", write=50.0)
    [job] = outcome.jobs.iter_rows(named=True)
    work = 4000 - kept
    writes = np.ceil(work / 1000) - 1
    assert job["end_s"] == pytest.approx(float(second) + work + writes * 50)


def test_without_checkpoints_nothing_is_kept_and_a_node_is_away_until_repaired(tmp_path: Path) -> None:
    outcome, cluster = replayed(tmp_path, GANG, "small,10,100,8", failures="1000,s1,1500 9000,s2,9100")
    ends = dict(outcome.jobs.select("job", "end_s").iter_rows())
    # the gang waits for both nodes; fifo lets nobody pass it
    assert ends["run"] == 5500
    assert outcome.decisions.filter(outcome.decisions["decision"] == "machine_down")["job"].to_list() == ["run"]
    of = figures(outcome, cluster)
    assert of["down_gpu_hours"] == pytest.approx(8 * 500 / 3600)
    assert of["lost_gpu_hours"] == pytest.approx(16 * 1000 / 3600)
    # the failure after the last end is not measured
    assert of["injected"] == 1


def test_a_job_that_ends_at_the_instant_of_a_failure_has_ended(tmp_path: Path) -> None:
    outcome, _ = replayed(tmp_path, "a,0,100,8", failures="100,s1,200")
    assert outcome.jobs.select("end_s", "interruptions").row(0) == (100, 0)


def test_a_failure_while_a_job_loads_costs_the_whole_load_again(tmp_path: Path) -> None:
    outcome, cluster = replayed(tmp_path, GANG, failures="100,s1,100 150,s1,150", restart=60.0)
    # 100 s lost, 50 s of a load, 60 s of the next
    assert outcome.jobs["end_s"].to_list() == [4210]
    assert figures(outcome, cluster)["load_gpu_hours"] == pytest.approx(16 * 110 / 3600)


def test_a_spare_stands_in_at_once_but_only_for_one_node(tmp_path: Path) -> None:
    outcome, cluster = replayed(tmp_path, GANG, failures="100,s1,900 200,s2,700", spares=1)
    # n0's place is filled at once; n1's only by its own repair, before the spare is free again
    assert outcome.jobs["end_s"].to_list() == [4700]
    assert figures(outcome, cluster)["down_gpu_hours"] == pytest.approx(8 * 500 / 3600)


def test_a_gang_that_another_failure_hits_before_the_first_is_noticed_is_interrupted_once(tmp_path: Path) -> None:
    outcome, _ = replayed(tmp_path, GANG, failures="100,s1,100 150,s2,150", detect=100.0)
    assert outcome.jobs.select("interruptions", "end_s").row(0) == (1, 4200)


def test_a_preemption_for_an_interrupted_job_is_of_second_order(tmp_path: Path) -> None:
    # srtf: when its node fails, the short job takes that of the long one
    outcome, cluster = replayed(
        tmp_path, "long,0,5000,8", "short,0,1000,8", failures="100,s2,9000 100,s1,100", policy="srtf"
    )
    assert figures(outcome, cluster)["second_order_preemptions"] == 0
    outcome, cluster = replayed(tmp_path, "long,0,5000,8", "short,0,1000,8", failures="100,s1,9000", policy="srtf")
    short, long = (outcome.jobs.row(k, named=True) for k in (1, 0))
    assert figures(outcome, cluster)["second_order_preemptions"] == (short["interruptions"] and long["preemptions"])


@pytest.mark.parametrize("policy", ["fifo", "easy", "conservative"])
def test_an_interrupted_job_keeps_its_place_or_goes_to_the_end(tmp_path: Path, policy: str) -> None:
    """Three jobs of all GPUs, and one to come; the first is interrupted at 100 and 350 s."""
    rows = ("a,0,200,16", "b,10,100,16", "c,20,100,16", "d,390,50,16")
    failures = "100,s1,100 350,s1,350"
    ends = {}
    for requeue in ("", "head", "tail")[:: 2 if policy == "conservative" else 1]:
        outcome, _ = replayed(tmp_path, *rows, failures=failures, policy=policy, requeue=requeue)
        ends[requeue] = dict(outcome.jobs.select("job", "end_s").iter_rows())
    if policy == "conservative":
        # b and c move up when a's GPUs are free, before a has a reservation again
        assert ends[""] == ends["tail"]
    else:
        # head: a again from 100 to 300, b (300 to 350, again to 450), c, d
        assert ends["head"] == ends[""] == {"a": 300, "b": 450, "c": 550, "d": 600}
    # tail: b to 200, c to 300, a (300 to 350, again to 550), d
    assert ends["tail"] == {"b": 200, "c": 300, "a": 550, "d": 600}


def test_of_two_jobs_interrupted_at_once_each_goes_behind_all_that_have_come(tmp_path: Path) -> None:
    rows = ("a,0,500,8", "b,1,500,8", "c,2,100,16", "d,3,100,16")
    ends = {}
    for policy in ("fifo-skip", "easy"):
        outcome, _ = replayed(tmp_path, *rows, failures="50,s1,50 50,s2,50", policy=policy, requeue="tail")
        ends[policy] = dict(outcome.jobs.select("job", "end_s").iter_rows())
    assert ends["fifo-skip"] == ends["easy"] == {"c": 150, "d": 250, "a": 750, "b": 750}


def test_slurm_counts_an_interrupted_job_as_submitted_now_unless_told_otherwise(tmp_path: Path) -> None:
    rows = ("a,0,200,16", "b,10,100,16", "c,20,100,16")
    last = {}
    for requeue in ("", "head", "tail"):
        outcome, _ = replayed(tmp_path, *rows, failures="100,s1,100", policy="slurm", requeue=requeue)
        last[requeue] = outcome.jobs.sort("end_s")["job"].to_list()[-1]
    assert last[""] == last["tail"] == "a"
    assert last["head"] == "c"


def test_a_policy_with_an_order_of_its_own_refuses_a_place(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="srtf: has an order of its own for interrupted jobs"):
        replayed(tmp_path, GANG, failures="1,s1,2", policy="srtf", requeue="tail")


def test_a_draining_node_takes_no_new_jobs_and_keeps_those_that_it_has(tmp_path: Path) -> None:
    outcome, cluster = replayed(
        tmp_path, "a,0,300,8", "b,0,100,8", "c,150,100,8", failures="50,s1,1000,drain 60,s2,60,failure"
    )
    ends = dict(outcome.jobs.select("job", "end_s").iter_rows())
    # a goes on, b is interrupted at 60 s, c waits for b's node
    assert ends == {"a": 300, "b": 160, "c": 260}
    of = figures(outcome, cluster)
    assert of["injected"] == 1
    # away from the end of its last job, to the end of the replay
    assert of["down_gpu_hours"] == pytest.approx(0)
    assert of["idle_gpu_hours"] == pytest.approx(8 * (300 - 260) / 3600)


def test_jobs_may_state_their_own_interval(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus,checkpoint_s\na,0,1000,8,100\nb,0,1000,8,\n")
    workload = read_jobs(path)
    cluster = parse_cluster("2x8", workload)
    model = node_failures(FailureOptions("0.1", "400"), workload, cluster, 0)
    assert model is not None
    assert model.every.tolist() == [100, 400]


def test_the_recorded_policy_has_no_failures(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="recorded: jobs run where and when the trace recorded them"):
        replayed(tmp_path, GANG, failures="1,s1,2", policy="recorded")


def test_the_same_failures_under_every_policy_and_every_interval(tmp_path: Path) -> None:
    workload = jobs(tmp_path, *(f"j{k},{k * 50},{500 + 37 * k},{1 + k % 16}" for k in range(40)))
    cluster = parse_cluster("4x8", workload)
    seen = []
    for policy, checkpoint in (("fifo", "none"), ("srtf", "100"), ("easy", "none"), ("las", "young")):
        given = FailureOptions("30", checkpoint, write=5.0, repair="600")
        name = "fifo-skip" if policy == "easy" else policy
        model = node_failures(given, workload, cluster, 7)
        assert isinstance(model, NodeFailures)
        settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster), failures=model)
        simulation = Simulation(workload, cluster, find(name)(), settings)
        simulation.run()
        log = simulation.outcome().decisions
        seen.append(log.filter(log["decision"] == "node_down").select("t_s", "node"))
    shortest = min(frame.height for frame in seen)
    assert shortest > 3
    assert all(frame.head(shortest).equals(seen[0].head(shortest)) for frame in seen)
