"""Slurm accounting text into a store, beside DuckDB's own reader and slurm2sql, in one run.

    python benchmarks/slurm.py [ROWS | FILE [REPEATS [WAY …]]]

ROWS records of 24 fields are made (1,000,000 unless given), or FILE is a text of ``sacct -P`` that has these fields.

Ways:
  duckdb     CREATE TABLE … AS SELECT, every field with its type, FROM read_csv(file), and CHECKPOINT
  gpuctl     ingest into a new store: jobs, attempts, placements, partitions, with checks, ledger and digest
  slurm2sql  slurm2sql 0.9.9 of PyPI, installed for this run, reading the same file; once, up to 1,000,000 records
Every run is a process of its own; times are of the work alone, without imports; the smallest of the repeats counts.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

MILLION = 1_000_000
SLURM2SQL = "slurm2sql==0.9.9"
WAYS = {
    "duckdb": """
import os, time, duckdb
store = duckdb.connect(out, config={"memory_limit": "900MB"})
store.execute("SET enable_progress_bar = false")
before, began = sum(os.times()[:2]), time.perf_counter()
store.execute('''
    CREATE TABLE t AS SELECT
        JobIDRaw::BIGINT AS job, JobID, JobName, "User", Account, Partition, QOS, State,
        split_part(ExitCode, ':', 1)::INT AS code, split_part(ExitCode, ':', 2)::INT AS signal, DerivedExitCode,
        Submit::TIMESTAMP AS submit, Eligible::TIMESTAMP AS eligible, TRY_CAST("Start" AS TIMESTAMP) AS start,
        TRY_CAST("End" AS TIMESTAMP) AS "end", Elapsed, Timelimit, NNodes::INT AS nodes, NCPUS::INT AS cpus, ReqTRES,
        AllocTRES, TRY_CAST(regexp_extract(AllocTRES, 'gres/gpu=(\\\\d+)', 1) AS INT) AS gpus, NodeList, Reason,
        Priority::BIGINT AS priority, Flags
    FROM read_csv(?, delim = '|', header = true, all_varchar = true, quote = '', escape = '')
''', [path]).fetchall()
store.execute("CHECKPOINT").fetchall()
""",
    "gpuctl": """
import os, time, polars, duckdb
from pathlib import Path
from gpuctl.ingest.pipeline.load import ingest
before, began = sum(os.times()[:2]), time.perf_counter()
report = ingest([Path(path)], Path(out), cluster="c")
assert not report.failed and not report.sources[0].rows_rejected, report
""",
    "slurm2sql": """
