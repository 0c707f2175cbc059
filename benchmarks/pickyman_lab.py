"""How well run times and the costs of suspensions are predicted on the recordings of the PickyMan lab.

    python benchmarks/pickyman_lab.py [FOLDER]

FOLDER (sample_data/pickyman) has what `labs/pickyman` recorded. As Markdown, for docs/how-to/predict.md:

1. each job predicted from the first 2.5 epochs of its own traffic;
2. each job predicted from four other jobs of its model, of which only the first 2.5 epochs of traffic are known: all
   choices of four with two batch sizes, two numbers of GPUs, one of them 1, and jobs that use a cache left out;
3. suspensions predicted by a model that was fitted on all the others.

Errors are of the run time as the lab measured it, in percent of it; the job that is predicted is never learnt from.
"""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.predictors import overhead
from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.overhead import MeasuredSuspension
from gpuctl.predictors.runtime import Prediction, predict
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape, validated

SAMPLE = Path(__file__).resolve().parent.parent / "sample_data" / "pickyman"
EPOCHS_SEEN = 2.5


@dataclass(frozen=True)
class Recorded:
    """A job of the lab: what its owner could say of it, its traffic up to 2.5 epochs, and what it really took."""

    described: JobDescription
    family: str
    seen: Series
    epoch_s: float
    run_time_s: float
    cached: bool


def table(folder: Path, name: str) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with (folder / name).open(newline="") as file:
        return list(csv.DictReader(file))


def recorded(folder: Path) -> list[Recorded]:
    """The jobs of the lab."""
    traffic: dict[str, list[tuple[float, float]]] = {}
    for row in table(folder, "traffic.csv"):
        traffic.setdefault(row["job_id"], []).append((float(row["t"]), float(row["bytes"])))
    ends: dict[str, list[tuple[float, float]]] = {}
    for row in table(folder, "epochs.csv"):
        ends.setdefault(row["job_id"], []).append((float(row["start_s"]), float(row["end_s"])))
    found = []
    for row in table(folder, "jobs.csv"):
        spans = ends[row["job_id"]]
        epoch_s = (spans[-1][1] - spans[0][1]) / (len(spans) - 1)
        t, received = np.array(traffic[row["job_id"]]).T
        size = float(row["dataset_bytes"])
        looked = validated(float(row["samples"]), size, float(row["validation_bytes"]))
        shape = Shape(float(row["samples"]), float(row["batch"]), float(row["gpus"]), looked)
        described = JobDescription(row["job_id"], row["model"], shape, float(row["epochs"]), size)
        seen = series(t, received).until(spans[0][1] + (EPOCHS_SEEN - 1) * epoch_s)
        cached = row["cached"] == "1"
        found.append(Recorded(described, row["family"], seen, epoch_s, float(row["run_time_s"]), cached))
    return found


def of(job: Recorded, prediction: Prediction) -> float:
    """The relative error of a prediction."""
    return prediction.run_time_s / job.run_time_s - 1


def own(job: Recorded) -> Prediction:
    """The job from its own traffic."""
    return predict([job.described], {job.described.job: job.seen})[0]


def from_four(job: Recorded, jobs: list[Recorded]) -> list[Prediction]:
    """The job from each choice of four others."""
    others = [o for o in jobs if o is not job and o.described.model == job.described.model and not o.cached]
    found = []
    for four in combinations(others, 4):
        shapes = [o.described.shape for o in four]
        gpus = {s.gpus for s in shapes}
        if len({s.batch for s in shapes}) < 2 or len(gpus) < 2 or 1 not in gpus:
            continue
        known = [job.described, *(o.described for o in four)]
        found += predict(known, {o.described.job: o.seen for o in four}, wanted=[job.described.job])
    return found


