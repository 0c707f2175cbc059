"""A pair of jobs among a trace's jobs: what comes of submitting the successor at a given second.

All is as Mirage's authors' simulator has it: an empty cluster at the start, the trace's jobs of some days, the
predecessor P submitted after a warm-up, whole minutes. Seconds count from the episode's start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.chain import episode_kernel as kernel
from gpuctl.replay.policies.mirage.slots_kernel import SLOTS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.chain.log import Log

    Ints = NDArray[np.int64]

DAY_S = 86_400
WARM_UP_S = 2 * DAY_S
"""From the start to P's submission."""

ARRIVALS_S = 5 * DAY_S
"""From the start to the last submission of the trace, both included."""

SNAPSHOTS = 144
"""Of a state: one each ten minutes, a day."""

COLUMNS = 42
"""Numbers of a snapshot."""


@dataclass(frozen=True)
class Pair:
    """The shape of P and S, which are alike; they run to their limit.

    Attributes:
        nodes: that each asks for.
        limit_min: of each.
    """

    nodes: int = 1
    limit_min: int = 2880


@dataclass(frozen=True)
class Outcome:
    """What came of a pair; seconds from the episode's start.

    Attributes:
        p_start_s: of the predecessor.
        p_end_s: of the predecessor, which runs to its limit.
        s_submit_s: of the successor.
        s_start_s: of the successor.
        p_backfilled: whether a pass of backfill started P from behind the head of the queue.
        s_backfilled: the same of S.
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
        """From P's end to S's start; negative: both ran at the same time for so long."""
        return self.s_start_s - self.p_end_s


class Situation:
    """A cluster, a trace's jobs of some days, and P; S may be submitted to it again and again.

    Args:
        log: the trace.
        begin_s: the start, a second of the log's own clock.
        size: nodes of the cluster.
        pair: what P and S are.
        p_submit_s: of P, from the start.
        arrivals_s: the last submission of the trace, from the start.
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
    ) -> None:
        first, last = np.searchsorted(log.submit_s, [begin_s, begin_s + arrivals_s + 1])
        minute = (log.submit_s[first:last] - begin_s) // 60
        order = first + np.lexsort((log.text[first:last], minute))
        self.pair = pair
        self.p_submit_min = p_submit_s // 60
        self.jobs = {
            "minute": np.append((log.submit_s[order] - begin_s) // 60, [self.p_submit_min, kernel.FAR]),
            "nodes": np.append(log.nodes[order], [pair.nodes] * 2),
            "limit": np.append(log.limit_min[order], [pair.limit_min] * 2),
            "ticks": np.append(log.ticks[order], [pair.limit_min] * 2),
        }
        self.jobs["key"] = 3600 * self.jobs["nodes"] - 25 * size * self.jobs["minute"] % kernel.FAR
        self.size = size
        self._copy = self.begun()

    def begun(self) -> kernel.Episode:
        """The cluster at the start."""
        jobs = self.jobs["minute"].size
        c = np.zeros(kernel.COUNTERS, np.int64)
        c[kernel.FREE] = c[kernel.SIZE] = self.size
        c[kernel.P_START] = c[kernel.S_START] = kernel.NEVER
        each = dict.fromkeys(("line", "run", "start", "end", "until", "held", "begins"), jobs)
        return kernel.Episode(**self.jobs, **each, slots=SLOTS, waits=kernel.LAST_WAITS, c=c)

    def outcome(self, e: kernel.Episode, s_submit_min: int) -> Outcome:
        """What comes of submitting S in that minute, to which `e` goes on; S is not submitted to `e` itself."""
        found = np.zeros(5, np.int64)
        kernel.outcome(e, self._copy, s_submit_min, found)
        p_start, s_start, *flags = found.tolist()
        return Outcome(
            p_start_s=60 * p_start,
            p_end_s=60 * (p_start + self.pair.limit_min),
            s_submit_s=60 * s_submit_min,
            s_start_s=60 * s_start,
            p_backfilled=flags[0] == 1,
            s_backfilled=flags[1] == 1,
            planned_s=60 * (s_submit_min + flags[2]),
        )

    def state(self, s_submit_min: int, *, leaking: bool = False) -> NDArray[np.float64]:
        """What a policy sees when it submits S in that minute.

        Args:
            s_submit_min: the minute of the decision.
            leaking: the snapshots up to S's start, which is what the authors' models are trained on.

        Returns:
            [SNAPSHOTS, COLUMNS], oldest first; those from before the start are of an empty cluster.
        """
        e = self.begun()
        rows = np.zeros((s_submit_min // 10 + 1, 34))
        scratch = np.zeros(e.minute.size)
        kernel.snapshots(e, s_submit_min, kernel.NEVER, rows, scratch)
        now, p_start = s_submit_min, int(e.c[kernel.P_START])
        started = p_start != kernel.NEVER
        waited = (p_start if started else now) - self.p_submit_min
        elapsed = min(now - p_start, self.pair.limit_min) if started else 0
        if leaking:
            end = self.outcome(self.begun(), s_submit_min).s_start_s // 60 + 1
            rows = np.concatenate([rows, np.zeros((end // 10 + 1 - rows.shape[0], 34))])
            # the snapshot of the decision's own minute is from before it
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
