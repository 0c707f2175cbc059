"""Telemetry ingest beside the obvious Python ways and DuckDB's own reader, interleaved, in one run.

    python benchmarks/telemetry.py [ROWS] [REPEATS]

Ways:
  notebook   what the published notebook does: csv.reader into {time: {machine: [text, …]}}, nothing converted
  converted  the same with the times and numbers that any use of them needs
  read_csv   DuckDB: CREATE TABLE … AS SELECT * FROM read_csv(file), names and types sniffed
  gpuctl     ingest into a new store, with checks, rejects, ledger and digest; in a process of its own, as are all
Times are of the work alone (imports and the first compilation of the scanner are made before), so ratios compare like
with like; the smallest of the repeats counts.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

WAYS = {
    "notebook": """
import csv, time
began = time.perf_counter()
table = {}
with open(path) as file:
    reader = csv.reader(file)
    next(reader)
    for row in reader:
        stamp = row[0][:-4]
        if stamp not in table:
            table[stamp] = {}
        table[stamp][row[1]] = row[2:-1]
""",
    "converted": """
import csv, time, datetime
began = time.perf_counter()
table = {}
with open(path) as file:
    reader = csv.reader(file)
    next(reader)
    for row in reader:
        stamp = datetime.datetime.strptime(row[0][:-4], "%Y-%m-%d %H:%M:%S")
        if stamp not in table:
            table[stamp] = {}
        table[stamp][row[1]] = [None if cell == "NA" else float(cell) for cell in row[2:-1]]
""",
    "read_csv": """
import time, duckdb
store = duckdb.connect(out)
store.execute("SET enable_progress_bar = false")
began = time.perf_counter()
store.execute("CREATE TABLE t AS SELECT * FROM read_csv(?, nullstr='NA')", [path]).fetchall()
store.execute("CHECKPOINT").fetchall()
""",
    "gpuctl": """
import time
from pathlib import Path
from gpuctl.ingest.pipeline.load import ingest
warm = Path(out + ".warm")
warm.mkdir()
(warm / "cluster_gpu_util").write_text(open(path).readline() + "2017-10-03 00:08:00 PDT,m1,1,\\n")
ingest([warm], Path(out + ".warm.duckdb"), cluster="warm")
began = time.perf_counter()
report = ingest([Path(path)], Path(out), cluster="c")
assert not report.failed
""",
}
END = """
import resource
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def write(path: Path, rows: int) -> None:
    """A file like cluster_gpu_util: 420 nodes, 8 GPUs, values as the real one has them."""
    rng = random.Random(1)
    kinds = [lambda: "0.0", lambda: "100.0", lambda: f"{rng.random() * 100:.9f}", lambda: f"{rng.random() * 100:.1f}"]
    pool = [",".join(rng.choices(kinds, [4, 1, 3, 2])[0]() for _ in range(8)) for _ in range(5000)]
    with path.open("w") as file:
        file.write("time,machineId," + ",".join(f"gpu{i}_util" for i in range(8)) + ",\n")
        for k in range(rows):
            minute, machine = divmod(k, 420)
            day, rest = divmod(minute, 1440)
            stamp = f"2017-10-{3 + day:02} {rest // 60:02}:{rest % 60:02}:00 PDT"
            file.write(f"{stamp},m{machine},{pool[k * 7919 % 5000]},\n")


def main() -> None:
    """Print seconds, rows a second, peak memory and ratios."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    if rows > 420 * 1440 * 28:
        sys.exit(f"{rows} rows: at most {420 * 1440 * 28}, a month of 420 machines")
    best = dict.fromkeys(WAYS, float("inf"))
    memory = dict.fromkeys(WAYS, 0.0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster_gpu_util"
        write(path, rows)
        print(f"{rows} rows, {path.stat().st_size / 1e6:.0f} MB, smallest of {repeats} runs each")
        for turn in range(repeats):
            for way, code in WAYS.items():
                head = f"path, out = {str(path)!r}, {str(Path(folder) / f'{way}{turn}.duckdb')!r}\n"
                done = subprocess.run(
                    [sys.executable, "-c", head + code + END], check=True, capture_output=True, text=True
                )
                seconds, mib = map(float, done.stdout.split())
                best[way], memory[way] = min(best[way], seconds), max(memory[way], mib)
    for way, seconds in best.items():
        ratio = f"gpuctl is {seconds / best['gpuctl']:.1f} times as fast" if way != "gpuctl" else ""
        print(f"{way:10} {seconds:7.2f} s {rows / seconds / 1e6:6.2f} M rows/s {memory[way]:6.0f} MiB peak  {ratio}")


if __name__ == "__main__":
    main()
