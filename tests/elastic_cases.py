"""Cases for policies of elastic jobs: random ones for both the simulator and the slow reference, and recorded ones.

`agrees` holds what the simulator did against either of them.
"""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from gpuctl.replay.inputs.clusters import in_racks, parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay
from tests.app_reference import AppThemis
from tests.aryl_reference import Aryl
from tests.elastic_reference import Gandiva, Job, Optimus, Slow
from tests.themis_reference import Themis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.replay.models.inference import Inference
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

ORACLES = Path(__file__).parents[2] / "shared" / "oracles"
"""Per-job results of another slow reference, beside a checkout where there are any."""

SLOW: dict[str, type[Slow]] = {"optimus": Optimus, "gandiva": Gandiva, "themis": Themis, "aryl": Aryl}
CLUSTERS = (("1x6", 1), ("3x4", 2), ("2x4+2x8", 2), ("4x8", 2), ("2x2+3x4", 3))
COLUMNS = ("job_id", "submit_time", "duration", "num_gpus", "eff_rack", "eff_cross", "alpha", "w_min", "w_max",
           "fungible", "util", "mem", "grow")  # fmt: skip
EXACT = (("start_s", 1e-6), ("end_s", 2e-6), ("gpu_s", 1e-4), ("max_gpus", 0), ("preemptions", 0), ("changes", 0))
"""What is compared, and how far apart it may be: recorded seconds are rounded to millionths."""

EARLY = (("t10_s", 2e-6),)
"""The same, of slow references that say so."""
NAMES = (("start_s", "start"), ("end_s", "end"), ("t10_s", "t10"))


def random_jobs(path: Path, draw: np.random.Generator, most: int, *, fewer: bool = False) -> None:
    """Write a CSV of jobs full of ties, some of them at fractions of a second, not in order of submission.

    Args:
        path: the file.
        draw: of random numbers.
        most: GPUs of one gang.
        fewer: jobs can do with fewer GPUs than their gangs.
    """
    n = int(draw.integers(5, 40))
    span = float(draw.choice([300.0, 3000.0, 30000.0]))
    submit = np.round(draw.uniform(0, span, n), int(draw.integers(0, 2)))
    submit[draw.random(n) < 0.4] = float(draw.choice([0.0, 600.0, submit[0]]))
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        for k in range(n):
            gang = min(int(draw.choice([1, 1, 1, 2, 3, 4, 6, 8, 12])), most)
            seconds = round(float(np.exp(draw.uniform(0, 9))), int(draw.integers(0, 3))) + 1
            rows.writerow(
                (
                    f"j{k}", submit[k], seconds, gang, draw.choice([0.7, 0.98]), draw.choice([0.5, 0.9]),
                    draw.choice([0.0, 0.02, 0.2]), (gang + 1) // 2 if fewer else gang,
                    gang * int(draw.integers(1, 3)), draw.integers(0, 2),
                    draw.choice([0.2, 0.35, 0.5, 0.7, 0.9]), draw.choice([0.2, 0.35, 0.5, 0.8]), draw.integers(0, 2),
                )
            )  # fmt: skip


def nodes_of(path: Path, cluster: str, per_rack: int) -> tuple[Workload, Cluster]:
    """Jobs and nodes."""
    workload = read_jobs(path)
    return workload, in_racks(parse_cluster(cluster, workload), cluster, per_rack)


def simulated(
    policy: str, path: Path, cluster: str, per_rack: int, params: Mapping[str, Any], inference: Inference | None = None
) -> Outcome:
    """What the simulator does."""
    workload, nodes = nodes_of(path, cluster, per_rack)
    nodes = dataclasses.replace(nodes, inference=inference)
    texts = {name: str(value) for name, value in params.items()}
    return replay(workload, nodes, [(policy, texts)], own_speeds=True, processes=1)[0]


def slow(
    policy: str, path: Path, cluster: str, per_rack: int, params: Mapping[str, Any], inference: Inference | None = None
) -> pl.DataFrame:
    """What the slow reference does, as `agrees` wants it."""
    sizes = [int(part.split("x")[1]) for part in cluster.split("+") for _ in range(int(part.split("x")[0]))]
    jobs = []
    apps: dict[str, int] = {}
    with path.open() as file:
        for line, row in enumerate(csv.DictReader(file)):
            jobs.append(
                Job(
                    line, row["job_id"], float(row["submit_time"]), float(row["duration"]), int(row["num_gpus"]),
                    float(row["alpha"]), (1.0, float(row["eff_rack"]), float(row["eff_cross"])), int(row["w_max"]),
                    float(row["util"]), float(row["mem"]), row["grow"] == "1", int(row["w_min"]),
                    row["fungible"] == "1" or row["w_max"] != row["w_min"],
                    app=apps.setdefault(row["app"], len(apps)) if row.get("app") else -1,
                    stop=float(row.get("stop_fraction") or 1),
                )
            )  # fmt: skip
    racks = [k // per_rack for k in range(len(sizes))]
    if apps:
        assert policy == "themis"
        AppThemis(sizes, racks, jobs, **params).run()
    elif inference is None:
        SLOW[policy](sizes, racks, jobs, **params).run()
    else:
        load = list(zip(inference.time_s.tolist(), inference.free.tolist(), strict=True))
        Aryl(sizes, racks, jobs, inference=inference.gpus.tolist(), load=load, **params).run()
    return pl.DataFrame(
        {
            "job": [job.name for job in jobs],
            **{name: [getattr(job, of) for job in jobs] for name, of in (*NAMES, *((n, n) for n, _ in EXACT[2:]))},
        }
    )


def disagreements(policy: str, case: str, params: Mapping[str, Any]) -> list[str]:
    """What `agrees` says of a recorded case, on the cluster of its size."""
    size = case.split("_", maxsplit=1)[0]
    where = ("4x8", 2) if size == "small" else ("16x8", 4)
    outcome = simulated(policy, ORACLES / policy / f"{size}_input.csv", *where, params)
    return agrees(outcome, recorded(ORACLES / policy / f"{case}_expected.csv"))


def recorded(path: Path) -> pl.DataFrame:
    """A file of expected results, as `agrees` wants it."""
    return pl.read_csv(path, infer_schema_length=None).rename({"job_id": "job", "start": "start_s", "end": "end_s"})


def agrees(outcome: Outcome, expected: pl.DataFrame) -> list[str]:
    """Jobs of which the two do not say the same; nothing where they do."""
    both = outcome.jobs.join(expected, on="job", how="full", suffix="_expected")
    assert both.height == outcome.jobs.height == expected.height
    found = []
    for name, apart in (*EXACT, *(EARLY if "t10_s" in expected.columns else ())):
        got, wanted = both[name], both[f"{name}_expected"]
        bad = ((got - wanted).abs() > apart).fill_null(value=True)
        found += [
            f"{job} {name}: {a}, expected {b}"
            for job, a, b in zip(*(c.filter(bad) for c in (both["job"], got, wanted)), strict=True)
        ]
    return found
