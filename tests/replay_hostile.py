"""Lets a policy do whatever there is to do with a simulation, on small cases and wide ones; prints what came of it.

python tests/replay_hostile.py

One digest a case of all that was decided. A write past an array's end is an IndexError uncompiled and with
``NUMBA_BOUNDSCHECK=1``.
"""

from __future__ import annotations

import gc
import hashlib
from dataclasses import replace

import numpy as np

from gpuctl.replay.contract.conformance import random_case, run, violations
from gpuctl.replay.contract.gpu_type_cases import with_bounds, with_pairs, with_types
from gpuctl.replay.engine.setup import Settings
from gpuctl.replay.models.preemption_cost import overhead
from gpuctl.replay.models.records import Cluster, Workload
from gpuctl.replay.models.speed import rates
from gpuctl.replay.policies import find
from tests.replay_policies import Borrows, Crowd, Hostile, Keeper, Measures, Restless

CASES = 24
WIDE = 160
"""Nodes of a wide case, a GPU each; and jobs of a crowd on two GPUs."""

Case = tuple[Workload, Cluster, Settings]


def wide(seed: int, *, blinking: bool = False) -> Case:
    """Few jobs and hundreds of nodes; `blinking`: they all go down and come up at the same instants."""
    workload, cluster, _ = random_case(seed, plain=True)
    down = [[float(s), 10.0 * k + 5, 10.0 * k + 10] for k in range(4) for s in range(WIDE)]
    workload = replace(workload, gpus=np.minimum(workload.gpus * 40, WIDE))
    return _settled(workload, _nodes(cluster, np.ones(WIDE, np.int64), np.array(down) if blinking else None))


def crowd() -> Case:
    """Hundreds of jobs and two GPUs."""
    workload, cluster, _ = random_case(1, plain=True)
    many = np.zeros(WIDE, np.int64)
    names = ("submit", "eligible", "queue", "user", "time_limit", "gpu_type")
    whole = {name: getattr(workload, name)[many] for name in names}
    workload = replace(
        workload,
        **whole,
        ids=tuple(f"j{k}" for k in range(WIDE)),
        gpus=1 + np.arange(WIDE) % 2,
        app=np.arange(WIDE),
        segment_start=np.arange(WIDE + 1),
        segment_s=1.0 + np.arange(WIDE) % 7,
        segment_fails=np.zeros(WIDE, bool),
        recorded_start=np.full(WIDE, np.nan),
        piece_start=np.zeros(WIDE + 1, np.int64),
        state=("",) * WIDE,
        predicted=None,
        epochs=None,
    )
    return _settled(workload, _nodes(cluster, np.array([2]), None))


def _nodes(cluster: Cluster, gpus: np.ndarray, down: np.ndarray | None) -> Cluster:
    return replace(
        cluster,
        nodes=tuple(f"s{k}" for k in range(gpus.size)),
        gpus=gpus,
        rack=np.zeros(gpus.size, np.int64),
        gpu_type=np.full(gpus.size, -1),
        racks=("r0",),
        pool=False,
        down=down,
    )


def _settled(workload: Workload, cluster: Cluster) -> Case:
    return workload, cluster, Settings(rates("recorded", workload, cluster), overhead("const:3", workload, cluster))


def tried(broken: list[str] | None = None) -> list[str]:
    """Digests; adds the invariants that were broken to a list, where one is given.

    Jobs that do not end under such a policy are no fault of the engine's.
    """
    runs = [(Hostile, random_case(seed), seed) for seed in range(CASES)]
    runs += [(Hostile, wide(seed), seed) for seed in range(2)]
    runs += [(Measures, with_types(seed, random_case(seed)), seed) for seed in range(6)]
    runs += [(Restless, with_pairs(seed, with_bounds(seed, random_case(seed))), seed) for seed in range(4)]
    runs += [(Borrows, with_types(seed, random_case(seed)), seed) for seed in range(4)]
    runs += [(Keeper, wide(2), 2), (Crowd, crowd(), 0), (find("fifo-skip"), wide(4, blinking=True), 0)]
    found = []
    for kind, case, seed in runs:
        outcome = run(type(kind.__name__, (kind,), {"seed": seed})(), *case)
        log = outcome.decisions.write_ndjson() + outcome.jobs.write_ndjson()
        found.append(hashlib.sha256(log.encode()).hexdigest()[:16])
        if broken is not None:
            lines = [line for line in violations(outcome, *case) if "has not ended" not in line]
            broken += [f"{kind.__name__} {case[0].name}: {line}" for line in lines]
    return found


if __name__ == "__main__":
    gc.set_threshold(100_000, 50, 1000)  # most of what a compiler makes stays: a seventh of its time
    print(*tried())  # noqa: T201 - the test reads it
