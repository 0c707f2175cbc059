"""Input of every lesson: one cluster of a store, its jobs and nodes, and a way to replay them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuctl.analyze.failed_attempts import failed_attempts
from gpuctl.analyze.options import Options
from gpuctl.core.errors import UsageError
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.results.intervals import stretches
from gpuctl.replay.results.timelines import ENDED
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gpuctl.replay.models.records import Cluster, Floats, Ints, Outcome, Workload
    from gpuctl.store.database import Store

"""Parameters of the policy `philly` that every rule is compared with: its own defaults."""
ENOUGH = 5
"""Fewest blocks; with fewer, shorter blocks are resampled."""
FEW = 20
"""Blocks of equally many jobs, if a trace has too few days."""
RESAMPLES = 2000
WEEK_S = 7 * 86400.0
DAY_S = 86400.0


@dataclass(frozen=True)
class Case:
    """One trace.

    Attributes:
        store: an open store.
        cluster: its name there.
        workload: the jobs that can be replayed.
        nodes: the cluster that they are replayed on.
        options: the user's settings of the site, for analyses.
        notify: called with a line for the user before a long step.
        processes: most replays at a time; None: one per processor.
        overhead: the cost model of preemptions and migrations (`gpuctl.replay.models.preemption_cost`).
    """

    store: Store
    cluster: str
    workload: Workload
    nodes: Cluster
    options: Options
    notify: Callable[[str], None]
    processes: int | None = None
    overhead: str = "pickyman"

    def replays(
        self, rules: Sequence[Mapping[str, str]], *, workload: Workload | None = None, **models: Any
    ) -> Iterator[Outcome]:
        """Replay the jobs under ``philly`` with these parameters, one outcome per rule, in order.

        Args:
            rules: parameters as texts; empty: the baseline.
            workload: jobs in place of the case's, on the same nodes.
            models: other arguments of `gpuctl.replay.run.replay`: ``rates`` and so on.
        """
        arguments = {"overhead": self.overhead, "skip_unplaceable": True, **models}
        names = [(f"rule-{number}=philly", dict(rule)) for number, rule in enumerate(rules)]
        # a few at a time: an outcome of a large trace holds all of its attempts and decisions
        for at in range(0, len(names), 4):
            yield from replay(
                self.workload if workload is None else workload, self.nodes, names[at : at + 4],
                processes=self.processes, **arguments,
            )  # fmt: skip

    def blocks(self) -> tuple[Ints, str]:
        """Return the block of each job for resampling, numbered from 0, and the kind of blocks: week, day or jobs."""
        return blocks_of(self.workload)


def open_case(
    store: Store,
    cluster: str | None,
    site: Mapping[str, Any],
    notify: Callable[[str], None],
    *,
    processes: int | None = None,
    overhead: str = "pickyman",
    reasons: bool = True,
) -> Case:
    """Read the jobs and nodes of one cluster of an open store.

    Args:
        store: the store.
        cluster: name of the cluster; may be None if it has only one.
        site: the user's settings, fields of `Options`: ``quotas``, ``racks`` and so on.
        notify: see `Case`.
        processes: see `Case`.
        overhead: see `Case`.
        reasons: classify failed attempts by the logs in the store.

    Raises:
        UsageError: the store has no such cluster, or several and none is named; the log names no nodes.
        InputError: no job of it can be replayed.
    """
    options = Options(cluster=store.cluster(cluster), **site)
    why = failed_attempts(store, options) if reasons else None
    workload, nodes = read_trace(store, options.cluster, quotas=options.quotas, racks=options.racks, failures=why)
    if not nodes.total_gpus:
        raise UsageError(
            f"{workload.name}: the log names no nodes with GPUs",
            hint="the lessons are about where jobs run; docs/how-to/sources.md says which sources state that",
        )
    return Case(store, workload.name, workload, nodes, options, notify, processes, overhead)


@dataclass(frozen=True)
class Jobs:
    """Result of each job in a replay, in the workload's order; NaN if it did not finish.

    Attributes:
        wait_s: from submission, all time not on GPUs.
        run_s: on GPUs.
        gpu_s: GPU-seconds held.
        submit_s: when it was submitted.
        stretches: number of independent stretches of the replay (`gpuctl.replay.results.intervals.stretches`).
    """

    wait_s: Floats
    run_s: Floats
    gpu_s: Floats
    submit_s: Floats
    stretches: float

    @property
    def jct_s(self) -> Floats:
        """From submission to the end."""
        return self.wait_s + self.run_s


def jobs_of(outcome: Outcome) -> Jobs:
    """The result of each job."""
    frame = outcome.jobs
    done = frame["state"].is_in(ENDED).to_numpy()
    columns = (frame[name].to_numpy().astype(np.float64) for name in ("wait_s", "run_s", "gpu_s"))
    wait, run, gpu = (np.where(done, column, np.nan) for column in columns)
    return Jobs(wait, run, gpu, frame["submit_s"].to_numpy().astype(np.float64), stretches([outcome]))


def blocks_of(workload: Workload) -> tuple[Ints, str]:
    """Return the block of each job: calendar weeks if at least `ENOUGH`, else days, else equally many jobs."""
    zero = workload.origin.timestamp() if workload.origin is not None else 0.0
    at = np.asarray(workload.submit) + zero
    # the first of January 1970 was a Thursday: weeks begin on Mondays
    for name, number in (("week", np.floor((at + 3 * DAY_S) / WEEK_S)), ("day", np.floor(at / DAY_S))):
        known, block = np.unique(number, return_inverse=True)
        if known.size >= ENOUGH:
            return block.astype(np.int64), name
    count = min(FEW, workload.size)
    return np.arange(workload.size, dtype=np.int64) * count // max(workload.size, 1), "jobs"