import csv, os, sqlite3, sys, time
sys.path.insert(0, tools)
import slurm2sql
before, began = sum(os.times()[:2]), time.perf_counter()
errors = slurm2sql.slurm2sql(sqlite3.connect(out), csv_input=csv.DictReader(open(path), delimiter="|"))
assert not errors
""",
}
END = """
seconds, cpu = time.perf_counter() - began, sum(os.times()[:2]) - before
# ru_maxrss would count what this process was forked from
peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, cpu, peak)
"""


def write(path: Path, rows: int) -> None:
    """Jobs of one to 64 GPUs over 900 nodes, 2,000 users, arrays, cancelled ones, as ``sacct -X -P`` prints them."""
    made = 0
    with path.open("wb") as file:
        while made < rows:
            frame = _records(made, min(MILLION, rows - made))
            file.write(frame.write_csv(separator="|", include_header=made == 0, quote_style="never").encode())
            made += frame.height


def _records(first: int, n: int) -> pl.DataFrame:
    rng = np.random.default_rng(first)
    submit = 1_700_000_000 + 6 * first + np.cumsum(rng.exponential(6.0, n)).astype(np.int64)
    start = submit + (rng.exponential(2400, n) * (rng.random(n) < 0.6)).astype(np.int64)
    ran = np.clip(rng.lognormal(7, 2, n).astype(np.int64), 1, 7 * 86400)
    gpus = rng.choice([0, 1, 2, 4, 8, 16, 32, 64], n, p=[0.15, 0.4, 0.15, 0.13, 0.12, 0.03, 0.01, 0.01])
    nodes, node = np.maximum(1, gpus // 8), rng.integers(1, 900, n)
    state = rng.choice(
        ["COMPLETED", "FAILED", "TIMEOUT", "PREEMPTED", "CANCELLED"], n, p=[0.63, 0.15, 0.07, 0.03, 0.12]
    )
    ids = np.arange(n) + first + MILLION
    frame = pl.DataFrame(
        {
            **{
                "id": ids,
                "submit": submit,
                "start": start,
                "end": start + ran,
                "ran": ran,
                "gpus": gpus,
                "nodes": nodes,
            },
            **{"node": node, "state": state, "user": rng.integers(0, 2000, n), "name": rng.integers(0, 5000, n)},
            **{"task": rng.random(n) < 0.3, "never": (state == "CANCELLED") & (rng.random(n) < 0.4)},
            **{"code": rng.choice([1, 2, 127, 9, 15], n), "priority": rng.integers(1, MILLION, n)},
            "partition": rng.choice(["gpu", "a100", "v100", "preempt", "debug"], n),
            "reason": rng.choice(["None", "Priority", "Resources", "Dependency", "QOSMaxGRESPerUser"], n),
        }
    )
    return frame.select(**_fields())


def _fields() -> dict[str, pl.Expr]:
    c = pl.col
    never, gpus = c("never"), c("gpus")

    def time(name: str) -> pl.Expr:
        return pl.from_epoch(c(name)).dt.strftime("%Y-%m-%dT%H:%M:%S")

    def two(number: pl.Expr) -> pl.Expr:
        return number.cast(pl.String).str.zfill(2)

    days = pl.when(c("ran") >= 86400).then(pl.format("{}-", c("ran") // 86400)).otherwise(pl.lit(""))
    clock = pl.format("{}:{}:{}", two(c("ran") // 3600 % 24), two(c("ran") // 60 % 60), two(c("ran") % 60))
    base = pl.format("billing={},cpu={}", gpus * 24 + 1, gpus * 8 + 1)
    rest = pl.format(",mem={}G,node={}", gpus * 64 + 4, c("nodes"))
    asked = pl.when(gpus > 0).then(pl.format(",gres/gpu={}", gpus)).otherwise(pl.lit(""))
    typed = pl.when(gpus > 0).then(pl.format(",gres/gpu:a100={}", gpus)).otherwise(pl.lit(""))
    low = c("node").cast(pl.String).str.zfill(3)
    high = (c("node") + c("nodes") - 1).cast(pl.String).str.zfill(3)
    several = pl.format("gpu[{}-{}]", low, high)
    by = pl.format("CANCELLED by {}", c("user") + 10000)
    return {
        "JobIDRaw": c("id"),
        "JobID": pl.when("task").then(pl.format("{}_{}", c("id") // 50 * 50, c("id") % 50)).otherwise(c("id")),
        "JobName": pl.format("train-{}", c("name")),
        "User": pl.format("u{}", c("user")),
        "Account": pl.format("acct{}", c("user") % 150),
        "Partition": c("partition"),
        "QOS": pl.lit("normal"),
        "State": pl.when(c("state") == "CANCELLED").then(by).otherwise("state"),
        "ExitCode": pl.when(c("state") == "FAILED").then(pl.format("{}:0", c("code"))).otherwise(pl.lit("0:0")),
        "DerivedExitCode": pl.lit("0:0"),
        "Submit": time("submit"),
        "Eligible": time("submit"),
        "Start": pl.when(never).then(pl.lit("None")).otherwise(time("start")),
        "End": time("end"),
        "Elapsed": pl.when(never).then(pl.lit("00:00:00")).otherwise(days + clock),
        "Timelimit": pl.lit("1-00:00:00"),
        "NNodes": c("nodes"),
        "NCPUS": gpus * 8 + 1,
        "ReqTRES": base + asked + rest,
        "AllocTRES": pl.when(never).then(pl.lit("")).otherwise(base + typed + asked + rest),
        "NodeList": pl.when(never)
        .then(pl.lit("None assigned"))
        .when(c("nodes") == 1)
        .then(pl.format("gpu{}", low))
        .otherwise(several),
        "Reason": c("reason"),
        "Priority": c("priority"),
        "Flags": pl.lit("SchedBackfill"),
    }


def run(way: str, path: Path, out: Path, tools: Path) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and peak MiB of one run."""
    head = f"path, out, tools = {str(path)!r}, {str(out)!r}, {str(tools)!r}\n"
    done = subprocess.run([sys.executable, "-c", head + WAYS[way] + END], check=True, capture_output=True, text=True)
    out.unlink()
    seconds, cpu, mib = map(float, done.stdout.split())
    return seconds, cpu, mib


def install(tools: Path) -> str:
    """Install slurm2sql into a folder; return why not where that fails."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(tools), SLURM2SQL]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    return done.stderr.strip().rpartition("\n")[2] if done.returncode else ""


def main() -> None:
    """Print seconds, CPU seconds, peak memory, and how gpuctl compares in both kinds of seconds."""
    given = sys.argv[1] if len(sys.argv) > 1 else str(MILLION)
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    ways = sys.argv[3:] or list(WAYS)
    runs: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = Path(given)
        if given.isdigit():
            path = folder / "sacct.txt"
            write(path, int(given))
        with path.open("rb") as file:
            rows = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 24), b"")) - 1
        print(f"{rows} records, {path.stat().st_size / 1e6:.0f} MB, smallest of {repeats} runs each")
        why = "not asked for"
        if "slurm2sql" in ways:
            why = install(folder / "tools") if rows <= MILLION else f"more than {MILLION} records"
        for turn in range(repeats):
            for way in ways:
                if way != "slurm2sql" or not (why or turn):
                    runs[way].append(run(way, path, folder / f"{way}.db", folder / "tools"))
    if why:
        print(f"slurm2sql  not run: {why}")
    _compare(
        {
            way: (*map(min, list(zip(*done, strict=True))[:2]), max(r[2] for r in done))
            for way, done in runs.items()
            if done
        }
    )


def _compare(best: dict[str, tuple[float, float, float]]) -> None:
    ours = best.get("gpuctl")
    for way, (seconds, cpu, mib) in best.items():
        ratio = ""
        if ours and way == "duckdb":
            ratio = f"gpuctl takes {ours[0] / seconds:.2f} times as long, {ours[1] / cpu:.2f} times the CPU"
        if ours and way == "slurm2sql":
            ratio = f"gpuctl is {seconds / ours[0]:.0f} times as fast, with {cpu / ours[1]:.0f} times less CPU"
        print(f"{way:10} {seconds:7.2f} s {cpu:7.2f} CPU s {mib:6.0f} MiB peak  {ratio}")


if __name__ == "__main__":
    main()
