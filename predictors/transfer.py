"""Epoch lengths of jobs that were never profiled, from profiled jobs of the same model.

Reconstructed from the published abstract (PickyMan, IPCCC 2022): that a profile of four jobs suffices for others of the
same model is theirs; this form, whose four unknowns four jobs determine, is ours::

    epoch_s = N / (b g) * (A + B b + C c(g)) + K        c(g) = 2 (g - 1) / g

N samples an epoch, b samples a step and GPU, g GPUs; A seconds to launch a step, B seconds to compute a sample, C
seconds of an all-reduce, K seconds an epoch whatever its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

TERMS = ("step", "sample", "all-reduce", "epoch")
ENOUGH = 4
"""Profiled jobs of a model that the abstract says suffice."""
PRIOR = 0.01
"""Variance of epoch lengths, relative, over the variance of what a term explains of them: 0.05 and 0.5, squared."""
ASSUMED_ERROR = 0.13
"""Of a prediction whose error cannot be estimated: four of five predictions of run times from four jobs came within
12.3 % on the lab's recordings (benchmarks/pickyman_lab.py). The abstract says that most errors are below 10 %."""


@dataclass(frozen=True)
class Shape:
    """What a job's epoch length depends on.

    Attributes:
        samples: an epoch.
        batch: samples a step and GPU.
        gpus: of the gang.
    """

    samples: float
    batch: float
    gpus: float

    @property
    def known(self) -> bool:
        """Whether all of it is there and makes sense."""
        return all(np.isfinite(v) and v > 0 for v in (self.samples, self.batch, self.gpus))


@dataclass(frozen=True)
class Profiled:
    """A profiled job: its shape and the length of its epochs."""

    job: str
    shape: Shape
    epoch_s: float


@dataclass(frozen=True)
class Transferred:
    """The epoch length of a job that was not profiled.

    Attributes:
        epoch_s: seconds.
        error: relative, such that four of five predictions of this kind are within it.
        method: which link of the chain answered.
        jobs: profiled jobs that it rests on.
    """

    epoch_s: float
    error: float
    method: str
    jobs: int


def design(shapes: Sequence[Shape]) -> Floats:
    """The terms of each job's epoch length [jobs, 4], for the coefficients A, B, C, K."""
    n = np.array([s.samples for s in shapes])
    b = np.array([s.batch for s in shapes])
    g = np.array([s.gpus for s in shapes])
    steps = n / (b * g)
    return np.stack([steps, steps * b, steps * 2 * (g - 1) / g, np.ones_like(steps)], axis=1)


def fit(profiled: Sequence[Profiled]) -> Floats:
    """Fit the coefficients by least squares of relative errors, none of them below 0 [4].

    Terms that the jobs cannot tell apart are left out: without two batch sizes A goes into B, without a gang of several
    GPUs (or without a single one) there is no C, and K needs one job more than the other terms.
    """
    from scipy.optimize import nnls

    shapes = [p.shape for p in profiled]
    epoch_s = np.array([p.epoch_s for p in profiled])
    rows = design(shapes) / epoch_s[:, None]
    use = [1]
    for term, apart in ((0, len({s.batch for s in shapes}) > 1), (2, len({s.gpus for s in shapes}) > 1), (3, True)):
        if apart and len(use) < len(profiled) and np.linalg.matrix_rank(_scaled(rows[:, [*use, term]])) > len(use):
            use.append(term)
    found = np.zeros(4)
    columns = rows[:, use]
    scale = np.abs(columns).max(axis=0)
    # Exact for as many jobs as terms, the fit would take the noise of each job for a term: terms beside the seconds a
    # sample have to explain something.
    prior = np.sqrt(PRIOR) * np.eye(len(use))[1:]
    rows = np.concatenate([columns / scale, prior * (columns / scale).mean(axis=0)])
    found[use] = nnls(rows, np.append(np.ones(len(profiled)), np.zeros(len(use) - 1)))[0] / scale
    return found


def _scaled(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300))


def transfer(shape: Shape, profiled: Sequence[Profiled]) -> Transferred | None:
    """Predict the epoch length of a job from profiled jobs of its model.

    Chain: a job of the same batch size and GPUs, its epoch scaled by the samples; the fit; the median of seconds a
    sample and GPU. None without a profiled job or a known shape.
    """
    usable = [p for p in profiled if p.shape.known and np.isfinite(p.epoch_s) and p.epoch_s > 0]
    if not usable or not shape.known:
        return None
    epoch_s, method = _predict(shape, usable)
    return Transferred(epoch_s, _error(usable, method), method, len(usable))


def _predict(shape: Shape, profiled: Sequence[Profiled]) -> tuple[float, str]:
    alike = [p for p in profiled if (p.shape.batch, p.shape.gpus) == (shape.batch, shape.gpus)]
    fitted = len(profiled) >= ENOUGH
    coefficients = fit(profiled) if fitted else np.zeros(4)
    if alike:
        # what an epoch takes whatever its size does not grow with it
        constant = min(float(coefficients[3]), 0.9 * min(p.epoch_s for p in alike))
        scaled = [(p.epoch_s - constant) * shape.samples / p.shape.samples + constant for p in alike]
        weight = np.array([1 / (1 + abs(np.log(shape.samples / p.shape.samples))) for p in alike])
        return float(np.average(scaled, weights=weight)), "same batch and GPUs"
    if fitted:
        found = float((design([shape]) @ coefficients)[0])
        if found > 0:
            return found, "fit of the model's jobs"
    per_sample = np.median([p.epoch_s * p.shape.gpus / p.shape.samples for p in profiled])
    return float(per_sample * shape.samples / shape.gpus), "median of the model's jobs"


def left_out(profiled: Sequence[Profiled]) -> list[tuple[str, float, str]]:
    """Predict each job from the others: (job, relative error, method) [jobs]."""
    found = []
    for k, one in enumerate(profiled):
        others = [*profiled[:k], *profiled[k + 1 :]]
        if others:
            epoch_s, method = _predict(one.shape, others)
            found.append((one.job, epoch_s / one.epoch_s - 1, method))
    return found


def _error(profiled: Sequence[Profiled], method: str) -> float:
    """The error that four of five predictions of this kind stay within, from leaving each job out in turn."""
    tried = left_out(profiled)
    same = [abs(error) for _, error, how in tried if how == method] or [abs(error) for _, error, _ in tried]
    if len(profiled) <= ENOUGH or len(same) < 3:
        # with one job less than the terms need, leaving one out shows another kind of prediction
        return max(ASSUMED_ERROR, float(np.median(same)) if same and method.startswith("median") else 0.0)
    # the 80 % quantile of so few, as a new one from the same source would have it
    rank = min(len(same), int(np.ceil(0.8 * (len(same) + 1))))
    return max(float(np.sort(same)[rank - 1]), 0.02)
