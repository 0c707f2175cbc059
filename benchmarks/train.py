"""Training on run times: how long, with how much memory, how near, and how fast one prediction is.

    python benchmarks/train.py [JOBS] [LOG...]

First a made-up log of JOBS (1,000,000) jobs of 2,000 users over a year: each user has some names, each name a typical
run time that drifts, and jobs come in bursts. Then real logs: by default those of ../shared/data that are there, the
Philly trace (82,247 jobs, queues and GPUs only) and LS6 (24,777 jobs with users, names, nodes and limits). Each runs in
a process of its own, whose peak of memory is that of reading, features, fit and evaluation together; times are of one
run, on the clock and of the processors. One job is predicted in a new process, from the saved folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

if TYPE_CHECKING:
    from gpuctl.predictors.job_table import JobTable

DATA = ROOT.parent / "shared" / "data"
LOGS = (DATA / "philly" / "sia_philly.csv", DATA / "slurm" / "ls6-a100.log")
MEASURES = ("median_ape_pct", "mae_s", "within_50_pct", "rank_correlation", "pinball_s", "coverage_pct")
USERS, NAMES, YEAR_S = 2_000, 12, 365 * 86_400
PREDICTIONS = 200


def made_up(jobs: int) -> JobTable:
    """A log of so many jobs."""
    from gpuctl.predictors.job_table import table

    random = np.random.default_rng(1)
    user = random.zipf(1.3, jobs) % USERS
    name = random.zipf(1.5, jobs) % NAMES
    kind = user * NAMES + name
    typical = random.normal(7, 2, USERS * NAMES)[kind]
    spread = random.uniform(0.1, 1.5, USERS * NAMES)[kind]
    # bursts: a few jobs at one instant
    submit = np.sort(np.repeat(random.uniform(0, YEAR_S, jobs // 4 + 1), 4)[:jobs])
    drift = np.sin(2 * np.pi * submit / YEAR_S + kind)
    limit = 3600.0 * random.choice([1, 4, 24, 168], jobs)
    run = np.minimum(np.exp(typical + 0.5 * drift + spread * random.normal(size=jobs)), limit)
    seeds = random.integers(999, size=jobs)
    rows = {
        "job": [f"{k}" for k in range(jobs)],
        "user": [f"user{k}" for k in user],
        "queue": [f"queue{k % 14}" for k in user],
        "name": [f"train_{'abcdefghijkl'[k]}_{seed}" for k, seed in zip(name, seeds, strict=True)],
        "gpus": random.choice([1, 1, 1, 2, 4, 8], jobs),
        "time_limit_s": limit,
        "submit_s": submit,
        "run_s": run,
        "end_s": submit + random.exponential(1800, jobs) + run,
    }
    return table("made up", pl.DataFrame(rows))


def peak_mib() -> float:
    """Most memory that this process has had, MiB."""
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def measure(table: JobTable, read_s: float) -> dict[str, Any]:
    """Train, save, load and predict."""
    from gpuctl.predictors import history, history_folder, history_tables

    started, busy = time.perf_counter(), time.process_time()
    trained = history.train(table)
    train_s, busy_s = time.perf_counter() - started, time.process_time() - busy
    found: dict[str, Any] = {"read_s": read_s, "train_s": train_s, "busy_s": busy_s}
    found |= {"peak_mib": peak_mib(), "parts": trained.parts}
    found["scores"] = trained.scores.filter(pl.col("measure").is_in(MEASURES)).rows()
    last = table.rows[-1:].with_columns(gpus="size", nodes="size").drop("size", "hour", "weekday", "run_s", "end_s")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model"
        history_folder.save(path, trained.model, history_tables.about(trained, ()))
        found["folder_mib"] = sum(file.stat().st_size for file in path.iterdir()) / 2**20
        last.write_ipc(Path(folder) / "job.arrow")
        fresh = [sys.executable, __file__, "--one", str(path), f"{folder}/job.arrow"]
        done = subprocess.run(fresh, capture_output=True, text=True, check=True, env=environment())
    return found | json.loads(done.stdout)


def one(path: Path, job: Path) -> dict[str, float]:
    """Load a model in a new process and predict one job, several times."""
    from gpuctl.predictors import history, history_folder, history_kernel

    del history_kernel
    row = pl.read_ipc(job)
    started = time.perf_counter()
    model = history_folder.load(path)
    load_ms = 1000 * (time.perf_counter() - started)
    took = []
    for _ in range(PREDICTIONS):
        started = time.perf_counter()
        history.predict(model, row)
        took.append(1000 * (time.perf_counter() - started))
    return {"load_ms": load_ms, "first_ms": took[0], "median_ms": float(np.median(took)), "slowest_ms": max(took[1:])}


def read(log: Path) -> JobTable:
    """The jobs of a real log, through a store as `gpuctl train runtime` does."""
    from gpuctl.ingest.pipeline.load import ingest
    from gpuctl.predictors.job_table import from_store
    from gpuctl.store.database import Store

    with tempfile.TemporaryDirectory() as folder:
        ingest([log], Path(folder) / "trace.duckdb")
        with Store(Path(folder) / "trace.duckdb") as store:
            return from_store(store, None)


def environment() -> dict[str, str]:
    """Of processes that measure: they find this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def show(name: str, found: dict[str, Any]) -> None:
    """Print what was measured."""
    print(f"\n{name}: {found['parts']}")
    print(
        f"  read {found['read_s']:.1f} s, train and score {found['train_s']:.1f} s "
        f"({found['busy_s']:.1f} s of processors), "
        f"peak {found['peak_mib']:,.0f} MiB, folder {found['folder_mib']:.1f} MiB"
    )
    print(
        f"  one job in a new process: load {found['load_ms']:.0f} ms, first {found['first_ms']:.1f} ms, "
        f"median {found['median_ms']:.1f} ms, slowest after {found['slowest_ms']:.1f} ms"
    )
    columns = ["predictor", "measure", "jobs", "value", "low", "high"]
    scores = pl.DataFrame(found["scores"], schema=columns, orient="row")
    for predictor in scores["predictor"].unique(maintain_order=True):
        own = scores.filter(pl.col("predictor") == predictor)
        figures = [
            f"{measure} {value:,.4g}" + ("" if low is None else f" ({low:,.4g} to {high:,.4g})")
            for measure, value, low, high in own.select("measure", "value", "low", "high").iter_rows()
            if value is not None
        ]
        print(f"  {predictor:9} n {own['jobs'][0]:,}: {'; '.join(figures)}")


def main(arguments: list[str]) -> None:
    """Measure each log in a process of its own."""
    match arguments:
        case ["--one", path, job]:
            print(json.dumps(one(Path(path), Path(job))))
            return
        case ["--log", log]:
            started = time.perf_counter()
            table = made_up(int(log)) if log.isdigit() else read(Path(log))
            print(json.dumps(measure(table, time.perf_counter() - started)))
            return
    jobs, *logs = arguments or ["1000000"]
    given = [Path(log) for log in logs] or [log for log in LOGS if log.exists()]
    for log in (jobs, *given):
        command = [sys.executable, __file__, "--log", str(log)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
        show(str(log), json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main(sys.argv[1:])