def summary(name: str, jobs: int, errors: list[float], inside: list[bool]) -> str:
    """A row: median error, share under 10 %, worst, and how many ended inside their intervals."""
    e = np.abs(np.array(errors))
    if not e.size:
        return f"| {name} | {jobs} | 0 | | | | |"
    return (
        f"| {name} | {jobs} | {e.size} | {100 * np.median(e):.1f} % | {100 * np.mean(e < 0.1):.0f} % | "
        f"{100 * e.max():.0f} % | {100 * np.mean(inside):.0f} % |"
    )


HEAD = (
    "| family | jobs | predictions | median error | under 10 % | worst | inside the interval |\n"
    "|---|---:|---:|---:|---:|---:|---:|"
)


def compare(jobs: list[Recorded], *, four: bool) -> None:
    """Print one of the first two tables."""
    print(HEAD)
    everything: tuple[list[float], list[bool]] = ([], [])
    counted = [j for j in jobs if not j.cached]
    for family in sorted({j.family for j in jobs}):
        some = [j for j in counted if j.family == family]
        errors: list[float] = []
        inside: list[bool] = []
        for job in some:
            for p in from_four(job, jobs) if four else [own(job)]:
                if np.isfinite(p.run_time_s):
                    errors.append(of(job, p))
                    inside.append(p.lower_s <= job.run_time_s <= p.upper_s)
        print(summary(family, len(some), errors, inside))
        everything[0].extend(errors)
        everything[1].extend(inside)
    print(summary("all", len(counted), *everything), "\n")


def real(text: str) -> float:
    """A cell's number; NaN where it is empty."""
    return float(text) if text else np.nan


def suspended(folder: Path) -> list[MeasuredSuspension]:
    """The measured suspensions."""
    return [
        MeasuredSuspension(
            row["job_id"], row["model"], "abort" if row["mode"] == "abort" else "epoch", real(row["checkpoint_bytes"]),
            real(row["dataset_bytes"]), real(row["gpus"]), real(row["epoch_s"]), real(row["epoch_done_s"]),
            real(row["epoch_left_s"]), real(row["suspend_s"]), real(row["resume_s"]), real(row["loss_s"]),
        )
        for row in table(folder, "suspensions.csv")
    ]  # fmt: skip


def main() -> None:
    """Print the tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SAMPLE
    jobs = recorded(folder)
    print(f"## From the first {EPOCHS_SEEN} epochs of the job's own traffic\n")
    compare(jobs, four=False)
    print(f"## From four other jobs of the model, {EPOCHS_SEEN} epochs of each\n")
    compare(jobs, four=True)
    print("## Jobs that read later epochs from a cache\n")
    for job in (j for j in jobs if j.cached):
        alone, with_others = (
            own(job),
            predict([j.described for j in jobs], {j.described.job: j.seen for j in jobs}, wanted=[job.described.job])[
                0
            ],
        )
        flagged = "flagged" if alone.cached else "not flagged"
        error = f"{with_others.method} {100 * of(job, with_others):+.0f} %"
        print(f"- {job.described.job}: {flagged}, {alone.method}; with others: {error}")
    rows, _ = overhead.usable(suspended(folder))
    for apart in ("suspension", "job"):
        print(f"\n## {len(rows)} suspensions, each predicted without its {apart}\n")
        print("| cost | predictions | mean error | median error | mean error, of an epoch | inside the interval |")
        print("|---|---:|---:|---:|---:|---:|")
        tests = overhead.left_out(rows, apart) if len(rows) >= overhead.LEAST else []  # type: ignore[arg-type]
        for cost in dict.fromkeys(t.cost for t in tests):
            e = np.abs([t.error for t in tests if t.cost == cost])
            epochs = [t.epochs for t in tests if t.cost == cost and np.isfinite(t.epochs)]
            held = overhead.inside(tests, cost)
            parts = f"{100 * np.mean(epochs):.1f} %" if epochs else "", f"{100 * np.mean(held):.0f} %" if held else ""
            print(
                f"| {cost} | {e.size} | {100 * e.mean():.1f} % | {100 * np.median(e):.1f} % | {parts[0]} | {parts[1]} |"
            )


if __name__ == "__main__":
    main()
