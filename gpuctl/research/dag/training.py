"""Trains a tree for ``gpuctl dag distil``: its sets, the entries of its card, and its test."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuctl.core.errors import InputError, UsageError
from gpuctl.core.notes import listed, literal, note
from gpuctl.research.dag import model
from gpuctl.research.dag.distil import Distillation, Fidelity, Round, distil, fidelity
from gpuctl.research.dag.features import Limit, features_of
from gpuctl.research.dag.jobs import generate, read
from gpuctl.research.dag.policies import PLAIN, by_rules
from gpuctl.trees.model import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpuctl.core.notes import Note
    from gpuctl.research.dag.evaluate import Setting
    from gpuctl.research.dag.jobs import Job
    from gpuctl.research.dag.policies import Policy
    from gpuctl.trees.model import Tree
    from gpuctl.trees.rules import Rules

    Progress = Callable[[str, int, int], None]

APART = 100_000
"""Between the seeds of sets that belong to one seed of the training and to the next; the first one is left to tests."""


@dataclass(frozen=True)
class TrainingSets:
    """Sets of jobs for training and test.

    Attributes:
        sets: generated sets per round.
        rounds: number of rounds.
        jobs: of a generated set.
        loads: of generated sets, in turn.
        seed: of the training.
        test: generated sets per load on which to measure fidelity.
    """

    sets: int = 12
    rounds: int = 3
    jobs: int = 25
    loads: tuple[float, ...] = (0.5, 0.7, 0.9)
    seed: int = 1
    test: int = 4

    @property
    def first_seed(self) -> int:
        """Return the seed of the first set; the others follow."""
        return APART * (self.seed + 1)


@dataclass(frozen=True)
class Training:
    """A tree, and its origin.

    Attributes:
        tree: the tree.
        rules: its leaves.
        rounds: rounds with their outcome.
        fidelity: by load; NaN for files.
        description: description of its training and test data.
        seeds: the first and the last seed of its generated training sets; None: files.
    """

    tree: Tree
    rules: Rules
    rounds: list[tuple[int, Round]]
    fidelity: dict[float, list[Fidelity]]
    description: dict[str, Note]
    seeds: tuple[int, int] | None


def run(
    goal: Distillation, wanted: TrainingSets, paths: Sequence[Path], progress: Progress = lambda *_: None
) -> Training:
    """Distil a tree from files or generated sets, and measure its fidelity on other generated sets.

    All files are played in every round; the last fifth of the jobs of each, by arrival, is reserved for the test if
    there are enough.
    """
    count = wanted.sets * wanted.rounds
    seeds = range(wanted.first_seed, wanted.first_seed + count)
    tests: dict[float, list[Sequence[Job]]]
    if paths:
        parts = [_parted(read(path)) for path in paths]
        rounds = [[early for early, _ in parts]] * wanted.rounds
        tests = {math.nan: [late for _, late in parts if late]}
        description = {
            "trained on": listed("path", map(str, paths)),
            "tested on": literal("the last fifth of the jobs of each file, by arrival"),
        }
    else:
        made = [
            generate(seed, wanted.jobs, goal.executors, wanted.loads[k % len(wanted.loads)])
            for k, seed in enumerate(seeds)
        ]
        rounds = [made[k : k + wanted.sets] for k in range(0, count, wanted.sets)]
        tests = {
            load: [generate(seeds[-1] + 1 + k, wanted.jobs, goal.executors, load) for k in range(wanted.test)]
            for load in wanted.loads
        }
        loads = literal(", ".join(f"{load:g}" for load in wanted.loads))
        description = {
            "trained on": note("{n:,} made-up sets of {jobs:,} job{jobs||s} at loads {loads} in turn, seeds "
                               "{first} to {last}",
                               n=count, jobs=wanted.jobs, loads=loads, first=seeds[0], last=seeds[-1]),
            "tested on": note("seeds {first} to {last} at each load", first=seeds[-1] + 1,
                              last=seeds[-1] + wanted.test),
        }  # fmt: skip
    tree, went = distil(rounds, goal, progress)
    rules = rules_of(tree, features_of(goal.limit))
    policy = by_rules("tree", rules, goal.limit)
    found = {load: fidelity(sets, policy, goal, progress) for load, sets in tests.items() if sets}
    sizes = list(map(len, rounds))
    return Training(
        tree, rules, list(zip(sizes, went, strict=True)), found, description, None if paths else (seeds[0], seeds[-1])
    )


def _parted(jobs: list[Job]) -> tuple[list[Job], list[Job]]:
    """Split jobs into all but the last fifth by arrival, and that; all, and none, if there are few."""
    if len(jobs) < 20:
        return jobs, []
    ordered = sorted(jobs, key=lambda job: job.arrival_ms)
    cut = len(jobs) * 4 // 5
    return ordered[:cut], ordered[cut:]


def save(path: Path, goal: Distillation, made: Training) -> None:
    """Save a tree with a card; the same training gives the same bytes."""
    about: dict[str, Any] = {
        "title": "A tree that gives executors to jobs of stages",
        "what": f"Distilled from {goal.teacher} by gpuctl dag distil; tree.json runs, rules.txt is the same in words.",
        "teacher": goal.teacher,
        "trained_on": str(made.description["trained on"]),
        "training_seeds": list(made.seeds or ()),
        "executors": goal.executors,
        "delay_ms": goal.delay_ms,
        "settings": {"depth": goal.depth, "leaf": goal.leaf, "leaves": goal.leaves, "by_stake": goal.by_stake},
        "rounds": [
            {"player": r.player, "sets": n, "decisions": r.decisions, "rows": r.rows, "leaves": r.leaves}
            for n, r in made.rounds
        ],
        "tested_on": str(made.description["tested on"]),
        "fidelity": [
            {"load": None if math.isnan(load) else load, "policy": f.policy, "decisions": f.decisions, "same": f.same,
             "loss_ms": f.loss_ms}
            for load, several in made.fidelity.items() for f in several
        ],
    }  # fmt: skip
    model.save(path, made.tree, goal.limit, about)


def check_unseen(policies: Sequence[Policy], seeds: Sequence[int]) -> None:
    """Check that no tree was trained on its test sets.

    Raises:
        UsageError: one was.
        InputError: its card does not state its training data in the expected form.
    """
    for policy in policies:
        known = [] if policy.card is None else policy.card.get("training_seeds", [])
        if not isinstance(known, list) or len(known) not in {0, 2} or not all(type(one) is int for one in known):
            raise InputError(f"{policy.name}: training_seeds of its card: expected two whole numbers")
        if known and any(known[0] <= seed <= known[1] for seed in seeds):
            raise UsageError(
                f"--seed: {policy.name} was trained on sets of the seeds {known[0]} to {known[1]}", hint="other seeds"
            )


def fidelity_of(policies: Sequence[Policy], setting: Setting, progress: Progress) -> dict[float, list[Fidelity]]:
    """Return the fidelity of each tree to its teacher, or to the search if that is unknown, by load."""
    found: dict[float, list[Fidelity]] = {}
    for policy in (each for each in policies if each.limit is not None):
        teacher = "rollout" if policy.card is None else str(policy.card.get("teacher"))
        if teacher not in PLAIN:
            raise InputError(f"{policy.name}: teacher of its card: found {teacher[:40]!r}, expected {', '.join(PLAIN)}")
        goal = Distillation(teacher, setting.executors, setting.delay_ms, policy.limit or Limit.FAIR)
        for load in setting.loads:
            sets = [generate(seed, setting.jobs, setting.executors, load) for seed in setting.seeds]
            found.setdefault(load, []).extend(fidelity(sets, policy, goal, progress))
    return found
