"""What the engine offers to policies that none of the built-in ones uses yet: small policies, figures on paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import random_case, violations
from gpuctl.replay.contract.python_policy import PythonPolicy, RankPolicy
from gpuctl.replay.engine import simulation as engine
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import PACK_SPEED, rates
from gpuctl.replay.policies import find

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Outcome, Workload


def jobs(folder: Path, *rows: str, header: str = "job_id,submit_time,duration,num_gpus") -> Workload:
    path = folder / "jobs.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return read_jobs(path)


def replay(policy: Any, workload: Workload, spec: str, cost: str = "none", **changes: Any) -> Outcome:
    cluster = replace(parse_cluster(spec, workload), **changes)
    settings = Settings(rates("recorded", workload, cluster), overhead(cost, workload, cluster))
    simulation = Simulation(workload, cluster, policy(), settings)
    simulation.run()
    return simulation.outcome()


def times(outcome: Outcome) -> list[tuple[float, float]]:
    return list(outcome.jobs.select("start_s", "end_s").iter_rows())


class Eager(PythonPolicy):
    name = "eager"
    always = True

    def decide(self, view: View) -> None:
        for job in view.waiting:
            view.start(job, "free")


class Pack(PythonPolicy):
    name = "pack"
    sliced = False

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if not view.start(job):
                view.share(job, view.running[0], "no room", sliced=self.sliced)


class Slice(Pack):
    name = "slice"
    sliced = True


def test_packed_jobs_slow_each_other_down(tmp_path: Path) -> None:
    # alone for 10 s, then both at PACK_SPEED until the second is done, then the first alone again
    outcome = replay(Pack, jobs(tmp_path, "a,0,100,2", "b,10,30,2"), "1x2")
    beside = 30 / PACK_SPEED
    assert times(outcome) == [(0, pytest.approx(10 + beside + (90 - 30))), (10, pytest.approx(10 + beside))]
    assert outcome.attempts["shared"].to_list() == [False, True]


def test_the_guest_stays_when_its_host_ends(tmp_path: Path) -> None:
    # b has done 40 when a is done, the other 60 s it is alone; c finds only the one GPU that b does not use
    workload = jobs(tmp_path, "a,0,40,2", "b,0,100,1", "c,60,10,1")
    outcome = replay(Pack, workload, "1x2")
    end = 40 / PACK_SPEED
    assert times(outcome)[0] == (0, pytest.approx(end))
    assert times(outcome)[1] == (0, pytest.approx(end + 60))
    assert times(outcome)[2] == (60, pytest.approx(70))
    assert outcome.decisions.filter(outcome.decisions["job"] == "c")["decision"].to_list() == ["start", "finish"]


def test_time_slices_cost_half_and_the_switch(tmp_path: Path) -> None:
    outcome = replay(Slice, jobs(tmp_path, "a,0,60,1", "b,0,60,1"), "1x1")
    end = 120 * 61 / 60
    assert times(outcome) == [(0, pytest.approx(end)), (0, pytest.approx(end))]


class Leases(Eager):
    name = "leases"

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if view.start(job):
                view.lease(job, view.now + 10)


def test_a_lease_that_is_not_renewed_takes_the_gpus(tmp_path: Path) -> None:
    outcome = replay(Leases, jobs(tmp_path, "a,0,15,1", "b,0,15,1"), "pool:1")
    # in turns of 10 s: a 0-10, b 10-20, a 20-25, b 25-30
    assert times(outcome) == [(0, 25), (10, 30)]
    assert outcome.attempts["end"].to_list() == ["lease", "lease", "finished", "finished"]
    assert outcome.jobs["preemptions"].to_list() == [1, 1]


class Quiet(Leases):
    """Is asked only while jobs wait."""

    name = "quiet"
    always = False


def test_a_policy_hears_of_a_job_that_lost_its_lease_while_none_waited(tmp_path: Path) -> None:
    outcome = replay(Quiet, jobs(tmp_path, "a,0,15,1"), "pool:1")
    assert times(outcome) == [(0, 15)]
    assert outcome.attempts["end"].to_list() == ["lease", "finished"]


class Renewed(Leases):
    name = "renewed"

    def decide(self, view: View) -> None:
        super().decide(view)
        for what, job in view.events:
            if what == "lease":
                view.lease(job, view.now + 10)


def test_a_renewed_lease_continues(tmp_path: Path) -> None:
    assert times(replay(Renewed, jobs(tmp_path, "a,0,25,1"), "pool:1")) == [(0, 25)]


class Grow(Eager):
    name = "grow"

    def decide(self, view: View) -> None:
        super().decide(view)
        for job in view.running:
            if view.free:
                view.resize(job, min(view.most[job], view.held(job) + view.free), "idle GPUs")


def test_a_job_grows_into_idle_gpus(tmp_path: Path) -> None:
    # 2 of 4 GPUs to 4 at once: scale(4)/scale(2) with alpha .08
    faster = (4 / 1.24) / (2 / 1.08)
    elastic = jobs(tmp_path, "a,0,100,2,4", header="job_id,submit_time,duration,num_gpus,max_gpus")
    outcome = replay(Grow, elastic, "1x4")
    assert times(outcome) == [(0, pytest.approx(100 / faster))]
    assert outcome.attempts["gpus"].to_list() == [2, 4]
    # with a cost of 30 s it is paid before it goes on
    assert times(replay(Grow, elastic, "1x4", "const:30"))[0][1] == pytest.approx(30 + 100 / faster)
    assert times(replay(Grow, jobs(tmp_path, "a,0,100,2"), "1x4")) == [(0, 100)], "none that is not elastic"


class Move(Eager):
    name = "move"

    def decide(self, view: View) -> None:
        if view.now == 20:
            assert view.migrate(0, {1: 2}, "off node 0")
            assert not view.migrate(0, {7: 2})
            assert not view.migrate(0, {1: 1})
            assert view.placement(0) == {1: 2}
        super().decide(view)


def test_a_migration_costs_and_keeps_progress(tmp_path: Path) -> None:
    outcome = replay(Move, jobs(tmp_path, "a,0,100,2", "b,20,1,1"), "2x2", "const:30")
    assert times(outcome)[0] == (0, 130)
    assert outcome.attempts.filter(outcome.attempts["job"] == 0)["end"].to_list() == ["migrated", "finished"]


class Stop(Eager):
    name = "stop"
    mode = "now"

    def decide(self, view: View) -> None:
        if view.now == 700:
            view.preempt(0, "test", mode=self.mode)
        super().decide(view)


class AtEpoch(Stop):
    name = "at-epoch"
    mode = "epoch"


class Abort(Stop):
    name = "abort"
    mode = "abort"


@pytest.mark.parametrize(
    ("policy", "end", "lost"),
    [
        (Stop, 1800 + 60 + 5, 0),  # 20 s to suspend, b for 5 s, 40 s to resume
        (AtEpoch, 1800 + 60, 0),  # at 1200 its epoch is done, and b has run meanwhile elsewhere
        (Abort, 1800 + 40 + 5 + 100, 100),  # back to 600, no suspension
    ],
)
def test_three_ways_to_preempt(tmp_path: Path, policy: type[Stop], end: float, lost: float) -> None:
    # 1800 s are three epochs of 600 s; b takes the only GPU as soon as it is free
    outcome = replay(policy, jobs(tmp_path, "a,0,1800,1", "b,700,5,1"), "pool:1", "const:60")
    row = outcome.jobs.row(0, named=True)
    if policy is AtEpoch:
        assert outcome.jobs["start_s"][1] == 1220
        end += 5
    assert row["end_s"] == pytest.approx(end)
    assert row["lost_gpu_s"] == pytest.approx(lost)


class Reserving(PythonPolicy):
    """EASY in five lines: the head has the node from the limit of what runs on."""

    name = "reserving"

    def decide(self, view: View) -> None:
        blocked = False
        for job in view.waiting:
            if not view.start(job, "backfill" if blocked else "head") and not blocked:
                blocked = True
                assert view.reserve(job, 100.0, {0: view.gpus[job]}, "until the first job's limit")


def test_a_reservation_keeps_out_what_would_outlast_it(tmp_path: Path) -> None:
    # by hand: b1 ends before the shadow time and starts, b2 would not and waits
    header = "job_id,submit_time,duration,num_gpus,requested_time"
    rows = ("r1,0,60,3,100", "h,0,50,5,50", "b1,0,70,1,90", "b2,0,120,1,120")
    outcome = replay(Reserving, jobs(tmp_path, *rows, header=header), "1x5")
    assert outcome.jobs["start_s"].to_list() == [0, 70, 0, 120]


class Lender(PythonPolicy):
    """Lends node 1, of the other type, to the first node's class while it is idle, and takes it back at 50."""

    name = "lender"
    always = True

    def begin(self, view: View) -> None:
        self.lent = view.node_class(0)
        self.own = view.node_class(1)

    def decide(self, view: View) -> None:
        if view.now == 0:
            assert view.loan(1, self.lent, "idle")
        if view.now == 5:
            assert not view.loan(1, self.own), "a node with jobs on it is not given back"
        if view.now == 50:
            assert view.loan(1, self.own, "reclaimed")
        for job in view.waiting:
            view.start(job)


