"""Shared tables have the columns that are read of them; test_screens.py asks for each table alone and among all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.bases import MADE_OF, Bases
from gpuctl.analyze.run import Options, analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOBS = """JobIDRaw|JobID|User|Partition|State|Submit|Eligible|Start|End|AllocTRES|NodeList
1|1|u|p|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T00:10:00|2026-01-01T01:00:00|gres/gpu=2,node=2|n[1-2]
2|2|v|p|FAILED|2026-01-01T00:05:00|2026-01-01T00:05:00|2026-01-01T00:20:00|2026-01-01T00:30:00|gres/gpu=1,node=1|n1
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder: Path = tmp_path_factory.mktemp("columns")
    (folder / "sacct.txt").write_text(JOBS)
    ingest([folder / "sacct.txt"], folder / "t.duckdb", cluster="c")
    with Store(folder / "t.duckdb") as opened:
        yield opened


def test_no_column_is_made_that_nothing_reads(store: Store) -> None:
    analyze(store, Options(tables=("overview",)))
    columns = set(store.frame("DESCRIBE base_attempts")["column_name"])
    assert {"job", "attempt", "number", "gpus", "held_until_c", "quirks"} <= columns
    assert not columns & {"am_start_ts", "exit_signal", "priority", "source_reason"}


def test_without_statements_every_column_is_made(store: Store) -> None:
    Bases(store, "c", Options(), lambda _text: None).need(("attempts",))
    assert {"am_start_ts", "exit_signal", "priority"} <= set(store.frame("DESCRIBE base_attempts")["column_name"])


def test_what_stands_for_a_table_without_rows_is_as_that_table(store: Store) -> None:
    for name in MADE_OF:
        whole, none = (Bases(store, "c", Options(), lambda _text: None) for _ in range(2))
        whole._there = dict.fromkeys(MADE_OF.values(), True)
        made = []
        for bases in (whole, none):
            bases.need((name,))
            made.append(store.frame(f"DESCRIBE base_{name}").select("column_name", "column_type"))
            assert store.value(f"SELECT count(*) FROM base_{name}") == 0
        assert made[0].rows() == made[1].rows(), name


def test_numbers_whose_tables_are_made_are_asked_for_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = Bases.ask
    monkeypatch.setattr(Bases, "ask", lambda self, sql, **more: (asked.append(sql), ask(self, sql, **more))[1])
    analyze(store, Options(sections=("failures",)))
    numbers = [sql for sql in asked if sql.startswith("SELECT (SELECT count")]
    assert sum(sql.count("'attempts_killed' AS name") for sql in numbers) == 1
    assert len(numbers) < sum(sql.count("FROM base_") for sql in numbers) / 2
