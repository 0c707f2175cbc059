"""Distils a tree from a teacher: rows of its choices, including states reached by the tree itself (DAgger)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import interpreted
from gpuctl.compiled.loading import UNCOMPILED
from gpuctl.core.errors import InputError
from gpuctl.research.dag import choices_kernel as kernel
from gpuctl.research.dag.features import Limit, features_of
from gpuctl.research.dag.jobs import work_of
from gpuctl.research.dag.policies import PLAIN, Policy, by_rules, packed
from gpuctl.research.dag.simulate import NO_LIMIT, initial_state
from gpuctl.trees.fit import fit
from gpuctl.trees.model import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gpuctl.research.dag.jobs import Job
    from gpuctl.trees.model import Tree

    Ints = NDArray[np.int64]
    Progress = Callable[[str, int, int], None]

ROWS_AT_ONCE, DECISIONS_AT_ONCE = 20_000, 1_000
MOST_STAKE = 1000
REFERENCES = ("srpt", "fair")
"""Policies whose decisions are counted beside the tree's."""


@dataclass(frozen=True)
class Distillation:
    """Settings of a distillation.

    Attributes:
        teacher: a baseline or the search.
        executors: of each set of jobs.
        delay_ms: before an executor's first task for another job.
        limit: limit on the executors that the tree gives, also in later rounds.
        depth: questions on the longest path to a leaf.
        leaf: least rows of a leaf.
        leaves: most leaves; None: no limit.
        by_stake: weight decisions by their stake, as computed by the search.
    """

    teacher: str = "rollout"
    executors: int = 12
    delay_ms: int = 2000
    limit: Limit = Limit.FAIR
    depth: int = 6
    leaf: int = 50
    leaves: int | None = 31
    by_stake: bool = False


