"""What a view refuses, what it tries without effect, and reservations, GPU types and nodes that are down in it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pytest

from gpuctl.compiled.bundles import Bundle, ints
from gpuctl.core.errors import GpuctlError, InputError
from gpuctl.replay.contract import search_kernel as sk
from gpuctl.replay.contract import view_kernel as vk
from gpuctl.replay.contract.arrivals import looked_at
from gpuctl.replay.contract.python_policy import PythonPolicy, RankPolicy
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.speed import rates
from tests.unit.replay.engine.test_engine import jobs, replay

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.replay.contract.view import View


def doing(act: Callable[[View], object], **more: object) -> type[PythonPolicy]:
    """A policy that does this, and starts whatever fits."""

    def decide(self: PythonPolicy, view: View) -> None:
        act(view)
        for job in view.waiting:
            view.start(job)

    return type("Doing", (PythonPolicy,), {"name": "doing", "decide": decide} | more)


WRITES: dict[str, Callable[[View], object]] = {
    "a dictionary of the view": lambda view: view.gpus.__setitem__(10**7, 1),
    "a dictionary": lambda view: view.submit.update({0: 5.0}),
    "a dictionary of": lambda view: view.user.pop(0),
    "view.now": lambda view: setattr(view, "now", 5.0),
    "view.free": lambda view: setattr(view, "free", 5),
    "view.gpus": lambda view: setattr(view, "gpus", {}),
    "view.nodes": lambda view: setattr(view, "nodes", [8]),
}


@pytest.mark.parametrize("what", WRITES)
def test_inputs_of_a_policy_are_read_only(tmp_path: Path, what: str) -> None:
    with pytest.raises(InputError, match=f"doing writes to {what}"):
        replay(doing(WRITES[what]), jobs(tmp_path, "a,0,10,1"), "1x8")


WRONG: dict[str, Callable[[View], object]] = {
    "placement 'consolidated'.*any, consolidate, spread": lambda view: view.start(0, placement="consolidated"),
    "mode 'kill'.*now, epoch, abort": lambda view: view.preempt(0, mode="kill"),
    "node -1: expected 0 to 0": lambda view: view.free_on(-1),
    "node -1: expected 0 to 0 ": lambda view: view.node_class(-1),
    "node -1: expected 0 to 0  ": lambda view: view.nodes[-1],
    "queue -2: expected 0 to 0": lambda view: view.queue_used(-2),
    "queue 3: expected -1 to 0": lambda view: view.quota[3],
    "GPU type 4: expected a number from -1": lambda view: view.start(0, gpu_type=4),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_word_or_number_that_means_nothing_is_reported_with_what_is_allowed(tmp_path: Path, said: str) -> None:
    with pytest.raises(GpuctlError) as caught:
        replay(doing(WRONG[said]), jobs(tmp_path, "a,0,10,1"), "1x8")
    told, _, allowed = said.partition(".*")
    assert told.strip() in str(caught.value)
    assert allowed in f"{caught.value} {caught.value.hint}"


def test_jobs_without_a_queue_have_no_quota(tmp_path: Path) -> None:
    seen = []
    replay(doing(lambda view: seen.append((view.quota[-1], view.queue_used(-1)))), jobs(tmp_path, "a,0,10,1"), "1x8")
    assert seen[0] == (math.inf, 0)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"placement": "packed"}, "placement 'packed'"),
        ({"every": "60s"}, "every = '60s'"),
        ({"every": math.nan}, "every = nan"),
        ({"begin": lambda self, view: view.start(0)}, "acts in begin(), before the first instant"),
        ({"begin": lambda self, view: view.preempt(0)}, "acts in begin(), before the first instant"),
    ],
)
def test_faults_of_a_class_are_reported_before_the_first_instant(
    tmp_path: Path, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as caught:
        replay(doing(lambda _: None, **more), jobs(tmp_path, "a,0,10,1"), "1x8")
    assert said in str(caught.value)


def test_the_placement_of_a_rank_is_checked_too(tmp_path: Path) -> None:
    class Packed(RankPolicy):
        name = "ranked"
        placement = "packed"

        def rank(self, jobs: Any) -> Any:
            return jobs.submit

    with pytest.raises(InputError, match="ranked: placement 'packed'"):
        replay(Packed, jobs(tmp_path, "a,0,10,1"), "1x8")


@pytest.mark.parametrize("number", [-1, 2, 10**7, -(2**62)])
def test_compiled_calls_look_at_their_numbers(tmp_path: Path, number: int) -> None:
    workload = jobs(tmp_path, "a,0,10,1", "b,0,10,1")
    cluster = parse_cluster("1x8", workload)
    settings = Settings(rates("recorded", workload, cluster), overhead("none", workload, cluster))
    state = Simulation(workload, cluster, doing(lambda _: None)(), settings).state
    at = state.address
    assert vk.start(at, number, 0, 0, sk.ANY_TYPE, 0) == -1
    assert vk.wake(at, number, 5.0) is False or number == 0
    assert (vk.stop_job(at, number, 0, 0), vk.refuse(at, number, 0), vk.lease(at, number, 5.0, 0)) == (-1, -1, -1)
    assert (vk.share_with(at, number, 0, 1, 0, 0), vk.share_with(at, 0, number, 1, 0, 0)) == (-1, -1)
    assert not vk.add(at, number, 0, 1)
    assert not vk.add(at, 0, number, 1)
    assert not vk.may_keep(at, 0, number, 1)
    assert not vk.find_for(at, number, 1, 0, sk.ANY_TYPE, True)
    assert (vk.start_chosen(at, number, 1, 0), vk.move_chosen(at, number, True, 0)) == (-1, -1)
    assert (vk.reserve(at, number, 5.0, 0), vk.unreserve(at, number, 0)) == (-1, -1)
    assert vk.loan(at, number, 0, 5.0, 0.0, 0) == -1
    assert (vk.speed_on(at, number, 1), vk.rate(at, number), vk.up_to_now(at, number)[1]) == (0, 0, 0)
    assert sk.place_without(at, number, 0, 1, 0, sk.ANY_TYPE) == -1
    assert sk.place_without(at, 0, 99, 1, 0, sk.ANY_TYPE) == -1
    assert not vk.timer(at, number if number > 0 and number > 63 else -1, 5.0)


class Keeps(PythonPolicy):
    """Job 1 reserves nodes 1 to 3; job 0, which may run on beyond that, is to grow or go elsewhere."""

    name = "keeps"
    act: ClassVar[str] = "resize"
    cancel: ClassVar[bool] = False
    done: ClassVar[bool | None] = None

    def decide(self, view: View) -> None:
        """See `PythonPolicy.decide`."""
        if view.now == 0:
            view.start(0, nodes={0: 1})
        elif view.now == 10:
            view.reserve(1, 11, {1: 8, 2: 8, 3: 8})
            if self.cancel:
                assert view.unreserve(1)
                assert not view.unreserve(1)
            elsewhere = {"resize": lambda: view.resize(0, 16), "migrate": lambda: view.migrate(0, placement="spread")}
            type(self).done = elsewhere[self.act]()
        for job in list(view.waiting) if view.now >= 50 else []:
            view.start(job)


HEADER = "job_id,submit_time,duration,num_gpus,min_gpus,max_gpus,requested_time"


@pytest.mark.parametrize(("act", "cancel"), [("resize", False), ("resize", True)])
def test_a_job_that_names_no_nodes_respects_reservations(tmp_path: Path, act: str, cancel: bool) -> None:
    workload = jobs(tmp_path, "a,0,100,1,1,32,600", "b,10,10,24,24,24,600", "c,50,5,1,1,1,600", header=HEADER)
    policy = type("KeepsSo", (Keeps,), {"act": act, "cancel": cancel})
    replay(policy, workload, "4x8")
    assert policy.done is cancel


def test_a_migration_stays_clear_of_reserved_nodes(tmp_path: Path) -> None:
    class Moves(PythonPolicy):
        name = "moves"

        def decide(self, view: View) -> None:
            for job in list(view.waiting):
                if view.now < 50 and job == 1:
                    view.reserve(1, 11, {1: 8})
                    view.migrate(0, placement="spread")
                else:
                    view.start(job)

    workload = jobs(tmp_path, "a,0,100,1,1,1,600", "b,10,10,16,16,16,600", "c,50,5,1,1,1,600", header=HEADER)
    outcome = replay(Moves, workload, "2x8")
    first = outcome.pieces.filter(outcome.pieces["row"] <= 1)["node"].to_list()
    assert first == [0, 0]


def test_a_trial_states_what_would_fit_and_changes_nothing(tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    def tries(view: View) -> None:
        if view.now == 10:
            before = view._state.copy()
            seen["alone"] = view.fits(2)
            seen["without a"] = view.fits(2, [0])
            seen["without both"] = view.fits(2, [0, 1], placement="consolidate")
            seen["a running one"] = view.fits(0, [1], gpus=4)
            seen["same"] = [
                name for name in before.fields if name not in {"choice", "order", "attempts", "fresh"}
                and getattr(before, name).tobytes() != getattr(view._state, name).tobytes()
            ]  # fmt: skip

    replay(doing(tries), jobs(tmp_path, "a,0,50,4", "b,0,50,2", "c,10,10,5"), "2x4")
    assert seen["alone"] is None
    assert seen["without a"] == {0: 4, 1: 1}
    assert seen["without both"] == {0: 4, 1: 1}
    assert seen["a running one"] == {0: 4}
    assert seen["same"] == []


def test_a_trial_counts_what_those_gone_had_of_a_quota_and_who_stays_on_their_gpus(tmp_path: Path) -> None:
    seen: list[object] = []

    class BackgroundTask(PythonPolicy):
        name = "beside"

        def decide(self, view: View) -> None:
            if view.now == 0:
                view.start(0)
                view.share(1, 0, gpus=2)
            if view.now == 10:
                # b stays on two of a's GPUs
                seen.extend((view.fits(2, [0], gpus=3), view.fits(2, [0], gpus=2), view.fits(2, [0, 1], gpus=4)))
            for job in view.waiting if view.now > 10 else ():
                view.start(job)

    header = "job_id,submit_time,duration,num_gpus,min_gpus,max_gpus"
    workload = jobs(tmp_path, "a,0,50,4,4,4", "b,0,50,2,1,4", "c,10,10,4,1,4", "d,60,5,1,1,1", header=header)
    replay(BackgroundTask, workload, "1x4")
    assert seen == [None, {0: 2}, {0: 4}]


def test_a_gpu_type_is_requested(tmp_path: Path) -> None:
    header = "job_id,submit_time,duration,num_gpus,gpu_type"
    workload = jobs(tmp_path, "a,0,50,1,", "b,0,50,2,", "c,0,50,1,v100", header=header)
    (tmp_path / "cluster.toml").write_text(
        '[[nodes]]\ncount = 1\ngpus = 4\ngpu_type = "v100"\n[[nodes]]\ncount = 2\ngpus = 2\ngpu_type = "p100"\n'
    )
    placed: dict[str, object] = {}

    class Typed(PythonPolicy):
        name = "typed"

        def decide(self, view: View) -> None:
            kind = view.types.index("p100")
            if view.now == 0:
                placed["c"] = view.start(2, gpu_type=kind)
                placed["trial"] = view.fits(1, gpu_type=kind, placement="consolidate")
                view.start(0, gpu_type=kind)
                placed["a"] = view.placement(0)
                view.start(1, gpu_type=view.types.index("v100"))
                placed["b"] = view.placement(1)
                placed["moved"] = view.migrate(1, gpu_type=kind, placement="consolidate"), view.placement(1)
            for job in view.waiting:
                view.start(job)

    replay(Typed, workload, str(tmp_path / "cluster.toml"))
    assert placed == {
        "c": False, "trial": {1: 2}, "a": {1: 1}, "b": {0: 2}, "moved": (True, {2: 2})
    }  # fmt: skip


def test_a_node_that_is_down_has_no_gpus(tmp_path: Path) -> None:
    seen = []
    policy = doing(lambda view: seen.append((view.now, list(view.nodes), view.up(1))), always=True)
    down = np.array([[1.0, 10.0, 20.0]])
    replay(policy, jobs(tmp_path, "a,0,50,1", "b,5,1,1"), "2x4", down=down)
    assert [row for row in seen if row[0] in {0, 10, 20}] == [
        (0, [4, 4], True), (10, [4, 0], False), (20, [4, 4], True)
    ]  # fmt: skip


def test_arrays_of_jobs_cannot_be_written(tmp_path: Path) -> None:
    class Writes(RankPolicy):
        name = "writes"

        def rank(self, jobs: Any) -> Any:
            rank = jobs.gpus
            rank *= 2
            return rank

    with pytest.raises(InputError, match=r"writes failed in rank\(\).*read-only"):
        replay(Writes, jobs(tmp_path, "a,0,10,1"), "1x8")


def test_the_memory_of_a_compiled_policy_is_none_of_the_workload(tmp_path: Path) -> None:
    workload = jobs(tmp_path, "a,0,10,1")
    seen = looked_at(workload)
    with pytest.raises(ValueError, match="read-only"):
        seen.gpus[0] = 5

    class Memory(Bundle):
        gpus = ints()

    memory = Memory(gpus=seen.gpus)
    memory.gpus[0] = 5
    assert workload.gpus[0] == 1
