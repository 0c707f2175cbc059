"""SQL of one's own over a trace store: right answers, every format, and nothing but the store."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def store(gpuctl: Run, thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.getbasetemp() / "queried"
    path = folder / "failures.duckdb"
    if not path.exists():
        folder.mkdir()
        gpuctl("-q", "ingest", thin_data / "failures", "--db", path)
    return path


def test_answers_are_those_of_the_analyses(gpuctl: Run, store: Path) -> None:
    sql = (
        'SELECT "user", count(DISTINCT job) AS jobs, sum(a.gpus * a.run_s) / 3600 AS gpu_hours '
        'FROM attempts a JOIN jobs USING (cluster, job) GROUP BY "user" ORDER BY "user"'
    )
    mine = json.loads(gpuctl("query", store, sql, "--json").stdout)
    listed = gpuctl("analyze", store, "--table", "users", "--format", "jsonl").stdout.splitlines()
    known = {row["user"]: row for row in map(json.loads, listed)}
    assert [row["user"] for row in mine] == sorted(known)
    for row in mine:
        assert row["jobs"] == known[row["user"]]["jobs"]
        assert row["gpu_hours"] == pytest.approx(known[row["user"]]["gpu_hours"])


def test_every_format_has_the_same_rows(gpuctl: Run, store: Path, tmp_path: Path) -> None:
    sql = "SELECT job, submit_ts, gpus, sum(attempts) AS tries, max(end_ts) - min(submit_ts) AS span, quirks FROM jobs GROUP BY ALL ORDER BY job LIMIT 3"  # noqa: E501
    rows = json.loads(gpuctl("query", store, sql, "--json").stdout)
    assert rows[0]["submit_ts"].endswith("Z")
    assert rows[0]["span"] > 0
    text = list(csv.DictReader(io.StringIO(gpuctl("query", store, sql, "--format", "csv").stdout)))
    assert [row["job"] for row in text] == [row["job"] for row in rows]
    assert [float(row["span"]) for row in text] == [row["span"] for row in rows]
    gpuctl("query", store, sql, "--format", "parquet", "--output", tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet")["tries"].to_list() == [row["tries"] for row in rows]
    gpuctl("query", store, sql, "--json", "--output", tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text()) == rows
    assert len(gpuctl("query", store, sql).stdout.splitlines()) == 4
    assert json.loads(gpuctl("query", store, "SELECT * FROM jobs LIMIT 0", "--json").stdout) == []


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM read_csv('/etc/passwd')", "the SQL accesses more than the store"),
        ("SELECT * FROM '/etc/passwd'", "hint: "),
        ("COPY jobs TO 'out.csv'", "does more than read: COPY"),
        ("ATTACH 'other.db'", "does more than read: ATTACH"),
        ("SET memory_limit = '99GB'", "does more than read: SET"),
        ("CREATE TABLE t AS SELECT 1", "does more than read: CREATE"),
        ("DELETE FROM trace.main.jobs", "does more than read: DELETE"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("", "0 statements"),
        ("SELEC 1", "Parser Error"),
        ("SELECT nothing FROM jobs", "gpuctl tables lists tables and columns"),
        ("SELECT CAST(job || 'x' AS INTEGER) FROM jobs", "Conversion Error"),
        ("SELECT 1 AS a, 2 AS a", "two columns 'a'"),
    ],
)
def test_sql_that_is_not_a_query_is_rejected(gpuctl: Run, store: Path, tmp_path: Path, sql: str, says: str) -> None:
    before = store.read_bytes()
    done = gpuctl("query", store, sql, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert store.read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_tables_are_listed_with_their_columns(gpuctl: Run) -> None:
    listed = json.loads(gpuctl("tables", "--json").stdout)
    assert {"jobs", "attempts", "machines"} <= {each["name"] for each in listed}
    assert all(column["description"] for each in listed for column in each["columns"])
    assert "submit_ts" in gpuctl("tables", "jobs").stdout
    done = gpuctl("tables", "jbos", check=False)
    assert (done.returncode, done.stderr) == (2, "gpuctl: there is no table 'jbos'\nhint: did you mean jobs?\n")


@pytest.mark.parametrize("shape", ["table", "json", "jsonl", "csv", "tsv", "markdown"])
def test_a_date_that_no_output_has_is_refused_in_every_format(gpuctl: Run, store: Path, shape: str) -> None:
    for sql in ("SELECT date '290000-01-01' AS d", "SELECT timestamp '20000-01-01' AS d FROM range(3)"):
        done = gpuctl("query", store, sql, "--format", shape, check=False)
        assert done.returncode == 2, done.stderr
        assert "a date in the column 'd' is not in the years 1 to 9999" in done.stderr
        assert gpuctl("query", store, sql.replace("AS d", "::VARCHAR AS d"), "--format", shape).stdout


def test_rows_come_in_batches_and_a_reader_is_shown_the_first_of_them(gpuctl: Run, store: Path, tmp_path: Path) -> None:
    sql = "SELECT i, 'x' || i AS t, sum(i) OVER (ORDER BY i) AS s FROM range(120000) r(i)"
    lines = gpuctl("query", store, sql, "--format", "csv").stdout.splitlines()
    assert (len(lines), lines[0], lines[-1]) == (120_001, "i,t,s", f"119999,x119999,{119_999 * 120_000 // 2}")
    assert len(json.loads(gpuctl("query", store, sql, "--json").stdout)) == 120_000
    gpuctl("query", store, sql, "--format", "parquet", "--output", tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").height == 120_000
    shown = gpuctl("query", store, sql, "--format", "markdown")
    assert "only the first 10,000 rows are shown" in shown.stderr
    assert "x9999 " in shown.stdout
    assert "x10000 " not in shown.stdout


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM range(1000000000000)",
        # one value: DuckDB does not look for interruptions while a function makes it
        "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
    ],
)
def test_a_statement_ends_at_its_time_limit_and_on_ctrl_c(root: Path, store: Path, sql: str) -> None:
    command = [sys.executable, "-m", "gpuctl", "query", store, sql, "--format", "csv"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    late = subprocess.run(
        [*command, "--timeout", "0.2"], capture_output=True, text=True, check=False, env=environment, timeout=60
    )
    assert (late.returncode, late.stdout) == (1, "")
    assert "the SQL did not end within 0.2 s (--timeout)" in late.stderr
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as running:
        time.sleep(3)
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=60)
    assert (running.returncode, said) == (130, "gpuctl: interrupted\n")


def test_a_damaged_store_is_told_from_a_wrong_question(gpuctl: Run, store: Path, tmp_path: Path) -> None:
    data = store.read_bytes()
    codes = set()
    for part in range(24):
        damaged = bytearray(data)
        # past the headers, a byte of each of some blocks
        for at in range(12_288 + (len(data) - 12_288) * part // 24, len(data), 1 << 18):
            damaged[at] ^= 0xFF
        (tmp_path / "damaged.duckdb").write_bytes(damaged)
        done = gpuctl("query", tmp_path / "damaged.duckdb", "SELECT * FROM attempts", "--json", check=False)
        codes.add(done.returncode)
    assert 4 in codes
    assert codes <= {0, 4}


def test_parameters_of_sql(gpuctl: Run, store: Path) -> None:
    sql = "SELECT count(*) AS n FROM jobs WHERE gpus >= $gpus"
    count = [int(gpuctl("query", store, sql, "--set", f"gpus={n}").stdout.split()[1]) for n in (1, 2)]
    assert count[0] > count[1] > 0
    assert "expected NAME=VALUE" in gpuctl("query", store, sql, "--set", "gpus", check=False).stderr
    assert gpuctl("query", store, sql, check=False).returncode == 2


def test_tables_in_other_formats(gpuctl: Run) -> None:
    assert gpuctl("tables", "clusters", "--format", "csv").stdout.startswith("column,type,definition\n")
    assert "| table | row | columns |" in gpuctl("tables", "--format", "markdown").stdout
