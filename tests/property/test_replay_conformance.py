"""Every policy, built in or shown in the docs, keeps what no replay may break; a new one is checked by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.replay.contract.conformance import foresight, random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_bounds, with_pairs, with_types
from gpuctl.replay.contract.python_policy import PythonPolicy, RankPolicy
from gpuctl.replay.inputs.check import unplaceable
from gpuctl.replay.policies import BUILT_IN, find
from gpuctl.replay.policies.philly.philly import Philly
from tests.example_counts import examples
from tests.replay_policies import Borrows, Crowd, Measures, Packer, Restless, Slicer

if TYPE_CHECKING:
    from gpuctl.replay.contract.arrivals import Arrivals
    from gpuctl.replay.contract.view import View
    from gpuctl.replay.models.records import Workload

NAMES = [name for name in BUILT_IN if name != "recorded"]  # a random case records nothing
OWN = Path(__file__).parents[2] / "docs" / "examples" / "my_policies.py"


@pytest.mark.parametrize("name", [*NAMES, f"{OWN}:SmallFirst", f"{OWN}:MakeRoom"])
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=2342)  # las: jobs took turns without coming forward, each preempted while it loaded its checkpoint
def test_no_policy_breaks_an_invariant_or_knows_the_future(name: str, seed: int) -> None:
    case = random_case(seed, resources=find(name)().resources and seed % 2 == 1)
    outcome = run(find(name)(), *case)
    assert violations(outcome, *case) == []
    assert foresight(find(name), case, outcome, seed) == []


@pytest.mark.parametrize("name", ["fifo-skip", "srtf", "tiresias", "pickyman", "easy", "philly"])
@settings(max_examples=examples(40))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_where_speeds_follow_gpu_types(name: str, seed: int) -> None:
    case = with_types(seed, random_case(seed))
    outcome = run(find(name)(), *case)
    assert violations(outcome, *case) == []
    assert foresight(find(name), case, outcome, seed) == []


@pytest.mark.parametrize("kind", [Restless, Packer, find(f"{OWN.parent / 'timeslice.py'}:PackOrTurn")])
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_one_whose_hosts_and_guests_move_and_grow(kind: type[PythonPolicy], seed: int) -> None:
    case = with_pairs(seed, with_bounds(seed, random_case(seed)))
    outcome = run(kind(), *case)
    assert violations(outcome, *case) == []
    assert foresight(kind, case, outcome, seed) == []


RULES: tuple[dict[str, str], ...] = (
    {"relax": "adaptive", "defragment": "true", "worth": "0.01"},
    {"relax": "time", "relax_after": "100", "dedicate": "small", "small": "2", "defragment": "true", "worth": "0.01"},
    {"relax": "never", "dedicate": "server"},
    {"relax": "retry", "dedicate": "small"},
)


@pytest.mark.parametrize("number", range(len(RULES)))
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_philly_by_any_of_its_rules(number: int, seed: int) -> None:
    class Ruled(Philly):
        def __init__(self) -> None:
            super().__init__(RULES[number])

    case = random_case(seed)
    outcome = run(Ruled(), *case)
    assert violations(outcome, *case) == []
    assert foresight(Ruled, case, outcome, seed) == []


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_one_that_lends_nodes(seed: int) -> None:
    case = with_types(seed, random_case(seed))
    draw = np.random.Generator(np.random.PCG64(seed))
    workload, cluster, shared = case
    # some jobs need a type of GPU, where there is enough of it
    need = draw.integers(-1, 2, workload.size)
    typed = replace(workload, gpu_type=need)
    need[unplaceable(typed, cluster)] = -1
    case = replace(workload, gpu_type=need), cluster, shared
    outcome = run(Borrows(), *case)
    assert violations(outcome, *case) == []
    assert foresight(Borrows, case, outcome, seed) == []


class _RestlessWithCpus(Restless):
    resources = True


class _PackerWithCpus(Packer):
    resources = True


@pytest.mark.parametrize("kind", [_RestlessWithCpus, _PackerWithCpus])
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_one_where_cpus_and_memory_count(kind: type[PythonPolicy], seed: int) -> None:
    case = random_case(seed, resources=True)
    case = with_bounds(seed, case) if seed % 2 else with_pairs(seed, case)
    outcome = run(kind(), *case)
    assert violations(outcome, *case) == []


@pytest.mark.parametrize("kind", [Packer, Slicer, Crowd, Measures])
@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_nor_does_one_whose_jobs_share_gpus(kind: type[PythonPolicy], seed: int) -> None:
    workload, cluster, shared = with_types(seed, random_case(seed)) if seed % 3 == 0 else random_case(seed)
    outcome = run(kind(), workload, cluster, shared)
    assert violations(outcome, workload, cluster, shared) == []


class Looks(PythonPolicy):
    """First come, first served, but for what `wanted` says; looks past the view, as an honest policy does not."""

    name = "looks"

    def wanted(self, view: View, job: int) -> bool:
        raise NotImplementedError

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if self.wanted(view, job) or len(view.running) == 0:
                view.start(job)


class CountsJobs(Looks):
    """Goes by how many jobs there will be."""

    def wanted(self, view: View, job: int) -> bool:
        return bool((view._state.jobs.size + job) % 2 == 0)


class NextGang(Looks):
    """Leaves room for the gang that comes next."""

    def wanted(self, view: View, job: int) -> bool:
        state: Any = view._state
        later = [int(j.gpus) for j in state.jobs if j.submit > view.now]
        return not later or view.free - view.gpus[job] >= later[0]


class RunTimes(Looks):
    """Goes by true run times without saying so."""

    def wanted(self, view: View, job: int) -> bool:
        return bool(view._state.jobs.work[job] < 12)


class RareUsers(RankPolicy):
    """As the documentation's policy once did: users who will submit least often first."""

    name = "rare-users"

    def begin(self) -> None:
        self.all: Workload | None = None

    def rank(self, jobs: Arrivals) -> Any:
        everything = jobs._all._workload
        often = np.bincount(everything.user, minlength=len(everything.users))
        names = {user: number for number, user in enumerate(everything.users)}
        return [often[names[jobs.users[user]]] for user in jobs.user.tolist()]


