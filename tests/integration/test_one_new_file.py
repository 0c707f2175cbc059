"""A policy, a format, an analysis with its chart: one new file each in a copy of the package, and it is all there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NEW = {
    "gpuctl/replay/policies/my_policies.py": "docs/examples/my_policies.py",
    "gpuctl/ingest/formats/turnstile_jobs.py": "docs/examples/format/turnstile_jobs.py",
    "queries/waits_by_hour.sql": "docs/examples/waits_by_hour.sql",
}
PROGRAM = """
import json, sys
import gpuctl
from gpuctl.reports.export.document import read_document
from gpuctl.reports.terminal.pictures import of_analysis
from gpuctl.reports.terminal.text_graphics import PLAIN
from pathlib import Path
from tests.cli_runner import run_command


def run(*arguments):
    ended = run_command(*arguments)
    assert ended.returncode == 0, (arguments, ended)
    return ended

sheet, jobs, found = *sys.argv[1:], {}
for kind in ("policies", "formats", "analyses"):
    found[kind] = {one["name"]: one["from"] for one in json.loads(run(kind, "--json").stdout)}
run("ingest", sheet, "--db", "t.duckdb")
run("analyze", "t.duckdb", "--section", "queueing", "--json", "--output", "t.json", "--html", "t.html")
read = read_document(Path("t.json"))
found["formats read"] = [source.format for source in read.sources]
found["rows"] = read.table("waits_by_hour").frame.height
found["terminal"] = [p.title for p in of_analysis(read, ["waits_by_hour"], 80, PLAIN)["waits_by_hour"]]
found["checks"] = [
    run("policies", "small-first", "--check", "2").stderr,
    run("formats", "turnstile-jobs", "--check", sheet).stderr,
    run("analyses", "waits_by_hour", "--check", "t.duckdb").stderr,
]
replayed = run("replay", jobs, "--cluster", "4x8", "--policy", "small-first", "--json").stdout
found["replayed"] = [row["policy"] for row in json.loads(replayed)["tables"]["replay_summary"]["rows"]]
found["from"] = gpuctl.__file__
print(json.dumps(found))
"""


def test_one_new_file_each_is_listed_run_drawn_and_checked(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for room in ("gpuctl", "queries", "predictors", "reports"):
        # with its bytecode, which knows no place
        shutil.copytree(root / room, copy / room, ignore=shutil.ignore_patterns("*.nb[ic]"))
    shutil.copy(root / "pyproject.toml", copy)
    for place, text in NEW.items():
        shutil.copy(root / text, copy / place)
    sheet, jobs = root / "docs/examples/format/jobs.turnstile", root / "docs/examples/elastic_jobs.csv"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(sheet), str(jobs)], cwd=tmp_path, capture_output=True, text=True,
        # uncompiled: the kernels of a copy would be compiled anew
        env=os.environ | {"PYTHONPATH": f"{copy}{os.pathsep}{root}", "NUMBA_DISABLE_JIT": "1"}, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["from"] == str(copy / "gpuctl" / "__init__.py")
    assert found["policies"]["small-first"] == found["policies"]["make-room"] == "built in"
    assert found["formats"]["turnstile-jobs"] == found["analyses"]["waits_by_hour"] == "built in"
    assert (found["formats read"], found["rows"] > 0) == (["turnstile-jobs"], True)
    assert "Hours waited, by hour of submission" in (tmp_path / "t.html").read_text("utf-8")
    assert found["terminal"] == ["Hours waited, by hour of submission"]
    assert all("0 violations" in line for line in found["checks"]), found["checks"]
    assert found["replayed"] == ["small-first"]
