"""How well the rest of an epoch and the cost of a suspension are predicted at the request, on made-up jobs.

    python benchmarks/suspensions.py [SEED] [WORLDS]

Each world has 16 jobs of four made-up models (tests/trainjobs.py), each suspended three times at a moment drawn from
its third epoch on; what is known of its epochs is the mean of those before. Stopping and starting take constants, bytes
and noise of the world's own. A model fitted on 12 of the jobs is asked about the four others, and, for jobs that were
suspended before, one fitted on two suspensions of each job about the third. As Markdown, for docs/how-to/predict.md:
how many true values lie inside the intervals, by how much of the epoch was predicted to be left.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from gpuctl.predictors import overhead
from gpuctl.predictors.overhead import MeasuredSuspension
from tests import trainjobs

JOBS, TIMES = 16, 3
CLASSES = ((0.0, 0.2, "below a fifth"), (0.2, 0.6, "a fifth to three fifths"), (0.6, 9.0, "more"))
COSTS = ("epoch_left_s", "suspend_s", "overhead_s", "resume_s")


def world(draw: np.random.Generator) -> list[MeasuredSuspension]:
    """Suspensions of the jobs of one world, those of a job one after the other."""
    stop_s, start_s = float(draw.uniform(0.5, 3)), float(draw.uniform(5, 25))
    write, read = float(draw.uniform(0.3e9, 2e9)), float(draw.uniform(0.5e9, 3e9))
    noise = float(draw.uniform(0.02, 0.1))
    rows = []
    models = [trainjobs.model(draw, f"m{k}") for k in range(4)]
    for k in range(JOBS):
        made = models[k % 4]
        job = trainjobs.job(
            draw, made, f"j{k}", batch=float(draw.choice(trainjobs.BATCHES)),
            workers=float(draw.choice(trainjobs.WORKERS)), epoch_s=float(draw.uniform(15, 200)), epochs=12,
        )  # fmt: skip
        size, gpus = float(np.exp(draw.uniform(np.log(1e8), np.log(8e9)))), job.workers
        for _ in range(TIMES):
            at = float(draw.uniform(job.ends[1], job.ends[-2]))
            epoch = int(np.searchsorted(job.ends, at, side="right"))
            expected = float(np.diff(job.ends)[: epoch - 1].mean())
            done, left = at - float(job.ends[epoch - 1]), float(job.ends[epoch]) - at
            stop = (stop_s + size / write) * float(np.exp(noise * draw.standard_normal()))
            resume = (start_s + 0.3 * gpus + size / read) * float(np.exp(noise * draw.standard_normal()))
            rows.append(
                MeasuredSuspension(job.name, made.name, "epoch", size, job.dataset_bytes, gpus, expected, done, left,
                          left + stop, resume, stop + resume)
            )  # fmt: skip
    return rows


def asked(model: overhead.OverheadModel, row: MeasuredSuspension) -> dict[str, tuple[float, bool, float, float]]:
    """By cost: the relative error, whether the truth is inside, the interval's width, the share of the epoch left."""
    found = model.predict(
        checkpoint_bytes=row.checkpoint_bytes, dataset_bytes=row.dataset_bytes, gpus=row.gpus, epoch_s=row.epoch_s,
        phase_s=row.epoch_done_s, mode="epoch", model=row.model,
    )  # fmt: skip
    true = {
        "epoch_left_s": row.epoch_left_s, "suspend_s": row.suspend_s, "resume_s": row.resume_s,
        "overhead_s": row.suspend_s + row.resume_s,
    }  # fmt: skip
    said = {
        "epoch_left_s": found.left.left_s, "suspend_s": found.costs.suspend_s, "resume_s": found.costs.resume_s,
        "overhead_s": found.costs.suspend_s + found.costs.resume_s,
    }  # fmt: skip
    share = found.left.left_s / row.epoch_s
    result = {}
    for cost in COSTS:
        lower, upper = (found.left.lower_s, found.left.upper_s) if cost == "epoch_left_s" else getattr(found, cost)
        off = abs(said[cost] - true[cost]) / max(true[cost], 1e-3)
        result[cost] = (off, bool(lower <= true[cost] <= upper), upper - lower, share)
    return result


def main() -> None:
    """Print the tables."""
    seed, worlds = (int(word) for word in (*sys.argv[1:], *("20261129", "40")[len(sys.argv) - 1 :]))
    for what in ("new", "suspended before"):
        tests = []
        for k in range(worlds):
            rows = world(np.random.default_rng([seed, k]))
            late = {f"j{n}" for n in range(JOBS - 4, JOBS)} if what == "new" else set()
            test = [row for n, row in enumerate(rows) if row.job in late or (not late and n % TIMES == TIMES - 1)]
            model = overhead.fit([row for row in rows if row not in test])
            tests += [asked(model, row) for row in test]
        print(f"## Jobs: {what} ({len(tests)} suspensions)\n")
        print("| cost | mean error | median error | worst | inside | " + " | ".join(c for *_, c in CLASSES) + " |")
        print("|---|---:|---:|---:|---:|" + len(CLASSES) * "---:|")
        for cost in COSTS:
            errors = 100 * np.array([test[cost][0] for test in tests])
            held = np.array([test[cost][1] for test in tests])
            share = np.array([test[cost][3] for test in tests])
            cells = [f"{100 * held[(share >= low) & (share < high)].mean():.0f} %" for low, high, _ in CLASSES]
            figures = f"{errors.mean():.1f} % | {np.median(errors):.1f} % | {errors.max():.0f} %"
            print(f"| {cost} | {figures} | {100 * held.mean():.0f} % | {' | '.join(cells)} |")
        print()


if __name__ == "__main__":
    main()