@pytest.mark.parametrize("policy", [CountsJobs, NextGang, RunTimes, RareUsers])
def test_a_policy_that_peeks_is_caught(policy: Any) -> None:
    cases = ((seed, random_case(seed)) for seed in range(40))
    found = (foresight(policy, case, run(policy(), *case), seed) for seed, case in cases)
    assert next(filter(None, found))[0].startswith("knows what comes after second ")


class Asks(PythonPolicy):
    """Asks about, or acts on, the job after all that it has heard of."""

    name = "asks"
    what = ""

    def decide(self, view: View) -> None:
        later = len(view.gpus)
        found = {
            "attribute": lambda: view.gpus[later],
            "state": lambda: view.state(later),
            "ran": lambda: view.ran(later),
            "remaining": lambda: view.remaining(later),
            "negative": lambda: view.submit[-1],
            "act": lambda: [view.start(later), view.wake(later, 1e6), view.preempt(later), view.share(0, later)],
            "in": lambda: [later in view.waiting, -1 in view.waiting, 10**9 in view.waiting],
        }[self.what]()
        assert not any(found)
        for job in view.waiting:
            view.start(job)


@pytest.mark.parametrize("what", ["attribute", "state", "ran", "remaining", "negative"])
def test_a_job_to_come_is_an_error_that_names_policy_job_and_second(what: str) -> None:
    workload, cluster, shared = random_case(1)
    policy = type("AsksThat", (Asks,), {"what": what, "oracle": True})
    at = int((workload.submit <= workload.submit[0]).sum()) if what != "negative" else -1
    with pytest.raises(InputError, match=f"^asks reads job {at} at second {workload.submit[0]:g}, which has not"):
        run(policy(), workload, cluster, shared)


@pytest.mark.parametrize("what", ["act", "in"])
def test_nothing_can_be_done_to_a_job_to_come(what: str) -> None:
    workload, cluster, shared = random_case(1, plain=True)
    policy = type("AsksThat", (Asks,), {"what": what})
    assert violations(run(policy(), workload, cluster, shared), workload, cluster, shared) == []


class Forked(PythonPolicy):
    """Keeps what the view has in attributes."""

    name = "forked"

    def begin(self, view: View) -> None:
        self.gpus, self.line = view.gpus, view.waiting
        assert len(self.gpus) == 0

    def decide(self, view: View) -> None:
        assert self.gpus is view.gpus
        assert self.line is view.waiting
        for job in self.line:
            view.start(job, str(len(self.gpus)))


def test_a_fork_gets_to_know_jobs_for_itself() -> None:
    from gpuctl.replay.engine.simulation import Simulation

    workload, cluster, shared = random_case(1)
    one = Simulation(workload, cluster, Forked(), shared)
    one.advance(steps=2)
    two = one.fork()
    one.run()
    two.run()
    assert one.outcome().decisions.equals(two.outcome().decisions)


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**32 - 1))
def test_recorded_gives_back_what_another_policy_did(seed: int) -> None:
    from dataclasses import replace

    workload, cluster, shared = random_case(seed, plain=True)
    outcome = run(find("fifo-skip")(), workload, cluster, shared)
    pieces = outcome.pieces.join(outcome.attempts.with_row_index("row").cast({"row": int}), on="row").sort("job", "row")
    counts = np.bincount(pieces["job"].to_numpy(), minlength=workload.size)
    recorded = replace(
        workload,
        recorded_start=outcome.jobs["start_s"].to_numpy(),
        piece_start=np.concatenate([[0], np.cumsum(counts)]),
        piece_node=pieces["node"].to_numpy(),
        piece_gpus=pieces["gpus"].to_numpy(),
    )
    again = run(find("recorded")(), recorded, cluster, shared)
    assert again.jobs.select("start_s", "end_s").equals(outcome.jobs.select("start_s", "end_s"))
    assert again.pieces.height == outcome.pieces.height


def test_a_broken_outcome_is_found() -> None:
    from dataclasses import replace

    import polars as pl

    workload, cluster, shared = random_case(3)
    outcome = run(find("fifo")(), workload, cluster, shared)
    early = replace(outcome, attempts=outcome.attempts.with_columns(pl.col("start_s") - 50))
    twice = replace(outcome, pieces=outcome.pieces.with_columns(pl.col("gpus") * 9))
    assert any("eligible" in line for line in violations(early, workload, cluster, shared))
    assert any("gives" in line for line in violations(twice, workload, cluster, shared))


class _Rejects(PythonPolicy):
    """First come, first served; takes no job of two GPUs or more."""

    name = "rejects"

    def decide(self, view: View) -> None:
        for job in view.waiting:
            if view.gpus[job] > 1:
                view.reject(job, "too large")
            else:
                view.start(job)


def test_only_jobs_that_depend_on_a_rejected_one_may_be_held_to_the_end() -> None:
    held = 0
    for seed in range(40):
        case = random_case(seed)
        outcome = run(_Rejects(), *case)
        assert violations(outcome, *case) == []
        states = outcome.jobs["state"].to_list()
        held += states.count("held")
        if "rejected" not in states:
            wrong = replace(outcome, jobs=outcome.jobs.with_columns(state=pl.lit("held")))
            assert "has not ended: held" in violations(wrong, *case)[0]
    assert held > 0
