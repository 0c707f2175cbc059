"""Logs of jobs from the command line: recordings of a real YARN, real names of Slurm, and an ingest that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import formats_for
from gpuctl.store.database import Store
from tests.fake_format import contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

FAULT = "FileNotFoundError: [Errno 2] No such file or directory: '/data/imagenet/shard-0004.tar'"
RECORDED = ("2.10.2-gz", "3.5.0-gz", "3.5.0-none")
_KILLED = """
import os, sys
from pathlib import Path
from gpuctl.ingest.pipeline import load, small_files
from gpuctl.ingest.pipeline.registry import formats_for
small_files.FILES = 10
real, seen = small_files.Group.take, []
def take(self, *given, **how):
    seen.append(1)
    if len(seen) == int(sys.argv[3]):
        os.kill(os.getpid(), 9)
    return real(self, *given, **how)
small_files.Group.take = take
load.ingest([Path(sys.argv[1])], Path(sys.argv[2]), cluster="c", formats=formats_for(None, job_logs=["{job}/{stream}"]))
"""


def found(db: Path) -> list[tuple[object, ...]]:
    sql = """
        SELECT DISTINCT job, attempt, stream, line_no, text FROM job_logs
        WHERE signature IS NOT NULL AND text LIKE 'FileNotFound%' ORDER BY ALL
    """
    with Store(db) as store:
        return store.execute(sql).fetchall()


@pytest.mark.parametrize("name", RECORDED)
def test_all_that_a_real_yarn_keeps_gives_the_same(root: Path, tmp_path: Path, name: str) -> None:
    recorded = root / "tests" / "fixtures" / "joboutput" / name
    (text,) = recorded.glob("application_*.log")
    tables = []
    for place, source in enumerate((recorded / "aggregated", recorded / "local", text)):
        db = tmp_path / f"{place}.duckdb"
        report = ingest([source], db, cluster="c")
        assert not report.failed
        rows = found(db)
        assert [row[1:2] + row[3:] for row in rows] == [(0, 10, FAULT), (1, 10, FAULT)]
        assert all(str(row[2]).startswith(f"stderr:container_{text.stem[12:]}_0") for row in rows)
        with Store(db) as store:
            steps = store.execute("SELECT attempt, epoch, loss, stream FROM progress ORDER BY ALL").fetchall()
        assert [step[:3] for step in steps] == [
            (a, e, pytest.approx(1 / e, abs=1e-4)) for a in (0, 1) for e in (1, 2, 3)
        ]
        tables.append((rows, steps))
    assert tables[0] == tables[1] == tables[2]
    report = ingest([recorded], tmp_path / "all.duckdb", cluster="c")
    assert any("of containers came more than once" in warning for warning in report.warnings)
    assert found(tmp_path / "all.duckdb") == tables[0][0]


def test_the_indexed_format_is_refused_with_what_to_run(root: Path, tmp_path: Path, gpuctl: Gpuctl) -> None:
    recorded = root / "tests" / "fixtures" / "joboutput" / "3.5.0-indexed"
    done = gpuctl("ingest", recorded / "aggregated", "--db", tmp_path / "a.duckdb", check=False)
    assert done.returncode == 3
    assert "YARN's indexed format" in done.stderr
    assert "yarn logs -applicationId" in done.stderr
    (text,) = recorded.glob("application_*.log")
    ingest([text], tmp_path / "b.duckdb", cluster="c")
    assert len(found(tmp_path / "b.duckdb")) == 2


def test_patterns_on_the_command_line(tmp_path: Path, gpuctl: Gpuctl) -> None:
    for job in range(25):
        (tmp_path / "logs" / f"{job}").mkdir(parents=True)
        (tmp_path / "logs" / f"{job}" / "err").write_text(FAULT + "\n")
    db = tmp_path / "s.duckdb"
    done = gpuctl("ingest", tmp_path / "logs", "--db", db, "--job-logs", "{job}/{stream}", "--job-logs", "%j.log")
    assert "0/err and 24 more (--json lists all)" in done.stdout
    assert "--job-logs %j.log fits no file" in done.stderr
    assert "25 logs of 25 jobs that cluster logs has no record of" in done.stderr
    assert len(found(db)) == 25
    again = gpuctl("ingest", tmp_path / "logs", "--db", db, "--job-logs", "{job}/{stream}", "--json")
    assert {source["status"] for source in json.loads(again.stdout)["sources"]} == {"unchanged"}
    wrong = gpuctl("ingest", tmp_path / "logs", "--db", db, "--job-logs", "*.log", check=False)
    assert wrong.returncode == 2
    assert "does not contain the job's id" in wrong.stderr


def test_analyze_reads_logs_and_signatures_too(tmp_path: Path, gpuctl: Gpuctl, thin_data: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[[signature]]\nid = 'x'\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "7.txt").write_text(FAULT + "\n")
    words = ("analyze", thin_data / "philly" / "cluster_job_log", tmp_path / "logs", "--section", "overview")
    wrong = gpuctl(*words, "--signatures", own, check=False)
    assert wrong.returncode == 3
    assert "own.toml" in wrong.stderr
    done = gpuctl(*words, "--job-logs", "{job}.txt")
    assert "1 log of 1 job that cluster" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("at", [10, 25])
def test_a_killed_ingest_of_many_logs_leaves_whole_ones(tmp_path: Path, root: Path, at: int) -> None:
    for job in range(40):
        (tmp_path / "logs" / f"{job:02}").mkdir(parents=True)
        (tmp_path / "logs" / f"{job:02}" / "err").write_text(f"epoch {job} loss 0.5\n{FAULT}\n")
    known = formats_for(None, job_logs=["{job}/{stream}"])
    ingest([tmp_path / "logs"], tmp_path / "whole.duckdb", cluster="c", formats=known)
    whole = contents(tmp_path / "whole.duckdb")
    db = tmp_path / "killed.duckdb"
    command = [sys.executable, "-c", _KILLED, str(tmp_path / "logs"), str(db), str(at)]
    done = subprocess.run(command, env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"}, check=False, timeout=120)
    assert done.returncode == -9
    left = contents(db)
    assert len(left["sources"]) == (at - 1) // 10 * 10
    for table in ("sources", "job_outputs", "job_logs", "progress"):
        assert all(row in whole[table] for row in left[table])
    ingest([tmp_path / "logs"], db, cluster="c", formats=known)
    assert contents(db) == whole