def test_a_node_is_lent_and_reclaimed(tmp_path: Path) -> None:
    header = "job_id,submit_time,duration,num_gpus,gpu_type"
    workload = jobs(tmp_path, "a,0,20,2,train", "b,0,20,2,train", "c,5,1,1,train", "d,50,9,2,train", "e,50,9,2,train",
                    header=header)  # fmt: skip
    cluster = parse_cluster("2x2", workload)
    cluster = replace(cluster, gpu_type=np.array([0, 1]), gpu_types=("train", "infer"))
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    simulation = Simulation(workload, cluster, Lender(), settings)
    simulation.run()
    outcome = simulation.outcome()
    # two nodes to begin with, one after the reclaim
    assert outcome.jobs["start_s"].to_list() == [0, 0, 20, 50, 59]
    assert outcome.decisions["decision"].to_list().count("loan") == 2


class LendsForAWhile(Lender):
    """Lends node 1 at 0, to be back at 50, with a notice of 15 s."""

    name = "lends-for-a-while"
    preempts = True
    heard: ClassVar[list[tuple[float, int, float | None]]] = []

    def begin(self, view: View) -> None:
        super().begin(view)
        self.heard.clear()

    def decide(self, view: View) -> None:
        if view.now == 0:
            assert not view.loan(1, self.lent, until=0)
            assert not view.loan(1, self.lent, until=50, notice=-1)
            assert not view.loan(1, self.lent, until=float("nan"))
            assert view.loan(1, self.lent, "idle", until=50, notice=15)
            assert (view.lent_until(0), view.lent_until(1)) == (None, 50)
        for job in view.waiting:
            view.start(job)

    def on_reclaim(self, view: View, node: int) -> None:
        self.heard.append((view.now, node, view.lent_until(node)))


