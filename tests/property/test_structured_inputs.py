"""Structured inputs with values at the edges, through ingest and every command: no internal error, no row lost.

A few run with all tests. ``make fuzz`` draws others each time: ``GPUCTL_FUZZ_SEED`` chooses them and
``GPUCTL_STRUCTURED`` is how many each grammar and each format's example gets. A case that fails names its seed.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import time
import traceback
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.store.database import Store
from tests.cli_runner import run_command
from tests.example_counts import SEARCHING
from tests.example_files import example_files
from tests.grammars import others, slurm
from tests.grammars.shapes import changed
from tests.grammars.values import Values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from subprocess import CompletedProcess

CASES = int(os.environ.get("GPUCTL_STRUCTURED", "1"))
SEED = os.environ.get("GPUCTL_FUZZ_SEED", "0")
KEEP_GOING = bool(os.environ.get("GPUCTL_KEEP_GOING"))
"""Go through all cases of a grammar and report every one that fails, instead of ending with the first."""
GRAMMARS: dict[str, Callable[[Values], dict[str, bytes]]] = slurm.GRAMMARS | others.GRAMMARS
FOUND: dict[str, tuple[str, ...]] = {
    "alibaba-asi": ("2911a/71/alibaba-asi",),
    "kube": ("2911a/82/kube",),
    "yarn-rm-log": ("2911a/63/yarn-rm-log",),
    "slurm-sacct-json": ("2911a/30/slurm-sacct-json",),
    "helios-jobs": ("2911a/59/helios-jobs",),
    "pai-tasks": ("3011a/15/pai-tasks",),
    "slurm-conf": ("3011a/14/slurm-conf",),
    "openb-nodes": ("2911a/6/openb-nodes", "2911a/51/openb-nodes"),
}
"""Seeds that found a fault once."""
LONGEST_S = 60.0
"""Of CPU; what waits for ever is ended by the clock, after four times as long."""
MOST_MEMORY = 2 * 1024**3
RESULTS_OR_REFUSAL = {0, 1, 2, 3}
"""Exit codes of a command on any input: results, a check that failed, wrong usage, bad input."""


def _example(name: str, values: Values) -> dict[str, bytes]:
    file, data = example_files()[name]
    return {file: changed(data, values)}


@pytest.mark.parametrize("name", GRAMMARS)
def test_structured_inputs_end_in_results_or_in_an_error_for_users(name: str, tmp_path: Path) -> None:
    _try_all(name, GRAMMARS[name], tmp_path)


@pytest.mark.parametrize(
    "name", [name for at, name in enumerate(example_files()) if SEARCHING or at % 9 == 0 or name in FOUND]
)
def test_examples_with_odd_values_end_in_results_or_in_an_error_for_users(name: str, tmp_path: Path) -> None:
    _try_all(name, lambda values: _example(name, values), tmp_path)


def _try_all(name: str, grammar: Callable[[Values], dict[str, bytes]], folder: Path) -> None:
    failed = []
    for case, seed in enumerate((*FOUND.get(name, ()), *(f"{SEED}/{case}/{name}" for case in range(CASES)))):
        faulthandler.dump_traceback_later(4 * LONGEST_S, exit=SEARCHING)
        try:
            _try(seed, grammar(Values(Random(seed))), folder / str(case))
        except AssertionError as error:
            if not KEEP_GOING:
                raise
            failed.append(str(error))
        finally:
            faulthandler.cancel_dump_traceback_later()
    assert not failed, "\n\n".join(failed)


def _try(seed: str, files: dict[str, bytes], folder: Path) -> None:
    draw = Random(f"command {seed}")
    logs = folder / "logs"
    for file, data in files.items():
        path = logs / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    db = folder / "store.duckdb"
    ended = _run(seed, logs, "ingest", logs, "--db", db)
    assert ended.returncode in {0, 3}, _failure(seed, logs, ended, "ingest")
    jobs = _checked_jobs(db, seed) if db.exists() else []
    if ended.returncode == 3 and not jobs and draw.random() < 0.8:
        return
    commands = [each for each in _commands(db, logs, jobs, folder) if db not in each or db.exists()]
    arguments = draw.choice(commands)
    ended = _run(seed, logs, *arguments)
    assert ended.returncode in RESULTS_OR_REFUSAL, _failure(seed, logs, ended, *arguments)
    if "--json" in arguments and ended.returncode == 0:
        answer = json.loads(ended.stdout, parse_constant=_no_number)
        if arguments[0] == "analyze":
            assert _wrong_cells(answer) == [], _failure(seed, logs, ended, *arguments)


def _run(seed: str, logs: Path, *arguments: object) -> CompletedProcess[str]:
    """A command within the limits of time and memory that any input must keep."""
    if SEARCHING:
        Path("/proc/self/clear_refs").write_text("5")
    begun = time.process_time()
    try:
        ended = run_command("--debug", *arguments)
    except BaseException:
        raise AssertionError(f"seed {seed}, {logs}: {arguments}\n{traceback.format_exc()}") from None
    # a reader's fault costs its file and not the ingest
    assert "this is a bug in gpuctl" not in ended.stderr, _failure(seed, logs, ended, *arguments)
    if SEARCHING:
        peak = next(
            int(line.split()[1]) for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line
        )
        taken = time.process_time() - begun
        assert taken < LONGEST_S, f"{taken:.0f} s of CPU, seed {seed}, {logs}: {arguments}"
        assert peak * 1024 < MOST_MEMORY, f"{peak} kB, seed {seed}, {logs}: {arguments}"
    return ended


def _checked_jobs(db: Path, seed: str) -> list[str]:
    """The jobs of a store whose ledger adds up and in which nobody waits less than no time."""
    with Store(db) as store:
        (counts,) = store.execute(
            "SELECT coalesce(sum(rows_in - rows_loaded - rows_already_stored - rows_rejected), 0), "
            "coalesce(sum(rows_rejected), 0) - "
            "(SELECT count(*) FROM rejects), (SELECT count(*) FROM jobs WHERE wait_s < 0 OR run_span_s < 0), "
            "(SELECT count(*) FROM attempts WHERE wait_s < 0 OR run_s < 0 OR gpus < 0) FROM sources"
        ).fetchall()
        jobs: list[str] = store.frame("SELECT DISTINCT job FROM jobs ORDER BY job")["job"].to_list()
    assert counts == (0, 0, 0, 0), f"{counts}, seed {seed}, {db}"
    return jobs


def _commands(db: Path, logs: Path, jobs: list[str], folder: Path) -> Iterator[tuple[object, ...]]:
    yield "analyze", db, "--json", "--all"
    yield "analyze", db, "--format", "table", "--html", folder / "page.html", "--csv", folder / "csv"
    yield "analyze", logs, "--json"
    yield "explain", (jobs or ["1"])[0], db, "--html", folder / "job.html"
    yield "explain", (jobs or ["1"])[-1], db, "--json"
    yield "report", db, "--html", folder / "report.html", "--markdown", folder / "report.md"
    yield "lessons", db, "--json"
    yield "fit", db, "-o", folder / "model", "--no-replay"
    yield "convert", db, "--to", "swf", "-o", folder / "out.swf"
    yield "convert", db, "--to", "jobs-csv", "-o", folder / "out.csv"
    yield "train", "runtime", db, "-o", folder / "model"
    yield "doctor", "--db", db
    yield "query", db, "SELECT * FROM jobs", "--json"
    yield "replay", db, "--policy", "fifo", "--json"
    yield "replay", logs, "--policy", "srtf,easy", "--cluster", "4x8", "--limits"
    if (logs / "slurm.conf").exists():
        yield "replay", logs, "--policy", "slurm", "--slurm-conf", logs
        yield "replay", logs, "--policy", "slurm", "--slurm-conf", logs / "slurm.conf", "--json"
    if (logs / "jobs.csv").exists():
        for policy in ("fifo", "tiresias", "conservative", "optimus"):
            yield "replay", logs / "jobs.csv", "--cluster", "4x8", "--policy", policy, "--json"
        yield "analyze", logs / "jobs.csv", "--map", "num_gpus=num_gpus", "--json"
    for file, policy in (("capacity-scheduler.xml", "yarn-capacity"), ("fair-scheduler.xml", "yarn-fair")):
        if (logs / file).exists():
            for _ in range(4):
                yield "replay", logs / "jobs.csv", "--cluster", "4x8", "--policy", policy, "--yarn-conf", logs / file
    if (logs / "experiment.toml").exists():
        for _ in range(6):
            yield "replay", "--experiment", logs / "experiment.toml", "--json"
    yield "classify", logs, "--json"


def _wrong_cells(answer: Any) -> list[str]:
    """Shares above 100 % and times below 0, in tables as `analyze --json` prints them."""
    found = []
    for name, table in answer["tables"].items():
        for row in table["rows"]:
            for column, value in row.items():
                if not isinstance(value, int | float):
                    continue
                if not math.isfinite(value):
                    found.append(f"{name}.{column} = {value}")
                # sums are exact to a millionth of a GPU-second: of a tiny total that is a hundred-millionth
                if column.endswith("_pct") and not -1e-5 <= value <= 100 + 1e-5:
                    found.append(f"{name}.{column} = {value}")
                if column.startswith(("wait", "delay")) and value < 0:
                    found.append(f"{name}.{column} = {value}")
    return found


def _no_number(word: str) -> None:
    pytest.fail(f"{word} in JSON")


def _failure(seed: str, logs: Path, ended: CompletedProcess[str], *arguments: object) -> str:
    end = "\n".join((ended.stderr or ended.stdout).splitlines()[-25:])
    return f"exit {ended.returncode}, seed {seed}, {logs}\n{' '.join(map(str, arguments))}\n{end}"
