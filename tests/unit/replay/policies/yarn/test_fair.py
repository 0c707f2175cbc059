"""The fair scheduler's heartbeats, shares and time-outs worked out on paper, and what its parameters change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.policies.yarn.fair_state import DRF, FAIR, FIFO, UNBOUNDED

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome
    from gpuctl.replay.policies.yarn.fair_build import FairProgram

HEADER = "job_id,submit_time,duration,num_gpus,vc,user,app"
TWO = "[[nodes]]\ncount = 2\ngpus = 4\n"
ONE = "[[nodes]]\ncount = 1\ngpus = 4\n"


def simulated(folder: Path, rows: tuple[str, ...], nodes: str = TWO, **params: str) -> Simulation:
    (folder / "jobs.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    work = read_jobs(folder / "jobs.csv")
    if "=" in nodes:
        (folder / "cluster.toml").write_text(nodes)
        nodes = str(folder / "cluster.toml")
    cluster = parse_cluster(nodes, work)
    models = (rates("recorded", work, cluster), overhead("none", work, cluster))
    done = Simulation(work, cluster, find("yarn-fair")(params), Settings(*models))
    done.run()
    return done


def replayed(folder: Path, *rows: str, nodes: str = TWO, **params: str) -> Outcome:
    return simulated(folder, rows, nodes, **params).outcome()


def starts(outcome: Outcome) -> dict[str, float]:
    return dict(outcome.jobs.select("job", "start_s").iter_rows())


def test_a_heartbeat_gives_one_container_and_sees_asks_after_the_next_update(tmp_path: Path) -> None:
    # nodes beat at 0, 1, .. and 0.5, 1.5, ..; the update at 0 comes before the asks, that at 0.5 sees them
    rows = ("a,0,9,1,q,,", "b,0,9,1,q,,", "c,0,9,1,q,,")
    outcome = replayed(tmp_path, *rows)
    assert starts(outcome) == {"a": 0.5, "b": 1, "c": 1.5}
    assert outcome.pieces["node"].to_list() == [1, 0, 1]
    # twice as often, and an update each second
    assert starts(replayed(tmp_path, *rows, heartbeat="0.5", update_interval="1")) == {"a": 1, "b": 1.25, "c": 1.5}


def test_several_containers_a_heartbeat_take_half_of_what_is_free_and_one_more(tmp_path: Path) -> None:
    rows = tuple(f"j{k},0,9,1,q,," for k in range(8))
    found = starts(replayed(tmp_path, *rows, assign_multiple="true"))
    # of 4 free GPUs: 1 and 2 are not more than half, the third is; then 1 of 1 is more than 0
    assert list(found.values()) == [0.5, 0.5, 0.5, 1, 1, 1, 1.5, 2]
    found = starts(replayed(tmp_path, *rows, assign_multiple="true", dynamic_max_assign="false"))
    assert list(found.values()) == [0.5] * 4 + [1] * 4
    found = starts(replayed(tmp_path, *rows, assign_multiple="true", dynamic_max_assign="false", max_assign="2"))
    assert list(found.values()) == [0.5, 0.5, 1, 1, 1.5, 1.5, 2, 2]


def test_the_queue_with_least_use_for_its_weight_is_next(tmp_path: Path) -> None:
    rows = tuple(f"{q}{k},0,50,1,{q},," for q in "yx" for k in range(4))
    equal = starts(replayed(tmp_path, *rows))
    assert sorted(equal, key=lambda j: equal[j]) == ["x0", "y0", "x1", "y1", "x2", "y2", "x3", "y3"]
    # x0 (0, 0), y0 (1/3 against 0), x1, x2 (1/3 and 2/3 against 1), then 1 and 1: by name
    heavy = starts(replayed(tmp_path, *rows, weights="x:3"))
    assert sorted(heavy, key=lambda j: heavy[j]) == ["x0", "y0", "x1", "x2", "x3", "y1", "y2", "y3"]


def test_below_its_minimum_a_queue_is_first(tmp_path: Path) -> None:
    quotas = TWO + "[quotas]\ny = 3\nx = 1\n"
    rows = tuple(f"{q}{k},0,50,1,{q},," for q in "xy" for k in range(4))
    found = starts(replayed(tmp_path, *rows, nodes=quotas, min_shares="quota"))
    # 0 of 1 and 0 of 3, by name; y is below its 3 up to y2, and x not below its 1
    assert sorted(found, key=lambda j: found[j]) == ["x0", "y0", "y1", "y2", "x1", "x2", "x3", "y3"]
    by_quota = starts(replayed(tmp_path, *rows, nodes=quotas, weighted="true"))
    assert sorted(by_quota, key=lambda j: by_quota[j]) == ["x0", "y0", "y1", "y2", "x1", "y3", "x2", "x3"]


def test_a_gang_that_no_node_holds_is_given_on_several(tmp_path: Path) -> None:
    outcome = replayed(tmp_path, "a,0,5,1,q,,", "gang,1,5,8,q,,", "b,2,5,1,q,,")
    # a has one from 0.5 to 5.5, b comes behind the gang and finds room beside a until then
    assert starts(outcome) == {"a": 0.5, "b": 2.5, "gang": 7.5}
    assert outcome.jobs.filter(outcome.jobs["job"] == "gang")["nodes"].to_list() == [2]


def test_a_pool_gives_all_that_fits_at_one_heartbeat(tmp_path: Path) -> None:
    rows = tuple(f"j{k},0,9,1,q,," for k in range(5))
    outcome = replayed(tmp_path, *rows, nodes="pool:4")
    assert list(starts(outcome).values()) == [1, 1, 1, 1, 10]
    assert any("a pool has no nodes" in note for note in outcome.notes)


def test_running_applications_are_limited(tmp_path: Path) -> None:
    rows = ("a0,0,4,1,q,,A", "a1,0,4,1,q,,A", "b0,0,4,1,q,,B", "c0,0,4,1,r,,C")
    assert starts(replayed(tmp_path, *rows)) == {"a0": 0.5, "c0": 1, "b0": 1.5, "a1": 2}
    # A is over when its master beats after 5.5: at 6, after which node 0 beats
    assert starts(replayed(tmp_path, *rows, max_running_apps="1")) == {"a0": 0.5, "c0": 1, "a1": 1.5, "b0": 6}
    assert starts(replayed(tmp_path, *rows, max_running_apps="1", am_heartbeat="0"))["b0"] == 5.5
    assert starts(replayed(tmp_path, *rows, max_running_apps="1", am_heartbeat="4"))["b0"] == 8


def test_jobs_held_by_a_limit_may_reserve_after_the_next_update(tmp_path: Path) -> None:
    rows = ("a,0,5,1,q,,A", "b,0,20,4,q,,B", "c,1,3,1,q,,C")
    found = replayed(tmp_path, *rows, nodes=ONE, max_running_apps="2")
    # a is given at 1 and ends at 6; its application is over at 7, the next update is at 7.5, and the node beats at 8
    assert starts(found) == {"a": 1, "b": 6, "c": 26}
    kept = found.decisions.filter(found.decisions["decision"] == "reserve")
    assert kept.select("t_s", "job").rows() == [(2, "b"), (8, "c")]


def test_masters_ask_for_the_others_and_are_bounded(tmp_path: Path) -> None:
    rows = ("a0,0,20,1,q,,A", "a1,0,4,1,q,,A", "b0,0,20,1,q,,B", "b1,0,4,1,q,,B")
    # masters are asked for at once: known at 0. They beat at 1 the first time, what they ask for is known at 1.5
    assert starts(replayed(tmp_path, *rows, masters="first")) == {"a0": 0, "b0": 0.5, "a1": 1.5, "b1": 2}
    (tmp_path / "fair.xml").write_text(
        '<allocations><queue name="q"><maxAMShare>0.1</maxAMShare></queue></allocations>'
    )
    found = replayed(tmp_path, *rows, masters="first", conf=str(tmp_path / "fair.xml"))
    # a tenth of 8 GPUs, rounded up: one master at a time
    assert starts(found) == {"a0": 0, "a1": 1.5, "b0": 20.5, "b1": 21.5}
    none = replayed(tmp_path, *rows, conf=str(tmp_path / "fair.xml"))
    assert any("maxAMShare (1 queue) bounds nothing" in note for note in none.notes)


def test_a_master_that_ends_before_it_has_asked_asks_then(tmp_path: Path) -> None:
    # a0 would ask at 1, a second after its submission, and ends at 0.25; a2 comes when it is over and asks at once
    rows = ("a0,0,0.25,1,q,,A", "a1,0,4,1,q,,A", "a2,0.75,4,1,q,,A")
    assert starts(replayed(tmp_path, *rows, masters="first")) == {"a0": 0, "a1": 0.5, "a2": 1}


def test_a_starved_application_reserves_a_node(tmp_path: Path) -> None:
    rows = ("a,0,9,3,q,,", "b,0,20,3,q,,", "big,2,5,4,r,,", "small,3,1,1,s,,", "other,4,1,1,s,,")
    # big may reserve one node of two (5 % of them, rounded up): node 1 at 2.5, where a ends at 9.5
    found = replayed(tmp_path, *rows)
    assert starts(found) == {"a": 0.5, "b": 1, "small": 4, "other": 5, "big": 9.5}
    kept = found.decisions.filter(found.decisions["decision"] == "reserve")
    assert kept.select("t_s", "job").rows() == [(2.5, "big")]
    # without it, small ones take the place
    found = replayed(tmp_path, *rows, "late,9,4,1,s,,", reservable_nodes="0")
    assert starts(found)["small"] == 3.5


def test_a_lasting_deficit_to_the_share_is_preempted_for(tmp_path: Path) -> None:
    rows = (*(f"x{k},0,100,1,x,,X" for k in range(4)), "y0,10,20,1,y,,Y", "y1,10,20,1,y,,Y")
    fair = {
        "preemption": "true",
        "fair_share_preemption_timeout": "3",
        "wait_before_kill": "2",
        "fair_share_preemption_threshold": "1",
    }
    outcome = replayed(tmp_path, *rows, nodes=ONE, **fair)
    # one container a second from 1 on; y asks at 10 and is below its 2 of 4 from then on: victims at 13, the newest
    # first, gone at 15; y is given both in the node's next heartbeat
    taken = outcome.decisions.filter(outcome.decisions["decision"] == "preempt")
    assert taken.select("t_s", "job").rows() == [(15, "x3"), (15, "x2")]
    assert {j: t for j, t in starts(outcome).items() if j[0] == "y"} == {"y0": 15, "y1": 15}
    # what was killed begins anew, where YARN has no checkpoints
    lost = dict(outcome.jobs.select("job", "end_s").iter_rows())
    assert (lost["x0"], lost["x2"]) == (101, 135)
    never = starts(replayed(tmp_path, *rows, nodes=ONE, **(fair | {"preemption": "false"})))
    assert never["y0"] == 101
    half = replayed(tmp_path, *rows, nodes=ONE, **(fair | {"fair_share_preemption_threshold": "0.5"}))
    assert int(half.jobs["preemptions"].sum()) == 1


def test_a_deficit_to_the_minimum_is_preempted_for_sooner(tmp_path: Path) -> None:
    rows = (*(f"x{k},0,100,1,x,,X" for k in range(4)), "y0,10,20,1,y,,Y")
    quotas = ONE + "[quotas]\ny = 1\n"
    given = {"preemption": "true", "min_share_preemption_timeout": "1", "wait_before_kill": "0", "min_shares": "quota"}
    outcome = replayed(tmp_path, *rows, nodes=quotas, **given)
    # Hadoop takes what the application asks for less what the queue lacks (class FSLeafQueue): 1 asked, 1 lacking, and
    # as the one is not more than the other, 1 is taken
    assert starts(outcome)["y0"] == 11


def test_a_queue_may_be_kept_from_preemption(tmp_path: Path) -> None:
    rows = (*(f"x{k},0,100,1,x,,X" for k in range(4)), "y0,10,20,1,y,,Y")
    (tmp_path / "fair.xml").write_text(
        "<allocations><defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout>"
        '<queue name="x"><allowPreemptionFrom>false</allowPreemptionFrom></queue><queue name="y"/></allocations>'
    )
    conf = {"conf": str(tmp_path / "fair.xml"), "preemption": "true"}
    assert starts(replayed(tmp_path, *rows, nodes=ONE, **conf))["y0"] == 101


def test_shares_are_whole_and_within_minimum_and_maximum(tmp_path: Path) -> None:
    (tmp_path / "fair.xml").write_text(
        "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
        '<queue name="a"><maxResources>yarn.io/gpu=3</maxResources></queue>'
        '<queue name="b"><minResources>yarn.io/gpu=12</minResources></queue>'
        '<queue name="p"><weight>2.0</weight><queue name="x"/><queue name="y"><weight>3.0</weight></queue></queue>'
        "</allocations>"
    )
    rows = tuple(f"{q.replace('.', '')},0,9,1,{q},," for q in ("a", "b", "p.x", "p.y"))
    done = simulated(tmp_path, rows, "4x8", conf=str(tmp_path / "fair.xml"))
    program = cast("FairProgram", done.program)
    shares = dict(zip(program.queues, program.own.q_fair[:, 2].tolist(), strict=True))
    # 32 less 3 and 12 for p; of that 4 1/3 and 13
    assert shares == {"root": 32, "root.a": 3, "root.b": 12, "root.p": 17, "root.p.x": 4, "root.p.y": 13}


def test_the_configuration_holds_and_what_was_given_takes_precedence_over_it(tmp_path: Path) -> None:
    (tmp_path / "fair-scheduler.xml").write_text('<allocations><queue name="q"/><mode>x</mode></allocations>')
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration>"
        "<property><name>yarn.scheduler.fair.assignmultiple</name><value>true</value></property>"
        "<property><name>yarn.scheduler.fair.dynamic.max.assign</name><value>false</value></property>"
        "<property><name>yarn.scheduler.fair.waitTimeBeforeKill</name><value>7000</value></property>"
        "<property><name>yarn.scheduler.fair.continuous-scheduling-enabled</name><value>true</value></property>"
        "<property><name>yarn.resourcemanager.nodemanagers.heartbeat-interval-ms</name><value>2000</value></property>"
        "</configuration>"
    )
    rows = tuple(f"j{k},0,9,1,q,," for k in range(3))
    outcome = replayed(tmp_path, *rows, conf=str(tmp_path))
    assert list(starts(outcome).values()) == [1, 1, 1]
    known = [outcome.params[name] for name in ("wait_before_kill", "heartbeat", "assign_multiple")]
    assert known == [7, 2, True]
    assert [note for note in outcome.notes if "not modelled" in note] == [
        "not modelled: yarn.scheduler.fair.continuous-scheduling-enabled of yarn-site.xml",
        "not modelled: <mode> (1) of the allocation file",
    ]
    outcome = replayed(tmp_path, *rows, conf=str(tmp_path), assign_multiple="false", heartbeat="1")
    assert list(starts(outcome).values()) == [0.5, 1, 1.5]


def test_options_take_precedence_over_the_file_in_every_queue(tmp_path: Path) -> None:
    (tmp_path / "fair.xml").write_text(
        "<allocations><defaultQueueSchedulingPolicy>drf</defaultQueueSchedulingPolicy>"
        '<queue name="a"><weight>2</weight><minResources>yarn.io/gpu=3</minResources>'
        "<fairSharePreemptionTimeout>9</fairSharePreemptionTimeout><maxRunningApps>1</maxRunningApps></queue>"
        '<queue name="p"><maxRunningApps>7</maxRunningApps><queue name="x"><schedulingPolicy>fifo</schedulingPolicy>'
        "<minSharePreemptionTimeout>4</minSharePreemptionTimeout><maxAMShare>0.3</maxAMShare>"
        "<fairSharePreemptionThreshold>0.8</fairSharePreemptionThreshold></queue></queue></allocations>"
    )
    rows = ("j,0,9,1,a,,", "k,0,9,1,p.x,,", "l,0,9,1,new,,")
    nodes = TWO + '[quotas]\na = 5\n"p.x" = 2\n'

    def queues(**params: str) -> dict[str, tuple[float, ...]]:
        done = simulated(tmp_path, rows, nodes, conf=str(tmp_path / "fair.xml"), **params)
        program = cast("FairProgram", done.program)
        q, least = program.own.queues, program.own.q_min[:, 2]
        fields = (q.weight, least, q.policy, q.most, q.min_wait, q.fair_wait, q.threshold.round(6), q.masters.round(6))
        pairs = zip(program.queues, zip(*(field.tolist() for field in fields), strict=True), strict=True)
        return {name.removeprefix("root."): values for name, values in pairs if name != "root"}

    inf, any_number = math.inf, UNBOUNDED
    assert queues() == {
        "a": (2, 3, DRF, 1, inf, 9, 0.5, 0.5),
        "p": (1, 0, DRF, 7, inf, inf, 0.5, 0.5),
        "new": (1, 0, DRF, any_number, inf, inf, 0.5, 0.5),
        "p.x": (1, 0, FIFO, any_number, 4, inf, 0.8, 0.3),
    }
    assert queues(
        weights="p.x:3,root.p:4",
        min_shares="none",
        scheduling_policy="fair",
        max_running_apps="2",
        min_share_preemption_timeout="6",
        fair_share_preemption_timeout="-1",
        fair_share_preemption_threshold="0.9",
        max_am_share="-1",
    ) == {
        "a": (2, 0, FAIR, 2, 6, inf, 0.9, -1),
        "p": (4, 0, FAIR, 7, 6, inf, 0.9, 0.5),
        "new": (1, 0, FAIR, 2, 6, inf, 0.9, -1),
        "p.x": (3, 0, FAIR, 2, 6, inf, 0.9, -1),
    }
    found = queues(weighted="true", weights="new:9", min_shares="quota", scheduling_policy="fifo")
    assert {name: values[:3] for name, values in found.items()} == {
        "a": (5, 5, FIFO),
        "p": (1, 0, FAIR),
        "new": (9, 0, FIFO),
        "p.x": (2, 2, FIFO),
    }


def test_the_outcome_names_the_parameters_that_were_in_force(tmp_path: Path) -> None:
    (tmp_path / "fair.xml").write_text('<allocations><queue name="q"><weight>2</weight></queue></allocations>')
    conf = {"conf": str(tmp_path / "fair.xml")}
    params = replayed(tmp_path, "a,0,1,1,q,,", fair_share_preemption_timeout="7", **conf).params
    assert (params["fair_share_preemption_timeout"], params["weights"], params["heartbeat"]) == (7, "file", 1)
    assert replayed(tmp_path, "a,0,1,1,q,,").params["weights"] == ""


def test_notes_on_what_has_no_effect(tmp_path: Path) -> None:
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    notes = replayed(tmp_path, "a,0,1,1,q,,", conf=str(tmp_path / "yarn-site.xml"), preemption="true").notes
    assert any("no allocation file" in note for note in notes)
    assert any("preemption is on, and nothing is preempted" in note for note in notes)
    assert replayed(tmp_path, "a,0,1,1,q,,", preemption="true", fair_share_preemption_timeout="1").notes == ()


def test_parameters_that_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "fair-scheduler.xml").write_text('<allocations><queue name="q"/></allocations>')
    with pytest.raises(UsageError, match="there is no queue 'nobody'"):
        replayed(tmp_path, "a,0,1,1,q,,", conf=str(tmp_path), weights="nobody:2")
    with pytest.raises(UsageError, match=r"fair_share_preemption_threshold=1\.5: expected at most 1"):
        replayed(tmp_path, "a,0,1,1,q,,", fair_share_preemption_threshold="1.5")
    with pytest.raises(UsageError, match="there is no queue 'nobody'"):
        replayed(tmp_path, "a,0,1,1,q,,", weights="nobody:2")
    with pytest.raises(UsageError, match="no such file"):
        replayed(tmp_path, "a,0,1,1,q,,", conf=str(tmp_path / "nothing"))
    (tmp_path / "yarn-site.xml").write_text(
        "<configuration><property><name>yarn.scheduler.fair.preemption</name><value>maybe</value></property>"
        "</configuration>"
    )
    with pytest.raises(InputError, match="expected true or false"):
        replayed(tmp_path, "a,0,1,1,q,,", conf=str(tmp_path))


def test_a_node_that_goes_down_takes_its_reservation_and_its_share_along(tmp_path: Path) -> None:
    down = TWO + "\n".join(["", "[[down]]", 'node = "s1"', "from_s = 5", "until_s = 30", ""])
    down = down.replace("[[nodes]]", '[[nodes]]\nname = "s"', 1)
    done = simulated(tmp_path, ("a,0,10,3,q,,", "b,0,20,3,q,,", "big,2,5,4,r,,"), down)
    program = cast("FairProgram", done.program)
    assert int(program.own.cluster[2]) == 8
    assert np.array_equal(program.own.nodes.job, [-1, -1])
    assert int(program.own.p[0].reserved) == 0
