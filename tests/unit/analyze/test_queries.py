"""Every file in queries/ is documented, binds on an empty store, and returns the columns it says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest

from gpuctl.analyze import registry, shared_sql
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.core.errors import UsageError
from gpuctl.core.results import Analysis
from gpuctl.queries.catalogue import read
from gpuctl.queries.sections import SECTIONS
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.synthetic_store import change, make_store

if TYPE_CHECKING:
    from pathlib import Path

NAMES = tuple(registry.all_analyses())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    with Store(path, write=True) as store:
        store.execute(
            "INSERT INTO clusters (cluster, source_format, timezone, clock) "
            "VALUES ('c', 'philly-jobs', 'America/Los_Angeles', 'wall')"
        )
    with Store(path) as store:
        return analyze(store, Options(tables=NAMES))


def test_gpu_hours_do_not_depend_on_the_order_in_which_threads_add_them() -> None:
    sql = registry.all_analyses()["gpu_hours_lost"].sql
    with duckdb.connect() as con:
        # halves of GPUs held for thirds of seconds, beside very long attempts: doubles would add up to other digits
        con.execute(
            "CREATE TABLE base_attempts AS SELECT '1' AS size_bucket, "
            "i % 7 / 2 * (i * 7919 % 100003 / 3 + 1e7 * (i % 1000 = 0)::INTEGER) AS gpu_s, NULL::DOUBLE AS node_s, "
            "i % 3 > 0 AS is_last, 'completed' AS state, 'completed' AS job_state, true AS ran, "
            "CASE WHEN i % 3 > 0 THEN 'succeeded' ELSE 'retried' END AS outcome, TIMESTAMP '2024-01-01' AS start_ts, "
            "i::VARCHAR AS job, 'q' AS queue, 'u' AS \"user\", 'a' AS account FROM range(600000) AS r(i)"
        )
        con.execute(
            "CREATE TABLE base_jobs AS SELECT *, 0 AS attempts, 0.0 AS run_s, 1.0 AS gpus, 1 AS nodes "
            "FROM base_attempts LIMIT 0"
        )
        con.execute(f"CREATE VIEW base_held AS {shared_sql.base_sql('held')}")
        found = set()
        for threads in (1, 2, 4, 4, 4):
            con.execute(f"SET threads = {threads}")
            found.add(str(con.execute(sql).fetchall()))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- section: s", "-- section: x", "there is no section 'x'"),
        ("-- title: T\n", "", "needs a '-- title:' line"),
        ("-- title: T\n", "-- title: T\n-- title: U\n", "several '-- title:' lines"),
        ("a | h | b", "a | h", "column line without"),
        ("-- chart: bars x=a y=a", "-- chart: pie x=a", "unknown kind of chart: 'pie'"),
        ("y=a", "y=b", "drawn from 'b', which is not one of its columns"),
        ("y=a", "y=a colour=red", "a chart has no 'colour'"),
        ("y=a", "y=a on=paper", "can be on page or terminal"),
        ("y=a", 'y=a title="', "No closing quotation"),
        ("y=a", "", "needs y"),
        ("y=a", "y=a\n-- chart: bars x=a y=a", "two of its charts are called chart-one"),
        ("-- title: T\n", "-- title: T\n-- order: 1e3\n", "order: expected a number"),
    ],
)
def test_a_header_that_says_too_little_is_refused(old: str, new: str, message: str) -> None:
    text = "-- title: T\n-- section: s\n-- question: Q\n-- population: P\n-- column: a | h | b\n"
    text = text.replace("section: s", "section: overview") + "-- chart: bars x=a y=a\nSELECT 1 AS a\n"
    old = old.replace("section: s", "section: overview")
    assert read("one", text).charts[0].name == "chart-one"
    with pytest.raises(ValueError, match=re.escape(message)):
        read("one", text.replace(old, new))


def test_a_chart_s_declaration_may_take_several_lines() -> None:
    text = "-- title: T\n-- section: overview\n-- question: Q\n-- population: P\n-- column: a | h | b\n"
    [page, terminal] = read("one", text + "-- chart: stacked x=a\n--   y=a page.title=P\nSELECT 1 AS a\n").charts
    assert (page.title, terminal.title, page.y, terminal.words) == ("P", "T", ("a",), ("a",))


@pytest.mark.parametrize("name", NAMES)
def test_columns_are_those_documented(empty: Analysis, name: str) -> None:
    table = table_of(empty, name)
    assert table.frame.columns == [column.name for column in table.columns]
    assert all(column.description and column.unit for column in table.columns)
    assert "{" not in table.population
    assert table.section in dict(SECTIONS)


def test_an_empty_cluster_states_what_is_missing(empty: Analysis) -> None:
    table = table_of(empty, "gpu_util_by_nodes")
    assert table.notes == ("no rows: this source has no telemetry",)


@pytest.mark.parametrize(
    "names", [{"sections": ["delay"]}, {"tables": ["queue_delay"]}, {"reference": "atc2019"}, {"tables": ["zzz"]}]
)
def test_unknown_names_are_refused_with_the_nearest(names: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refused:
        registry.check_names(**names)
    assert refused.value.hint
    assert ("did you mean" in refused.value.hint) == ("zzz" not in str(refused.value))


def test_counts_are_reported_with_their_thousands(tmp_path: Path) -> None:
    path = make_store(tmp_path / "t.duckdb")
    # each of 200 jobs five times more
    more = "INSERT INTO {0}_rows BY NAME SELECT a.* REPLACE (job || '-' || i AS job) FROM {0}s AS a, range(5) AS t(i)"
    change(path, more.format("attempt"), more.format("job"))
    with Store(path) as store:
        found = analyze(store, Options(tables=("overview",)))
    expected = "1,200 jobs of cluster west, 0 of them without any attempt; 1,200 attempts, 0 without a start"
    assert table_of(found, "overview").population.startswith(expected)


def test_sums_of_whole_numbers_are_whole_numbers(tmp_path: Path) -> None:
    header = "\n".join(f"-- {key}: x" for key in ("title", "section", "order", "question", "population"))
    columns = "-- column: many | jobs | x\n-- column: half | - | x\n-- column: name | - | x\n"
    sql = "SELECT sum(attempts) AS many, sum(gpus) / 400 AS half, min(job) AS name FROM base_jobs"
    header = header.replace("section: x", "section: overview").replace("order: x", "order: 1")
    own = read("sums", f"{header}\n{columns}{sql}")
    with Store(make_store(tmp_path / "t.duckdb")) as store:
        frame = table_of(analyze(store, Options(tables=("sums",), own=(own,))), "sums").frame
    assert frame.schema == {"many": pl.Int64, "half": pl.Float64, "name": pl.String}
    assert frame.rows() == [(200, 0.5, "j0")]
