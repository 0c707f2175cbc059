"""Published traces into a store, beside DuckDB's own reader of the same file, in one run.

    python benchmarks/traces.py [ROWS [REPEATS [TRACE …]]]

ROWS rows (1,000,000 unless given) are made of each trace: ``swf`` (numbers with one blank between them), ``swf-padded``
(in columns, as the Parallel Workloads Archive prints them), ``helios`` (``cluster_log.csv``), ``pai``
(``pai_instance_table``, of which jobs are made, too).

Ways:
  duckdb   CREATE TABLE … AS SELECT * FROM read_csv(file), its types told by DuckDB, into a new database, and CHECKPOINT
  gpuctl   ingest into a new store: jobs, attempts, queues, with checks, ledger and digest
Every run is a process of its own; times are of the work alone, without imports; the smallest of the repeats counts.
Both ratios are printed: of CPU seconds, and of seconds of the clock, which mean something only where nothing else runs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

MILLION = 1_000_000
TIMED = """
seconds, cpu = time.perf_counter() - began, sum(os.times()[:2]) - before
# ru_maxrss would count what this process was forked from
peak = next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, cpu, peak)
"""
DUCKDB = """
import os, time, duckdb
store = duckdb.connect(out)
store.execute("SET enable_progress_bar = false")
before, began = sum(os.times()[:2]), time.perf_counter()
store.execute(f"CREATE TABLE t AS SELECT * FROM read_csv(?{how})", [path]).fetchall()
store.execute("CHECKPOINT").fetchall()
"""
GPUCTL = """
import os, time, polars, duckdb, numpy, pyarrow
from pathlib import Path
from gpuctl.ingest.core import sink
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats
all_formats()
before, began = sum(os.times()[:2]), time.perf_counter()
report = ingest([Path(path)], Path(out), cluster="c")
assert not report.failed and not report.sources[0].rows_rejected, report
"""
READ = {
    "swf": ", delim = ' ', comment = ';', header = false",
    "swf-padded": ", delim = '\\\\0', quote = '', escape = '', comment = ';', header = false",
    "helios": "",
    "pai": ", header = false",
}
"""What DuckDB is told of a file; one in columns it can only take line by line."""


def swf(rng: np.random.Generator, first: int, n: int) -> pl.DataFrame:
    """Jobs in the order of their submission, a day's apart by six seconds; one in twelve never started."""
    submit = 6 * first + np.cumsum(rng.exponential(6.0, n)).astype(np.int64)
    wait = (rng.exponential(2400, n) * (rng.random(n) < 0.6)).astype(np.int64)
    run = np.clip(rng.lognormal(6, 2.2, n).astype(np.int64), 1, 5 * 86400)
    procs = rng.choice([1, 2, 4, 8, 16, 32, 64, 128], n, p=[0.4, 0.15, 0.15, 0.12, 0.1, 0.05, 0.02, 0.01])
    never = rng.random(n) < 0.08
    minus = np.full(n, -1)
    user = np.minimum((rng.pareto(1.1, n) * 3).astype(np.int64) + 1, 900)
    columns = [
        *(np.arange(first + 1, first + n + 1), submit, wait, np.where(never, -1, run), procs),
        *(np.where(rng.random(n) < 0.5, (run * 0.9).astype(np.int64), -1), minus, procs),
        *(np.ceil(run / 3600).astype(np.int64) * 3600, rng.choice([-1, 1024, 2048], n)),
        *(np.where(never, 5, rng.choice([0, 1, 1, 1], n)), user, user % 60, rng.integers(1, 400, n)),
        *(rng.integers(1, 6, n), np.ones(n, np.int64), minus, minus),
    ]
    return pl.DataFrame({f"c{k}": column for k, column in enumerate(columns)})