class LendsAndClears(LendsForAWhile):
    """The same; stops the job on it when it hears the notice."""

    name = "lends-and-clears"

    def on_reclaim(self, view: View, node: int) -> None:
        super().on_reclaim(view, node)
        if view.lent_until(node) is not None:
            view.preempt(1)


@pytest.mark.parametrize(
    ("policy", "starts", "lost", "ends", "runs"),
    [
        # b is thrown out at 50, loses all, and starts once a has ended; c, which may use the node at home, stays
        (LendsForAWhile, [0, 0, 0], 50, [80, 140, 90], ["reclaim", "return"]),
        (LendsAndClears, [0, 0, 0], 0, [80, 80 + 60 - 35, 90], ["return"]),
    ],
)
def test_a_node_that_is_lent_with_a_time_round_trips(
    tmp_path: Path, policy: Any, starts: list[float], lost: float, ends: list[float], runs: list[str]
) -> None:
    header = "job_id,submit_time,duration,num_gpus,gpu_type"
    rows = ("a,0,80,2,train", "b,0,60,1,train", "c,0,90,1,")
    workload = jobs(tmp_path, *rows, header=header)
    cluster = replace(parse_cluster("2x2", workload), gpu_type=np.array([0, 1]), gpu_types=("train", "infer"))
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    simulation = Simulation(workload, cluster, policy(), settings)
    simulation.run()
    outcome = simulation.outcome()
    assert outcome.jobs["start_s"].to_list() == starts
    assert outcome.jobs["end_s"].to_list() == ends
    assert outcome.jobs["lost_gpu_s"].to_list() == [0, lost, 0]
    assert LendsForAWhile.heard == [(35, 1, 50), (50, 1, None)]
    assert (
        outcome.decisions.filter(outcome.decisions["decision"].is_in(["reclaim", "return"]))["decision"].to_list()
        == runs
    )
    assert violations(outcome, workload, cluster, settings) == []


