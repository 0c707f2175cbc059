"""Samples of GPUs, with the jobs that held them, beside DuckDB's own reader of the same files.

    python benchmarks/gpu_samples.py [SAMPLES] [csv|json] [store|lake] [FOLDER]

64 nodes of 8 GPUs, a sample every 30 s, jobs of 6 hours that hold whole nodes. csv: nvidia-smi, a file a node, with
utilization, memory and power; json: an answer of Prometheus a node, with utilization. DuckDB parses every cell into
numbers and times, adds them up, and stores nothing; gpuctl loads them into a new store, joins them to jobs and
computes the figures of each job. Its sum of utilization must be DuckDB's. CPU time and peak memory are of the whole
process.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

NODES, GPUS, STEP, JOB_S = 64, 8, 30, 21_600
START = 1_790_812_800
_CSV = """
    SELECT count(*), sum(u), min(t), sum(m), sum(p), max(uuid), max(i) FROM (
        SELECT strptime("timestamp", '%Y/%m/%d %H:%M:%S.%g') AS t, "index" AS i, uuid,
            replace("utilization.gpu [%]", ' %', '')::FLOAT AS u, replace("memory.used [MiB]", ' MiB', '')::FLOAT AS m,
            replace("power.draw [W]", ' W', '')::FLOAT AS p
        FROM read_csv('{files}', header = true, all_varchar = true))
"""
_JSON = """
    SELECT count(*), sum(v[2]::DOUBLE), min(v[1]::DOUBLE) FROM (SELECT unnest(r."values") AS v FROM (
        SELECT unnest(data.result) AS r FROM read_json('{files}', maximum_object_size = {largest})))
"""
_DUCKDB = """
import duckdb, sys
con = duckdb.connect()
con.execute("SET preserve_insertion_order = false")
con.execute("SET enable_progress_bar = false")
print(con.execute(sys.argv[1]).fetchone()[1])
"""
_SUM = """
import sys
from pathlib import Path
from gpuctl.store.database import Store
with Store(Path(sys.argv[1])) as store:
    print(store.value("SELECT sum(util::DOUBLE) FROM gpu_readings"))
    print(store.execute("SELECT count(*), sum(samples), avg(gpu_util_mean) FROM job_gpu_usage").fetchall()[0])
"""


def _csv(path: Path, node: int, rounds: int) -> None:
    """A node's file of nvidia-smi."""
    with path.open("wb") as file:
        file.write(b"timestamp, index, uuid, utilization.gpu [%], memory.used [MiB], power.draw [W]\n")
        for first, some in _pieces(rounds):
            at = np.repeat(np.arange(first, first + some), GPUS)
            gpu = pl.Series(np.tile(np.arange(GPUS), some))
            util = pl.Series(np.random.default_rng([node, first]).integers(0, 101, some * GPUS))
            rows = pl.DataFrame({"t": START + STEP * at, "gpu": gpu, "u": util}).select(
                pl.format(
                    "{}.000, {}, GPU-{}-{}, {} %, {} MiB, {} W",
                    pl.from_epoch("t").dt.strftime("%Y/%m/%d %H:%M:%S"), "gpu", pl.lit(f"{node:08x}-0000-0000-0000"),
                    "gpu", "u", pl.col("u") * 700, (60 + 3.3 * pl.col("u")).round(2),
                )
            )  # fmt: skip
            rows.write_csv(file, include_header=False, quote_style="never")


def _json(path: Path, node: int, rounds: int) -> None:
    """A node's answer of Prometheus."""
    with path.open("wb") as file:
        file.write(b'{"status":"success","data":{"resultType":"matrix","result":[')
        for gpu in range(GPUS):
            labels = f'"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"{gpu}","UUID":"GPU-{node:08x}-{gpu}"'
            file.write(f'{"," if gpu else ""}{{"metric":{{{labels},"Hostname":"n{node:04d}"}},"values":['.encode())
            for first, some in _pieces(rounds):
                util = np.random.default_rng([node, gpu, first]).integers(0, 101, some)
                rows = pl.DataFrame({"t": START + STEP * np.arange(first, first + some), "u": util})
                pairs = rows.select(pl.format('[{},"{}"]', "t", "u").str.join(",")).item()
                file.write((("," if first else "") + pairs).encode())
            file.write(b"]}")
        file.write(b"]}}\n")


