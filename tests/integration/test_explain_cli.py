"""``gpuctl explain`` as a user runs it: on a store, on logs, on what a replay wrote."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from tests.unit.analyze.failure_store import SIGNATURES, example

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

JOBS = "job_id,submit_time,duration,num_gpus\nfirst,0,600,8\nsecond,10,60,8\nthird,20,60,4\n"


def test_a_job_of_a_store(gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    example(tmp_path / "t.duckdb")
    (tmp_path / "own.toml").write_text(SIGNATURES)
    own = ("--signatures", tmp_path / "own.toml")
    done = gpuctl(
        "explain", "gang", "--db", tmp_path / "t.duckdb", *own, "--html", tmp_path / "gang.html", env={"COLUMNS": "60"}
    )
    assert "GPU out of memory (ai engine)" in done.stdout
    assert "gang.stderr, line 90" in done.stdout
    assert all(len(line) <= 60 for line in done.stdout.splitlines())
    assert f"wrote {tmp_path / 'gang.html'}" in done.stderr
    assert "CUDA out of memory. &lt;b&gt;" in (tmp_path / "gang.html").read_text()
    made = json.loads(gpuctl("explain", "gang", tmp_path / "t.duckdb", *own, "--json").stdout)
    assert made["attempts"][0]["cause"]["reason"] == "gpu_out_of_memory"
    assert made["attempts"][1]["cause"] is None


def test_a_job_of_logs(gpuctl: Callable[..., subprocess.CompletedProcess[str]], thin_data: Path) -> None:
    job = "application_1506638472019_00186"
    made: dict[str, Any] = json.loads(gpuctl("--json", "explain", job, thin_data / "philly", "-q").stdout)
    assert [tried["state"] for tried in made["attempts"]] == ["failed", "completed"]
    assert [place["machine"] for place in made["attempts"][0]["places"]] == ["m14", "m16"]
    # truth/delays.csv has the same seconds of fair share for this attempt where quotas and borrowing are given
    wait = made["attempts"][0]["wait"]
    assert [part["cause"] for part in wait["parts"]] == [
        "fair_share", "capacity", "fragmentation", "scheduler", "ineligible",
    ]  # fmt: skip
    assert sum(part["seconds"] for part in wait["parts"]) == wait["seconds"]
    assert all(part["low_s"] <= part["seconds"] <= part["high_s"] for part in wait["parts"])
    assert made["attempts"][0]["use"]["samples"] > 0


def test_a_job_that_is_not_there(gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    example(tmp_path / "t.duckdb")
    done = gpuctl("explain", "gan", "--db", tmp_path / "t.duckdb", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "cluster c has no job 'gan'" in done.stderr
    assert "did you mean gang" in done.stderr
    done = gpuctl("explain", "gang", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing to explain" in done.stderr


@pytest.fixture(scope="module")
def replayed(gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replay")
    (folder / "jobs.csv").write_text(JOBS)
    gpuctl(
        "replay", folder / "jobs.csv", "--cluster", "1x8", "--policy", "fifo,srtf", "--store", folder / "r.duckdb",
        "--decisions", folder / "decisions", "-q",
    )  # fmt: skip
    return folder


def test_decisions_of_a_policy(gpuctl: Callable[..., subprocess.CompletedProcess[str]], replayed: Path) -> None:
    store = replayed / "r.duckdb"
    refused = gpuctl("explain", "second", store, check=False)
    assert refused.returncode == 2
    assert "2 clusters" in refused.stderr
    made = json.loads(gpuctl("explain", "second", store, "--cluster", "jobs.csv@fifo", "--json", "-q").stdout)
    [start, *_] = made["decisions"]
    assert (start["t_s"], start["decision"], start["gpus"], start["nodes"]) == (600, "start", 8, 1)
    assert start["reason"]
    assert made["decisions_from"] == str(replayed / "decisions" / "fifo.jsonl")
    shown = gpuctl("explain", "second", store, "--cluster", "jobs.csv@fifo", "-q").stdout
    assert "What the policy decided" in shown
    assert f"after 10 min: start, 8 GPUs on 1 node: {start['reason']}" in " ".join(shown.split())


def test_decisions_of_another_replay_are_not_shown(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], replayed: Path, tmp_path: Path
) -> None:
    log = (replayed / "decisions" / "fifo.jsonl").read_text()
    (tmp_path / "fifo.jsonl").write_text(log.replace("first in order", "for another reason"))
    command = ("explain", "second", replayed / "r.duckdb", "--cluster", "jobs.csv@fifo", "--decisions", tmp_path)
    made = json.loads(gpuctl(*command, "--json", "-q").stdout)
    assert (made["decisions"], made["decisions_from"]) == ([], None)
    assert any("fifo.jsonl, as this replay wrote it, is not at" in note for note in made["notes"])


@pytest.mark.parametrize("name", ["../secret.jsonl", "/ABSOLUTE/secret.jsonl"])
def test_a_strangers_store_names_no_file_outside_the_folder(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], replayed: Path, tmp_path: Path, name: str
) -> None:
    """Its digest fits, so that only the path tells."""
    data = (replayed / "decisions" / "fifo.jsonl").read_bytes()
    (tmp_path / "secret.jsonl").write_bytes(data)
    (tmp_path / "given").mkdir()
    store = tmp_path / "given" / "r.duckdb"
    shutil.copy(replayed / "r.duckdb", store)
    path = name.replace("/ABSOLUTE", str(tmp_path))
    with duckdb.connect() as con:
        con.execute(f"ATTACH '{store}' AS s (STORAGE_VERSION 'v1.5.0')")
        con.execute("UPDATE s.sources SET path = ? WHERE cluster = 'jobs.csv@fifo'", [path])
    command = ("explain", "second", store, "--cluster", "jobs.csv@fifo", "--json", "-q")
    for more in ((), ("--decisions", store.parent)):
        made = json.loads(gpuctl(*command, *more).stdout)
        assert (made["decisions"], made["decisions_from"]) == ([], None)
