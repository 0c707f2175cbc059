"""A tree that imitates another policy of a replay from facts known without an oracle.

The policy replays a workload. At each instant at which it starts or preempts jobs, the candidates become rows: for a
policy that does not preempt, waiting jobs whose gangs fit the free GPUs; for others, all waiting and running jobs. The
policy chose those that hold GPUs afterwards. A decision counts as a choice if some, but not all, were chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.core.errors import InputError
from gpuctl.replay.engine.state import D_FINISH, D_PREEMPT, D_START, D_TIMEOUT, RUNNING, SUSPENDING, WAITING
from gpuctl.replay.policies.tree.known import FEATURES, JobHistory, Jobs, rows_of
from gpuctl.trees.batch_rules import Judge
from gpuctl.trees.fit import fit
from gpuctl.trees.model import rules_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gpuctl.replay.engine.simulation import Simulation
    from gpuctl.trees.model import Tree

    Ints = NDArray[np.int64]

MOST_CANDIDATES = 200
"""Rows of a decision: of more, all that were chosen, and others evenly by submission."""
MOST_ROWS = 400_000
AGE, PLACE = FEATURES.index("age_s"), FEATURES.index("place")


@dataclass(frozen=True)
class Decisions:
    """Rows of decisions with a choice, in order of time.

    Attributes:
        rows: features [rows, features].
        chosen: 1 if the job holds GPUs afterwards [rows].
        decision: decision of each row [rows].
        at: second of each decision [decisions].
        left_out: decisions without a choice.
        thinned: one in this many decisions is used.
    """

    rows: Ints
    chosen: Ints
    decision: Ints
    at: NDArray[np.float64]
    left_out: int
    thinned: int = 1

    def part(self, keep: NDArray[np.bool_]) -> Decisions:
        """Return some of the decisions, renumbered."""
        number = np.cumsum(keep) - 1
        mine = keep[self.decision]
        return Decisions(
            self.rows[mine], self.chosen[mine], number[self.decision[mine]], self.at[keep], self.left_out, self.thinned
        )

    @property
    def weight(self) -> Ints:
        """Return weights: the number of other rows for a chosen one and vice versa, so both sides weigh the same."""
        of_chosen = np.bincount(self.decision, weights=self.chosen).astype(np.int64)[self.decision]
        count = np.bincount(self.decision)[self.decision]
        return np.where(self.chosen == 1, count - of_chosen, of_chosen)


def watch(
    simulation: Simulation, *, preempts: bool, progress: Callable[[int, int], None] = lambda *_: None
) -> Decisions:
    """Replay to the end and record the decisions.

    Args:
        simulation: simulation before its first instant.
        preempts: whether its policy takes GPUs from running jobs.
        progress: called with the jobs ended and the total.
    """
    eye = _Eye(simulation, preempts=preempts)
    going = True
    steps = 0
    while going:
        going = simulation.advance(steps=1)
        eye.look()
        steps += 1
        if steps % 500 == 0:
            progress(simulation.workload.size - simulation.left, simulation.workload.size)
    return eye.decisions()


class _Eye:
    """Observer of a simulation after each instant."""

    def __init__(self, simulation: Simulation, *, preempts: bool) -> None:
        self._preempts = preempts
        self._simulation = simulation
        self._seen = 0
        self._ended = JobHistory()
        self._every = 1
        self._number = self._left_out = self._size = 0
        self._rows: list[Ints] = []
        self._chosen: list[Ints] = []
        self._at: list[float] = []

    def look(self) -> None:
        """Process what the last instant has appended to the log."""
        state = self._simulation.state
        log = state.log[self._seen : int(state.g.log[0])]
        self._seen = int(state.g.log[0])
        if not log.size:
            return
        what, jobs = np.asarray(log.what), np.asarray(log.job, np.int64)
        for job in jobs[(what == D_FINISH) | (what == D_TIMEOUT)].tolist():
            if state.jobs.state[job] not in {WAITING, RUNNING, SUSPENDING}:
                user = int(self._simulation.workload.user[job])
                self._ended.add(user, int(state.jobs.gpus[job]), float(state.jobs.ran[job]))
        started, stopped = what == D_START, what == D_PREEMPT
        if not (started.any() or stopped.any()):
            return
        self._number += 1
        if self._number % self._every == 0:
            self._decision(jobs[started], jobs[stopped], np.asarray(log.gpus)[started], np.asarray(log.gpus)[stopped])

    def _decision(self, started: Ints, stopped: Ints, taken: Ints, returned: Ints) -> None:
        state = self._simulation.state
        j, now = state.jobs, float(state.g.now[0])
        code = np.asarray(j.state)
        runs, waits = code == RUNNING, code == WAITING
        after = runs.copy()
        runs[started], waits[started] = False, True
        runs[stopped], waits[stopped] = True, False
        held = np.where(after, j.held, 0).astype(np.int64)
        held[stopped] = returned
        at_once = code[stopped] != SUSPENDING
        free = int(state.g.free[0]) + int(taken.sum()) - int(returned[at_once].sum())
        candidates = waits | runs if self._preempts else waits & (j.gpus <= free)
        who = np.flatnonzero(candidates)
        if not 0 < after[who].sum() < who.size:
            self._left_out += 1
            return
        since = np.where(after, now - j.seen, 0.0)
        known = Jobs(
            np.asarray(j.submit), np.asarray(j.queued), np.asarray(j.gpus), np.asarray(j.limit),
            self._simulation.workload.user, np.asarray(j.queue), j.ran + since, j.attained + since * j.counted, held,
        )  # fmt: skip
        rows = rows_of(now, known, who, runs[who], np.flatnonzero(runs), free=free, ended=self._ended)
        self._keep(rows, after[who].astype(np.int64), now)

    def _keep(self, rows: Ints, chosen: Ints, now: float) -> None:
        if len(rows) > MOST_CANDIDATES:
            others = np.flatnonzero(chosen == 0)
            few = max(MOST_CANDIDATES - int(chosen.sum()), MOST_CANDIDATES // 4)
            some = others[np.linspace(0, others.size - 1, min(few, others.size)).astype(np.int64)]
            mine = np.sort(np.concatenate([np.flatnonzero(chosen), some]))
            rows, chosen = rows[mine], chosen[mine]
        self._rows.append(rows)
        self._chosen.append(chosen)
        self._at.append(now)
        self._size += len(rows)
        if self._size > MOST_ROWS:
            # use every second decision from here on
            self._every *= 2
            self._rows, self._chosen, self._at = self._rows[::2], self._chosen[::2], self._at[::2]
            self._size = sum(map(len, self._rows))

    def decisions(self) -> Decisions:
        """Return all recorded decisions.

        Raises:
            InputError: there was no choice.
        """
        if not self._rows:
            raise InputError(
                f"{self._simulation.workload.name}: {self._simulation.policy.name} never had a choice between jobs",
                hint="more load (--scale-load), or fewer nodes (--cluster)",
            )
        number = np.repeat(np.arange(len(self._rows)), [len(each) for each in self._rows])
        return Decisions(
            np.concatenate(self._rows), np.concatenate(self._chosen), number, np.array(self._at), self._left_out,
            self._every,
        )  # fmt: skip


def split(decisions: Decisions, test_share: float) -> tuple[Decisions, Decisions]:
    """Split decisions into earlier ones for training and the last ones for testing.

    Raises:
        InputError: there are too few.
    """
    cut = decisions.at.size - round(test_share * decisions.at.size)
    early = np.arange(decisions.at.size) < cut
    if not 0 < cut < decisions.at.size:
        raise InputError(
            f"{decisions.at.size} decisions with a choice are too few", hint="more jobs, or more load (--scale-load)"
        )
    return decisions.part(early), decisions.part(~early)


def distil(decisions: Decisions, *, depth: int, leaf: int, leaves: int) -> Tree:
    """Return the tree fitted to decisions."""
    return fit(decisions.rows, decisions.chosen, decisions.weight, depth=depth, leaf=leaf, leaves=leaves)


@dataclass(frozen=True)
class Fidelity:
    """How often an order chooses as the policy did, in decisions with a choice.

    Attributes:
        policy: name of the order.
        decisions: number of decisions with a choice.
        same: share of the k jobs chosen by the policy that are among the first k of the order; mean over decisions.
        exact: share of the decisions in which all k are.
    """

    policy: str
    decisions: int
    same: float
    exact: float


def fidelity(decisions: Decisions, tree: Tree) -> list[Fidelity]:
    """Return the fidelity of a tree, of the order of submission and its reverse, of short limits, and of chance."""
    rows = decisions.rows
    limit = rows[:, FEATURES.index("limit_s")]
    small = rows[:, FEATURES.index("gpus")]
    orders = {
        "tree": Judge(rules_of(tree, FEATURES)).places(rows),
        "oldest first": rows[:, PLACE],
        "fewest GPUs first": small,
        "shortest limit first": np.where(limit < 0, np.iinfo(np.int64).max, limit),
    }
    count = np.bincount(decisions.decision)
    picked = np.bincount(decisions.decision, weights=decisions.chosen)
    scored = []
    for name, key in orders.items():
        order = np.lexsort((rows[:, PLACE], key, decisions.decision))
        begin = np.cumsum(count) - count
        rank = np.empty(len(rows), np.int64)
        rank[order] = np.arange(len(rows)) - begin[decisions.decision[order]]
        hit = (rank < picked[decisions.decision]) & (decisions.chosen == 1)
        share = np.bincount(decisions.decision, weights=hit) / picked
        scored.append(Fidelity(name, count.size, float(share.mean()), float((share == 1).mean())))
    return [*scored, Fidelity("chance", count.size, float((picked / count).mean()), float("nan"))]
