"""Jobs of traces that are stored once: all that follows from them is as if it had been stored, too."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.states import State
from gpuctl.ingest.core import ledger
from gpuctl.ingest.core.sink import StoreSink
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.traces.jobs import LINE, Jobs
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

START = datetime(2026, 3, 1, tzinfo=UTC)
SACCT = (
    "JobIDRaw|JobID|User|Account|Partition|State|ExitCode|Submit|Start|End|NNodes|NCPUS|AllocTRES|NodeList\n"
    "102|102|u1|a|gpu|COMPLETED|0:0|2023-11-14T22:15:20|2023-11-14T22:16:00|2023-11-14T22:26:00|1|4|cpu=4,gres/gpu=2|n1\n"
)


def _rows() -> pl.DataFrame:
    """Every state with every order of times, some of them unknown."""
    # no microseconds: Polars rounds their quotient twice, DuckDB once
    times = [None, START, START + timedelta(seconds=7, milliseconds=500), START + timedelta(days=40, seconds=3)]
    made = [
        {"job": str(k), "submit_ts": a, "start_ts": b, "end_ts": c, "state": state.value, "nodes": (None, 2)[k % 2],
         "gpus": 1.5, "wait_s": (None, 3.25)[k // 2 % 2], "run_span_s": (None, 8.5)[k // 4 % 2], LINE: k,
         "quirks": [["no_wait"], []][k % 3 == 0]}
        for k, (a, b, c, state) in enumerate(product(times, times, times, State))
    ]  # fmt: skip
    time = pl.Datetime("us", "UTC")
    kinds = {**dict.fromkeys(("submit_ts", "start_ts", "end_ts"), time), "nodes": pl.Int32}
    return pl.DataFrame(made, schema_overrides=kinds)


@pytest.mark.parametrize(("table", "without"), [("trace_jobs", ()), ("trace_jobs_short", ("wait_s", "run_span_s"))])
def test_derived_columns_of_a_job_equal_stored_ones(tmp_path: Path, table: str, without: tuple[str, ...]) -> None:
    rows = _rows().drop(without)
    with Store(tmp_path / "s.duckdb", write=True) as store:
        tables: list[list[list[dict[str, object]]]] = []
        # jobs that have a priority have rows of their own
        for cluster, frame in (("once", rows), ("each", rows.with_columns(priority=pl.lit(None, pl.Int64)))):
            with closing(StoreSink(store, cluster, 1, "UTC")) as sink:
                jobs = Jobs(sink)
                jobs.add(frame, lambda _: [])
                jobs.finish()
            both = [
                store.frame(f"SELECT * EXCLUDE (cluster) FROM {t} WHERE cluster = $c ORDER BY job", {"c": cluster})
                for t in ("jobs", "attempts")
            ]
            tables.append([frame.to_dicts() for frame in both])
        for each_table in (table, "all_trace_jobs", "job_rows"):
            assert store.value(f"SELECT count(*) FROM {each_table}") == len(rows)
        for once, each in zip(tables[0], tables[1], strict=True):
            assert once == each
        ledger.spread(store, "once")
        assert store.value("SELECT count(*) FROM all_trace_jobs") == 0
        again = store.frame("SELECT * EXCLUDE (cluster) FROM attempts WHERE cluster = 'once' ORDER BY job").to_dicts()
        assert again == tables[0][1]


def test_a_scheduler_s_log_with_a_trace_shows_no_job_twice(tmp_path: Path) -> None:
    lines = (f"{100 + k} {60 * k} 5 600 2 -1 -1 2 3600 -1 1 3 1 -1 1 -1 -1 -1\n" for k in range(5))
    (tmp_path / "a.swf").write_text("; UnixStartTime: 1700000000\n" + "".join(lines))
    (tmp_path / "sacct.txt").write_text(SACCT)
    db = tmp_path / "s.duckdb"
    for name in ("a.swf", "sacct.txt"):
        assert not ingest([tmp_path / name], db, cluster="c").failed
    with Store(db) as store:
        for table in ("jobs", "attempts"):
            names = [row[0] for row in store.execute(f"SELECT job FROM {table} ORDER BY job").fetchall()]
            assert names == ["100", "101", "102", "103", "104"]
        assert store.value("SELECT count(*) FROM all_trace_jobs") == 0
