"""Damaged files of every format, through every command: no internal error, no row lost, no job that nobody submitted.

A fixed part runs with all tests. ``make fuzz`` runs others each time: ``GPUCTL_FUZZ_SEED`` chooses them and
``GPUCTL_FUZZ_CASES`` says how many each format gets. A case that failed is repeated with the seed that it names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from gpuctl.ingest.core.format import Place
from gpuctl.ingest.pipeline.conformance import damaged
from gpuctl.ingest.pipeline.detect import detect
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.store.database import Store
from tests.cli_runner import run_command
from tests.example_counts import SEARCHING
from tests.example_files import example_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from subprocess import CompletedProcess

NAMES = [known.name for known in all_formats()]
CASES = int(os.environ.get("GPUCTL_FUZZ_CASES", "1"))
SEED = int(os.environ.get("GPUCTL_FUZZ_SEED") or "0")
FOUND = {"yarn-rm-log": ("1795434857/1/yarn-rm-log",)}
"""Damage that `make fuzz` found: more GPUs of a node than a column holds."""
EXPECTED = {0, 2, 3}
"""Exit codes of a command on whatever it is given: results, wrong usage (a job that is not there), bad input."""
VERBATIM = {
    *("slurm-sacct", "slurm-jobcomp", "slurm-tacc", "philly-jobs", "yarn-app-summary", "yarn-rest-apps"),
    *("helios-jobs", "acme-seren", "acme-kalos"),
}
"""Formats that write a job's id as the store has it."""


@pytest.mark.parametrize("name", NAMES)
def test_every_format_has_an_example_that_is_taken_for_it(name: str) -> None:
    file, data = example_files()[name]
    found, why, several = detect(Path(file).name, data[:65536], all_formats(), Place(file, f"/logs/{file}"))
    assert found is not None, why
    assert (found.name, several) == (name, False)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_end_in_results_or_in_an_error_for_users(name: str, tmp_path: Path) -> None:
    file, data = example_files()[name]
    for case, seed in enumerate((*FOUND.get(name, ()), *(f"{SEED}/{case}/{name}" for case in range(1, CASES + 1)))):
        draw = Random(seed)
        spoiled = damaged(data, draw)
        path = tmp_path / str(case) / "logs" / file
        path.parent.mkdir(parents=True)
        path.write_bytes(spoiled)
        db = tmp_path / str(case) / "store.duckdb"
        ended = run_command("--debug", "ingest", path.parents[len(Path(file).parts) - 1], "--db", db)
        assert ended.returncode in {0, 3}, _told(seed, path, ended)
        assert "this is a bug in gpuctl" not in ended.stderr, _told(seed, path, ended)
        # a store that was made for a file that then failed is empty
        jobs = _checked(db, spoiled if name in VERBATIM else None, seed) if db.exists() else []
        assert ended.returncode == 0 or not jobs, seed
        if ended.returncode == 3:
            continue
        commands, number = list(_commands(db, path, jobs, tmp_path / str(case))), NAMES.index(name)
        # with all tests every other format goes through one command, all commands in turn
        if SEARCHING or number % 2 == 0:
            arguments = draw.choice(commands) if SEARCHING else commands[number // 2 % len(commands)]
            ended = run_command("--debug", *arguments)
            assert ended.returncode in EXPECTED, _told(seed, path, ended, *arguments)
            if "--json" in arguments and ended.returncode == 0:
                json.loads(ended.stdout, parse_constant=_no_number)


def _checked(db: Path, spoiled: bytes | None, seed: str) -> list[str]:
    """The jobs of a store whose ledger adds up."""
    with Store(db) as store:
        (counts,) = store.execute(
            "SELECT coalesce(sum(rows_in), 0), coalesce(sum(rows_loaded + rows_already_stored), 0), "
            "coalesce(sum(rows_rejected), 0), "
            "(SELECT count(*) FROM rejects) FROM sources"
        ).fetchall()
        jobs: list[str] = store.frame("SELECT DISTINCT job FROM jobs ORDER BY job")["job"].to_list()
    rows, loaded, rejected, kept = counts
    assert rows == loaded + rejected, seed
    assert rejected == kept, seed
    if spoiled is not None:
        text = spoiled.decode("utf-8", "replace").replace("\x00", "\N{REPLACEMENT CHARACTER}")
        assert [job for job in jobs if job not in text] == [], seed
    return jobs


def _commands(db: Path, path: Path, jobs: list[str], folder: Path) -> Iterator[tuple[object, ...]]:
    yield "analyze", db, "--json"
    yield "analyze", db, "--html", folder / "page.html", "--csv", folder / "csv", "--parquet", folder / "parquet"
    yield "analyze", db, "--format", "markdown"
    yield "report", db, "--html", folder / "report.html", "--markdown", folder / "report.md"
    yield "report", db, "--anonymise", "--html", folder / "anonymous.html"
    yield "explain", (jobs or ["1"])[0], db, "--html", folder / "job.html"
    yield "replay", db, "--policy", "fifo,recorded", "--against", "recorded", "--json"
    yield "replay", path, "--policy", "fifo", "--cluster", "4x8"
    yield "train", "runtime", db, "-o", folder / "model"
    yield "train", "overhead", path, "-o", folder / "model"
    yield "predict", "runtime", path
    yield "predict", "runtime", path, "--jobs", path
    yield "classify", path, "--json"


def _no_number(word: str) -> None:
    pytest.fail(f"{word} in JSON")


def _told(seed: str, path: Path, ended: CompletedProcess[str], *arguments: object) -> str:
    said = "\n".join((ended.stderr or ended.stdout).splitlines()[-25:])
    return f"exit {ended.returncode}, seed {seed}, {path}\n{' '.join(map(str, arguments))}\n{said}"
