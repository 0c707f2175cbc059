"""Deferrable jobs, slot by slot, under a rule; and their outcome."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuctl.compiled import jit
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.forecasts import QUANTILES, of_days

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuctl.research.deferrable.cases import Case

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

EVICTED = {"newest": kernel.NEWEST, "smallest-loss": kernel.SMALLEST_LOSS}
"""Which run on-demand load evicts: the latest start, or the smallest loss of GPU-slots; ties go to the later row."""

WORDS = {kernel.DONE: "done", kernel.MISSED: "missed", kernel.FAILED: "failed"}
WAIT_COST = 0.2
"""Share of a job's worth lost by a start at the end of its window."""

_PYTHON_SLOT_S, _COMPILING_S = 3e-7, 5.0
"""CPU seconds per job and slot in plain Python, an upper estimate, and to compile the loop."""


@dataclass(frozen=True)
class Rule:
    """When a job that fits starts.

    Attributes:
        kind: a rule of `slot_kernel`.
        quantile: per cent, for a rule by forecasts.
        weights: ``w`` [features, hidden], ``b`` and ``v`` [hidden], ``v0`` [1] of a learned rule.
    """

    kind: int
    quantile: int = 50
    weights: tuple[Floats, Floats, Floats, Floats] | None = None


@dataclass(frozen=True)
class Outcome:
    """Outcome of a case.

    Attributes:
        start: slot in which the counted run started; -1: none [jobs].
        evictions: evictions of each job.
        state: ``done``, ``missed`` (its window closed before it started), ``failed`` (the same after an eviction).
        lost: GPU-slots of evicted runs.
    """

    start: Ints
    evictions: Ints
    state: tuple[str, ...]
    lost: int


def initial_state(case: Case, rule: Rule, evict: str = "newest", past: Ints | None = None) -> kernel.Slots:
    """A case before its first slot.

    Args:
        case: capacity and jobs.
        rule: starts the jobs.
        evict: a key of `EVICTED`.
        past: `quantiles` of the case, if already computed.
    """
    jobs, one = len(case.ids), np.zeros(1)
    row = np.arange(jobs)
    by_latest = np.lexsort((row, case.latest))
    rank = np.empty(jobs, np.int64)
    rank[by_latest] = row
    w, b, v, v0 = rule.weights or (np.zeros((kernel.FEATURES, 1)), one, one, one)
    c = np.zeros(kernel.COUNTERS, np.int64)
    c[kernel.TOTAL], c[kernel.SEASON] = case.total, case.season
    c[kernel.RULE], c[kernel.WHOM] = rule.kind, EVICTED[evict]
    own = of_days(case.leftover, case.season, rule.quantile) if rule.kind == kernel.QUANTILE else case.leftover
    learned = rule.kind in {kernel.NET, kernel.EXTERNAL}
    if past is None:
        past = quantiles(case) if learned else np.zeros((len(QUANTILES), 1), np.int64)
    return kernel.Slots(
        leftover=case.leftover, past=past, own=own, earliest=case.earliest, latest=case.latest, gpus=case.gpus,
        slots=case.slots, by_earliest=np.argsort(case.earliest, kind="stable"), rank=rank, state=jobs,
        start=np.full(jobs, -1), evictions=jobs, load=case.horizon, line=jobs, run=jobs, c=c, w=w, b=b, v=v, v0=v0,
        f=kernel.FEATURES,
    )  # fmt: skip


def quantiles(case: Case) -> Ints:
    """Forecast input [quantiles, slots], see `gpuctl.replay.policies.osdec.forecasts.of_days`."""
    return np.stack([of_days(case.leftover, case.season, per_cent) for per_cent in QUANTILES])


def simulate(case: Case, rule: Rule, evict: str = "newest", past: Ints | None = None) -> Outcome:
    """Go through all slots; arguments as in `initial_state`."""
    s = initial_state(case, rule, evict, past)
    with jit.interpreted(as_python(case)):
        kernel.advance(s, -1)
    return outcome(s)


def as_python(case: Case) -> bool:
    """Whether plain Python finishes the loop sooner than compiling it takes."""
    few = len(case.ids) * case.horizon * _PYTHON_SLOT_S
    return few < 0.4 or (few < _COMPILING_S and not jit.is_compiled(kernel.advance))


def outcome(s: kernel.Slots) -> Outcome:
    """Outcome of a case after its last slot."""
    states = tuple(WORDS[code] for code in s.state.tolist())
    start = np.where(s.state == kernel.DONE, s.start, -1)
    return Outcome(start, s.evictions.copy(), states, int(s.c[kernel.LOST]))


def worth(case: Case, start: Ints) -> Floats:
    """Worth of each job by its start, in GPU-slots; 0 if it does not start (-1)."""
    late = (start - case.earliest) / np.maximum(1, case.latest - case.earliest)
    return np.where(start >= 0, case.work * (1 - WAIT_COST * late), 0.0)


def score(case: Case, found: Outcome) -> float:
    """Worth of done jobs minus lost GPU-slots, as a share of all jobs' GPU-slots; NaN without jobs."""
    work = int(case.work.sum())
    return float((worth(case, found.start).sum() - found.lost) / work) if work else float("nan")
