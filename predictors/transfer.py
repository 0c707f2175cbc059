"""Epoch lengths of jobs without a profile, from profiled jobs of the same model.

Reconstructed from the published abstract (PickyMan, IPCCC 2022): that a profile of four jobs suffices for others of the
same model comes from the paper; this form, whose four unknowns four jobs determine, is gpuctl's::

    epoch_s = N / (b g) * (A + B b + C c(g)) + B F V + K        c(g) = 2 (g - 1) / g

N samples per epoch, b samples per step and GPU, g GPUs, V validation samples, on the first GPU alone; A seconds to
launch a step, B seconds to compute a sample, F the share of that without backpropagation, C seconds of an all-reduce, K
fixed seconds per epoch.

A step's time is not always linear: it jumps when a batch no longer fits into a cache, or when workers share a resource.
So the formula is one of two estimates. The other (`interpolated`) only assumes that jobs of similar batch and GPUs take
similar time per sample, with an uncertainty that grows with distance. The prediction lies between the two, and its
interval grows with the distance from the profiled jobs and with the difference of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ENOUGH = 4
"""Profiled jobs of a model that the abstract says suffice."""
PRIOR = 0.01
"""Variance of epoch lengths, relative, over the variance of what a term explains of them: 0.05 and 0.5, squared."""
FORWARD = 1 / 3
"""Of the time to learn from a sample, to look at it only: going back through a network takes twice as long."""
FITS, MISSES, MOST_PULL = 0.01, 0.05, 0.6
"""A formula that misses the jobs it was fitted to by so much (root mean square of ln) is trusted fully, or least: then
the interpolation has this weight."""
DOUBT = 1.3
"""The interval's half width, of ln(epoch), in standard deviations of the interpolation …"""
DISCORD = 0.5
"""… and in differences between it and the formula. Both chosen such that intervals hold at least four of five
predictions from four jobs: of the lab's recordings, and of made-up models whose steps jump (tests/trainjobs.py)."""
FEWER = 1.25
"""Times as wide with fewer than four jobs, which tell less of what the formula cannot be told from."""

# Standard deviation of ln(seconds per sample) between jobs of a model: chosen on the same two
_OCTAVE_MEAN, _OCTAVE_SPREAD = -0.2, 0.1
"""For twice the batch, at first: launching a step is shared by more samples."""
_JUMP_BATCH, _FAR_BATCH = 0.2, 4.5
"""By jumps and bends between batches, and the octaves over which two batches have less and less in common."""
_WORKERS_MEAN = 0.08
"""For twice the GPUs."""
_JUMP_GPUS, _FAR_GPUS = 0.1, 6.0
_LENGTH_SPREAD = 0.03
"""For e times the steps an epoch: what an epoch costs whatever its size."""
_LEVEL = 2.0
"""Of the model as a whole: anything."""
_NOISE = 0.045
"""Between two jobs of one shape: as measured in 2.5 epochs of each."""


@dataclass(frozen=True)
class Shape:
    """The properties that a job's epoch length depends on.

    Attributes:
        samples: samples per epoch.
        batch: samples per step and GPU.
        gpus: of the gang.
        validation: validation samples per epoch; 0 if unknown.
    """

    samples: float
    batch: float
    gpus: float
    validation: float = 0.0

    @property
    def known(self) -> bool:
        """Return whether all values are known and valid."""
        return all(np.isfinite(v) and v > 0 for v in (self.samples, self.batch, self.gpus))


def validated(samples: float, dataset_bytes: float, validation_bytes: float) -> float:
    """Return the samples that an epoch validates, from its bytes at equal sample sizes; 0 if unknown."""
    learnt = dataset_bytes - validation_bytes
    return validation_bytes * samples / learnt if np.isfinite(learnt) and learnt > 0 and np.isfinite(samples) else 0.0


@dataclass(frozen=True)
class ProfiledJob:
    """A profiled job: its shape and the length of its epochs."""

    job: str
    shape: Shape
    epoch_s: float


@dataclass(frozen=True)
class EpochEstimate:
    """The estimated epoch length of a job without a profile.

    Attributes:
        epoch_s: seconds.
        error: of ln(epoch_s): four of five such predictions are within it.
        method: the method of the chain that answered.
        jobs: number of profiled jobs that it rests on.
    """

    epoch_s: float
    error: float
    method: str
    jobs: int


def design(shapes: Sequence[Shape]) -> Floats:
    """Return the terms of each job's epoch length [jobs, 4], for the coefficients A, B, C, K."""
    n = np.array([s.samples for s in shapes])
    b = np.array([s.batch for s in shapes])
    g = np.array([s.gpus for s in shapes])
    v = np.array([s.validation for s in shapes])
    steps = n / (b * g)
    return np.stack([steps, steps * b + FORWARD * v, steps * 2 * (g - 1) / g, np.ones_like(steps)], axis=1)


