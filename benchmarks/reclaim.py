"""How far Aryl's greedy rule, which loaned nodes go back, is from the fewest preemptions that would have done.

    python benchmarks/reclaim.py [--random 2000] [--seeds 2] [--first 300] [--jobs 400] [--load 1.5] [JOBS.csv]

Two kinds of cases. Random ones: 7 jobs with base workers on 1 to 3 of 6 loaned nodes, 1 to 4 of which go back.
And those that come up in replays: cuts of Philly's jobs as in directions.py on 16x8, an inference cluster of 16x8 whose
idle nodes are another number every 15 minutes, `ratio` 1 and 3; every tick at which a node goes back is a case,
with the jobs that are on the nodes just then. The greedy rule is that of tests/aryl_reference.py, which does what the
policy does (tests/unit/replay/policies/test_aryl.py); the optimum is SciPy's (HiGHS): a binary variable a node and a
job, and a job is preempted if a node of its own goes back.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import coo_array, vstack

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import directions
import replay as common

from gpuctl.replay.models.traits import traits
from tests.aryl_reference import Aryl
from tests.elastic_reference import Job

SIZE = 16
EVERY_S = 900.0


def fewest(jobs: list[set[int]], nodes: list[int], back: int) -> int:
    """The fewest jobs that have a base worker on one of `back` nodes that go back."""
    place = {node: k for k, node in enumerate(nodes)}
    pairs = [(number, place[node]) for number, own in enumerate(jobs) for node in own]
    if not pairs:
        return 0
    n, rows = len(nodes) + len(jobs), np.arange(len(pairs))
    owner, at = np.array(pairs).T
    values = np.concatenate([np.ones(len(pairs)), -np.ones(len(pairs))])
    columns = np.concatenate([len(nodes) + owner, at])
    each = coo_array((values, (np.concatenate([rows, rows]), columns)), (len(pairs), n))
    count = coo_array((np.ones(len(nodes)), (np.zeros(len(nodes), int), np.arange(len(nodes)))), (1, n))
    low = np.append(np.zeros(len(pairs)), float(back))
    cost = np.append(np.zeros(len(nodes)), np.ones(len(jobs)))
    best = milp(cost, constraints=LinearConstraint(vstack([each, count]), low), integrality=1, bounds=Bounds(0, 1))
    if not best.success:
        raise SystemExit(f"HiGHS: {best.message}")
    return round(best.fun)


class Watched(Aryl):
    """Keeps what each tick that gave nodes back preempted, beside the optimum."""

    def begin(self) -> None:
        """Begin a list of cases."""
        super().begin()
        self.cases: list[tuple[int, int]] = []

    def lend(self, goal: list[int]) -> None:
        """See `Aryl.lend`."""
        back = len(self.loaned) - min(goal[0], len(self.inference))
        if back <= 0:
            super().lend(goal)
            return
        nodes, before = list(self.loaned), self.counts["reclaim_preemptions"]
        jobs = [own for job in self.active if (own := {s for s in job.base if s in nodes})]
        best = fewest(jobs, nodes, back)
        super().lend(goal)
        self.cases.append((self.counts["reclaim_preemptions"] - before, best))


def on_paper(draw: np.random.Generator) -> tuple[int, int]:
    """Preemptions of a random case, greedy and at best."""
    jobs = [set((draw.choice(6, int(draw.integers(1, 4)), replace=False)).tolist()) for _ in range(7)]
    back = int(draw.integers(1, 5))
    watched = Watched([], [], [], inference=[8] * 6)
    watched.loaned = list(range(6))
    watched.active = [Job(k, f"j{k}", 0, 1, 1, base=dict.fromkeys(own, 1)) for k, own in enumerate(jobs)]
    watched.lend([6 - back])
    return watched.cases[0]


def replayed(rows: common.Rows, load: float, ratio: float, draw: np.random.Generator) -> list[tuple[int, int]]:
    """The cases of one replay."""
    with tempfile.TemporaryDirectory() as folder:
        workload, _ = directions.loaded(Path(folder) / "jobs.csv", rows, f"{SIZE}x8", 4, load)
    of = traits(workload)
    jobs = [
        Job(
            k, workload.ids[k], float(workload.submit[k]), float(workload.true_run_time[k]), int(workload.gpus[k]),
            least=int(of.w_min[k]), most=int(of.w_max[k]),
            fungible=bool(of.fungible[k]) or bool(of.w_max[k] > of.w_min[k]),
        )
        for k in range(workload.size)
    ]  # fmt: skip
    times = np.arange(0, float(workload.submit.max()) * 2, EVERY_S)
    free = [(float(t), int(draw.integers(0, SIZE + 1))) for t in times]
    watched = Watched([8] * SIZE, [0] * SIZE, jobs, inference=[8] * SIZE, load=free, ratio=ratio)
    watched.run()
    return watched.cases


def told(name: str, cases: list[tuple[int, int]]) -> str:
    """A row of the table."""
    greedy, best = np.array(cases).T
    if (greedy < best).any():
        raise SystemExit("the greedy rule preempts fewer than the optimum")
    over = 100 * (greedy.sum() / best.sum() - 1)
    most = int((greedy - best).max())
    counts = (len(cases), (greedy == best).sum(), greedy.sum(), best.sum())
    return f"| {name} | " + " | ".join(f"{count:,}" for count in counts) + f" | {over:.1f} | {most} |"


def main() -> None:
    """Print a row a kind of case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", nargs="?", type=Path, default=common.PHILLY)
    parser.add_argument("--random", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=400)
    parser.add_argument("--load", type=float, default=1.5)
    given = parser.parse_args()
    print("| cases | how many | greedy is best | preempted | at best | % more | most in one case |")
    print("|---" * 7 + "|")
    draw = np.random.default_rng(given.first)
    print(told("random", [on_paper(draw) for _ in range(given.random)]), flush=True)
    rows = common.philly(given.trace)
    for ratio in (1.0, 3.0):
        cases = []
        for seed in range(given.first, given.first + given.seeds):
            some = directions.cut(rows, given.jobs, seed)
            cases += replayed(some, given.load, ratio, np.random.default_rng(seed))
        print(told(f"replays, `ratio={ratio:g}`", cases), flush=True)


if __name__ == "__main__":
    main()
