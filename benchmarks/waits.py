"""How long forecasts of waits take: ``python benchmarks/waits.py``, CPU seconds; loops are compiled before.

A made-up site of 16 nodes with 8 GPUs: 7,000 jobs have started, 5,000 wait; then jobs are asked about one by one.
"""

from __future__ import annotations

import time

import numpy as np
import polars as pl

from gpuctl.waits import features, forward
from gpuctl.waits.queue_log import WaitLog, log_of

NODES, WIDTH, STARTED, WAITING = 16, 8, 7000, 5000
SIMULATED = 390
"""Waiting, about the most behind which one more is simulated."""


def site(waiting: int) -> WaitLog:
    """Jobs that ran one after the other on 128 GPUs, and so many that came within the last two days and wait."""
    draw = np.random.default_rng(1)
    count = STARTED + waiting
    gpus = draw.choice([1, 2, 4, 8, 16], count, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    limit = draw.choice([2, 6, 12, 24], count) * 3600.0
    run = limit * draw.beta(0.8, 1.5, count).clip(0.01, 1)
    submit = np.sort(draw.uniform(0, 30 * 86_400, STARTED))
    now = submit[-1] + 60
    submit = np.concatenate([submit, np.sort(draw.uniform(now - 2 * 86_400, now, waiting))])
    start = np.where(np.arange(count) < STARTED, submit + draw.exponential(3000, count), np.nan)
    # what would run at once on more than there is has ended
    end = start + run
    order = np.argsort(-np.nan_to_num(end, nan=-1.0))
    held = np.cumsum(np.where(end[order] > now, gpus[order], 0))
    over = order[(held > NODES * WIDTH) & (end[order] > now)]
    end[over] = np.maximum(start[over] + 1, now - 1)
    waits = np.isnan(start) | (start > now)
    start[waits], end[waits | (end > now)] = np.nan, np.nan
    state = np.where(waits, "pending", np.where(np.isnan(end), "running", "passed"))
    jobs = {
        "job": [str(k) for k in range(count)], "user": [f"u{k % 40}" for k in range(count)], "queue": ["q"] * count,
        "gpus": gpus, "nodes": np.ceil(gpus / WIDTH), "time_limit_s": limit, "submit_s": submit, "start_s": start,
        "end_s": end, "state": state.tolist(),
    }  # fmt: skip
    frame = pl.DataFrame(jobs).with_columns(pl.col("start_s", "end_s").fill_nan(None))
    return log_of("made up", frame, taken_s=float(now))


def took(what: str, calls: int, run: object) -> None:
    """Print CPU seconds of a call."""
    begin = time.process_time()
    run()  # type: ignore[operator]
    print(f"{what}: {(time.process_time() - begin) / calls:.3f} s")


def main() -> None:
    """Measure both."""
    small, large = site(20), site(WAITING)
    for order in forward.ORDERS:
        forward.of_waiting(small, order, None, NODES)
        took(f"{WAITING:,} waiting jobs, {order}", 1, lambda order=order: forward.of_waiting(large, order, None, NODES))
    for log, what in ((small, "20"), (site(SIMULATED), f"{SIMULATED:,}"), (large, f"{WAITING:,}")):
        for count in (0, 20):
            at = np.full(count + 1, log.taken_s)
            rows = log.rows[np.arange(count + 1) * 97 % log.rows.height]
            asked = features.WaitQueries(rows, at, np.full(count + 1, log.ready_s.size))
            each = f"{count + 1} answers, {what} waiting, log replayed"
            took(f"{each}, simulated", 1, lambda a=asked, g=log: forward.for_queries(g, a, "fair-share"))
            took(f"{each}, what trees see", 1, lambda a=asked, g=log: features.for_queries(g, a))


if __name__ == "__main__":
    main()