def helios(rng: np.random.Generator, first: int, n: int) -> pl.DataFrame:
    """Jobs of 300 users in 26 virtual clusters, half of them without GPUs."""
    submit = 1_585_670_400 + 6 * first + np.cumsum(rng.exponential(6.0, n)).astype(np.int64)
    start = submit + (rng.exponential(1200, n) * (rng.random(n) < 0.3)).astype(np.int64)
    run = np.clip(rng.lognormal(5, 2.5, n).astype(np.int64), 1, 20 * 86400)
    gpus = rng.choice([0, 1, 2, 4, 8, 16, 32, 64], n, p=[0.5, 0.25, 0.05, 0.07, 0.1, 0.01, 0.01, 0.01])
    never, names = pl.Series(rng.random(n) < 0.01), pl.DataFrame({"s": submit, "b": start, "e": start + run})
    time = [pl.from_epoch(names[c]).dt.strftime("%Y-%m-%d %H:%M:%S") for c in names.columns]
    return pl.DataFrame(
        {
            **{"job_id": np.arange(first + MILLION, first + MILLION + n), "user": _coded("u", rng.integers(0, 300, n))},
            **{"vc": _coded("vc", rng.integers(0, 26, n)), "gpu_num": gpus, "cpu_num": np.maximum(1, gpus * 4)},
            **{"node_num": np.maximum(1, gpus // 8)},
            "state": rng.choice(["COMPLETED", "FAILED", "CANCELLED", "TIMEOUT"], n, p=[0.7, 0.13, 0.16, 0.01]),
            **{"submit_time": time[0], "start_time": time[1], "end_time": time[2], "duration": run},
            "queue": start - submit,
        }
    ).with_columns(start_time=pl.when(~never).then("start_time"))


def _coded(head: str, numbers: np.ndarray) -> pl.Series:
    names = np.array([f"{head}{k * 2_654_435_761 % 2**32:08X}"[:6] for k in range(int(numbers.max()) + 1)])
    return pl.Series(names[numbers])


def pai(rng: np.random.Generator, first: int, n: int) -> pl.DataFrame:
    """Instances of jobs: one in most jobs, up to 40 in some, on 1,900 nodes."""
    sizes = rng.choice([1, 2, 4, 10, 40], n, p=[0.7, 0.12, 0.1, 0.05, 0.03])
    job = np.repeat(np.arange(n), sizes)[:n] + first
    begin = 1_500_000 + job * 8
    end = begin + np.clip(rng.lognormal(5, 2.2, n), 1, 20 * 86400)
    state = rng.choice(["Terminated", "Failed", "Running", "Waiting"], n, p=[0.77, 0.2, 0.01, 0.02])
    waits, failed = pl.Series(state == "Waiting"), pl.Series((state == "Failed") | (state == "Running"))
    made = pl.DataFrame({"job": _hexes(job, 24), "b": begin.astype(float), "e": np.floor(end), "state": state})
    return made.select(
        "job",
        task=pl.Series(rng.choice(["worker", "tensorflow", "ps", "PyTorchWorker"], n)),
        inst=_hexes(np.arange(n) + first + 7, 60),
        worker=_hexes(np.arange(n) + first + 11, 60),
        inst_id=_hexes(job + 13, 60),
        state="state",
        b=pl.when(~waits).then("b"),
        e=pl.when(~(waits | failed)).then("e"),
        machine=pl.when(~waits).then(_hexes(rng.integers(0, 1900, n) + 17, 24)),
    )


def _hexes(numbers: np.ndarray, digits: int) -> pl.Series:
    """Names of so many hexadecimal digits, as long as PAI's."""
    words = np.stack([pl.Series(numbers).hash(seed=k).to_numpy() for k in range(-(-digits // 16))], axis=1)
    each = words.view(np.uint8)
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)[np.stack([each >> 4, each & 15], axis=2)]
    return pl.Series(letters.reshape(len(numbers), -1)[:, :digits].copy().view(f"S{digits}")[:, 0].astype(str))


def write(trace: str, path: Path, rows: int) -> None:
    """Write a trace of so many rows."""
    with path.open("wb") as file:
        if trace.startswith("swf"):
            file.write(b"; Version: 2.2\n; UnixStartTime: 1027839845\n; MaxProcs: 4096\n; MaxNodes: 512\n")
        for first in range(0, rows, MILLION):
            n = min(MILLION, rows - first)
            made = {"helios": helios, "pai": pai}.get(trace, swf)(np.random.default_rng(first), first, n)
            if trace == "swf-padded":
                width = [max(4, int(made[c].cast(pl.String).str.len_chars().max() or 0)) for c in made.columns]  # type: ignore[arg-type]
                made = made.select(
                    pl.col(c).cast(pl.String).str.pad_start(w) for c, w in zip(made.columns, width, strict=True)
                )
            header = trace == "helios" and not first
            file.write(
                made.write_csv(
                    separator=" " if trace.startswith("swf") else ",", include_header=header, quote_style="never"
                ).encode()
            )


def run(way: str, trace: str, path: Path, out: Path) -> tuple[float, float, float]:
    """Return seconds, CPU seconds and peak MiB of one run."""
    head = f"path, out, how = {str(path)!r}, {str(out)!r}, {READ[trace]!r}\n"
    code = head + {"duckdb": DUCKDB, "gpuctl": GPUCTL}[way] + TIMED
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    out.unlink()
    seconds, cpu, mib = map(float, done.stdout.split())
    return seconds, cpu, mib


def main() -> None:
    """Print seconds, CPU seconds and peak memory of both ways, and how often as long gpuctl takes."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else MILLION
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    names = {
        "swf": "cluster.swf",
        "swf-padded": "padded.swf",
        "helios": "cluster_log.csv",
        "pai": "pai_instance_table.csv",
    }
    print(f"{rows:,} rows, smallest of {repeats} runs each")
    print(f"{'trace':<11} {'MB':>5} {'way':<7} {'seconds':>8} {'CPU s':>7} {'MiB':>6} {'x seconds':>10} {'x CPU':>6}")
    with tempfile.TemporaryDirectory() as name:
        for trace in sys.argv[3:] or list(READ):
            path = Path(name) / names[trace]
            write(trace, path, rows)
            runs: dict[str, list[tuple[float, float, float]]] = {"duckdb": [], "gpuctl": []}
            for _ in range(repeats):
                for way, done in runs.items():
                    done.append(run(way, trace, path, Path(name) / f"{way}.db"))
            least = {way: [min(values) for values in zip(*done, strict=True)] for way, done in runs.items()}
            for way, (seconds, cpu, mib) in least.items():
                line = f"{trace:<11} {path.stat().st_size / 1e6:5.0f} {way:<7} {seconds:8.2f} {cpu:7.2f} {mib:6.0f}"
                print(f"{line} {seconds / least['duckdb'][0]:10.2f} {cpu / least['duckdb'][1]:6.2f}", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