def test_a_node_that_is_given_back_early_is_not_reclaimed(tmp_path: Path) -> None:
    class Early(LendsForAWhile):
        def decide(self, view: View) -> None:
            super().decide(view)
            if view.now == 20:
                assert view.loan(1, view.home_class(1))

    header = "job_id,submit_time,duration,num_gpus,gpu_type"
    workload = jobs(tmp_path, "a,0,20,2,train", "b,0,20,2,train", "c,20,90,2,train", header=header)
    cluster = replace(parse_cluster("2x2", workload), gpu_type=np.array([0, 1]), gpu_types=("train", "infer"))
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    simulation = Simulation(workload, cluster, Early(), settings)
    simulation.run()
    assert simulation.outcome().jobs["end_s"].to_list() == [20, 20, 110]
    assert LendsForAWhile.heard == []


def test_a_gang_as_large_as_a_node_that_was_lent_and_given_back_is_put_on_several(tmp_path: Path) -> None:
    class Back(PythonPolicy):
        name = "back"
        placement = "consolidate"

        def decide(self, view: View) -> None:
            if view.now == 0:
                own = view.node_class(2)
                assert view.loan(2, view.node_class(0))
                assert view.loan(2, own)
            for job in view.waiting:
                view.start(job)

    workload = jobs(tmp_path, "a,0,20,4,train", header="job_id,submit_time,duration,num_gpus,gpu_type")
    cluster = replace(parse_cluster("3x2", workload), gpus=np.array([2, 2, 4]))
    cluster = replace(cluster, gpu_type=np.array([0, 0, 1]), gpu_types=("train", "infer"))
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    simulation = Simulation(workload, cluster, Back(), settings)
    simulation.run()
    assert simulation.outcome().jobs["end_s"].to_list() == [20]


def test_dependencies_are_waited_for(tmp_path: Path) -> None:
    header = "job_id,submit_time,duration,num_gpus,depends_on"
    outcome = replay(find("fifo"), jobs(tmp_path, "a,0,30,1,", "b,0,10,1,a", "c,0,5,1,a;b", header=header), "pool:4")
    assert times(outcome) == [(0, 30), (30, 40), (40, 45)]
    assert outcome.jobs["eligible_s"].to_list() == [0, 30, 40]


def test_a_node_that_goes_down_throws_its_jobs_back_to_their_checkpoints(tmp_path: Path) -> None:
    # 1200 s are two epochs of 600 s; at 700 node 0 is gone for good, 100 s are lost
    outcome = replay(find("fifo"), jobs(tmp_path, "a,0,1200,2"), "2x2", down=np.array([[0.0, 700.0, np.inf]]))
    assert times(outcome) == [(0, 1300)]
    assert outcome.attempts["end"].to_list() == ["machine_down", "finished"]
    assert outcome.jobs["lost_gpu_s"].to_list() == [200]
    assert outcome.pieces["node"].to_list() == [0, 1]


class Refuse(Eager):
    name = "refuse"

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if view.gpus[job] > 1:
                assert view.reject(job, "too large")
            else:
                view.start(job)


def test_a_rejected_job_is_listed(tmp_path: Path) -> None:
    outcome = replay(Refuse, jobs(tmp_path, "a,0,5,2", "b,0,5,1"), "pool:4")
    assert outcome.jobs["state"].to_list() == ["rejected", "finished"]
    assert outcome.decisions["reason"][0] == "too large"


