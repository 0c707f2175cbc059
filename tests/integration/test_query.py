"""SQL of one's own over a trace store: right answers, every format, and nothing but the store."""

from __future__ import annotations

import csv
import io
import json
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
        ("SELECT * FROM read_csv('/etc/passwd')", "the SQL asks for more than the store"),
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
def test_what_is_no_question_to_the_store_is_refused(
    gpuctl: Run, store: Path, tmp_path: Path, sql: str, says: str
) -> None:
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
