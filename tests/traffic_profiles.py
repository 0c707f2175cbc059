"""Traffic of training, assumed for PickyMan's jobs: 15 % noise, 8 % validation gap, 5 % longer first epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def traffic(
    epoch_s: float,
    epochs: float,
    *,
    dataset: float = 150e9,
    step: float = 1.0,
    noise: float = 0.15,
    gap: float = 0.08,
    longer: float = 1.05,
    wait: float = 0.0,
    bursts: int = 1,
    cached: bool = False,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Times and bytes of samples of a job that waits, reads its data in bursts each epoch, and pauses after it.

    Each epoch's bytes are exactly `dataset` but for the noise.
    """
    draw = np.random.default_rng(seed)
    fine = step / 20
    t = np.arange(0, wait + (longer + epochs - 1) * epoch_s, fine)
    since = t - wait
    first = since < longer * epoch_s
    length = np.where(first, longer * epoch_s, epoch_s)
    phase = np.where(first, since / length, ((since - longer * epoch_s) / epoch_s) % 1)
    reading = (since >= 0) & (phase < 1 - gap) & ((phase * bursts) % 1 < 1 - gap)
    if cached:
        reading &= first
    share = np.mean((np.arange(10_000) / 10_000 < 1 - gap) & ((np.arange(10_000) / 10_000 * bursts) % 1 < 1 - gap))
    rate = np.where(reading, dataset / (length * share), 0.0)
    count = int(t.size // 20)
    received = rate[: count * 20].reshape(count, 20).sum(axis=1) * fine
    received = received * np.maximum(0.0, 1 + noise * draw.standard_normal(count))
    return step * np.arange(1.0, count + 1), received