@dataclass(frozen=True)
class Rows:
    """Rows of decisions with a choice.

    Attributes:
        features: in the order of `features_of` [rows, features].
        chosen: 1 if the teacher chose it [rows].
        decision: of each row, numbered within its set [rows].
        seen: candidates, actions, then stage, amount and cost of each watcher, and how much more the search's worst
            action costs than its best one [decisions, ...].
        job: of each stage.
    """

    features: Ints
    chosen: Ints
    decision: Ints
    seen: Ints
    job: Ints

    @property
    def weight(self) -> Ints:
        """Return weights: of a chosen row, the number of other rows of its decision; of others, 1 [rows]."""
        count = np.bincount(self.decision)[self.decision]
        return np.where(self.chosen == 1, count - 1, 1)

    @property
    def stake(self) -> Ints:
        """Return stakes: 1, plus 1 per second that the search's worst action costs more than its best [rows]."""
        seconds: Ints = np.minimum(self.seen[self.decision, -1] // 1000, MOST_STAKE)
        return 1 + seconds


def watch(
    jobs: Sequence[Job], player: Policy, watchers: Sequence[int], goal: Distillation, rules: Policy | None = None, *,
    costs: bool = False,
) -> Rows:  # fmt: skip
    """Let a policy play, and record what others would do at each decision with a choice.

    Args:
        jobs: a set.
        player: the policy that plays.
        watchers: kinds of policies; the first is the teacher.
        goal: settings of the distillation.
        rules: of a watcher with rules; None: the player's.
        costs: record the cost of each watcher's action by the search.
    """
    w = work_of(jobs, goal.executors, goal.delay_ms)
    s, copy = (
        initial_state(w, goal.executors, goal.delay_ms),
        initial_state(w, goal.executors, goal.delay_ms),
    )
    by_action = goal.limit is Limit.TREE
    c = np.zeros(5, np.int64)
    c[kernel.BUDGET], c[kernel.BY_ACTION], c[kernel.COSTS] = NO_LIMIT, by_action, costs
    width = kernel.FEATURES + 1
    rows = max(ROWS_AT_ONCE, 2 * len(jobs))
    book = kernel.Book(
        row=(rows, width + 2), seen=(DECISIONS_AT_ONCE, 3 + 3 * len(watchers)), watch=np.array(watchers), c=c
    )
    taken_rows, taken_seen, decisions, over = [], [], 0, False
    packed_rules = packed((rules or player).rules)
    with interpreted(UNCOMPILED):
        while not over:
            over = kernel.play(w, s, copy, packed_rules, player.kind, book)
            some = book.row[: c[kernel.ROWS]].copy()
            some[:, width + 1] += decisions
            decisions += int(c[kernel.SEEN])
            taken_rows.append(some)
            taken_seen.append(book.seen[: c[kernel.SEEN]].copy())
            c[kernel.ROWS] = c[kernel.SEEN] = 0
    found = np.concatenate(taken_rows)
    return Rows(
        found[:, : len(features_of(goal.limit))], found[:, width], found[:, width + 1], np.concatenate(taken_seen),
        np.asarray(w.job),
    )  # fmt: skip


@dataclass(frozen=True)
class Round:
    """Outcome of a round.

    Attributes:
        player: the policy that played.
        decisions: decisions with a choice.
        rows: their rows.
        leaves: of the tree after it.
    """

    player: str
    decisions: int
    rows: int
    leaves: int


def distil(
    rounds: Sequence[Sequence[Sequence[Job]]], goal: Distillation, progress: Progress = lambda *_: None
) -> tuple[Tree, list[Round]]:
    """Distil a tree: round 0 follows the teacher, later rounds the tree so far; the teacher labels each decision.

    Args:
        rounds: sets of jobs of each round.
        goal: settings of the distillation.
        progress: called with the current step, the amount done and the total.

    Raises:
        InputError: no decision had a choice.
    """
    teacher = Policy(goal.teacher, PLAIN[goal.teacher])
    player, tree, rounds_done = teacher, None, []
    features, chosen, weight = [], [], []
    total = sum(map(len, rounds))
    done = 0
    for sets in rounds:
        decisions = rows = 0
        for jobs in sets:
            progress("sets of jobs", done, total)
            found = watch(jobs, player, [teacher.kind], goal)
            features.append(found.features)
            chosen.append(found.chosen)
            weight.append(found.weight * (found.stake if goal.by_stake else 1))
            decisions, rows = decisions + len(found.seen), rows + len(found.chosen)
            done += 1
        x, y, of = np.concatenate(features), np.concatenate(chosen), np.concatenate(weight)
        if not len(x):
            raise InputError(
                "in no decision was there more than one job to choose from", hint="more jobs, or more load"
            )
        tree = fit(x, y, of, depth=goal.depth, leaf=goal.leaf, leaves=goal.leaves)
        rules = rules_of(tree, features_of(goal.limit))
        rounds_done.append(Round(player.name, decisions, rows, len(rules.rules)))
        player = by_rules("tree", rules, goal.limit)
    assert tree is not None  # noqa: S101 - there is a round
    return tree, rounds_done


@dataclass(frozen=True)
class Fidelity:
    """How often a policy decides like the teacher, if there is a choice.

    Attributes:
        player: policy whose decisions led to the states.
        policy: its name.
        decisions: with at least two candidates.
        same: number of them with the same job.
        loss_ms: mean difference of the search's cost of its action and of the teacher's; None: another teacher.
    """

    player: str
    policy: str
    decisions: int
    same: float
    loss_ms: float | None


def fidelity(
    sets: Sequence[Sequence[Job]], policy: Policy, goal: Distillation, progress: Progress = lambda *_: None
) -> list[Fidelity]:
    """Count, while a policy plays, how often it and others choose the teacher's job, and what their actions cost.

    Args:
        sets: sets of jobs outside its training data.
        policy: the policy that plays.
        goal: teacher, executors and delay.
        progress: as for `distil`.

    Returns:
        the policy, `REFERENCES`, and chance: the mean of 1 / candidates.
    """
    costs = goal.teacher == "rollout"
    names = [policy.name, *REFERENCES]
    kinds = [PLAIN[goal.teacher], policy.kind, *(PLAIN[name] for name in REFERENCES)]
    same: list[NDArray[np.bool_]] = []
    loss, chance = [], []
    for done, jobs in enumerate(sets):
        progress("fidelity", done, len(sets))
        found = watch(jobs, policy, kinds, goal, costs=costs)
        seen = found.seen[found.seen[:, 0] > 1]
        job = found.job[seen[:, 2:-1:3]]
        same.append(job[:, 1:] == job[:, :1])
        loss.append(seen[:, 7:-1:3] - seen[:, 4:5])
        chance.append(1 / seen[:, 0])
    agree, lost = np.concatenate(same), np.concatenate(loss)
    total = len(agree)
    if not total:
        return []
    scored = [
        Fidelity(policy.name, name, total, float(agree[:, k].mean()), float(lost[:, k].mean()) if costs else None)
        for k, name in enumerate(names)
    ]
    return [*scored, Fidelity(policy.name, "chance", total, float(np.concatenate(chance).mean()), None)]
