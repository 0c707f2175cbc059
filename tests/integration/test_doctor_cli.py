"""`gpuctl doctor` as a user runs it: on a store made of the sample, on models, and on what is broken."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.locked_store import held_open

if TYPE_CHECKING:
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def store(gpuctl: Gpuctl, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    db = tmp_path_factory.mktemp("doctor") / "philly.duckdb"
    gpuctl("ingest", sample_data / "philly", "--db", db, "--quiet")
    return db


def checks(done: subprocess.CompletedProcess[str]) -> dict[str, dict[str, Any]]:
    rows = json.loads(done.stdout)["tables"]["checks"]["rows"]
    return {row["check"]: row for row in rows}


def test_a_store_of_the_sample(gpuctl: Gpuctl, store: Path, tmp_path: Path) -> None:
    before = store.read_bytes()
    done = gpuctl("doctor", "--db", store, "--reports", tmp_path / "new", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    found = checks(done)
    assert done.stderr == ""
    assert document["command"].startswith("gpuctl doctor --db ")
    of_the_store = ("store_file", "store_lock", "store_schema", "ledger", "parsers", "clusters", "clocks")
    assert {found[name]["status"] for name in (*of_the_store, "gpu_counts", "submit_times")} == {"ok"}, found
    assert found["clusters"]["evidence"].startswith("1: philly: philly-jobs, America/Los_Angeles (wall), 2017-10-0")
    # one line of the sample's telemetry is broken; 4 of its jobs never had GPUs
    assert "183,203 rows, 1 rejected" in found["ledger"]["evidence"]
    assert found["gpu_counts"]["evidence"] == "1,958 of 1,962 jobs have a GPU count"
    ledger = document["tables"]["ledger"]["rows"]
    assert sum(row["rows_in"] for row in ledger) == 183_203
    assert [row["rows_rejected"] for row in ledger] == [1, 0, 0, 0, 0]
    assert found["reports"]["evidence"] == f"{tmp_path / 'new'} does not exist yet, but can be created"
    # nothing was written
    assert list(tmp_path.iterdir()) == []
    assert store.read_bytes() == before
    assert list(store.parent.iterdir()) == [store]


def test_one_table_goes_into_a_pipe(gpuctl: Gpuctl, store: Path) -> None:
    done = gpuctl("doctor", "--db", store)
    rows = list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t"))
    assert list(rows[0]) == ["check", "status", "evidence", "fix"]
    assert [row["check"] for row in rows][:4] == ["python", "gpuctl", "dependencies", "compiled_code"]
    assert {row["status"] for row in rows} <= {"ok", "warn"}
    ledger = gpuctl("doctor", "--db", store, "--table", "ledger", "--format", "csv").stdout.splitlines()
    assert ledger[0] == "cluster,path,format,rows_in,rows_already_stored,rows_rejected,rejected_pct"
    assert len(ledger) == 6


def test_without_a_store_the_machine_is_checked(gpuctl: Gpuctl) -> None:
    done = gpuctl("doctor", "--json")
    assert "store_file" not in checks(done)
    assert list(json.loads(done.stdout)["tables"]) == ["checks"]
    assert "a store (--db FILE)" in json.loads(done.stdout)["tables"]["checks"]["notes"][0]


def test_a_store_that_is_cut_off(gpuctl: Gpuctl, store: Path, tmp_path: Path) -> None:
    short = tmp_path / "short\x1b[31m.duckdb"
    short.write_bytes(store.read_bytes()[:1_000_000])
    done = gpuctl("doctor", "--db", short, "--format", "table", check=False)
    assert done.returncode == 1
    assert "store_file" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stderr.endswith("checks failed: store_file\n")
    assert "Traceback" not in done.stderr


def test_a_store_that_is_being_written_to(gpuctl: Gpuctl, store: Path, root: Path, tmp_path: Path) -> None:
    db = Path(shutil.copy(store, tmp_path / "held.duckdb"))
    with held_open(db, root) as holder:
        done = gpuctl("doctor", "--db", db, "--json", check=False)
    assert done.returncode == 1
    assert checks(done)["store_lock"]["status"] == "fail"
    assert f"process {holder} has this store open (" in checks(done)["store_lock"]["evidence"]
    assert gpuctl("doctor", "--db", db).returncode == 0


def test_models(gpuctl: Gpuctl, sample_data: Path, tmp_path: Path) -> None:
    gpuctl("train", "runtime", sample_data / "jobs.csv", "-o", tmp_path / "runs")
    gpuctl("train", "overhead", sample_data / "pickyman" / "suspensions.csv", "-o", tmp_path / "costs")
    shutil.copytree(tmp_path / "runs", tmp_path / "cut")
    (tmp_path / "cut" / "middle.txt").write_text("tree\n")
    both = gpuctl("doctor", "--model", tmp_path / "runs", "--model", tmp_path / "costs", "--json")
    rows = json.loads(both.stdout)["tables"]["checks"]["rows"]
    found = [(row["check"], row["status"]) for row in rows if row["check"].startswith("model_")]
    four = [(f"model_{name}", "ok") for name in ("folder", "age", "features", "versions")]
    assert found == four * 2
    done = gpuctl("doctor", "--model", tmp_path / "cut", check=False)
    assert done.returncode == 1
    assert "middle.txt: is truncated" in done.stdout


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs a directory that root cannot write to")
def test_a_reports_directory_that_cannot_be_written_to(gpuctl: Gpuctl) -> None:
    done = gpuctl("doctor", "--reports", "/proc/reports", "--json", check=False)
    assert done.returncode == 1
    assert checks(done)["reports"]["status"] == "fail"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--table", "nothing"], "known: checks, ledger"),
        (["--table", "ledger"], "add --db FILE"),
        (["--json", "--format", "csv"], "contradict"),
    ],
)
def test_wrong_options(gpuctl: Gpuctl, more: list[str], said: str) -> None:
    done = gpuctl("doctor", *more, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr


def test_other_surroundings_are_reported(gpuctl: Gpuctl, tmp_path: Path) -> None:
    env = {"NUMBA_DISABLE_JIT": "1", "LC_ALL": "xx_YY.none", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    found = checks(gpuctl("doctor", "--json", env=env, cwd=tmp_path, own_process=True))
    told = {name: row["status"] for name, row in found.items()}
    assert {told[name] for name in ("compiled_code", "locale", "unicode")} == {"warn"}


def test_a_package_that_cannot_be_loaded_is_a_finding(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    """As where numba and NumPy do not fit together: the other checks are done all the same."""
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')\n")
    path = f"{tmp_path}{os.pathsep}{root}"
    done = gpuctl("doctor", "--json", env={"PYTHONPATH": path}, cwd=tmp_path, own_process=True, check=False)
    assert done.returncode == 1
    found = checks(done)
    assert found["compiled_code"]["status"] == "fail"
    assert "Numba needs another NumPy" in found["compiled_code"]["evidence"]
    assert found["unicode"]["status"] == "ok"


def test_without_polars_something_is_still_said(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    (tmp_path / "polars.py").write_text("raise ImportError('polars is broken')\n")
    path = f"{tmp_path}{os.pathsep}{root}"
    done = gpuctl("doctor", env={"PYTHONPATH": path}, cwd=tmp_path, own_process=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert "cannot print a table: polars is broken" in done.stderr
    assert "Traceback" not in done.stderr
