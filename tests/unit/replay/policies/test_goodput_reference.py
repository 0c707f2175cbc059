"""Sia and Pollux against a slow reference on small random cases, some of them at the edges."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies.goodput import model
from gpuctl.replay.run import replay
from tests.goodput_reference import Job, Rules
from tests.goodput_reference import replay as slow

TABLES = Path(model.__file__).parent
APPS = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
CLUSTERS = (
    (("aws", 1, 1),),
    (("aws", 2, 4),),
    (("aws", 1, 4), ("rtx", 1, 8)),
    (("rtx", 2, 2), ("aws", 1, 4), ("dgx-ext", 1, 4)),
    (("aws", 2, 6),),
)


def table(name: str, *keys: str) -> dict[tuple[str, ...], dict[str, float]]:
    with (TABLES / f"{name}.csv").open() as file:
        return {
            tuple(row[key] for key in keys): {k: float(v) for k, v in row.items() if k not in keys}
            for row in csv.DictReader(file)
        }


def jobs_of(draw: np.random.Generator, count: int) -> list[Job]:
    """Random jobs; many come at one instant, at that of a round, or are over at once."""
    return [
        Job(
            f"j{k}",
            float(draw.choice([0, 0, 60, 90, int(draw.integers(400))])),
            float(draw.choice([0.5, 1, 60, int(draw.integers(30, 1500))])),
            int(draw.choice([1, 1, 2, 4])),
            str(draw.choice(APPS)),
            int(draw.choice([4, 8, 64])),
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("seed", range(30))
def test_starts_ends_and_gpus_are_those_of_the_slow_reference(seed: int, tmp_path: Path) -> None:
    draw = np.random.default_rng(seed)
    types = CLUSTERS[seed % len(CLUSTERS)]
    pollux = len(types) == 1 and bool(draw.integers(2))
    most = sum(nodes * size for _, nodes, size in types)
    jobs = jobs_of(draw, int(draw.integers(2, 9)))
    for job in jobs:
        job.gang = min(job.gang, most)
        job.most_gpus = max(job.most_gpus, job.gang)
    own: dict[str, float] = {"interval": float(draw.choice([60, 60, 37])), "restart": float(draw.choice([-1, -1, 10]))}
    explore = bool(draw.integers(3))
    if pollux:
        own["restart"] = abs(own["restart"]) * 30
    else:
        own |= {"p": float(draw.choice([-0.5, -1])), "no_alloc": float(draw.choice([1.1, 1.5]))}
    speeds, noise = table("apps", "app", "gpu_type"), {key[0]: row for key, row in table("noise", "app").items()}
    rows = ["job_id,submit_time,duration,num_gpus,max_gpus,job_class"]
    rows += [f"{j.name},{j.submit},{j.seconds},{j.gang},{j.most_gpus},{j.app}" for j in jobs]
    (tmp_path / "jobs.csv").write_text("\n".join(rows))
    (tmp_path / "nodes.toml").write_text(
        "\n".join(
            f'[[nodes]]\nname = "{kind}-"\ncount = {count}\ngpus = {gpus}\ngpu_type = "{kind}"\n'
            for kind, count, gpus in types
        )
    )
    workload = read_jobs(tmp_path / "jobs.csv")
    nodes = parse_cluster(str(tmp_path / "nodes.toml"), workload)
    params = {name: f"{value:g}" for name, value in own.items()} | {"explore": str(explore).lower()}
    (outcome,) = replay(workload, nodes, [("pollux" if pollux else "sia", params)], processes=1)
    rules = Rules({(a, k): row for (a, k), row in speeds.items()}, noise, types, pollux, explore=explore, **own)
    wanted = {job.name: want for job, want in zip(jobs, slow(jobs, rules), strict=True)}
    for job in outcome.jobs.iter_rows(named=True):
        want = wanted[job["job"]]
        got = {"start": job["start_s"], "end": job["end_s"], "gpu_s": job["gpu_s"]}
        assert got == {name: pytest.approx(value, abs=1e-5) for name, value in want.items()}, (job["job"], params)
