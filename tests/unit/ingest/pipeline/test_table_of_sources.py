"""The table "What each source gives" of docs/how-to/sources.md, compared with what readers make of samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import built_in
from gpuctl.store.database import Store
from tests.example_files import FIXTURES, ROOT, example_files

if TYPE_CHECKING:
    from pathlib import Path

GIVES = """
    SELECT count(*) FILTER (attempts > 1) > 0, count(wait_s) > 0,
           (SELECT count(*) > 0 FROM placements AS p WHERE p.cluster = $cluster), count(*) FILTER (gpus > 0) > 0,
           count(time_limit_s) > 0, count(exit_code) + count(exit_signal) > 0, count(reason) > 0,
           (SELECT count(cpu_s) > 0 FROM attempts AS a WHERE a.cluster = $cluster)
    FROM jobs WHERE cluster = $cluster
"""
COLUMNS = ["attempts", "waits", "nodes", "GPUs", "limit", "exit code", "reason", "CPU time"]
WHOLE = {"lsf-acct", "sge-accounting", "htcondor-history"}
"""Formats whose samples have a job of every kind."""


def table() -> dict[str, set[str]]:
    """Each format of the table, and the columns that have a mark."""
    text = (ROOT / "docs/how-to/sources.md").read_text().partition("## What each source gives")[2]
    lines = text[text.index("| source") :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert rows[0] == ["source", "format", *COLUMNS]
    found: dict[str, set[str]] = {}
    for row in rows[2:]:
        marks = {name for name, cell in zip(COLUMNS, row[2:], strict=True) if cell == "yes"}
        found |= {name.strip("` "): marks for name in row[1].split(",")}
    return found


def test_the_table_says_what_the_readers_make_of_their_samples(tmp_path: Path) -> None:
    stated = table()
    kinds = {fmt.name: fmt for fmt in built_in()}
    assert set(stated) <= {name for name, fmt in kinds.items() if "jobs" in fmt.fills}
    # whatever has jobs of a batch system is in the table
    batch = {name for name in kinds if name.partition("-")[0] in {"lsf", "sge", "htcondor", "pbs", "torque"}}
    assert batch <= set(stated)
    store = tmp_path / "store.duckdb"
    for name in stated:
        file, data = example_files()[name]
        if name == "htcondor-history":
            data = data.replace(b"QDate", b"AllowedJobDuration = 3600\nQDate", 1)
        path = tmp_path / name / file
        path.parent.mkdir()
        path.write_bytes(data)
        ingest([path], store, cluster=name)
    with Store(store) as opened:
        for name, marks in stated.items():
            found = opened.execute(GIVES, {"cluster": name}).fetchall()[0]
            given = {column for column, there in zip(COLUMNS, found, strict=True) if there}
            assert given <= marks, (name, given - marks)
            if name in WHOLE:
                assert given == marks, (name, marks - given)


def test_every_sample_of_a_batch_system_is_in_use() -> None:
    used = {file for file, _ in example_files().values()} | {"epochs.json", "history.json", "history.xml"}
    assert {path.name for path in (FIXTURES / "batch").iterdir()} <= used
