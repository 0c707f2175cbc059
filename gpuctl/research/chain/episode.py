"""A pair of jobs among a trace's jobs: the outcome of submitting the successor at a given second.

The rules are those of the simulator by Mirage's authors: an empty cluster at the start, the trace's jobs of some days,
the predecessor P submitted after a warm-up, whole minutes. Seconds count from the episode's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled.jit import is_compiled
from gpuctl.replay.policies.mirage.slots_kernel import SLOTS
from gpuctl.research.chain import episode_kernel as kernel
from gpuctl.research.chain.forecast_kernel import forecasts
from gpuctl.research.chain.look_kernel import look_features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gpuctl.compiled.jit import Loop
    from gpuctl.research.chain.log import Log
    from gpuctl.research.chain.past import Drawn

    Ints = NDArray[np.int64]

DAY_S = 86_400
WARM_UP_S = 2 * DAY_S
"""From the start to P's submission."""

ARRIVALS_S = 5 * DAY_S
"""From the start to the last submission of the trace, both included."""

SNAPSHOTS = 144
"""Snapshots of a state: one per ten minutes, for a day."""

COLUMNS = 42
"""Numbers of a snapshot."""


OF_CASES = (kernel.advance, kernel.submit, kernel.outcome, kernel.snapshots)
OF_POLICIES = (kernel.advance, kernel.outcome, look_features, forecasts)
"""Compiled functions that pairs of a file run, and functions that policies run."""


def must_compile(loops: Sequence[Loop]) -> bool:
    """Whether the first simulation will compile any of these."""
    return not all(map(is_compiled, loops))


@dataclass(frozen=True)
class Pair:
    """The shape of P and S, which are equal; both run to their limit.

    Attributes:
        nodes: nodes of each.
        limit_min: limit of each, minutes.
        run_min: run time of each, minutes; 0: to its limit.
    """

    nodes: int = 1
    limit_min: int = 2880
    run_min: int = 0

    @property
    def lasts_min(self) -> int:
        """Minutes from the start of each to its end."""
        return self.run_min or self.limit_min


@dataclass(frozen=True)
class Link:
    """The submission of a job of a chain.

    Attributes:
        minute: minute of the submission, or of the end of the predecessor that it depends on.
        since_min: minute from which its age counts.
    """

    minute: int
    since_min: int


@dataclass(frozen=True)
class Outcome:
    """Outcome of a pair; seconds from the episode's start.

    Attributes:
        p_start_s: start of the predecessor.
        p_end_s: end of the predecessor.
        s_submit_s: submission of the successor.
        s_start_s: start of the successor.
        p_backfilled: whether a pass of backfill started P from behind the head of the queue.
        s_backfilled: the same for S.
        planned_s: start of S by the plan at its submission.
    """

    p_start_s: int
    p_end_s: int
    s_submit_s: int
    s_start_s: int
    p_backfilled: bool
    s_backfilled: bool
    planned_s: int

    @property
    def interruption_s(self) -> int:
        """Seconds from P's end to S's start; negative: the overlap."""
        return self.s_start_s - self.p_end_s


