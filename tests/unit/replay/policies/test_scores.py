"""Scores of waiting jobs, worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.policies.scores.score_kernel import score

if TYPE_CHECKING:
    from gpuctl.replay.models.records import Outcome

LINE = {"A": (1000, 3600, 4), "B": (4000, 600, 1), "C": (0, 86400, 16), "D": (4900, 100, 2)}
SCORES = {
    "wfp3": ("ABDC", {"A": -5.487, "B": -4.6296, "C": -0.0031, "D": -2}),
    "unicep": ("BDAC", {"A": -0.5556, "B": -1.6667, "C": -0.0145, "D": -1}),
    "f1": ("CABD", {"A": 2624.2252, "B": 3136.5703, "C": -791.0158, "D": 3214.4706}),
    "f2": ("CABD", {"A": 77040, "B": 92237.2307, "C": -20896.9797, "D": 94489.0196}),
    "f3": ("CABD", {"A": 20594400, "B": 24710731.5405, "C": -5477600, "D": 25314945.109}),
    "f4": ("CABD", {"A": 1597200, "B": 1909691.7954, "C": -184400, "D": 1955945.3438}),
}


def simulation(path: Path, policy: str, cluster: str, rows: list[str], **params: str) -> Simulation:
    path.write_text("\n".join(rows))
    workload = read_jobs(path)
    nodes = parse_cluster(cluster, workload)
    models = Settings(rates("recorded", workload, nodes), overhead("none", workload, nodes))
    return Simulation(workload, nodes, find(policy)(params), models)


def starts(path: Path, policy: str, cluster: str, rows: list[str], **params: str) -> dict[str, float]:
    one = simulation(path, policy, cluster, rows, **params)
    one.run()
    outcome: Outcome = one.outcome()
    return dict(outcome.jobs.select("job", "start_s").rows())


@pytest.mark.parametrize("policy", SCORES)
def test_scores_at_second_5000(policy: str, tmp_path: Path) -> None:
    # a job on all GPUs until 5000, and what waits then; each of them takes the cluster for itself
    rows = [f"{job},{submit},{asked},{gpus},{asked}" for job, (submit, asked, gpus) in LINE.items()]
    hold = "hold,-1,5001,16,1"
    head = "job_id,submit_time,duration,num_gpus,requested_time"
    origin = {"origin": "file"} if policy.startswith("f") else {}
    one = simulation(tmp_path / "jobs.csv", policy, "pool:16", [head, hold, *rows], **origin)
    one.advance(until=4999)
    memory = one.program.memory[0]
    of = getattr(score, "py_func", score)
    order, wanted = SCORES[policy]
    jobs = {name: number for number, name in enumerate(one.workload.ids)}
    found = {name: of(memory, jobs[name], 5000.0) for name in LINE}
    assert {name: value for name, (_, value) in found.items()} == pytest.approx(wanted, abs=6e-5)
    assert "".join(sorted(found, key=lambda name: found[name])) == order


def test_qssf_orders_by_gpu_time_unless_all_have_just_come(tmp_path: Path) -> None:
    rows = ["job_id,submit_time,duration,num_gpus,predicted_time", "a,0,100,8,100", "b,10,500,4,500", "c,10,50,8,50",
            "d,20,10,1,9999"]  # fmt: skip
    assert starts(tmp_path / "jobs.csv", "qssf", "1x8", rows) == {"a": 0, "b": 150, "c": 100, "d": 150}
    rows[-1] = "d,10,10,1,9999"
    # at 10 nothing fits; at 100 none of them has just come
    assert starts(tmp_path / "jobs.csv", "qssf", "1x8", rows)["d"] == 150
    # at 0 all have: the smallest gangs first, and the first that does not fit blocks
    rows = [rows[0], "a,0,100,8,1", "b,0,100,5,2", "c,0,100,4,3", "d,0,100,3,4"]
    assert starts(tmp_path / "jobs.csv", "qssf", "1x8", rows) == {"d": 0, "c": 0, "a": 100, "b": 200}


def test_qssf_learns_from_jobs_that_have_ended(tmp_path: Path) -> None:
    # long's user has run 100 s on 4 GPUs, short's 10 s: known from the ends at 10 and 100 on
    rows = ["job_id,submit_time,duration,num_gpus,user", "first,0,100,4,x", "second,0,10,4,y", "third,10,200,4,z",
            "fill,11,99,4,z", "long,150,5,8,x", "short,151,500,8,y", "new,152,1,8,w"]  # fmt: skip
    found = starts(tmp_path / "jobs.csv", "qssf", "1x8", rows, estimate="rolling")
    assert found["fill"] == 100
    # 80 for short, 800 for long, the mean of (100, 10) x 8 for new: 440
    assert [found[name] for name in ("short", "new", "long")] == [210, 710, 711]


def test_a_trace_with_queues_that_have_nodes_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "nodes.toml"
    path.write_text(
        '[[nodes]]\nname = "a"\ngpus = 8\n\n[[nodes]]\nname = "b"\ngpus = 8\n\n'
        '[[queues]]\nname = "one"\nnodes = ["a"]\n\n[[queues]]\nname = "two"\nnodes = ["b"]\n'
    )
    rows = ["job_id,submit_time,duration,num_gpus,vc", "a,0,100,8,one", "b,1,100,8,one", "c,2,100,8,two"]
    assert starts(tmp_path / "jobs.csv", "qssf", str(path), rows) == {"a": 0, "b": 100, "c": 2}


def test_backfill_in_order_of_submission_up_to_the_shadow_time(tmp_path: Path) -> None:
    # wide scores lowest at 10 and needs all GPUs at 100; tie ends just then, which is too late, early a second before
    rows = ["job_id,submit_time,duration,num_gpus,requested_time", "run,0,100,4,100", "wide,5,10,8,1",
            "tie,10,90,2,90", "early,10,89,2,89"]  # fmt: skip
    strict = starts(tmp_path / "jobs.csv", "wfp3", "pool:8", rows)
    assert strict == {"run": 0, "wide": 100, "tie": 110, "early": 110}
    eased = starts(tmp_path / "jobs.csv", "wfp3", "pool:8", rows, backfill="easy")
    assert eased == {"run": 0, "wide": 100, "tie": 110, "early": 10}
    assert starts(tmp_path / "jobs.csv", "wfp3", "pool:8", rows, skip="true") == {
        "run": 0, "wide": 100, "tie": 10, "early": 10,
    }  # fmt: skip
