"""A GPU is one GPU, whoever is on it: jobs beside each other, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.contract.conformance import check, random_case, run, violations
from gpuctl.replay.contract.python_policy import PythonPolicy
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import PACK_SPEED, parse_time_slice, rates, read_pairs
from gpuctl.replay.policies import find
from gpuctl.replay.results.metrics import summary
from gpuctl.replay.results.store import write_store
from gpuctl.replay.results.timelines import levels, occupancy, portions
from gpuctl.store.database import Store
from tests.replay_policies import Packer, Slicer
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

P = PACK_SPEED
HEADER = "job_id,submit_time,duration,num_gpus,vc"


def chain(folder: Path) -> tuple[Workload, Cluster]:
    """On two GPUs, at PACK_SPEED while there is company: a to 20, b to 40, c alone on one GPU from then to 50."""
    rows = (f"a,0,{20 * P},2,qa", f"b,0,{40 * P},2,qb", f"c,0,{40 * P + 10},1,qc")
    workload = jobs(folder, *rows, header=HEADER)
    return workload, parse_cluster("1x2", workload)


class Watched(Packer):
    """Writes down what it is told at some seconds."""

    name = "watched"
    always = True
    seen: ClassVar[dict[float, tuple[list[int], list[float]]]] = {}

    def decide(self, view: View) -> None:
        super().decide(view)
        if view.now == 0:
            view.timer(10, 1)
            view.timer(30, 2)
            view.timer(45, 3)
        self.seen[view.now] = [view.queue_used(k) for k in range(3)], [view.attained(k) for k in range(3)]


def busy(outcome: Outcome, cluster: Cluster) -> list[tuple[float, int]]:
    """Second and GPUs busy from then on, where that changes."""
    rows = list(levels(outcome, cluster).select("t_s", "gpus_busy").iter_rows())
    return [row for k, row in enumerate(rows) if k == 0 or row[1] != rows[k - 1][1]]


def test_two_packed_jobs_use_two_gpus_not_four(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,0,100,2")
    outcome, cluster = replay(Packer, workload, "1x2"), parse_cluster("1x2", workload)
    end = pytest.approx(100 / P)
    assert outcome.jobs["end_s"].to_list() == [end, end]
    assert outcome.jobs["gpu_s"].to_list() == [end, end]
    figures = summary(outcome, workload, cluster)
    assert figures["utilization_pct"] == pytest.approx(100)
    assert figures["goodput_pct"] == pytest.approx(100)
    assert figures["idle_gpu_h"] == pytest.approx(0)
    assert levels(outcome, cluster)["gpus_busy"].to_list()[0] == 2
    assert levels(outcome, cluster)["running_jobs"].to_list()[0] == 2
    cells, _ = occupancy(outcome, cluster, np.linspace(0, 100, 3))
    assert cells["busy_pct"].to_list() == [pytest.approx(100)] * 2


def test_a_slice_of_a_gpu_is_half_of_it(tmp_path: Path) -> None:
    class Turns(Packer):
        sliced = True

    workload = jobs(tmp_path, "a,0,60,1", "b,0,60,1")
    outcome = replay(Turns, workload, "1x1")
    # each has the GPU for 60 s and pays for half of the switches
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(61), pytest.approx(61)]
    assert summary(outcome, workload, parse_cluster("1x1", workload))["utilization_pct"] == pytest.approx(100)


def test_the_guest_leaves_first(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,10,30,2")
    outcome, cluster = replay(Packer, workload, "1x2"), parse_cluster("1x2", workload)
    colocated = 30 / P
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(20 + colocated + 120), pytest.approx(colocated)]
    assert outcome.attempts["own_s"].to_list() == [0, None]
    assert [gpus for _, gpus in busy(outcome, cluster)] == [2, 0]


def test_a_chain_of_heirs(tmp_path: Path) -> None:
    workload, cluster = chain(tmp_path)
    outcome = replay(Watched, workload, "1x2")
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(20), pytest.approx(40), pytest.approx(50)]
    # of two GPUs three jobs are on the first one and two on the second; then two and one; then one on one
    third, half = 20 / 3, 20 / 2
    expected = [third + half, third + half + half + 20, third + half + 10]
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(value) for value in expected]
    assert sum(expected) == pytest.approx(2 * 40 + 10)
    assert portions(outcome).tolist() == [pytest.approx(value) for value in expected]
    assert busy(outcome, cluster) == [(0, 2), (pytest.approx(40), 1), (pytest.approx(50), 0)]
    assert outcome.attempts["own_s"].to_list() == [0, pytest.approx(20), pytest.approx(40)]
    assert outcome.attempts["shared"].to_list() == [False, True, True], "nothing is rewritten"
    assert summary(outcome, workload, cluster)["utilization_pct"] == pytest.approx(90)
    # a shared GPU counts for the queue of the job whose it is; attained service in equal parts
    seen = Watched.seen
    assert [seen[t][0] for t in (10.0, 30.0, 45.0)] == [[2, 0, 0], [0, 2, 0], [0, 0, 1]]
    assert seen[10.0][1] == [pytest.approx(v) for v in ((third + half) / 2, (third + half) / 2, third / 2)]


def test_the_store_has_fractions_of_gpus(tmp_path: Path) -> None:
    workload, cluster = chain(tmp_path)
    outcome = replay(Packer, workload, "1x2")
    write_store(tmp_path / "out.duckdb", [outcome], workload, cluster)
    with Store(tmp_path / "out.duckdb") as store:
        rows = store.frame(
            "SELECT job, a.gpus * run_s AS gpu_s, p.gpus * run_s AS placed FROM attempts a JOIN placements p "
            "USING (cluster, job, attempt) ORDER BY job"
        )
        asked = store.frame("SELECT gpus FROM jobs ORDER BY job")["gpus"].to_list()
    assert rows["gpu_s"].to_list() == [pytest.approx(v, abs=1e-3) for v in outcome.jobs["gpu_s"]]
    assert rows["placed"].to_list() == rows["gpu_s"].to_list()
    assert asked == [2, 2, 1]


class Evicting(Packer):
    """b beside a; a is stopped at 10, which takes 20 s, in which b stays beside it; a comes back to idle GPUs."""

    name = "evicting"
    always = True
    preempts = True

    def decide(self, view: View) -> None:
        super().decide(view)
        if view.now == 0:
            view.timer(10)
        if view.now == 10:
            view.preempt(0)


def test_overhead_counts_in_parts_too(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", f"b,0,{15 * P},2")
    outcome = replay(Evicting, workload, "1x2", "const:60")
    # a writes its checkpoint from 10 to 30: half of both GPUs to 15, then all of both; from 30 on it resumes, 40 s
    row = outcome.jobs.row(0, named=True)
    assert outcome.jobs["end_s"][1] == pytest.approx(15)
    assert row["overhead_gpu_s"] == pytest.approx(5 * 1 + 15 * 2 + 40 * 2)
    # 10 s at PACK_SPEED are done, none while the checkpoint was written, b or no b
    assert row["end_s"] == pytest.approx(30 + 40 + 100 - 10 * P)
    assert row["gpu_s"] == pytest.approx(15 + (row["end_s"] - 15) * 2)


def test_a_packer_passes_the_check() -> None:
    assert check(Packer, 5) == []
    assert check(Slicer, 5) == []


def test_the_check_finds_gpus_that_count_twice() -> None:
    case = next(case for case in map(random_case, range(20)) if run(Packer(), *case).attempts["shared"].any())
    outcome = run(Packer(), *case)
    assert violations(outcome, *case) == []
    twice = replace(outcome, attempts=outcome.attempts.with_columns(own_s="start_s"))
    paid = replace(outcome, jobs=outcome.jobs.with_columns(pl.col("gpu_s") * 2))
    assert any("somebody's own" in line for line in violations(twice, *case))
    assert any("GPUs are busy at" in line for line in violations(twice, *case))
    assert any("is charged for" in line for line in violations(paid, *case))


EXAMPLE = f"{Path(__file__).parents[4] / 'docs' / 'examples' / 'timeslice.py'}:PackOrTurn"
CLASSED = "job_id,submit_time,duration,num_gpus,job_class"


def paired(folder: Path, speeds: str, policy: PythonPolicy, *rows: str, turns: str = "60:1", spec: str = "1x1") -> Any:
    """The outcome with a table of pairs, after the check for what no replay may do."""
    (folder / "pairs.csv").write_text(f"job_class,beside,speed\n{speeds}")
    workload = jobs(folder, *rows, header=CLASSED)
    cluster = parse_cluster(spec, workload)
    turn, switch = parse_time_slice(turns)
    models = rates("recorded", workload, cluster, read_pairs(folder / "pairs.csv"))
    shared = Settings(models, overhead("none", workload, cluster), slice_s=turn, switch_s=switch)
    outcome = run(policy, workload, cluster, shared)
    assert violations(outcome, workload, cluster, shared) == []
    return outcome


ROWS = ("a,0,100,1,lm", "b,0,100,1,vision")


def test_packed_jobs_are_as_fast_as_the_table_of_pairs_says(tmp_path: Path) -> None:
    outcome = paired(tmp_path, "lm,vision,.8\n,,.5\n", find(EXAMPLE)(), *ROWS)
    # a to 125 at 0.8, b at 0.5 until then
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(125), pytest.approx(125 + 37.5)]


def test_jobs_not_worth_packing_are_time_sliced(tmp_path: Path) -> None:
    outcome = paired(tmp_path, "lm,vision,.4\n,,.5\n", find(EXAMPLE)(), *ROWS, turns="9:1")
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(100 / 0.45)] * 2


def test_a_third_job_is_next_to_two(tmp_path: Path) -> None:
    rows = (*ROWS, "c,0,25,1,")
    outcome = paired(tmp_path, ",,.8\n", find(EXAMPLE)({"most": "3"}), *rows)
    # all at 0.64 until c is done; then the two others at 0.8
    first = 25 / 0.64
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(first + 75 / 0.8)] * 2 + [pytest.approx(first)]


def test_jobs_that_cannot_be_packed_are_not(tmp_path: Path) -> None:
    class Asks(PythonPolicy):
        name = "asks"

        def decide(self, view: View) -> None:
            for job in list(view.waiting):
                if not view.start(job) and view.now == 0:
                    assert (view.pair_speed(1, 0), view.pair_speed(0, 1)) == (1, 0)
                    assert not view.share(1, 0)

    outcome = paired(tmp_path, ",,1\nlm,vision,0\n", Asks(), *ROWS)
    assert outcome.jobs["start_s"].to_list() == [0, 100]


class Acts(PythonPolicy):
    """a alone, b beside it; at 10 something is done."""

    name = "acts"
    always = True
    what: Any

    def decide(self, view: View) -> None:
        if view.now == 0:
            assert view.start(0)
            assert view.share(1, 0)
            view.timer(10)
        if view.now == 10:
            self.what(view)


def acted(what: Any) -> Any:
    return type("ActsSo", (Acts,), {"what": staticmethod(what)})


ELASTIC = "job_id,submit_time,duration,num_gpus,min_gpus,max_gpus,speed_curve"


def test_a_host_grows_and_its_guest_stays_next_to_it(tmp_path: Path) -> None:
    workload = jobs(tmp_path, f"a,0,{100 * P},1,1,2,1;2", f"b,0,{50 * P},1,,,", header=ELASTIC)

    def grow(view: View) -> None:
        assert view.resize(0, 2)
        assert (view.host(1), view.colocated(0), view.held(0), view.free) == (0, [1], 2, 0)

    outcome, cluster = replay(acted(grow), workload, "1x2"), parse_cluster("1x2", workload)
    # a has done 10 P, and 2 P a second from then to 50; what is left is 10 P at 2 a second
    last = 10 * P / 2
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(50 + last), pytest.approx(50)]
    assert outcome.jobs["gpu_s"].to_list() == [pytest.approx(50 / 2 + 40 + 2 * last), pytest.approx(25)]
    assert outcome.attempts.select("job", "shared", "group", "gpus").rows() == [
        (0, False, 0, 1), (1, True, 0, 1), (0, False, 0, 2),
    ]  # fmt: skip
    assert [gpus for _, gpus in busy(outcome, cluster)] == [1, 2, 0]


def test_a_host_does_not_shrink_below_its_guests(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,99,3,1,3,", "b,0,99,2,2,2,", header=ELASTIC)

    def shrink(view: View) -> None:
        assert not view.resize(0, 1)
        assert not view.resize(0, {0: 1})
        assert view.resize(0, 2)
        assert (view.held(0), view.colocated(1), view.free) == (2, [0], 1)

    replay(acted(shrink), workload, "1x3")


def test_a_host_that_moves_leaves_its_gpus_to_its_guest(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,0,100,1")

    def move(view: View) -> None:
        assert not view.migrate(0, {0: 2}), "one of these is the guest's"
        assert view.migrate(0, {0: 1, 1: 1})
        assert (view.host(1), view.colocated(0), view.placement(0)) == (None, [], {0: 1, 1: 1})

    outcome = replay(acted(move), workload, "2x2")
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(10 + 100 - 10 * P)] * 2
    assert outcome.attempts["own_s"].to_list() == [0, 10, 10]


def test_a_guest_that_moves_has_gpus_of_its_own(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,100,2", "b,0,100,2")

    def move(view: View) -> None:
        assert not view.migrate(1, {0: 2}), "they are the host's"
        assert view.migrate(1)
        assert (view.host(1), view.colocated(0), view.placement(1)) == (None, [], {1: 2})

    outcome = replay(acted(move), workload, "2x2")
    assert outcome.jobs["end_s"].to_list() == [pytest.approx(10 + 100 - 10 * P)] * 2
    assert outcome.jobs["gpu_s"].sum() == pytest.approx(20 + 4 * (100 - 10 * P))


@pytest.mark.parametrize("text", ["", "0:1", "60:-1", "a", "60:1:2", "nan:1", "60:inf"])
def test_turns_that_cannot_be_are_reported(text: str) -> None:
    with pytest.raises(UsageError, match=r"--time-slice .*: expected seconds of a turn and of a switch"):
        parse_time_slice(text)


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        (",,1\nlm,vision,-1\n", "pairs.csv:3: speed is '-1'"),
        (",,1\n,,1\n", "pairs.csv:3: jobs without a class beside jobs without a class has a second line"),
    ],
)
def test_a_wrong_table_of_pairs_is_an_error_that_states_where(tmp_path: Path, speeds: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        paired(tmp_path, speeds, find(EXAMPLE)(), *ROWS)
    assert message in str(caught.value)
