"""How well run times are predicted on made-up jobs with known truth, parameters and seeds that nothing was chosen on.

    python benchmarks/pickyman_madeup.py [SEED]

Jobs are those of tests/trainjobs.py, but steps jump otherwise (half of the models at some batch, half at some number of
workers, by 1.1 to 1.8 times), batches are 10 to 320, workers 1, 2, 5, 10 and 20. Printed as Markdown, for
docs/how-to/predict.md: each of 60 models of a family from four profiled jobs (2.5 epochs of each); each of 60 jobs from
2.5
epochs of its own traffic, a sample a second, with and without the bytes of an epoch; how often a cache is noticed.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.pickyman_lab import HEAD, summary
from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.runtime import Prediction, predict
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape
from tests import trainjobs

MODELS = 60
SEEN = 2.5
BATCHES = (10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
WORKERS = (1.0, 2.0, 5.0, 10.0, 20.0)
JUMPS = 0.5


def model(draw: np.random.Generator, family: str) -> trainjobs.Model:
    """A model whose steps may jump further than those that the predictors were chosen on."""
    found = trainjobs.model(draw, "m", family)
    cliff = float(draw.choice(BATCHES[1:-1])), float(draw.uniform(1.1, 1.8)) if draw.random() < JUMPS else 1.0
    crowd = float(draw.choice(WORKERS[1:])), float(draw.uniform(1.1, 1.8)) if draw.random() < JUMPS else 1.0
    return replace(found, cliff=cliff, crowd=crowd)


def shapes(draw: np.random.Generator) -> list[tuple[float, float]]:
    """Batch and workers of four profiled jobs and of one to predict."""
    while True:
        found = [(float(draw.choice(BATCHES)), float(draw.choice(WORKERS))) for _ in range(5)]
        batches, workers = ({pair[k] for pair in found[:4]} for k in (0, 1))
        if len(batches) > 1 and len(workers) > 1 and 1.0 in workers:
            return found


def seen(job: trainjobs.Job, epochs: float = SEEN) -> Series:
    """The traffic of its first epochs."""
    return series(job.t, job.bytes).until(float(job.ends[0]) + (epochs - 1) * job.epoch_s)


def described(job: trainjobs.Job, *, size: bool = True) -> JobDescription:
    """What its owner says of a job."""
    shape = Shape(job.samples, job.batch, job.workers, job.model.validation)
    return JobDescription(job.name, job.model.name, shape, float(job.ends.size), job.dataset_bytes if size else np.nan)


def from_four(draw: np.random.Generator, family: str) -> tuple[trainjobs.Job, Prediction]:
    """A job and its prediction from four others."""
    made = model(draw, family)
    jobs = [
        trainjobs.job(draw, made, str(k), batch=b, workers=g, epoch_s=float(draw.uniform(15, 200)))
        for k, (b, g) in enumerate(shapes(draw))
    ]
    known = {job.name: seen(job) for job in jobs[:4]}
    return jobs[4], predict([described(job) for job in jobs], known, wanted=["4"])[0]


def alone(
    draw: np.random.Generator, family: str, *, size: bool, interval: float = 1.0, cached: float = 0.0
) -> tuple[trainjobs.Job, Prediction]:
    """A job and its prediction from its own traffic."""
    made = model(draw, family)
    job = trainjobs.job(
        draw, made, "j", batch=float(draw.choice(BATCHES)), workers=float(draw.choice(WORKERS)),
        epoch_s=float(draw.uniform(15, 200)), interval=interval, cached=cached,
        bound=float(draw.uniform(1, 3)) if cached == 1 else 1.0,
    )  # fmt: skip
    return job, predict([described(job, size=size)], {"j": seen(job)})[0]


def told(title: str, pairs: dict[str, list[tuple[trainjobs.Job, Prediction]]]) -> None:
    """Print a table of predictions, a row a family."""
    print(f"## {title}\n\n{HEAD}")
    everything: list[tuple[trainjobs.Job, Prediction]] = []
    for family, some in [*pairs.items(), ("all", everything)]:
        answered = [(job, p) for job, p in some if np.isfinite(p.run_time_s)]
        errors = [p.run_time_s / float(job.ends[-1]) - 1 for job, p in answered]
        inside = [p.lower_s <= job.ends[-1] <= p.upper_s for job, p in answered]
        print(summary(family, len(some), errors, inside))
        everything += some if family != "all" else []
    print()


def main() -> None:
    """Print the tables."""
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else 20261130
    families = list(enumerate(trainjobs.FAMILIES))

    def draws(what: int, k: int) -> list[np.random.Generator]:
        return [np.random.default_rng([seed, what, k, n]) for n in range(MODELS)]

    told("From four other jobs", {f: [from_four(d, f) for d in draws(0, k)] for k, f in families})
    for number, size in ((1, True), (2, False)):
        title = f"From its own traffic, dataset_bytes {'' if size else 'not '}known"
        told(title, {f: [alone(d, f, size=size) for d in draws(number, k)] for k, f in families})
    print("## Caches\n\n| share read from a cache | jobs | noticed, dataset_bytes known | noticed, not known |")
    print("|---:|---:|---:|---:|")
    for number, cached in enumerate((0.0, 0.2, 0.5, 1.0)):
        cells = []
        for size in (True, False):
            some = [alone(d, "cnn", size=size, cached=cached)[1] for d in draws(3 + number, 0)]
            cells.append(f"{100 * np.mean([bool(p.cached) for p in some]):.0f} %")
        print(f"| {100 * cached:.0f} % | {MODELS} | {cells[0]} | {cells[1]} |")
    print("\n## Fewer samples, dataset_bytes not known\n\n| seconds apart | jobs | answered | off by over 30 % |")
    print("|---:|---:|---:|---:|")
    for number, interval in enumerate((2.0, 5.0, 10.0, 20.0)):
        some = [alone(d, "cnn", size=False, interval=interval) for d in draws(7 + number, 0)]
        off = [abs(p.run_time_s / job.ends[-1] - 1) > 0.3 for job, p in some if np.isfinite(p.run_time_s)]
        print(f"| {interval:g} | {MODELS} | {len(off)} | {sum(off)} |")


if __name__ == "__main__":
    main()
