"""Made-up training jobs with known truth: steps whose time may jump with batch and workers, validation, caches, noise.

A model is drawn from one of several families; its jobs differ in samples, batch and workers. Nothing here is shared
with `gpuctl.predictors`: a step's time is no straight line, and what the predictors assume need not hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
FAMILIES = ("cnn", "mlp", "lstm", "transformer", "boosting")
BATCHES = (8, 16, 32, 64, 128, 256)
WORKERS = (1, 2, 4, 8)


@dataclass(frozen=True)
class Model:
    """What a model's jobs have in common; seconds and bytes."""

    name: str
    family: str
    launch: float
    sample: float
    small: float
    """Samples a step by which small batches are less efficient."""
    cliff: tuple[float, float]
    """Batch beyond which a sample costs so many times as much."""
    gather: float
    crowd: tuple[float, float]
    """Workers from which on a step takes so many times as long."""
    validation: float
    """Samples that are validated each epoch, by the first worker alone."""
    forward: float
    """Of a sample's time, to look at it without learning."""
    fixed: float
    sample_bytes: float
    compile: float
    job_noise: float
    epoch_noise: float

    def step(self, batch: float, workers: float) -> float:
        """Seconds of a step."""
        compute = self.sample * (batch + self.small) * (self.cliff[1] if batch > self.cliff[0] else 1.0)
        slow = self.crowd[1] if workers >= self.crowd[0] else 1.0
        return (self.launch + compute + self.gather * 2 * (workers - 1) / workers) * slow

    def epoch(self, samples: float, batch: float, workers: float) -> float:
        """Seconds of an epoch, without noise."""
        return (
            samples / (batch * workers) * self.step(batch, workers)
            + self.validation * self.forward * self.sample
            + self.fixed
        )


@dataclass(frozen=True)
class Job:
    """A job and how it went.

    Attributes:
        name: of the job.
        model: of it.
        samples: an epoch.
        batch: samples a step and worker.
        workers: how many.
        ends: seconds at which its epochs ended [epochs].
        t: seconds at which its traffic was sampled [n].
        bytes: since the sample before [n].
        cached: share of the data that later epochs read from memory.
    """

    name: str
    model: Model
    samples: float
    batch: float
    workers: float
    ends: Floats
    t: Floats
    bytes: Floats
    cached: float = 0.0

    @property
    def epoch_s(self) -> float:
        """Mean length of its epochs but the first."""
        return float(self.ends[-1] - self.ends[0]) / (self.ends.size - 1)

    @property
    def dataset_bytes(self) -> float:
        """What an epoch reads."""
        return (self.samples + self.model.validation) * self.model.sample_bytes


def model(draw: np.random.Generator, name: str, family: str | None = None) -> Model:
    """Draw a model."""
    family = family or str(draw.choice(FAMILIES))
    sample = float(np.exp(draw.uniform(np.log(2e-4), np.log(5e-3))))
    launch = sample * float(np.exp(draw.uniform(np.log(0.5), np.log(20))))
    jumps = {"cnn": 0.5, "mlp": 0.3, "lstm": 0.6, "transformer": 0.5, "boosting": 0.2}[family]
    cliff = float(draw.choice(BATCHES[1:-1])), float(draw.uniform(1.1, 1.7)) if draw.random() < jumps else 1.0
    crowd = float(draw.choice(WORKERS[1:])), float(draw.uniform(1.05, 1.5)) if draw.random() < jumps else 1.0
    return Model(
        name, family, launch, sample, float(draw.uniform(0, 12)), cliff, launch * float(draw.uniform(0, 1.5)), crowd,
        float(draw.choice([0, 500, 2000, 8000])), float(draw.uniform(0.25, 0.5)), float(draw.uniform(0, 1.0)),
        float(np.exp(draw.uniform(np.log(300), np.log(2e4)))), float(draw.uniform(0.5, 8)),
        float(draw.uniform(0.01, 0.05)), float(draw.uniform(0.01, 0.06)),
    )  # fmt: skip


def job(
    draw: np.random.Generator,
    model: Model,
    name: str,
    *,
    batch: float,
    workers: float,
    epoch_s: float = 60.0,
    epochs: int = 6,
    interval: float = 1.0,
    cached: float = 0.0,
    bound: float = 1.0,
) -> Job:
    """Run a job.

    Args:
        draw: randomness.
        model: of the job.
        name: of it.
        batch: samples a step and worker.
        workers: how many.
        epoch_s: about how long an epoch should be: decides its samples.
        epochs: how many.
        interval: seconds between samples of its traffic.
        cached: share of the data that later epochs do not read from the storage.
        bound: how many times as long the first epoch's steps are where later ones do not wait for the storage.
    """
    wanted = epoch_s * float(np.exp(draw.uniform(-0.5, 0.5)))
    a_sample = model.step(batch, workers) / (batch * workers)
    samples = max(round(wanted / a_sample / (batch * workers)), 4) * batch * workers
    mine = float(np.exp(model.job_noise * draw.standard_normal()))
    at = float(draw.uniform(0.3, 3.0))
    moments, read, ends = [0.0, at], [0.0, 0.0], []
    for epoch in range(epochs):
        noise = mine * float(np.exp(model.epoch_noise * draw.standard_normal()))
        train = samples / (batch * workers) * model.step(batch, workers) * noise
        train *= bound if epoch == 0 else 1.0
        valid = model.validation * model.forward * model.sample * noise
        share = 1.0 if epoch == 0 else 1.0 - cached
        if epoch == 0:
            at += model.compile
            moments.append(at)
            read.append(read[-1])
        # training in pieces whose pace differs, validation, and what is neither
        pieces = np.exp(0.1 * draw.standard_normal(12))
        for piece in pieces / pieces.sum():
            at += train * float(piece)
            moments.append(at)
            read.append(read[-1] + share * samples * model.sample_bytes / pieces.size)
        at += valid
        moments.append(at)
        read.append(read[-1] + share * model.validation * model.sample_bytes)
        at += model.fixed
        moments.append(at)
        read.append(read[-1])
        ends.append(at)
    t = np.arange(1.0, int(at / interval) + 1) * interval
    total = np.interp(t, moments, read)
    received = np.maximum(np.diff(total, prepend=0.0) * 1.003, 0.0)
    return Job(name, model, samples, batch, workers, np.array(ends), t, received, cached)


def shapes(draw: np.random.Generator, count: int) -> list[tuple[float, float]]:
    """Draw (batch, workers) of several jobs: at least two batches and two numbers of workers, one of them 1."""
    while True:
        batches = draw.choice(BATCHES, 4, replace=False)
        workers = np.append(1, draw.choice(WORKERS[1:], 2, replace=False))
        found = [(float(draw.choice(batches)), float(draw.choice(workers))) for _ in range(count)]
        some = found[:4]
        if len({b for b, _ in some}) > 1 and len({g for _, g in some}) > 1 and 1.0 in {g for _, g in some}:
            return found
