"""``gpuctl replay --policy aryl`` as a user calls it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

Gpuctl = Callable[..., subprocess.CompletedProcess[str]]
NODES = ("--cluster", "6x4+2x8", "--per-rack", "4", "--inference", "9x8")
LOAD = "time_s,nodes_free\n0,9\n10000,2\n30000,6\n30100,5\n60000,0\n"


@pytest.fixture
def load(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    path.write_text(LOAD)
    return path


def test_loans_and_growth_of_a_csv_of_jobs(gpuctl: Gpuctl, root: Path, tmp_path: Path, load: Path) -> None:
    jobs = root / "sample_data/jobs.csv"
    names = ("one", "two", "alone")
    for name, policies in zip(names, ("fifo,aryl", "fifo,aryl", "aryl"), strict=True):
        (tmp_path / name).mkdir()
        found = gpuctl(
            "replay", jobs, *NODES, "--policy", policies, "--param", "aryl.ratio=2", "--inference-load", load,
            "--parquet", "out", cwd=tmp_path / name,
        )  # fmt: skip
        assert "note: aryl: inference lent nodes " in found.stderr
        assert "too late: it missed " in found.stderr
        assert "daily curve" not in found.stderr
    # the same input gives the same bytes; alone its speeds are its own, in one table those of all
    one, two, alone = (pl.read_parquet(tmp_path / name / "out/jobs.parquet") for name in names)
    files = sorted(path.name for path in (tmp_path / "one/out").iterdir())
    assert files
    assert all((tmp_path / "one/out" / n).read_bytes() == (tmp_path / "two/out" / n).read_bytes() for n in files)
    assert one.equals(two)
    aryl = one.filter(pl.col("policy") == "aryl")
    assert aryl.columns == alone.columns
    assert not aryl.equals(alone)
    # fifo is as fast beside aryl as beside another of its kind
    beside = [
        json.loads(gpuctl("replay", jobs, "--cluster", "4x8", "--policy", f"fifo,{other}", "--json").stdout)
        for other in ("optimus", "aryl")
    ]
    of_fifo = [found["tables"]["replay_summary"]["rows"][0] for found in beside]
    assert of_fifo[0] == of_fifo[1]
    assert beside[1]["settings"]["speed"].startswith("each job at its own efficiency")
    assert {"gpu_s", "max_gpus", "changes", "rho"} <= set(aryl.columns)
    fifo = one.filter(pl.col("policy") == "fifo")
    assert (aryl["end_s"] - aryl["submit_s"]).mean() < 0.8 * (fifo["end_s"] - fifo["submit_s"]).mean()
    assert (aryl["max_gpus"] > aryl["gpus"]).any()
    assert (fifo["max_gpus"] == fifo["gpus"]).all()


def test_without_a_load_a_daily_curve_is_assumed_and_named(gpuctl: Gpuctl, root: Path) -> None:
    found = gpuctl("replay", root / "sample_data/jobs.csv", *NODES, "--policy", "aryl", "--json")
    assert "the load of inference is an assumed daily curve" in found.stderr
    given = json.loads(found.stdout)["tables"]["replay_summary"]
    assert np.isfinite(given["rows"][0]["jct_mean_s"])


def test_requests_of_a_trace_are_a_load(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    # three days: a request every five minutes, one of ten times the tokens from 8:00 to 20:00
    rows = [f"{t},ChatGPT,{(500 if 8 <= t // 3600 % 24 < 20 else 50)},0,0,x" for t in range(0, 3 * 86400, 300)]
    head = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"
    (tmp_path / "BurstGPT_1.csv").write_text("\n".join([head, *rows]))
    gpuctl("ingest", tmp_path / "BurstGPT_1.csv", "--db", tmp_path / "llm.duckdb")
    command = ("replay", root / "sample_data/jobs.csv", *NODES, "--policy", "aryl", "--json", "--inference-load")
    found = gpuctl(*command, tmp_path / "llm.duckdb")
    assert "is that of 1 service in 3 days of a trace" in found.stderr
    # the same as a table: 9 nodes at the peak, 1.02 x 9 / 10 of them at night
    lines = [f"{d * 86400 + h * 3600},{free}" for d in range(60) for h, free in ((0, 8), (8, 0), (20, 8))]
    (tmp_path / "load.csv").write_text("\n".join(["time_s,servers_free", *lines]))
    told = [json.loads(run.stdout)["tables"] for run in (found, gpuctl(*command, tmp_path / "load.csv"))]
    assert told[0]["replay_jobs"]["rows"] == told[1]["replay_jobs"]["rows"]


def test_an_experiment_file_gives_the_same(gpuctl: Gpuctl, root: Path, tmp_path: Path, load: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(
        f'input = "{root}/sample_data/jobs.csv"\ncluster = "6x4+2x8"\ninference = "9x8"\n'
        f'inference_load = "{load.name}"\n[[policies]]\npolicy = "aryl"\nparams = {{ ratio = [1, 3] }}\n'
    )
    shown = ("--per-rack", "4", "--jobs", "1", "--json")
    of_file = json.loads(gpuctl("replay", "--experiment", path, *shown).stdout)
    options = ("--policy", "aryl", "--param", "aryl.ratio=1,3", "--inference-load", load, "--jobs", "1", "--json")
    of_options = json.loads(gpuctl("replay", root / "sample_data/jobs.csv", *NODES, *options).stdout)
    assert of_file["tables"] == of_options["tables"]
    twice = gpuctl("replay", "--experiment", path, "--inference", "1x8", check=False)
    assert (twice.returncode, "--inference: " in twice.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--inference-load", "load.csv"), 2, "--inference-load is for the nodes of --inference"),
        (("--inference", "9"), 2, "--inference 9: expected 1 to 100,000 nodes"),
        (("--inference", "9x2"), 2, "a node of 2 GPUs counts as none"),
        (("--inference", "9x8", "--inference-load", "none.csv"), 3, "none.csv"),
    ],
)
def test_errors_are_named(
    gpuctl: Gpuctl, root: Path, load: Path, options: tuple[str, ...], code: int, told: str
) -> None:
    found = gpuctl(
        "replay", root / "sample_data/jobs.csv", "--cluster", "4x8", "--policy", "aryl", *options, check=False,
        cwd=load.parent,
    )  # fmt: skip
    assert (found.returncode, told in found.stderr) == (code, True), found.stderr
