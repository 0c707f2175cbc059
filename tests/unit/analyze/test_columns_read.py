"""Shared tables have the columns that are read of them; test_screens.py asks for each table alone and among all."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze import delays
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.shared_tables import MADE_OF, SharedTables
from gpuctl.core.job_filter import JobFilter
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
    SharedTables(store, "c", Options(), lambda _text: None).ensure(("attempts",))
    assert {"am_start_ts", "exit_signal", "priority"} <= set(store.frame("DESCRIBE base_attempts")["column_name"])


def test_a_substitute_for_an_empty_table_equals_it(store: Store) -> None:
    for name in MADE_OF:
        whole, none = (SharedTables(store, "c", Options(), lambda _text: None) for _ in range(2))
        whole._there = dict.fromkeys(MADE_OF.values(), True)
        made = []
        for shared in (whole, none):
            shared.ensure((name,))
            made.append(store.frame(f"DESCRIBE base_{name}").select("column_name", "column_type"))
            assert store.value(f"SELECT count(*) FROM base_{name}") == 0
        assert made[0].rows() == made[1].rows(), name


def test_numbers_whose_tables_are_made_are_requested_together(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    ask = SharedTables.ask
    monkeypatch.setattr(SharedTables, "ask", lambda self, sql, **more: (asked.append(sql), ask(self, sql, **more))[1])
    analyze(store, Options(sections=("failures",)))
    numbers = [sql for sql in asked if sql.startswith("SELECT (SELECT count")]
    assert sum(sql.count("'attempts_killed' AS name") for sql in numbers) == 1
    assert len(numbers) < sum(sql.count("FROM base_") for sql in numbers) / 2


@pytest.mark.parametrize(
    ("read", "order"),
    [("wait_s", False), ("behind_s", True), ("overtook_gpus", True), ("overtook_harmless", True), (None, True)],
)
def test_who_overtook_whom_is_found_where_something_may_read_it(
    read: str | None, order: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    split = delays.split
    monkeypatch.setattr(delays, "split", lambda *given, order: (found.append(order), split(*given, order=order))[1])
    statements = None if read is None else [f"SELECT {read} FROM base_delays"]
    SharedTables(store, "c", Options(), lambda _text: None, statements).ensure(("delays",))
    assert found == [order]


OF_JOBS = ["jobs", "jobs_without_attempts", "jobs_without_gpus"]


def counted(
    store: Store, monkeypatch: pytest.MonkeyPatch, *asked: tuple[str, bool], **options: Any
) -> tuple[list[int], list[list[str]]]:
    """Numbers of the population, each asked for by name and whether of all jobs, and the names in each statement."""
    statements = []
    ask = SharedTables.ask
    monkeypatch.setattr(
        SharedTables, "ask", lambda self, sql, **more: (statements.append(sql), ask(self, sql, **more))[1]
    )
    later = {"population": [*OF_JOBS, "attempts"]}
    shared = SharedTables(store, "c", Options(**options), lambda _text: None, numbers=later)
    shared.ensure(("jobs",))
    found = [shared.scalars("population", [name], whole=whole)[name] for name, whole in asked]
    return found, [sorted(re.findall(r"'(\w+)' AS name", sql)) for sql in statements]


def test_each_number_is_requested_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (
        ("jobs", False),
        ("jobs_without_gpus", False),
        ("jobs", False),
        ("attempts_not_run", False),
        ("attempts", False),
    )
    # what is counted in attempts is not yet asked for while only the jobs are made
    assert counted(store, monkeypatch, *asked) == (
        [2, 0, 2, 0, 2],
        [OF_JOBS, ["attempts_not_run"], ["attempts"]],
    )


def test_numbers_of_the_jobs_chosen_are_not_those_of_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = (
        ("jobs", False),
        ("jobs", True),
        ("jobs_without_gpus", True),
        ("jobs_without_gpus", False),
        ("jobs", False),
    )
    # for the jobs chosen tables would have to be made that nobody asked for
    assert counted(store, monkeypatch, *asked, filter=JobFilter(user=("u",))) == (
        [1, 2, 0, 0, 1],
        [["jobs"], OF_JOBS, ["jobs_without_gpus"]],
    )
