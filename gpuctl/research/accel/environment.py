"""``gpuctl/Accel-v0``: a Gymnasium environment that assigns layers to sub-accelerators.

A step is one decision, an episode one stream of requests. The same compiled code makes the observations of learned
policies and of this environment.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from gpuctl.research.accel import state as s
from gpuctl.research.accel.costs import machine_of, parse_system, read_costs
from gpuctl.research.accel.requests import models_of, stream
from gpuctl.research.accel.simulate import Policy, Rules, state_of
from gpuctl.research.accel.world_kernel import run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.accel.state import State

    Seen = dict[str, NDArray[np.float32]]

LOADS = (0.8, 0.9, 1.0, 1.1)
"""Of which each episode has one by chance."""
CROWDED = 0.1
"""Weight of what is asked of the memory beyond its bandwidth, in the reward."""
SEEDS = 900_000
"""Streams of requests that an environment draws from, their seeds from 0; those with larger ones are never drawn."""
FIRST_SEED = 2_000_000
"""Added to these: streams that score a model have smaller seeds."""


class Accel(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Assignment of layers to sub-accelerators.

    Observation: ``requests`` (32, 8 + 3 M), the waiting requests with the least slack; ``accels`` (M, 3): idle, log(1
    + time until free / 100 us), speed; ``global`` (4): waiting requests / 32, bandwidth used, share of idle ones, share
    of late requests. A row has, in units of the model's least time where it is one: slack (cut at 3), too late, rest,
    log(rest / 3000 us), time since the arrival, (deadline - arrival) / 8, layers left / 100, and 1; then for each
    sub-accelerator log(time alone / least time alone), demand / bandwidth (at most 3), computing time / time alone.
    Empty rows are 0.

    Action: a priority and M affinities for each row, from -1 to 1. Requests are taken by priority, ties in the order of
    their file; each takes the first maximum of affinity - (time until free + time alone) / least time alone. All zeros
    are fcfs-eft.

    Reward: deadlines met minus deadlines missed since the last decision (a miss counts when slack first falls below 0),
    minus 0.1 times the mean of max(0, demand / bandwidth - 1) over that time.

    Args:
        system: as of ``gpuctl accel simulate``.
        tables: a CSV of costs; None: gpuctl's own.
        models: of the requests, names with commas, or all.
        requests: requests per episode.
        loads: loads; each episode draws one.
        period_us: decisions at its multiples only; 0: whenever something can start.
        drop: drop requests that can no longer meet their deadline.
        crowded: weight of the demand beyond the memory's bandwidth. With 0.1 it outweighs deadlines on the
            system six, whose layers demand many times the bandwidth.

    Raises:
        UsageError: the system has kinds without costs, or a model has none.
        InputError: `tables` is not a table of costs.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        system: str = "six",
        *,
        tables: str | Path | None = None,
        models: str = "all",
        requests: int = 100,
        loads: tuple[float, ...] = LOADS,
        period_us: float = 0.0,
        drop: bool = False,
        crowded: float = CROWDED,
    ) -> None:
        costs = read_costs(None if tables is None else Path(tables))
        self.machine = machine_of(parse_system(system), costs)
        self.models = models_of(models, self.machine)
        self.requests, self.loads, self.crowded = requests, loads, crowded
        self.rules = Rules(period_us, drop)
        accels = len(self.machine.system.kinds)
        box = gymnasium.spaces.Box
        far = np.finfo(np.float32).max
        self.observation_space = gymnasium.spaces.Dict({
            "requests": box(-far, far, (s.SEEN_REQUESTS, s.OF_REQUEST + 3 * accels), np.float32),
            "accels": box(0, far, (accels, s.OF_ACCEL), np.float32),
            "global": box(0, far, (s.OF_ALL,), np.float32),
        })  # fmt: skip
        self.action_space = box(-1, 1, (s.SEEN_REQUESTS, 1 + accels), np.float32)
        self._state: State | None = None
        self._before = (0, 0, 0.0, 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin an episode: the stream that ``options={"seed": N, "load": L}`` names, or a random one."""
        super().reset(seed=seed)
        settings = options or {}
        number = settings.get("seed")
        number = FIRST_SEED + int(self.np_random.integers(SEEDS)) if number is None else int(number)
        load = settings.get("load")
        load = float(self.np_random.choice(self.loads)) if load is None else float(load)
        drawn_requests = stream(self.machine, self.models, self.requests, load, number)
        self._state = state_of(self.machine, drawn_requests, Policy("outside", s.OUTSIDE, s.AFFINITY), self.rules)
        self._state.c[s.WATCH] = 1
        self._before = (0, 0, 0.0, 0.0)
        run(self._state)
        self._rewarded(self._state)
        return self._seen(self._state), {"seed": number, "load": load}

    def step(self, action: Any) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Apply a decision, and advance to the next one."""
        if self._state is None:
            raise gymnasium.error.ResetNeeded("reset first")
        z = self._state
        z.action[:] = action
        over = not run(z)
        reward = self._rewarded(z)
        met = int(z.c[s.MET])
        about = {"met": met, "missed": int(z.c[s.MISSED]), "sla": met / self.requests} if over else {}
        return self._seen(z), reward, over, False, about

    def _rewarded(self, z: State) -> float:
        """Return the reward for the time since the last call."""
        now = int(z.c[s.MET]), int(z.c[s.MISSED]), float(z.f[s.OVER]), float(z.f[s.NOW])
        met, missed, over, time = (new - old for new, old in zip(now, self._before, strict=True))
        self._before = now
        return float(met - missed - self.crowded * (over / time if time > 0 else 0.0))

    def _seen(self, z: State) -> Seen:
        return {
            "requests": z.seen.astype(np.float32),
            "accels": z.seen_accels.astype(np.float32),
            "global": z.seen_all.astype(np.float32),
        }
