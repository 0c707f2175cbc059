"""``gpuctl/Deferrable-v0``: a Gymnasium environment that starts deferrable jobs.

A step offers one pending job that fits now: start it (1) or let it wait (0). Later slots are hidden.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import gymnasium
import numpy as np

from gpuctl.compiled import jit
from gpuctl.core.errors import UsageError
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.research.deferrable.cases import Case, read_case
from gpuctl.research.deferrable.generator import CaseSettings, generate
from gpuctl.research.deferrable.observation import MOST, SHAPES, Observer, flat
from gpuctl.research.deferrable.slots import EVICTED, Rule, initial_state, outcome, quantiles, score, worth

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Seen = dict[str, NDArray[np.float32]]

SURVIVED, WAITING_NEXT = 6, 7
"""Labels of a step that become known later, for auxiliary tasks: leftover capacity of the next six slots, whether a run
started in this step survived, GPUs of pending jobs in the next slot. The first and third are divided by the cluster's
GPUs."""


class Deferrable(gymnasium.Env[Any, Any]):  # type: ignore[misc]
    """Which deferrable jobs start now.

    Observation: ``job`` and ``day``, ``ahead`` and ``past`` as in `gpuctl.research.deferrable.observation`; with
    `rows`, all of them as one row. Actions: 0 wait, 1 start. Reward: worth / mean GPU-slots per job at the end of a
    run; minus lost GPU-slots / mean GPU-slots per job at an eviction. ``info["known"]`` holds what became known of
    earlier steps: (step, column, value), see `COLUMNS`. A learner may use these values as labels, an agent must not.

    Args:
        cases: source of episodes: a folder of `gpuctl deferrable convert`, cases, or None: generated ones.
        load: load of generated cases.
        days: days of generated cases.
        gpus: GPUs of generated cases.
        made: number of generated cases.
        seed: seed of the first generated case.
        evict: which run on-demand jobs evict, a key of `gpuctl.research.deferrable.slots.EVICTED`.
        rows: return each observation as one row.

    Raises:
        UsageError: unknown `evict`, or no case has a job.
        InputError: the folder cannot be read.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

    def __init__(
        self,
        cases: str | Path | Sequence[Case] | None = None,
        *,
        load: float = 0.8,
        days: int = 14,
        gpus: int = 256,
        made: int = 16,
        seed: int = 1_000,
        evict: str = "newest",
        rows: bool = False,
    ) -> None:
        if evict not in EVICTED:
            raise UsageError(f"evict {evict!r}: not understood", hint=f"known: {', '.join(EVICTED)}")
        if cases is None:
            cases = [generate(CaseSettings(seed + k, load, days, gpus)) for k in range(made)]
        elif isinstance(cases, (str, Path)):
            cases = [read_case(Path(cases), None, None)]
        self.cases = [case for case in cases if len(case.ids)]
        if not self.cases:
            raise UsageError("no case has a job", hint="use longer cases or a higher load")
        self.evict, self.rows = evict, rows
        self._past: dict[int, NDArray[np.int64]] = {}
        spaces = {name: gymnasium.spaces.Box(-MOST, MOST, shape, np.float32) for name, shape in SHAPES.items()}
        size = sum(int(np.prod(shape)) for shape in SHAPES.values())
        self.observation_space = (
            gymnasium.spaces.Box(-MOST, MOST, (size,), np.float32) if rows else gymnasium.spaces.Dict(spaces)
        )
        self.action_space = gymnasium.spaces.Discrete(2)
        self._slots: kernel.Slots | None = None
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode: the case ``options={"case": NUMBER}``, or a random one."""
        super().reset(seed=seed)
        wanted = (options or {}).get("case")
        offered = -1
        while offered < 0:
            number = int(self.np_random.integers(len(self.cases))) if wanted is None else int(wanted)
            case = self.cases[number]
            past = self._past.setdefault(number, quantiles(case))
            self._case, self._slots = case, initial_state(case, Rule(kernel.EXTERNAL), self.evict, past)
            self._observer = Observer(case, self._slots)
            offered = self._advance(-1)
            if offered < 0 and wanted is not None:
                raise UsageError(f"case {number}: no job ever fits", hint="choose another case")
        self._offered, self._mean = offered, float(self._case.work.mean())
        self._run_of: dict[int, int] = {}
        self._came: list[tuple[int, int]] = []
        self._steps = 0
        return self._seen(), {"case": number, "step": self._steps, "known": []}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Let the offered job wait (0), or start it (1)."""
        s, starts, job = self._state, int(action) == 1, self._offered
        h, lost, before = int(s.c[kernel.SLOT]), int(s.c[kernel.LOST]), s.state.copy()
        tried = s.evictions.copy()
        if starts:
            self._run_of[job] = self._steps
        self._came.append((self._steps, h))
        self._offered = self._advance(int(starts))
        over = self._offered < 0
        known = self._known(h, before, tried)
        ended = np.flatnonzero((s.state == kernel.DONE) & (before != kernel.DONE))
        gained = float(worth(self._case, np.where(s.state == kernel.DONE, s.start, -1))[ended].sum())
        reward = (gained - (int(s.c[kernel.LOST]) - lost)) / self._mean
        self._steps += 1
        info: dict[str, Any] = {"step": self._steps, "known": known}
        if over:
            info["score"] = score(self._case, outcome(s))
        return self._seen(), reward, over, False, info

    @property
    def _state(self) -> kernel.Slots:
        if self._slots is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._slots

    def _advance(self, answer: int) -> int:
        with jit.interpreted():
            return int(kernel.advance(self._slots, answer))

    def _seen(self) -> Any:
        seen = self._observer.seen(max(self._offered, 0), over=self._offered < 0)
        return flat(seen) if self.rows else seen

    def _known(self, h: int, before: NDArray[np.int64], tried: NDArray[np.int64]) -> list[tuple[int, int, float]]:
        """What has become known of this step and earlier ones."""
        s, case = self._state, self._case
        known: list[tuple[int, int, float]] = []
        now = int(s.c[kernel.SLOT])
        if now > h:
            # leftover capacity of the slots begun since; pending jobs of the first of these
            waiting = float(s.c[kernel.WAITING_GPUS]) / case.total
            for step, slot in self._came:
                known += [
                    (step, x - slot - 1, float(case.leftover[x]) / case.total)
                    for x in range(max(h, slot) + 1, min(now, slot + SURVIVED, case.horizon - 1) + 1)
                ]
                if slot == h and now == h + 1 < case.horizon:
                    known.append((step, WAITING_NEXT, waiting))
            self._came = [(step, slot) for step, slot in self._came if now < slot + SURVIVED]
        for job in [job for job in self._run_of if s.state[job] == kernel.DONE and before[job] != kernel.DONE]:
            known.append((self._run_of.pop(job), SURVIVED, 1.0))
        for job in [job for job in self._run_of if s.evictions[job] > tried[job]]:
            known.append((self._run_of.pop(job), SURVIVED, 0.0))
        return known
