"""The policy slurm on small sites whose passes are worked out on paper, to the second."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import UsageError
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import add_nodes
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.resources import GPUS_ONLY
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from gpuctl.replay.policies.slurm.cluster import cluster_of
from gpuctl.replay.policies.slurm.setup import setup_of
from gpuctl.slurm.site import read_site

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome

HEADER = "job_id,submit_time,duration,num_gpus,requested_time,vc,user,account,qos,nodes,nice,num_cpus"
BEGIN = """ClusterName=paper
SelectType=select/cons_tres
AccountingStorageEnforce=limits,qos
"""
TWO = "NodeName=n[1-2] CPUs=8 Gres=gpu:4\n"
ALL = "PartitionName=all Nodes=n[1-2]\n"
EVERY = ("gpu", "cpu")


def simulated(
    folder: Path,
    conf: str,
    *rows: str,
    qos: str = "",
    resources: tuple[str, ...] = GPUS_ONLY,
    more: str = "",
    origin: datetime | None = None,
    **params: str,
) -> Simulation:
    (folder / "slurm.conf").write_text(BEGIN + conf)
    paths = [folder / "slurm.conf"]
    if qos:
        (folder / "qos.txt").write_text(qos)
        paths.append(folder / "qos.txt")
    (folder / "jobs.csv").write_text("\n".join([HEADER, *(row + "," * (11 - row.count(",")) for row in rows)]) + "\n")
    work = replace(read_jobs(folder / "jobs.csv", resources), origin=origin)
    cluster = cluster_of(read_site(paths), work, resources)
    if more:
        cluster = add_nodes(cluster, more)
    models = (rates("recorded", work, cluster), overhead("none", work, cluster))
    policy = find("slurm")({"conf": ":".join(map(str, paths)), **params})
    done = Simulation(work, cluster, policy, Settings(*models, resources=resources))
    done.run()
    return done


def replayed(folder: Path, conf: str, *rows: str, **params: str) -> Outcome:
    return simulated(folder, conf, *rows, **params).outcome()  # type: ignore[arg-type]


def starts(outcome: Outcome) -> dict[str, float]:
    return dict(outcome.jobs.select("job", "start_s").iter_rows())


def places(outcome: Outcome) -> list[set[int]]:
    """Nodes of each attempt, in the order of starts."""
    found: dict[int, set[int]] = {}
    for row, node in outcome.pieces.select("row", "node").iter_rows():
        found.setdefault(row, set()).add(node)
    return [found[row] for row in sorted(found)]


# ---- the main pass


def test_main_passes_are_batch_sched_delay_apart(tmp_path: Path) -> None:
    rows = ["a,0,50,1,,all", "b,1,50,1,,all", "c,2,50,1,,all", "d,9,50,1,,all"]
    assert starts(replayed(tmp_path, TWO + ALL, *rows)) == {"a": 0, "b": 3, "c": 3, "d": 9}
    at_once = replayed(tmp_path, TWO + ALL, *rows, batch_sched_delay="0")
    assert starts(at_once) == {"a": 0, "b": 1, "c": 2, "d": 9}
    set_in_it = "SchedulerParameters=batch_sched_delay=5\n" + TWO + ALL
    assert starts(replayed(tmp_path, set_in_it, *rows)) == {"a": 0, "b": 5, "c": 5, "d": 10}


def test_a_job_that_cannot_start_keeps_its_partition_and_its_nodes(tmp_path: Path) -> None:
    conf = (
        "NodeName=n[1-3] CPUs=8 Gres=gpu:4\n"
        "PartitionName=high Nodes=n[1-2] PriorityTier=9\nPartitionName=low Nodes=n[2-3]\n"
    )
    # big waits for x and takes n1 and n2 out of the pass: small, behind it, waits with it, and other, of the lower
    # tier, is left with n3, where third finds no room beside it
    rows = ["x,0,100,4,,high", "big,3,10,8,,high", "small,3,10,1,,high", "other,3,50,3,,low", "third,3,10,2,,low"]
    outcome = replayed(tmp_path, conf, *rows, backfill="false")
    assert starts(outcome) == {"x": 0, "big": 100, "other": 3, "third": 53, "small": 110}
    assert places(outcome)[1:3] == [{2}, {2}]


def test_passes_over_few_jobs_leave_the_others_to_those_over_all(tmp_path: Path) -> None:
    # at 3 the pass looks at default_queue_depth + 1 jobs: w1 of a full partition and w2; f would fit, but is the third
    conf = TWO + "PartitionName=one Nodes=n1\nPartitionName=two Nodes=n2\n"
    rows = ["x,0,1000,4,,one", "w1,3,9,1,,one", "w2,3,9,1,,one", "f,3,9,1,,two"]
    little = {"backfill": "false", "default_queue_depth": "1"}
    assert starts(replayed(tmp_path, conf, *rows, **little))["f"] == 60
    assert starts(replayed(tmp_path, conf, *rows, **little, sched_interval="20"))["f"] == 20
    assert starts(replayed(tmp_path, conf, *rows, backfill="false", default_queue_depth="2"))["f"] == 3


# ---- backfill

QUEUE = ("x,0,500,4,600,all", "wide,1,10,8,60,all", "short,2,100,1,300,all", "long,2,200,1,9000,all")


def test_who_ends_before_the_reservation_starts_now(tmp_path: Path) -> None:
    # at 30 wide is planned for 600, when x ends at the latest; short ends before, long does not. wide starts as soon as
    # x ends, long in the main pass when wide does
    found = starts(replayed(tmp_path, TWO + ALL, *QUEUE))
    assert found == {"x": 0, "wide": 500, "short": 30, "long": 510}
    found = starts(replayed(tmp_path, TWO + ALL, *QUEUE, backfill="false"))
    assert found == {"x": 0, "wide": 500, "short": 510, "long": 510}
    conf = "SchedulerType=sched/builtin\n" + TWO + ALL
    assert starts(replayed(tmp_path, conf, *QUEUE))["short"] == 510
    assert starts(replayed(tmp_path, conf, *QUEUE, backfill="true"))["short"] == 30


def test_beyond_the_window_nothing_is_reserved(tmp_path: Path) -> None:
    # x ends 570 s after the pass at 30, and the plan of 11 minutes ends at 690, rounded down to 660; that of 9 minutes
    # ends at 540. Then long may delay wide
    conf = "SchedulerParameters=bf_window=9\n" + TWO + ALL
    assert starts(replayed(tmp_path, conf, *QUEUE))["long"] == 30
    assert starts(replayed(tmp_path, conf, *QUEUE, bf_window="11"))["long"] == 510
    assert starts(replayed(tmp_path, TWO + ALL, *QUEUE, bf_min_age_reserve="1000"))["long"] == 3


def test_limits_of_a_pass(tmp_path: Path) -> None:
    assert starts(replayed(tmp_path, TWO + ALL, *QUEUE, bf_max_job_test="1"))["short"] == 510
    assert starts(replayed(tmp_path, TWO + ALL, *QUEUE, bf_interval="7"))["short"] == 7
    more = [*QUEUE, "brief,2,100,1,300,all"]
    assert starts(replayed(tmp_path, TWO + ALL, *more))["brief"] == 30
    # brief, behind long, is left to the next pass
    assert starts(replayed(tmp_path, TWO + ALL, *more, bf_max_job_start="1"))["brief"] == 60


def test_jobs_without_limits_are_planned_by_their_partition(tmp_path: Path) -> None:
    rows = ["x,0,500,4,600,all", "wide,1,10,8,60,all", "unsaid,2,100,1,,all"]
    assert starts(replayed(tmp_path, TWO + ALL, *rows))["unsaid"] == 510
    usual = TWO + "PartitionName=all Nodes=n[1-2] DefaultTime=5\n"
    assert starts(replayed(tmp_path, usual, *rows))["unsaid"] == 30
    most = TWO + "PartitionName=all Nodes=n[1-2] MaxTime=10 \n"
    assert starts(replayed(tmp_path, most, *rows))["unsaid"] == 510


# ---- the order

WEIGHTS = "PriorityType=priority/multifactor\nPriorityWeightQOS=100\nPriorityWeightAge=10\n"
QOS = "Name|Priority|Preempt|PreemptMode|Flags|UsageFactor|{0}\nlow|0||cluster||1|{1}\nhigh|50|low|cluster||1|\n"
THREE = (
    "x,0,100,8,,all,u,,low",
    "first,1,10,8,,all,u,,low",
    "nice,2,10,8,,all,u,,high,,60",
    "second,3,10,8,,all,u,,high",
)


def test_who_has_priority_is_first(tmp_path: Path) -> None:
    qos = QOS.format("GrpJobs", "")
    # second has 100 for its QOS, nice 40, first 1: no priority is less
    found = replayed(tmp_path, WEIGHTS + TWO + ALL, *THREE, qos=qos)
    assert starts(found) == {"x": 0, "second": 100, "nice": 110, "first": 120}
    # what a parameter says goes before what is configured, the rest stays
    found = replayed(tmp_path, WEIGHTS + TWO + ALL, *THREE, qos=qos, weight_qos="50")
    assert starts(found) == {"x": 0, "second": 100, "first": 110, "nice": 120}
    # without a priority plugin jobs go as they come
    found = replayed(tmp_path, TWO + ALL, *THREE, qos=qos)
    assert starts(found) == {"x": 0, "first": 100, "nice": 110, "second": 120}


def test_a_tier_takes_precedence_over_any_priority(tmp_path: Path) -> None:
    conf = WEIGHTS + TWO + ALL + "PartitionName=fast Nodes=n[1-2] PriorityTier=2\n"
    rows = ["x,0,100,8,,all,u,,low", "high,1,10,8,,all,u,,high", "fast,2,10,8,,fast,u,,low"]
    found = replayed(tmp_path, conf, *rows, qos=QOS.format("GrpJobs", ""))
    assert starts(found) == {"x": 0, "fast": 100, "high": 110}
    found = replayed(tmp_path, conf, *rows, qos=QOS.format("GrpJobs", ""), tiers="fast:1")
    assert starts(found) == {"x": 0, "high": 100, "fast": 110}


def test_who_has_used_less_is_first(tmp_path: Path) -> None:
    fair = "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n" + TWO + ALL
    rows = ["x,0,400,8,,all,u", "mine,1,10,8,,all,u", "theirs,2,10,8,,all,v"]
    # the calculation at 300 charges u
    assert starts(replayed(tmp_path, fair, *rows)) == {"x": 0, "theirs": 400, "mine": 410}
    assert starts(replayed(tmp_path, fair, *rows, fair_share="none")) == {"x": 0, "mine": 400, "theirs": 410}
    assert starts(replayed(tmp_path, fair, *rows, calc_period="450"))["mine"] == 400


def test_usage_is_cleared_when_the_site_says(tmp_path: Path) -> None:
    fair = "PriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n" + TWO + ALL
    rows = ["x,0,3000,8,,all,u", "y,3700,400,8,,all,v", "theirs,3750,10,8,,all,v", "mine,3800,10,8,,all,u"]
    # 3600 is midnight. At 4100 u has used 3000 s before it, v 200 s by the calculation at 3900
    kept = {"x": 0, "y": 3700, "theirs": 4100, "mine": 4110}
    for period, expected in (("MONTHLY", kept), ("DAILY", kept | {"mine": 4100, "theirs": 4110})):
        conf = f"PriorityUsageResetPeriod={period}\n{fair}"
        done = simulated(tmp_path, conf, *rows, origin=datetime(2026, 3, 5, 23, tzinfo=UTC))
        assert starts(done.outcome()) == expected, period
        assert starts(replayed(tmp_path, conf, *rows)) == kept  # without a calendar nothing is cleared


# ---- limits


def test_a_job_held_by_a_limit_is_skipped_or_blocks_its_partition(tmp_path: Path) -> None:
    qos = QOS.format("GrpTRES", "gres/gpu=3")
    rows = ["x,0,100,2,,all,u,,low", "held,1,10,2,,all,u,,low", "one,2,10,1,,all,v,,low", "other,2,10,1,,all,v,,high"]
    found = replayed(tmp_path, TWO + ALL, *rows, qos=qos)
    assert starts(found) == {"x": 0, "held": 100, "one": 3, "other": 3}
    stops = "SchedulerParameters=assoc_limit_stop\n" + TWO + ALL
    found = replayed(tmp_path, stops, *rows, qos=qos, backfill="false")
    assert starts(found) == {"x": 0, "held": 100, "one": 100, "other": 100}
    # limits hold only where they are enforced
    off = "AccountingStorageEnforce=associations\n" + TWO + ALL
    assert starts(replayed(tmp_path, off, *rows, qos=qos))["held"] == 3


def test_a_job_that_its_limit_never_lets_start_waits_to_the_end(tmp_path: Path) -> None:
    # more than all of its QOS may hold together: Slurm queues it, and it never starts
    rows = ["x,0,100,2,,all,u,,low", "ever,1,10,4,,all,u,,low", "y,2,10,2,,all,u,,high"]
    outcome = replayed(tmp_path, TWO + ALL, *rows, qos=QOS.format("GrpTRES", "gres/gpu=3"))
    assert outcome.jobs["state"].to_list() == ["finished", "waiting", "finished"]


@pytest.mark.parametrize(("limit", "held"), [("GrpJobs", 100), ("MaxJobsPU", 3), ("MaxJobsPA", 100)])
def test_numbers_of_jobs(limit: str, held: float, tmp_path: Path) -> None:
    rows = ["x,0,100,1,,all,u,a,low", "other,1,10,1,,all,v,a,low", "same,1,10,1,,all,u,b,low"]
    found = starts(replayed(tmp_path, TWO + ALL, *rows, qos=QOS.format(limit, "1")))
    assert (found["x"], found["other"]) == (0, held)
    # the third is of the same user, and of another account
    assert found["same"] == {"GrpJobs": 110, "MaxJobsPU": 100, "MaxJobsPA": 3}[limit]


def test_jobs_beyond_what_one_may_ask_for_are_turned_away(tmp_path: Path) -> None:
    conf = TWO + "PartitionName=all Nodes=n[1-2] MaxTime=10\n"
    rows = ["long,0,10,1,900,all,u,,low", "fits,0,10,1,600,all,u,,low", "big,0,10,5,600,all,u,,low"]
    outcome = replayed(tmp_path, conf, *rows, qos=QOS.format("MaxTRES", "gres/gpu=4"))
    states = dict(outcome.jobs.select("job", "state").iter_rows())
    assert states == {"long": "rejected", "fits": "finished", "big": "rejected"}
    turned_away = [note for note in outcome.notes if "can never start" in note]
    assert len(turned_away) == 2
    assert any("MaxTime of partition all" in note for note in turned_away)
    assert any("gres/gpu of one job" in note for note in turned_away)


def test_too_many_submissions_are_turned_away(tmp_path: Path) -> None:
    rows = [
        "x,0,100,1,,all,u,,low",
        "again,1,10,1,,all,u,,low",
        "other,1,10,1,,all,v,,low",
        "later,101,10,1,,all,u,,low",
    ]
    outcome = replayed(tmp_path, TWO + ALL, *rows, qos=QOS.format("MaxSubmitPU", "1"))
    states = dict(outcome.jobs.select("job", "state").iter_rows())
    assert states == {"x": "finished", "again": "rejected", "other": "finished", "later": "finished"}


# ---- preemption

BY_QOS = "PreemptType=preempt/qos\nPreemptMode=REQUEUE\n" + TWO + ALL
TAKES = ("low,0,300,8,,all,u,,low", "high,10,50,8,,all,u,,high")


def test_a_preempted_job_is_queued_again(tmp_path: Path) -> None:
    qos = QOS.format("GrpJobs", "")
    outcome = replayed(tmp_path, BY_QOS, *TAKES, qos=qos)
    rows = outcome.attempts.select("job", "start_s", "end_s", "end").rows()
    # eligible again after 120 s of cred_expire and one: at 131
    assert rows == [(0, 0, 10, "preempted"), (1, 10, 60, "finished"), (0, 131, 431, "finished")]
    outcome = replayed(tmp_path, BY_QOS, *TAKES, qos=qos, requeue_delay="5")
    assert outcome.attempts["start_s"].to_list() == [0, 10, 60]
    outcome = replayed(tmp_path, BY_QOS, *TAKES, qos=qos, preempt="none")
    assert starts(outcome) == {"low": 0, "high": 300}


def test_a_preempted_job_is_cancelled(tmp_path: Path) -> None:
    qos = QOS.format("GrpJobs", "")
    for conf, params in (
        (BY_QOS, {"preempt_mode": "cancel"}),
        (BY_QOS.replace("REQUEUE", "CANCEL"), {}),
        ("JobRequeue=0\n" + BY_QOS, {}),
    ):
        outcome = replayed(tmp_path, conf, *TAKES, qos=qos, **params)
        assert outcome.jobs["state"].to_list() == ["rejected", "finished"]
        assert starts(outcome)["high"] == 10


def test_who_asks_for_preemption_gets_it_whatever_the_mode(tmp_path: Path) -> None:
    qos = QOS.format("GrpJobs", "")
    assert starts(replayed(tmp_path, TWO + ALL, *TAKES, qos=qos))["high"] == 300
    assert starts(replayed(tmp_path, TWO + ALL, *TAKES, qos=qos, preempt="qos"))["high"] == 10


def test_a_job_is_spared_until_it_has_run_a_while(tmp_path: Path) -> None:
    qos = QOS.format("GrpJobs", "")
    assert starts(replayed(tmp_path, BY_QOS, *TAKES, qos=qos, exempt="45"))["high"] == 45
    conf = "PreemptExemptTime=00:01:40\n" + BY_QOS
    assert starts(replayed(tmp_path, conf, *TAKES, qos=qos))["high"] == 100


def test_by_tier_only_those_needed_go(tmp_path: Path) -> None:
    conf = (
        "PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n" + TWO + ALL + "PartitionName=top Nodes=n[1-2] "
        "PriorityTier=5\n"
    )
    rows = ["a,0,300,4,,all", "b,3,300,4,,all", "top,10,50,4,,top"]

    def gone(**params: str) -> list[int]:
        attempts = replayed(tmp_path, conf, *rows, **params).attempts
        return [job for job, end in attempts.select("job", "end").iter_rows() if end == "preempted"]

    assert gone() == [0]
    youngest = conf.replace("REQUEUE\n", "REQUEUE\nSchedulerParameters=preempt_youngest_first\n")
    conf = youngest
    assert gone() == [1]
    assert gone(tiers="top:1,all:1", preempt="none") == []


def test_suspension_is_reported_as_not_modelled(tmp_path: Path) -> None:
    outcome = replayed(tmp_path, BY_QOS, *TAKES, qos=QOS.format("GrpJobs", ""), preempt_mode="suspend")
    assert any("PreemptMode=SUSPEND of 2 jobs" in note for note in outcome.notes)
    # high runs from 10 to 60, low for its other 290 s as soon as it may
    assert outcome.attempts.select("job", "start_s", "end_s").rows()[-1] == (0, 131, 421)


# ---- where jobs go


def test_nodes_of_least_weight_are_first(tmp_path: Path) -> None:
    nodes = "NodeName=n1 CPUs=8 Gres=gpu:4 Weight=5\nNodeName=n[2-3] CPUs=8 Gres=gpu:4\n"
    rows = ["a,0,10,2,,all", "b,1,10,3,,all", "c,1,10,1,,all", "d,1,10,4,,all"]
    found = places(replayed(tmp_path, nodes + "PartitionName=all Nodes=n[1-3]\n", *rows))
    assert found == [{1}, {2}, {1}, {0}]


def test_with_lln_the_idlest_of_equal_weight_is_first(tmp_path: Path) -> None:
    nodes = "NodeName=n1 CPUs=16 Gres=gpu:4\nNodeName=n2 CPUs=8 Gres=gpu:4\nNodeName=n3 CPUs=64 Gres=gpu:4 Weight=9\n"
    part = "PartitionName=all Nodes=n[1-3]"
    # a takes 4 of 16 CPUs of n1, b 4 of 8 of n2; n1 has the larger part idle then, and after c 8 of 16, as n2 has
    rows = [f"{job},{k},99,1,,all,,,,,,4" for k, job in enumerate("abcd")]
    params = {"batch_sched_delay": "0"}
    idlest = simulated(tmp_path, nodes + part + " LLN=YES\n", *rows, resources=EVERY, **params).outcome()
    assert places(idlest) == [{0}, {1}, {0}, {0}]
    everywhere = simulated(
        tmp_path, "SelectTypeParameters=CR_CPU,CR_LLN\n" + nodes + part + "\n", *rows, resources=EVERY, **params
    ).outcome()
    assert places(everywhere) == places(idlest)
    plain = simulated(tmp_path, nodes + part + "\n", *rows, resources=EVERY, **params).outcome()
    assert places(plain) == [{0}, {0}, {0}, {0}]
    blind = replayed(tmp_path, nodes + part + " LLN=YES\n", *rows, **params)
    assert any("LLN" in note and "CPUs" in note for note in blind.notes)


def test_added_nodes_are_in_the_partitions_with_one_like_them(tmp_path: Path) -> None:
    nodes = "NodeName=n[1-2] CPUs=8 Gres=gpu:4\nNodeName=big CPUs=8 Gres=gpu:8\n"
    # one partition of each size, and a third one over all nodes
    parts = "PartitionName=four Nodes=n[1-2]\nPartitionName=eight Nodes=big\nPartitionName=all Nodes=n[1-2],big\n"
    rows = ["a,0,99,4,,four", "b,1,99,4,,four", "c,2,99,4,,four", "d,3,99,8,,eight", "e,4,99,8,,eight", "f,9,9,1,,all"]
    assert starts(replayed(tmp_path, nodes + parts, *rows, batch_sched_delay="0"))["c"] > 90
    more = simulated(tmp_path, nodes + parts, *rows, more="1x4", batch_sched_delay="0").outcome()
    assert [starts(more)[job] for job in "abcd"] == [0, 1, 2, 3]
    assert starts(more)["e"] > 90
    assert any("1 node is not a node of slurm.conf (such as added)" in note for note in more.notes)
    unlike = simulated(tmp_path, nodes + parts, *rows, more="1x16", batch_sched_delay="0").outcome()
    assert [starts(unlike)[job] for job in "abcde"] == [0, 1, 2, 3, 4]


def test_whole_nodes(tmp_path: Path) -> None:
    conf = TWO + "PartitionName=all Nodes=n[1-2] OverSubscribe=EXCLUSIVE\n"
    rows = ["a,0,10,1,,all", "b,0,20,1,,all", "c,0,10,1,,all"]
    outcome = replayed(tmp_path, conf, *rows)
    assert starts(outcome) == {"a": 0, "b": 0, "c": 10}
    assert places(outcome) == [{0}, {1}, {0}]


def test_as_many_nodes_as_a_job_asks_for(tmp_path: Path) -> None:
    rows = ["a,0,10,4,,all,,,,2", "b,0,10,3,,all,,,,1"]
    outcome = replayed(tmp_path, TWO + ALL, *rows)
    assert starts(outcome) == {"a": 0, "b": 10}
    assert places(outcome) == [{0, 1}, {0}]


def test_gangs_are_split_over_nodes_that_can_hold_them(tmp_path: Path) -> None:
    nodes = "NodeName=n[1-3] CPUs=8 Gres=gpu:4\nNodeName=n4 CPUs=8 Gres=gpu:2\n"
    conf = nodes + "PartitionName=all Nodes=n[1-4]\nPartitionName=some Nodes=n[3-4]\n"
    # 9 do not go on 2 nodes in equal parts, but on 3; 6 of some have 4 and 2, as 7 never have
    rows = ["a,0,10,9,,all,,,,2", "b,20,10,6,,some", "c,20,10,7,,some", "d,40,10,14,,all", "e,60,10,10,,all,,,,1"]
    outcome = replayed(tmp_path, conf, *rows)
    assert places(outcome) == [{0, 1, 2}, {2, 3}, {0, 1, 2, 3}, {0, 1, 2}]
    assert outcome.jobs.filter(job="c")["state"].to_list() == ["rejected"]
    assert any("1 job can never start" in note and "could not hold them" in note for note in outcome.notes)
    # e asks for one node, a for two; what holds neither is said
    assert any("1 job does not fit on as many nodes as it asks for" in note for note in outcome.notes)


# ---- what is said


def test_unmodelled_settings_are_reported(tmp_path: Path) -> None:
    conf = "SchedulerParameters=bf_licenses\nLicenses=matlab:5\n" + TWO + ALL
    notes = replayed(tmp_path, conf, "a,0,10,1,,all").notes
    assert any("bf_licenses" in note for note in notes)
    assert any("matlab:5" in note for note in notes)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bf_window": "soon"}, "bf_window=soon: expected a number from 1 to 4294967295"),
        ({"bf_resolution": "0"}, "bf_resolution=0: expected a number from 1 to 4294967295"),
        ({"bf_max_job_test": "2.5"}, "bf_max_job_test=2.5: expected a whole number"),
        ({"weight_age": "nan"}, "weight_age=nan: expected a number"),
        ({"max_age_d": "0"}, "max_age_d=0: expected a number above 0"),
        ({"tiers": "all"}, "tiers=all: expected NAME:N"),
        ({"tiers": "other:3"}, "there is no partition 'other'"),
        ({"preempt": "qos"}, "no QOS is known that preempts another one"),
        ({"preempt": "partition"}, "all partitions have one PriorityTier"),
    ],
)
def test_impossible_values_are_reported(params: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as error:
        simulated(tmp_path, TWO + ALL, "a,0,10,1,,all", **params)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_a_configuration_that_is_not_there_is_reported(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_time,duration,num_gpus\na,0,10,1\n")
    with pytest.raises(UsageError, match="nowhere"):
        setup_of(find("slurm")({"conf": str(tmp_path / "nowhere")}).params, read_jobs(tmp_path / "jobs.csv"))


def test_missing_options_come_from_the_configuration_or_defaults(tmp_path: Path) -> None:
    conf = "PriorityType=priority/multifactor\nPriorityWeightAge=7\nSchedulerParameters=bf_interval=11,bf_window=22\n"
    (tmp_path / "slurm.conf").write_text(BEGIN + conf + TWO + ALL)
    (tmp_path / "jobs.csv").write_text(HEADER + "\na,0,10,1,,all" + "," * 6 + "\n")
    work = read_jobs(tmp_path / "jobs.csv")
    told = find("slurm")({"conf": str(tmp_path), "bf_window": "33", "half_life_d": "2"})
    found = setup_of(told.params, work)
    assert (found.parameters.bf_interval_s, found.parameters.bf_window_min) == (11, 33)
    assert found.parameters.bf_resolution_s == 60
    assert (found.multifactor.weight_age, found.multifactor.half_life_s) == (7, 2 * 86_400)
    alone = setup_of(find("slurm")().params, work)
    assert not alone.given
    assert (alone.multifactor.weight_age, alone.multifactor.weight_fairshare) == (1000, 10_000)
    assert list(alone.site.partitions) == ["all"]
    assert (alone.backfill, alone.preempt, alone.fair_share) == (True, "none", "tree")