class Situation:
    """A cluster, a trace's jobs of some days, and P; S can be submitted repeatedly.

    Args:
        log: the trace.
        begin_s: start, on the log's own clock.
        size: nodes of the cluster.
        pair: shape of P and S.
        p_submit_s: submission of P, from the start.
        arrivals_s: the last submission of the trace, from the start.
        chain: submissions of earlier jobs of the chain, P last; empty: no earlier job, P is submitted at `p_submit_s`.
    """

    def __init__(
        self,
        log: Log,
        begin_s: int,
        size: int,
        pair: Pair,
        *,
        p_submit_s: int = WARM_UP_S,
        arrivals_s: int = ARRIVALS_S,
        chain: Sequence[Link] = (),
    ) -> None:
        *earlier, p = chain or (Link(p_submit_s // 60, p_submit_s // 60),)
        first, last = np.searchsorted(log.submit_s, [begin_s, begin_s + arrivals_s + 1])
        minute = (log.submit_s[first:last] - begin_s) // 60
        order = first + np.lexsort((log.text[first:last], minute))
        minute = (log.submit_s[order] - begin_s) // 60
        # in its minute, a job of the chain comes before the trace's jobs
        place = np.searchsorted(minute, [link.minute for link in earlier])
        self.pair = pair
        self.p_submit_min = p.minute

        def all_jobs(of_trace: Ints, of_earlier: Sequence[int] | int, of_p_and_s: Sequence[int]) -> Ints:
            return np.append(np.insert(of_trace, place, of_earlier), of_p_and_s)

        self.trace = all_jobs(order, -1, [-1, -1])
        """Numbers of the jobs in the log; -1: job of the chain."""
        self.jobs = {
            "minute": all_jobs(minute, [link.minute for link in earlier], [p.minute, kernel.FAR]),
            "nodes": all_jobs(log.nodes[order], pair.nodes, [pair.nodes] * 2),
            "limit": all_jobs(log.limit_min[order], pair.limit_min, [pair.limit_min] * 2),
            "ticks": all_jobs(log.ticks[order], pair.lasts_min, [pair.lasts_min] * 2),
        }
        since = all_jobs(minute, [link.since_min for link in earlier], [p.since_min, 0])
        self.jobs["key"] = 3600 * self.jobs["nodes"] - 25 * size * since
        self.size = size
        self._copy = self.initial_state()

    def initial_state(self, **own: Ints) -> kernel.Episode:
        """The cluster at the start, with its own copies of the shared arrays."""
        jobs = self.jobs["minute"].size
        c = np.zeros(kernel.COUNTERS, np.int64)
        c[kernel.FREE] = c[kernel.SIZE] = self.size
        c[kernel.P_START] = c[kernel.S_START] = kernel.NEVER
        each = dict.fromkeys(("line", "run", "start", "end", "until", "held", "begins"), jobs)
        return kernel.Episode(**{**self.jobs, **own}, **each, slots=SLOTS, waits=kernel.LAST_WAITS, c=c)

    def forecasts(self, minutes: Ints, drawn: Drawn, number: int) -> NDArray[np.int64]:
        """Forecast how long S would wait; each forecast draws new run times of running and pending jobs.

        Args:
            minutes: minutes in which S is submitted, in order.
            drawn: source of run times.
            number: forecasts for each minute.

        Returns:
            waits in minutes [minutes, number], ascending.
        """
        waits = np.zeros((minutes.size, number), np.int64)
        copy = self.initial_state(ticks=self.jobs["ticks"].copy())
        forecasts(self.initial_state(), copy, minutes, drawn.past, drawn.count, drawn.kind, drawn.pool, waits)
        waits.sort(axis=1)
        return waits

    def outcome(self, e: kernel.Episode, s_submit_min: int, since_min: int | None = None) -> Outcome:
        """Outcome of submitting S in a minute; `e` advances to that minute, and S is submitted to a copy.

        Args:
            e: the cluster, at `s_submit_min` or before.
            s_submit_min: minute of the submission.
            since_min: minute from which S's age counts; None: its submission.
        """
        found = np.zeros(5, np.int64)
        kernel.outcome(e, self._copy, s_submit_min, s_submit_min if since_min is None else since_min, found)
        p_start, s_start, *flags = found.tolist()
        return Outcome(
            p_start_s=60 * p_start,
            p_end_s=60 * (p_start + self.pair.lasts_min),
            s_submit_s=60 * s_submit_min,
            s_start_s=60 * s_start,
            p_backfilled=flags[0] == 1,
            s_backfilled=flags[1] == 1,
            planned_s=60 * (s_submit_min + flags[2]),
        )

    def state(self, s_submit_min: int, *, leaking: bool = False) -> NDArray[np.float64]:
        """The input of a policy that submits S in a minute.

        Args:
            s_submit_min: the minute of the decision.
            leaking: take snapshots up to S's start, as in the training set of the authors' models.

        Returns:
            [SNAPSHOTS, COLUMNS], oldest first; before the start, snapshots of an empty cluster.
        """
        e = self.initial_state()
        rows = np.zeros((s_submit_min // 10 + 1, 34))
        scratch = np.zeros(e.minute.size)
        kernel.snapshots(e, s_submit_min, kernel.NEVER, rows, scratch)
        now, p_start = s_submit_min, int(e.c[kernel.P_START])
        started = p_start != kernel.NEVER
        waited = (p_start if started else now) - self.p_submit_min
        elapsed = min(now - p_start, self.pair.lasts_min) if started else 0
        if leaking:
            end = self.outcome(self.initial_state(), s_submit_min).s_start_s // 60 + 1
            rows = np.concatenate([rows, np.zeros((end // 10 + 1 - rows.shape[0], 34))])
            # the snapshot in the decision's minute is taken before the decision
            known = rows[s_submit_min // 10].copy()
            kernel.submit(e)
            kernel.snapshots(e, end, kernel.NEVER, rows, scratch)
            rows[s_submit_min // 10] = known
        shape = [self.pair.limit_min, self.pair.nodes]
        state = np.zeros((SNAPSHOTS, COLUMNS))
        rows = rows[-SNAPSHOTS:]
        state[SNAPSHOTS - len(rows) :, :34] = rows
        state[:, 34:] = [*shape, 60 * waited, 60 * elapsed, *shape, 0, 0]
        return state
