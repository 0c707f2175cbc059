"""Tables of jobs that a declaration reads: Helios and Acme, and rows that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import CUT_OFF, NOT_UTF8
from gpuctl.ingest.pipeline.registry import all_formats, built_in
from gpuctl.ingest.read import pieces
from gpuctl.ingest.traces.table import JobTable
from gpuctl.store.database import Store
from tests.example_files import HELIOS, KALOS, SEREN, example_files
from tests.philly_log import load

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.format import Format


def _table(fmt: Format) -> Any:
    return getattr(fmt.load, "__self__", None)


FORMATS = {fmt.name: fmt for fmt in built_in()}
HEADER, FIRST, *_ = HELIOS.splitlines()
JOBS = "job, queue, user, state, gpus, cpus, nodes, wait_s, run_sum_s, quirks"


@pytest.mark.parametrize(
    ("fmt", "text", "expected"),
    [
        (
            FORMATS["helios-jobs"],
            HELIOS,
            {"submit_ts": "2020-04-01 17:00:00", "state": "completed", "gpus": 1.0, "cpus": 4, "wait_s": 301.0}
            | {"run_sum_s": 6899.0, "queue": "vc1", "quirks": []},
        ),
        (
            FORMATS["acme-seren"],
            SEREN,
            {"submit_ts": "2023-02-28 17:00:00", "gpus": 8.0, "nodes": 1, "wait_s": 32.0, "run_sum_s": 1768.0}
            | {"name": "Eval", "quirks": []},
        ),
        (
            FORMATS["acme-kalos"],
            KALOS,
            # the source's own duration of 30 s holds the wait of 10 s
            {"job": "dlc1a", "submit_ts": "2023-05-17 01:00:00", "gpus": 16.0, "wait_s": 10.0, "run_sum_s": 20.0}
            | {"quirks": ["duration_includes_wait"]},
        ),
    ],
)
def test_a_row_is_a_job_with_one_attempt(fmt: Format, text: str, expected: dict[str, object], store: Store) -> None:
    sink = load(fmt, text, store)
    row = sink.rows("jobs")[0]
    assert {name: row[name] for name in expected} == expected
    (attempt,) = [a for a in sink.rows("attempts") if a["job"] == row["job"]]
    same = ("start_ts", "end_ts", "state", "gpus", "wait_s")
    assert [attempt[name] for name in same] == [row[name] for name in same]
    assert (attempt["queued_ts"], attempt["released_ts"], attempt["run_s"]) == (
        row["submit_ts"], row["end_ts"], row["run_sum_s"],
    )  # fmt: skip
    assert sink.rows_loaded == text.count("\n") - 1


def test_states_of_slurm(store: Store) -> None:
    load(FORMATS["helios-jobs"], HELIOS + "9,u,vc,1,1,1,REQUEUED,2020-04-01 10:00:00,,,,\n", store)
    found = store.frame("SELECT source_state, state, quirks FROM jobs ORDER BY job").rows()
    assert [row[:2] for row in found] == [
        ("COMPLETED", "completed"), ("FAILED", "failed"), ("CANCELLED", "killed"), ("TIMEOUT", "timeout"),
        ("NODE_FAIL", "node_fail"), ("REQUEUED", "unknown"),
    ]  # fmt: skip
    assert [row[2] for row in found if row[2]] == [["unknown_state"]]


@pytest.mark.parametrize("size", [40, 200, 1 << 20])
def test_an_invalid_job_is_reported_by_line_and_affects_no_other(
    size: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pieces, "PIECE", size)
    lines = [
        HEADER.encode(),
        FIRST.encode(),
        FIRST.encode(),
        b"2,u,vc,many,1,1,FAILED,2020-04-01 10:00:00,,,,",
        b"3,u,vc,1,1,1,FAILED,yesterday,,,,",
        b"",
        b"4,u,vc,1,1",
        b",u,vc,1,1,1,FAILED,2020-04-01 10:00:00,,,,",
        b"5,u\xff,vc,1,1,1,FAILED,2020-04-01 10:00:00,,,,",
        b"6,u,vc,1,0.5,1,FAILED,2020-04-01 10:00:00,,,,",
        b'"7","u, v",vc,-1,1,1,FAILED,2020-04-01 10:00:00,,,,',
        b'"8","u, v",vc,1.0,1,1,FAILED,2020-04-01 10:00:00,,2020-04-01 10:00:10,,',
        b"10,u,vc,1,1,1,COMPLETED,2020-04-01 10:00:00,2020-04-01 09:00:00,2020-04-01 08:00:00,,",
    ]
    sink = load(FORMATS["helios-jobs"], b"\xef\xbb\xbf" + b"\r\n".join(lines), store)
    assert [(line, reason) for line, reason, _ in sorted(sink.rejects)] == [
        (4, "gpu_num is not a number, 0 or more"),
        (5, "submit_time is not a time: expected YYYY-MM-DD HH:MM:SS, with or without an offset"),
        (7, "not 12 columns as in the header"),
        (8, "job_id is empty"),
        (9, NOT_UTF8),
        (10, "cpu_num is not a whole number, 0 or more"),
        (11, "gpu_num is not a number, 0 or more"),
    ]
    assert (sink.rows_in, sink.rows_already_stored) == (11, 1)
    found = store.frame(f"SELECT {JOBS} FROM jobs WHERE job <> '1' ORDER BY job").rows()
    assert [row[0] for row in found] == ["10", "8"]
    assert found[0][-3:] == (None, None, ["start_before_submit"])
    assert store.frame("SELECT job, quirks FROM attempts WHERE job <> '1' ORDER BY job").rows() == [
        ("10", ["end_before_start", "nodes_unknown"]),
        ("8", ["no_start", "nodes_unknown"]),
    ]


def test_a_job_of_another_source_of_the_cluster_stays(store: Store) -> None:
    load(FORMATS["helios-jobs"], HELIOS, store)
    again = load(FORMATS["helios-jobs"], HELIOS + FIRST.replace("1,", "77,", 1) + "\n", store)
    assert (again.rows_already_stored, again.rejects) == (5, [])
    assert store.value("SELECT count(*) FROM jobs") == 6


def test_a_header_that_lacks_a_column_is_refused(store: Store) -> None:
    with pytest.raises(InputError, match="is not a Helios job log: no column vc; found job_id, user"):
        load(FORMATS["helios-jobs"], HELIOS.replace(",vc,", ",", 1), store)
    assert FORMATS["helios-jobs"].sniff("x.csv", HELIOS.replace(",vc,", ",", 1).encode()) is None
    assert FORMATS["helios-jobs"].sniff("x.csv", HELIOS.encode()) is not None


def test_a_last_line_that_the_file_s_end_cuts_off(store: Store) -> None:
    class Cut:
        truncated = True

        def __init__(self, data: bytes) -> None:
            self._data = data

        def read(self, size: int = -1) -> bytes:
            given, self._data = self._data[:size], self._data[size:]
            return given

    sink = load(FORMATS["helios-jobs"], HELIOS, store)
    from gpuctl.ingest.read.delimited import Delimited

    table = Delimited(Cut((HELIOS + "99,u,v").encode()), ("job_id",), "a table")  # type: ignore[arg-type]
    found = list(table.pieces())
    assert [(r.line, r.reason) for piece in found for r in piece.rejects] == [(7, CUT_OFF)]
    assert sum(piece.rows.height for piece in found) == sink.rows_loaded


@pytest.mark.parametrize(
    "fmt", [fmt for fmt in all_formats() if isinstance(_table(fmt), JobTable)], ids=lambda f: f.name
)
def test_a_number_beyond_32_bits_in_any_column_spoils_its_row_alone(fmt: Format, tmp_path: Path) -> None:
    text = example_files()[fmt.name][1].decode()
    head, first, *others = text.splitlines()
    separator = _table(fmt).separator
    cells = first.split(separator)
    for column in range(len(cells)):
        changed = separator.join([*cells[:column], str(2**31), *cells[column + 1 :]])
        with Store(tmp_path / f"{column}.duckdb", write=True) as store:
            sink = load(fmt, "\n".join([head, changed, *others, ""]), store)
            assert sink.rows_in == sink.rows_loaded + len(sink.rejects) == 1 + len(others)
            assert sink.rows_loaded >= len(others) - 1, (head.split(separator)[column], sink.rejects)
