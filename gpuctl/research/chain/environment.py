"""``gpuctl/Chain-v0``: when to submit the successor of a long job, as a Gymnasium environment.

An episode is one start of a log: P runs, and at each look the agent waits (0) or submits S (1). At P's end S is
submitted anyway. Until the agent submits, observations do not depend on its actions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from gpuctl.core.durations import minutes_of_option
from gpuctl.core.errors import UsageError
from gpuctl.research.chain.episode import DAY_S, Pair
from gpuctl.research.chain.evaluate import next_midnight
from gpuctl.research.chain.log import Log, check_size, from_store, log_of
from gpuctl.research.chain.nets import SEEN, choice_inputs, costs
from gpuctl.research.chain.policies import look
from gpuctl.research.chain.trial import EVERY_S, Evaluation, Trial

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Seen = NDArray[np.float32]

MADE_UP_DAYS, MADE_UP_NODES = 30, 16
MOST = 20.0
"""Observations are clipped to this: the logarithm of 5 x 10^8."""


class Chain(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """When to submit the successor of a long job.

    Observation: the features of `gpuctl.research.chain.nets.SEEN`, as log(1 + x). Actions: 0 wait, 1 submit. Reward: 0;
    at the end, -(outage cost x hours of interruption + hours of overlap).

    Args:
        log: a trace store, or a log as arrays; None: 30 days of a generated cluster of 16 nodes.
        cluster: cluster in the store; None: its only one.
        nodes: nodes of the cluster.
        job_nodes: nodes of each job of the chain.
        limit: limit of each job, as ``48h``.
        outage_cost: of an hour of interruption, an hour of overlap costing 1.
        warm_up: time from the empty cluster to P's submission.
        begin: first second of the starts, on the log's own clock; None: the midnight after the first start of a job.
        end: last submission of the log to use; None: all.
        every_min: minutes between looks.
        seed: seed of the generated cluster.

    Raises:
        UsageError: the log is no trace store, or is too short for one start.
        InputError: some jobs are larger than the cluster.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        log: str | Path | Log | None = None,
        *,
        cluster: str | None = None,
        nodes: int = MADE_UP_NODES,
        job_nodes: int = 1,
        limit: str = "24h",
        outage_cost: float = 1.0,
        warm_up: str = "2d",
        begin: int | None = None,
        end: int | None = None,
        every_min: int = 60,
        seed: int = 0,
    ) -> None:
        found = _log(log, cluster, seed, nodes)
        check_size(found, nodes)
        pair = Pair(job_nodes, minutes_of_option("limit", limit))
        first = next_midnight(found.first_start_s) if begin is None else begin
        evaluation = Evaluation(nodes, pair, (), 0, first, outage_cost, 60 * minutes_of_option("warm_up", warm_up))
        last = int(found.submit_s[-1]) if end is None else end
        self.begins = range(first, last - evaluation.arrivals_s + 1, EVERY_S)
        if not self.begins:
            raise UsageError(
                f"{found.name}: no start has {evaluation.arrivals_s / DAY_S:g} days of submissions after it",
                hint="a longer log, or a shorter warm_up",
            )
        self.every_min, self.outage_cost = every_min, outage_cost
        self._trial = Trial(found, evaluation)
        self._known: dict[int, tuple[Seen, Floats]] = {}
        self.observation_space = gymnasium.spaces.Box(0, MOST, (len(SEEN),), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._seen, self._cost, self._at = np.zeros((1, len(SEEN)), np.float32), np.zeros(2), 0

    def start(self, number: int) -> tuple[Seen, Floats]:
        """Features of the looks at a start [looks, features], and the cost of submitting at each and at P's end."""
        if number not in self._known:
            start = self._trial.start(self.begins[number])
            first = start.p_end - start.situation.pair.limit_min + 1
            at = np.append(np.arange(first, start.p_end, self.every_min), start.p_end)
            rows, waits = look(start, at, waits=True)
            left = (start.p_end - at) / 60
            seen = np.minimum(choice_inputs(rows[:-1], start.forecasts(at[:-1]), left[:-1]), MOST).astype(np.float32)
            self._known[number] = seen, costs(waits / 60, left, self.outage_cost)
        return self._known[number]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode: the start ``options={"start": NUMBER}``, or a random one."""
        super().reset(seed=seed)
        number = (options or {}).get("start")
        number = int(self.np_random.integers(len(self.begins))) if number is None else int(number)
        self._seen, self._cost = self.start(number)
        self._at = 0
        return self._seen[0].copy(), {"start": number}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Wait for the next look (0), or submit S (1)."""
        at, last = self._at, len(self._seen) - 1
        submitted = int(action) == 1
        if submitted or at == last:
            cost = float(self._cost[at if submitted else -1])
            return self._seen[at].copy(), -cost, True, False, {"cost_h": cost, "submitted": submitted}
        self._at += 1
        return self._seen[self._at].copy(), 0.0, False, False, {}


def _log(log: str | Path | Log | None, cluster: str | None, seed: int, nodes: int) -> Log:
    if log is None:
        return generated_log(seed, nodes)
    if isinstance(log, Log):
        return log
    from gpuctl.store.database import Store

    if not Path(log).is_file():
        raise UsageError(f"{log}: no trace store", hint="gpuctl ingest LOG --db FILE makes one")
    with Store(Path(log)) as store:
        return from_store(store, cluster)


def generated_log(seed: int, nodes: int = MADE_UP_NODES) -> Log:
    """A month of jobs that keep 90 % of the nodes busy, more by day than by night."""
    draw = np.random.Generator(np.random.PCG64(seed))
    mean_node_s = 1.6 * 0.47 * 3600 * np.mean([1, 4, 12, 24])
    rate = 0.9 * nodes / mean_node_s
    even = np.cumsum(draw.exponential(1 / rate, int(1.2 * rate * MADE_UP_DAYS * DAY_S)))
    submit = (even + 3600 * 4 * np.sin(2 * np.pi * even / DAY_S) / np.pi).astype(np.int64)
    submit = np.sort(np.maximum(submit, 0)[submit < MADE_UP_DAYS * DAY_S])
    limit = draw.choice([1, 4, 12, 24], submit.size) * 3600
    size = np.minimum(draw.choice([1, 1, 1, 2, 3], submit.size), nodes)
    user = draw.integers(0, 12, submit.size)
    share = draw.beta(0.8 + 0.1 * user, 1.5)
    return log_of(
        "made-up", [str(k) for k in range(submit.size)], submit_s=submit, run_s=(limit * share).astype(np.int64),
        nodes=size, limit_s=limit, user=user, users=tuple(f"user{k}" for k in range(12)),
        end_s=submit + limit, first_start_s=int(submit[0]),
    )  # fmt: skip