class Timers(PythonPolicy):
    name = "timers"

    def decide(self, view: View) -> None:
        for what, job in view.events:
            if what == "queued":
                assert view.wake(job, view.submit[job] + 7)
                assert view.timer(view.now + 3, 5)
            elif what == "timer":
                assert (view.now, job) == (3, 5)
            elif what == "wake":
                assert view.start(job, "slept")


def test_timers_wake_the_policy(tmp_path: Path) -> None:
    assert times(replay(Timers, jobs(tmp_path, "a,0,5,1"), "pool:1")) == [(7, 12)]


def test_a_fork_is_independent_and_leaves_the_first_alone(tmp_path: Path) -> None:
    rows = [f"j{k},{k * 3},{40 - k % 7 * 5},{1 + k % 3}" for k in range(60)]
    workload = jobs(tmp_path, *rows)
    cluster = parse_cluster("2x4", workload)
    settings = Settings(rates("recorded", workload, cluster), overhead("const:6", workload, cluster))
    for policy in (find("tiresias")({"limits": "30"}), find("philly")(), Eager()):
        plain = Simulation(workload, cluster, policy, settings)
        plain.run()
        forked = Simulation(workload, cluster, policy, settings)
        while forked.advance(until=90, steps=5):
            pass
        twins = [forked.fork() for _ in range(3)]
        for twin in twins:
            twin.run()
            assert twin.outcome().decisions.equals(plain.outcome().decisions)
        assert forked.now <= 90
        forked.run()
        assert forked.outcome().decisions.equals(plain.outcome().decisions)


class Peeks(PythonPolicy):
    name = "peeks"

    def decide(self, view: View) -> None:
        view.remaining(0)


def test_true_run_times_are_for_those_that_report_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="without declaring it"):
        replay(Peeks, jobs(tmp_path, "a,0,5,2"), "pool:4")


class Restless(PythonPolicy):
    name = "restless"

    def decide(self, view: View) -> None:
        while True:
            view.start(0)
            view.preempt(0)


def test_a_policy_that_never_ends_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more decisions at second 0"):
        replay(Restless, jobs(tmp_path, "a,0,5,1"), "pool:4")


class Smallest(RankPolicy):
    name = "smallest"

    def rank(self, jobs: Workload) -> Any:
        return jobs.gpus


class Cheats(RankPolicy):
    name = "cheats"

    def rank(self, jobs: Workload) -> Any:
        return jobs.segment_s


def test_a_rank_is_an_order(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,10,4", "b,1,10,4", "c,2,10,2", "d,3,10,1")
    assert replay(Smallest, workload, "pool:4").jobs["start_s"].to_list() == [0, 20, 10, 10]
    with pytest.raises(InputError, match="cheats reads true run times without declaring it"):
        replay(Cheats, workload, "pool:4")


def test_a_fault_of_the_users_policy_names_file_and_line(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from gpuctl.replay.contract.python_policy import PythonPolicy\n\n\nclass Own(PythonPolicy):\n"
        "    def decide(self, view):\n        return 1 / 0\n"
    )
    with pytest.raises(InputError, match=r"own\.py:6: Own failed at second 0: ZeroDivisionError"):
        replay(find(f"{file}:Own"), jobs(tmp_path, "a,0,5,1"), "pool:4")
    file.write_text("class X(:\n")
    with pytest.raises(InputError, match=r"own\.py:1: not Python"):
        find(f"{file}:X")


@pytest.mark.parametrize("resources", [False, True])
def test_a_simulation_that_gives_up_its_arrays_gives_the_same(resources: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "BATCH", 7)
    for seed in range(12):
        workload, cluster, shared = random_case(seed, resources=resources)
        simulation = Simulation(workload, cluster, find("fifo-skip" if resources else "tiresias")(), shared)
        simulation.run()
        one, two = simulation.outcome(), simulation.outcome(last=True)
        assert one.decisions.equals(two.decisions)
        for name in ("jobs", "attempts", "pieces"):
            assert getattr(one, name).equals(getattr(two, name)), name
        assert (one.end_s, one.instants) == (two.end_s, two.instants)
        # nothing of it is left but what the tables look at
        assert simulation.state.attempts.size == simulation.state.jobs.size == 0
