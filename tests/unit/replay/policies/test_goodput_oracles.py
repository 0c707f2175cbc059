"""Policies of goodput, prediction and deadlines against the recorded results of slow references, job by job."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.models.speed import read_pairs
from gpuctl.replay.policies import BUILT_IN
from gpuctl.replay.run import replay

ORACLES = Path(__file__).parents[5] / "shared" / "oracles"
LISTED = ORACLES / "cases_goodput.json"
CASES = [case for case in json.loads(LISTED.read_text()) if case["policy"] in BUILT_IN] if LISTED.is_file() else []
SLACK = {"start": 1e-3, "end": 2e-3, "gpu_s": 0.05, "max_gpus": 0, "preemptions": 0, "changes": 0}
"""How far apart a figure may be: recorded seconds are rounded."""


@pytest.mark.skipif(not CASES, reason="no oracles beside this checkout")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['policy']}-{case['case']}")
def test_each_job_as_recorded(case: dict[str, Any]) -> None:
    folder = ORACLES / case["folder"]
    workload = read_jobs(folder / case["input"])
    cluster = case["cluster"]
    nodes = parse_cluster(str(folder / cluster) if cluster.endswith(".toml") else cluster, workload)
    params = {name: str(value) for name, value in case["params"].items()}
    extra = [word.replace("@", f"{folder}/") for word in case["extra"]]
    params |= dict(word.partition(".")[2].split("=", 1) for word in extra if "." in word and "=" in word)
    pairs = read_pairs(folder / "pairs.csv") if "--pair-speeds" in extra else None
    (outcome,) = replay(workload, nodes, [(case["policy"], params)], pairs=pairs, own_speeds=True, processes=1)
    with (folder / f"{case['case']}_expected.csv").open() as file:
        wanted = list(csv.DictReader(file))
    found = {row["job"]: row for row in outcome.jobs.iter_rows(named=True)}
    assert len(wanted) == workload.size
    wrong = []
    for want in wanted:
        job = found[want["job_id"]]
        got = {"start": job["start_s"], "end": job["end_s"], **job}
        if want["end"] == "":
            wrong += [] if job["state"] == "rejected" else [f"{job['job']} was to be declined"]
            continue
        wrong += [
            f"{job['job']}: {name} {got[name]}, recorded {want[name]}"
            for name, slack in SLACK.items()
            if got[name] is None or abs(got[name] - float(want[name])) > slack
        ]
    assert wrong == []