def fit(profiled: Sequence[ProfiledJob]) -> Floats:
    """Fit the coefficients by least squares of relative errors, none of them below 0 [4].

    Terms that the jobs cannot distinguish are left out: without two batch sizes A merges into B, C needs both a gang of
    several GPUs and a job of one GPU, and K needs one job more than the other terms.
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
    # With as many jobs as terms the fit would be exact and take noise for a term: terms beyond the seconds per sample
    # have to explain some variance.
    prior = np.sqrt(PRIOR) * np.eye(len(use))[1:]
    rows = np.concatenate([columns / scale, prior * (columns / scale).mean(axis=0)])
    found[use] = nnls(rows, np.append(np.ones(len(profiled)), np.zeros(len(use) - 1)))[0] / scale
    return found


def _scaled(rows: Floats) -> Floats:
    return np.asarray(rows / np.maximum(np.abs(rows).max(axis=0), 1e-300))


def transfer(shape: Shape, profiled: Sequence[ProfiledJob]) -> EpochEstimate | None:
    """Predict the epoch length of a job from profiled jobs of its model.

    Chain: a job of the same batch size and GPUs, its epoch scaled by the samples; the fit; the median of seconds per
    sample and GPU. None without a profiled job or a known shape.
    """
    usable = [p for p in profiled if p.shape.known and np.isfinite(p.epoch_s) and p.epoch_s > 0]
    if not usable or not shape.known:
        return None
    formula, method = _predict(shape, usable)
    near, deviation = interpolated(shape, usable)
    discord = near - float(np.log(formula))
    found = float(np.exp(near - (1 - _pull(usable, method)) * discord))
    few = FEWER if len(usable) < ENOUGH else 1.0
    return EpochEstimate(found, few * (DOUBT * deviation + DISCORD * abs(discord)), method, len(usable))


def _pull(profiled: Sequence[ProfiledJob], method: str) -> float:
    """Return the weight of the interpolation against the formula: higher if the formula does not fit its own data."""
    if len(profiled) < ENOUGH:
        return 0.5 if method.startswith("median") else 0.0
    fitted = design([p.shape for p in profiled]) @ fit(profiled)
    missed = float(np.sqrt(np.mean(np.log(fitted / [p.epoch_s for p in profiled]) ** 2)))
    return MOST_PULL * float(np.clip((missed - FITS) / (MISSES - FITS), 0, 1))


def interpolated(shape: Shape, profiled: Sequence[ProfiledJob]) -> tuple[float, float]:
    """Return ln(epoch_s) interpolated from jobs of similar batch, GPUs and samples, and its standard deviation.

    A Gaussian process of ln(seconds per sample and GPU) over the logarithms of batch, GPUs and steps per epoch.
    """
    shapes = [p.shape for p in profiled]
    x, size = _place([*shapes, shape])
    y = np.log([p.epoch_s for p in profiled]) - size[:-1]
    trend = _OCTAVE_MEAN * x[:, 0] + _WORKERS_MEAN * x[:, 1]
    covariance = _covariance(x)
    known, between = covariance[:-1, :-1] + _NOISE**2 * np.eye(len(profiled)), covariance[:-1, -1]
    level = float(np.mean(y - trend[:-1]))
    solved = np.linalg.solve(known, np.stack([y - trend[:-1] - level, between], axis=1))
    middle = level + trend[-1] + size[-1] + float(between @ solved[:, 0])
    variance = float(covariance[-1, -1] - between @ solved[:, 1]) + _NOISE**2
    return float(middle), float(np.sqrt(max(variance, _NOISE**2)))


def _place(shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
    """Return log2 of batch and GPUs and ln(steps), relative to the first job [n, 3]; ln(samples of a GPU) [n]."""
    b, g = (np.array([getattr(s, name) for s in shapes]) for name in ("batch", "gpus"))
    samples = np.array([s.samples / s.gpus + FORWARD * s.validation for s in shapes])
    x = np.stack([np.log2(b), np.log2(g), np.log(samples / b)], axis=1)
    return np.asarray(x - x[0]), np.log(samples)


def _covariance(x: Floats) -> Floats:
    apart = np.abs(x[:, None, :] - x[None, :, :])
    near_batch, near_gpus = np.exp(-apart[..., 0] / _FAR_BATCH), np.exp(-apart[..., 1] / _FAR_GPUS)
    return np.asarray(
        _LEVEL**2
        + _OCTAVE_SPREAD**2 * np.outer(x[:, 0], x[:, 0])
        + _LENGTH_SPREAD**2 * np.outer(x[:, 2], x[:, 2])
        + _JUMP_BATCH**2 * near_batch * near_gpus
        + _JUMP_GPUS**2 * near_gpus
    )


def _predict(shape: Shape, profiled: Sequence[ProfiledJob]) -> tuple[float, str]:
    alike = [p for p in profiled if (p.shape.batch, p.shape.gpus) == (shape.batch, shape.gpus)]
    fitted = len(profiled) >= ENOUGH
    coefficients = fit(profiled) if fitted else np.zeros(4)
    if alike:
        # fixed costs of an epoch do not grow with its size, nor does validation
        fixed = [
            float(coefficients[3] + coefficients[1] * FORWARD * s.validation)
            for s in (shape, *(p.shape for p in alike))
        ]
        learnt = [max(p.epoch_s - own, 0.1 * p.epoch_s) for p, own in zip(alike, fixed[1:], strict=True)]
        scaled = [
            own * shape.samples / p.shape.samples + min(fixed[0], 0.9 * p.epoch_s)
            for p, own in zip(alike, learnt, strict=True)
        ]
        weight = np.array([1 / (1 + abs(np.log(shape.samples / p.shape.samples))) for p in alike])
        return float(np.average(scaled, weights=weight)), "same batch and GPUs"
    if fitted:
        found = float((design([shape]) @ coefficients)[0])
        if found > 0:
            return found, "fit of the model's jobs"
    per_sample = np.median([p.epoch_s * p.shape.gpus / p.shape.samples for p in profiled])
    return float(per_sample * shape.samples / shape.gpus), "median of the model's jobs"


def left_out(profiled: Sequence[ProfiledJob]) -> list[tuple[str, float, str]]:
    """Predict each job from the others: (job, relative error, method) [jobs]."""
    found = []
    for k, one in enumerate(profiled):
        others = [*profiled[:k], *profiled[k + 1 :]]
        if others:
            epoch_s, method = _predict(one.shape, others)
            found.append((one.job, epoch_s / one.epoch_s - 1, method))
    return found
