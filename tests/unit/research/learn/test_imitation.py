"""A tree that does as another policy of a replay: what it learns from is what it sees, and what is refused."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.contract.conformance import random_case
from gpuctl.replay.engine.simulation import Simulation
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies import find
from gpuctl.replay.policies.tree import tree as policy
from gpuctl.replay.policies.tree.known import FEATURES, WHAT
from gpuctl.replay.run import Models, start_simulation
from gpuctl.research.learn import imitation
from gpuctl.trees.model import rules_of
from gpuctl.trees.rules import text_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gpuctl.replay.contract.view import View

RULES = """
running > 0 and ran_s > 3 -> 90 %
user_run_s > 5 and alike_ended <= 2 -> 20 %
gpus > 2 and waited_s <= 2 -> 3 of 4
queue_gpus > 3 -> 40 %
otherwise -> 50 %
"""


def test_what_the_tree_learns_from_is_what_it_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rules.txt").write_text(RULES)
    seen: dict[float, NDArray[np.int64]] = {}
    rows_of = policy.rows_of

    def noted(now: float, *args: object, **named: object) -> NDArray[np.int64]:
        seen[now] = rows_of(now, *args, **named)  # type: ignore[arg-type]
        return seen[now]

    monkeypatch.setattr(policy, "rows_of", noted)
    compared = 0
    for seed in range(12):
        workload, cluster, settings = random_case(seed)
        for preempt in ("false", "true"):
            seen.clear()
            params = {"file": str(tmp_path), "preempt": preempt, "quantum": "5"}
            simulation = Simulation(workload, cluster, find("tree")(params), settings, interpreted=True)
            try:
                found = imitation.watch(simulation, preempts=preempt == "true")
            except InputError:
                continue  # no choice in so small a case
            for number, at in enumerate(found.at.tolist()):
                assert np.array_equal(found.rows[found.decision == number], seen[at]), (seed, preempt, at)
                compared += 1
    assert compared > 60


@pytest.mark.parametrize(("teacher", "preempts", "least"), [("fifo-skip", False, 0.95), ("las", True, 0.8)])
def test_a_tree_of_a_policy_without_an_oracle_chooses_as_it(
    root: Path, tmp_path: Path, teacher: str, preempts: bool, least: float
) -> None:
    jobs = read_jobs(root / "sample_data" / "jobs.csv")
    cluster = parse_cluster("3x8", jobs)
    found = imitation.watch(start_simulation(jobs, cluster, (teacher, {}), Models()), preempts=preempts)
    learnt, tested = imitation.split(found, 0.3)
    assert learnt.at.max() < tested.at.min()
    assert (learnt.weight[learnt.chosen == 1].sum()) == learnt.weight[learnt.chosen == 0].sum()
    tree = imitation.distil(learnt, depth=6, leaf=10, leaves=31)
    scores = {each.policy: each for each in imitation.fidelity(tested, tree)}
    assert scores["tree"].same > least > scores["chance"].same
    if preempts:
        assert scores["tree"].same == max(each.same for each in scores.values())
    if teacher == "fifo-skip":
        assert scores["oldest first"].same > 0.9
        (tmp_path / "r.txt").write_text(text_of(rules_of(tree, FEATURES)))
        assert find("tree")({"file": str(tmp_path / "r.txt")}).params["preempt"] is False


def test_no_choice_and_no_file_are_reported(root: Path, tmp_path: Path) -> None:
    jobs = read_jobs(root / "sample_data" / "jobs.csv")
    idle = start_simulation(jobs, parse_cluster("400x8", jobs), ("fifo", {}), Models())
    with pytest.raises(InputError, match="never had a choice"):
        imitation.watch(idle, preempts=False)
    with pytest.raises(UsageError, match="no such file"):
        find("tree")({"file": str(tmp_path / "absent")})
    (tmp_path / "bad.txt").write_text("gpus > 1 -> 5 %\nlength > 1 -> 5 %\n")
    with pytest.raises(InputError, match=r"bad\.txt:2: there is no feature length"):
        find("tree")({"file": str(tmp_path / "bad.txt")})
    assert set(WHAT) == set(FEATURES)


def test_a_tree_starts_jobs_by_hand_written_rules(root: Path, tmp_path: Path) -> None:
    (tmp_path / "r.txt").write_text("gpus <= 1 -> prefer\nplace > 5 -> avoid\notherwise -> 50 %\n")
    started: list[tuple[float, int]] = []

    class Told(policy.TreePolicy):
        def _start(self, view: View, job: int) -> bool:
            done = super()._start(view, job)
            if done:
                started.append((view.now, view.gpus[job]))
            return done

    jobs = read_jobs(root / "sample_data" / "jobs.csv")
    cluster = parse_cluster("2x8", jobs)
    Simulation(
        jobs, cluster, Told({"file": str(tmp_path / "r.txt")}), Models().settings(jobs, cluster), interpreted=True
    ).run()
    assert len(started) == jobs.size
    for one, after in itertools.pairwise(started):
        # of those that start at one instant the small ones come first
        assert one[0] < after[0] or not (after[1] == 1 and one[1] > 1)