def _pieces(rounds: int) -> Iterator[tuple[int, int]]:
    for first in range(0, rounds, 50_000):
        yield first, min(50_000, rounds - first)


def _slurm(folder: Path, rounds: int) -> None:
    """Accounting and nodes."""
    fields = "JobIDRaw|JobID|User|Account|Partition|State|Submit|Start|End|NNodes|NCPUS|AllocTRES|NodeList"
    lines, number = [fields], 1000
    for begin in range(START, START + rounds * STEP, JOB_S):
        start, end = (datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%S") for t in (begin, begin + JOB_S - 60))
        for node in range(NODES):
            number += 1
            lines.append(
                f"{number}|{number}|u{node}|lab|gpu|COMPLETED|{start}|{start}|{end}|1|8|gres/gpu=8|n{node:04d}"
            )
    (folder / "sacct.txt").write_text("\n".join(lines) + "\n")
    node = (
        "NodeName=n{:04d} Arch=x86_64 CoresPerSocket=32\n   CPUAlloc=0 CPUTot=64 CPULoad=0.1\n   Gres=gpu:a100:8\n"
        "   RealMemory=515000\n   State=IDLE\n   CfgTRES=cpu=64,mem=515000M,gres/gpu=8\n\n"
    )
    (folder / "nodes.txt").write_text("".join(node.format(k) for k in range(NODES)))


def _measured(command: list[str]) -> tuple[str, float, float, float]:
    """What a command prints; its wall time and CPU time (s), and its peak memory (MiB)."""
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        printed = process.stdout.read() if process.stdout else ""
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{command[0]} ended with {process.returncode}")
    return printed, time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def main() -> None:
    """Measure once and print."""
    given = sys.argv[1:]
    samples = int(given[0]) if given else 10_000_000
    form, where = (given + ["csv", "store"][len(given) - 1 :])[1:3] if len(given) < 3 else given[1:3]
    rounds = samples // (NODES * GPUS)
    with tempfile.TemporaryDirectory(dir=given[3] if len(given) > 3 else None) as name:
        folder = Path(name)
        (folder / "samples").mkdir()
        (folder / "slurm").mkdir()
        _slurm(folder / "slurm", rounds)
        for node in range(NODES):
            (_csv if form == "csv" else _json)(folder / "samples" / f"n{node:04d}.{form}", node, rounds)
        sizes = [file.stat().st_size for file in (folder / "samples").iterdir()]
        size = sum(sizes)
        print(f"{rounds * NODES * GPUS:,} samples, {size / 1e9:.2f} GB of {form}", flush=True)
        sql = (_CSV if form == "csv" else _JSON).replace("{files}", str(folder / "samples" / f"*.{form}"))
        sql = sql.replace("{largest}", str(max(sizes) + 1))
        total, *of_duckdb = _measured([sys.executable, "-c", _DUCKDB, sql])
        print("DuckDB  wall {:.1f} s, CPU {:.1f} s, memory {:.0f} MiB".format(*of_duckdb), flush=True)
        db = folder / "store.duckdb"
        command = [sys.executable, "-m", "gpuctl", "ingest", str(folder / "slurm"), str(folder / "samples"),
                   "--db", str(db), "--cluster", "c", "--timezone", "UTC"]  # fmt: skip
        command += ["--lake", str(folder / "lake")] if where == "lake" else []
        _, *of_gpuctl = _measured(command)
        print("gpuctl  wall {:.1f} s, CPU {:.1f} s, memory {:.0f} MiB".format(*of_gpuctl), flush=True)
        print(f"CPU of gpuctl / CPU of DuckDB: {of_gpuctl[1] / of_duckdb[1]:.2f}")
        found, *_ = _measured([sys.executable, "-c", _SUM, str(db)])
        same = abs(float(found.split()[0]) - float(total)) < 1
        print(
            f"store {db.stat().st_size / 1e6:.0f} MB; sum of utilization {'is' if same else 'IS NOT'} DuckDB's; {found}"
        )


if __name__ == "__main__":
    main()
