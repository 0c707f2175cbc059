"""Several values of an option of ``gpuctl replay`` make an experiment."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Cli = Callable[..., subprocess.CompletedProcess[str]]

LISTS = ("--scale-load", "0.8:1.2:0.4", "--seed", "1..2", "--param", "x.promote=4,8")


@pytest.fixture(scope="module")
def command(root: Path) -> list[str]:
    """An experiment of 2 loads, 2 seeds, and one policy with two values of a parameter beside another one."""
    return ["replay", str(root / "sample_data/jobs.csv"), "--cluster", "2x8", "--policy", "fifo,x=tiresias", *LISTS]


@pytest.fixture(scope="module")
def done(gpuctl: Cli, command: list[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder that it was kept in, and what it printed."""
    out = tmp_path_factory.mktemp("experiment") / "out"
    return out, gpuctl(*command, "--parquet", out, "--json", "--jobs", "1").stdout


def test_one_row_a_cell_as_json_and_parquet_and_nothing_is_done_twice(
    gpuctl: Cli, command: list[str], done: tuple[Path, str]
) -> None:
    out, first = done
    found = json.loads(first)
    rows = pl.read_parquet(out / "experiments.parquet")
    assert rows.height == len(found["tables"]["experiments"]["rows"]) == 2 * 2 * (1 + 2)
    assert rows.columns[:4] == ["policy", "scale_load", "x.promote", "seed"]
    assert rows["scale_load"].unique().sort().to_list() == [0.8, 1.2]
    assert rows.filter(policy="fifo")["x.promote"].null_count() == 4
    assert {"wait_mean_s", "utilization_pct", "lower", "upper"} <= set(rows.columns)
    assert rows["lower"].null_count() == rows.height, "three days are too short to tell"
    assert "12 of 12 replays hold fewer than 6 independent stretches" in first
    assert rows["stretches"].max() == 0
    again = gpuctl(*command, "--parquet", out, "--json", "--jobs", "1")
    assert again.stdout == first
    assert "12 of 12 cells were already done" not in again.stderr, "only told where something is left"
    assert len(list((out / "cells").iterdir())) == 12


def test_a_refusal_writes_nothing(gpuctl: Cli, root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    policies = ("replay", root / "sample_data" / "philly", "--policy", "fifo,easy", "--seed", "1..2")
    refused = gpuctl(*policies, "--parquet", out, check=False)
    assert (refused.returncode, out.exists()) == (2, False)
    assert "easy plans with time limits" in refused.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--store", "s.duckdb"), "--store requires one replay"),
        (("--section", "replay"), "--section requires one replay"),
        (("--table", "experiment"), "did you mean experiments"),
        (("--seed", "1..x"), "'x' is not a whole number"),
        (("--seed", "a,b"), "--seed a: expected a whole number"),
        (("--scale-load", "0.8:1.2"), "--scale-load 0.8:1.2: expected a number"),
        (("--param", "x.promote=4,-1"), "promote"),
        (("--engine", "spark"), "expected local, slurm or dask://HOST:PORT"),
        (("--engine", "dask://somewhere"), "expected local, slurm or dask://HOST:PORT"),
        (("--engine", "dask://127.0.0.1:8786", "--jobs", "2"), "as many as it has workers"),
    ],
)
def test_what_makes_no_sense_is_refused(gpuctl: Cli, command: list[str], more: tuple[str, str], words: str) -> None:
    result = gpuctl(*command, *more, check=False)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_path_is_one_value(gpuctl: Cli, root: Path, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "limits.csv").write_text("job,run_time_s\n")
    result = gpuctl(
        "replay", root / "sample_data/jobs.csv", "--cluster", "2x8", "--policy", "easy",
        "--param", "limits_from=../limits.csv", cwd=tmp_path / "below", check=False,
    )  # fmt: skip
    assert "whole number" not in result.stderr
    assert "limits" in result.stderr


def test_one_value_is_one_replay_as_before(gpuctl: Cli, root: Path) -> None:
    result = gpuctl(
        "replay",
        str(root / "sample_data/jobs.csv"),
        "--cluster",
        "2x8",
        "--policy",
        "fifo",
        "--scale-load",
        "1.2",
        "--seed",
        "3",
        "--json",
    )
    assert "replay_summary" in json.loads(result.stdout)["tables"]


def test_a_file_gives_the_same_as_options(gpuctl: Cli, root: Path, done: tuple[Path, str], tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(
        f'input = "{root}/sample_data/jobs.csv"\ncluster = "2x8"\nseeds = [1, 2]\n'
        '[factors]\nscale_load = [0.8, 1.2]\n[[policies]]\npolicy = "fifo"\n'
        '[[policies]]\npolicy = "tiresias"\nlabel = "x"\nparams = { promote = [4, 8] }\n'
    )
    of_file = json.loads(gpuctl("replay", "--experiment", path, "--json", "--jobs", "1").stdout)
    assert of_file["tables"] == json.loads(done[1])["tables"]
    twice = gpuctl("replay", "--experiment", path, "--cluster", "3x8", check=False)
    assert twice.returncode == 2
    assert "--cluster: " in twice.stderr
    path.write_text(path.read_text().replace("promote = [4, 8]", "promote = [4, -8]"))
    wrong = gpuctl("replay", "--experiment", path, check=False)
    assert wrong.returncode == 3
    assert f"{path}: policies[2].params.promote: " in wrong.stderr


def test_without_dask_it_is_told_what_to_install(gpuctl: Cli, command: list[str], tmp_path: Path) -> None:
    (tmp_path / "distributed.py").write_text("raise ImportError('no distributed here')\n")
    result = gpuctl(
        *command, "--engine", "dask://127.0.0.1:8786", check=False, own_process=True, env={"PYTHONPATH": str(tmp_path)}
    )
    assert result.returncode == 5
    assert "pip install 'gpuctl-toolkit[dask]'" in result.stderr
