"""Replays that would not end stop with a message; parameters and clusters that make them so are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import GpuctlError, InputError, UsageError
from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine import simulation
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.check import check
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.estimates import plan_limits
from gpuctl.replay.inputs.transforms import gather
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.policies import BUILT_IN, find

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster

HOSTILE = (
    "1e400",
    "-1e400",
    "1" + "0" * 30,
    "-1",
    "nan",
    "inf",
    "",
    "x",
    "1e9",
    "9" * 19,
    "u" * 5000,
    "," * 1000,
    "\0",
)
TURNS = [
    ("las", {"quantum": "1"}),
    ("las", {"quantum": "1", "service": "time"}),
    ("tiresias", {"limits": "1,2,4,8", "promote": "0.001"}),
    ("tiresias", {"limits": "5", "order": "list", "promote": "0.1", "round": "1"}),
    ("pickyman", {"every": "1", "most": "1000000", "age": "1"}),
    ("philly", {"acquire": "0", "backoff": "1"}),
]


@pytest.mark.parametrize(("name", "params"), TURNS, ids=[f"{n}-{'-'.join(p.values())}" for n, p in TURNS])
@pytest.mark.parametrize(
    ("cost", "mode"), [("const:300", None), ("charge:20", None), ("pickyman", None), ("none", "abort")]
)
def test_turns_that_cost_more_than_they_bring_grow(
    name: str, params: dict[str, str], cost: str, mode: str | None
) -> None:
    for seed in (3, 2342):
        workload, cluster, shared = random_case(seed)
        settings = replace(shared, overhead=overhead(cost, workload, cluster), mode=mode)
        outcome = run(find(name)(params), workload, cluster, settings)
        assert outcome.decisions.height < 1000 * workload.size
        assert violations(outcome, workload, cluster, settings) == []


GREEDY = {
    "preemption": "true",
    "max_wait_before_kill": "0",
    "monitoring_interval": "1",
    "natural_termination_factor": "1",
    "total_preemption_per_round": "1",
    "max_ignored_over_capacity": "0",
}
RING = "Name|Priority|Preempt|PreemptMode|Flags|UsageFactor|\na|1|b|cluster||1|\nb|1|a|cluster||1|\n"
"""Two QOS that preempt each other."""


def ring_of_qos(folder: Path, cluster: Cluster) -> dict[str, str]:
    """A site whose jobs preempt each other as soon as they are eligible again."""
    nodes = "".join(
        f"NodeName={name} CPUs=8 Gres=gpu:{gpus}\n"
        for name, gpus in zip(cluster.nodes, cluster.gpus.tolist(), strict=True)
    )
    (folder / "slurm.conf").write_text(
        "ClusterName=x\nPreemptType=preempt/qos\nPreemptMode=REQUEUE\nPriorityType=priority/multifactor\n"
        f"PriorityWeightAge=10\n{nodes}PartitionName=all Nodes={','.join(cluster.nodes)}\n"
    )
    (folder / "qos.txt").write_text(RING)
    return {"conf": str(folder), "requeue_delay": "1", "exempt": "0", "batch_sched_delay": "0", "bf_interval": "1"}


@pytest.mark.parametrize(
    ("name", "seed", "factor", "mode"),
    [
        ("yarn-capacity", 10, 1, "abort"),
        ("yarn-capacity", 11, 10, "abort"),
        ("yarn-capacity", 12, 100, "now"),
        ("slurm", 9, 10, "now"),
        ("slurm", 10, 1, "abort"),
    ],
)
def test_preemption_as_of_a_real_scheduler_comes_to_an_end(
    name: str, seed: int, factor: int, mode: str, tmp_path: Path
) -> None:
    workload, cluster, shared = random_case(seed)
    workload = replace(workload, segment_s=workload.segment_s * factor)
    params = GREEDY
    if name == "slurm":
        alternate = np.arange(workload.size) % 2
        zero = np.zeros(workload.size, np.int64)
        workload = replace(workload, queue=zero, queues=("all",), qos=alternate, qos_names=("a", "b"))
        params = ring_of_qos(tmp_path, cluster)
    settings = replace(shared, overhead=overhead("const:30", workload, cluster), mode=mode)
    one = Simulation(workload, cluster, find(name)(params), settings)
    # without patience these go on preempting the same jobs, and pass 200 decisions a job
    while one.advance(steps=100):
        assert int(one.state.g[0].log) < 100 * workload.size
    assert one.left == 0
    assert 30 <= int(one.state.jobs.preempts.max()) < 200
    assert violations(one.outcome(), workload, cluster, settings) == []


def test_jobs_that_wait_for_patience_are_not_examined_in_vain() -> None:
    """The monitor looks again when a job that went on may be preempted, as if it looked each time."""
    workload, cluster, shared = random_case(11)
    workload = replace(workload, segment_s=workload.segment_s * 10)
    settings = replace(shared, overhead=overhead("const:30", workload, cluster), mode="abort")
    one, two = (Simulation(workload, cluster, find("yarn-capacity")(GREEDY), settings) for _ in range(2))
    two.program.tree.p.plain = 1  # type: ignore[attr-defined]
    for each in (one, two):
        each.run()
    assert one.outcome().decisions.equals(two.outcome().decisions)


def test_jobs_of_thirty_years_end_under_pickyman() -> None:
    workload, cluster, shared = random_case(1, plain=True)
    long = gather(workload, np.zeros(25, np.int64))
    long = replace(long, ids=tuple(map(str, range(25))), segment_s=np.full(25, 1e9), submit=np.arange(25.0))
    long = replace(long, eligible=long.submit)
    settings = Settings(shared.rates, overhead("pickyman", long, cluster))
    settings = replace(settings, rates=replace(shared.rates, **{
        name: getattr(shared.rates, name)[np.zeros(25, np.int64)] for name in ("speed", "alpha", "pack")
    }))  # fmt: skip
    nodes = parse_cluster("pool:16", long)
    one = Simulation(long, nodes, find("pickyman")(), settings)
    one.run()
    assert one.left == 0
    assert int(one.state.g[0].instants) < 5_000_000


class Restless(PythonPolicy):
    """Sets a timer for now, every time it is asked, and starts nothing."""

    name = "restless"
    always = True

    def decide(self, view: View) -> None:
        view.timer(view.now)


class Idle(PythonPolicy):
    """Looks every second and does nothing."""

    name = "idle"

    def decide(self, view: View) -> None:
        view.timer(view.now + 1)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (Restless, "restless: 4[0-9],[0-9]{3} instants at one and the same second"),
        (Idle, "idle: 50,000 instants in a row"),
    ],
)
def test_a_replay_that_does_not_come_forward_stops(
    policy: type[PythonPolicy], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "UNDECIDED", 50_000)
    with pytest.raises(InputError, match=words):
        run(policy(), *random_case(1, plain=True))


@pytest.mark.parametrize("name", BUILT_IN)
def test_no_value_of_a_parameter_is_a_bug_of_gpuctl(name: str) -> None:
    case = random_case(5)
    refused = 0
    for parameter in find(name).parameters:
        for text in HOSTILE:
            try:
                policy = find(name)({parameter.name: text})
                if name != "recorded":
                    Simulation(*case[:2], policy, case[2])
            except GpuctlError:
                refused += 1
    assert refused > 0 or not find(name).parameters


def test_parameters_have_a_most() -> None:
    with pytest.raises(UsageError, match=r"tiresias: tick=1e20: expected 0, or a number from 0.001 to 1000000000"):
        find("tiresias")({"tick": "1e20"})
    with pytest.raises(UsageError, match=r"las: patience=201: expected a number from 1 to 200"):
        find("las")({"patience": "201"})
    with pytest.raises(UsageError, match=r"tiresias: limits=.*: expected at most 100 numbers from 0 to 1000000000"):
        find("tiresias")({"limits": ",".join(map(str, range(101)))})


@pytest.mark.parametrize("how", ["," * 1000, "u" * 5000, ":" * 5000])
def test_limits_that_can_be_no_file_are_refused(how: str) -> None:
    with pytest.raises(UsageError, match=r"--limits-from .*: not understood"):
        plan_limits(random_case(5)[0], how)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("pool:2147483648", "pool has 2,147,483,648 GPUs: expected at most 10,000,000"),
        ("2x10001", "s1 has 10,001 GPUs: expected at most 10,000"),
        ("1001x10000", "the nodes have 10,010,000 GPUs: expected at most 10,000,000"),
    ],
)
def test_clusters_have_a_most(spec: str, words: str) -> None:
    workload = random_case(5, plain=True)[0]
    with pytest.raises(InputError, match=words):
        check(workload, parse_cluster(spec, workload))


def test_a_tick_that_is_longer_than_the_replay_is_no_endless_loop() -> None:
    workload, cluster, shared = random_case(3)
    policy = find("tiresias")({"tick": "1e9", "limits": "1"})
    assert violations(run(policy, workload, cluster, shared), workload, cluster, shared) == []


@pytest.mark.parametrize("span", ["2931.12", "0.1", "0.7", "1234.567"])
def test_rounds_of_any_length_come_forward(span: str) -> None:
    # 15 * 2931.12 / 2931.12 is less than 15: the round after it was that same second, for ever
    workload, cluster, shared = random_case(9, plain=True)
    workload = replace(workload, segment_s=workload.segment_s * float(span))
    settings = Settings(shared.rates, overhead("none", workload, cluster))
    one = Simulation(workload, cluster, find("tiresias")({"round": span}), settings)
    while one.advance(steps=1000):
        assert int(one.state.g[0].instants) < 100 * (one.now / float(span) + workload.size)
    assert one.left == 0
