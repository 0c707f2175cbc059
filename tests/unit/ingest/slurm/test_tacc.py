from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.core.line_reader import RowError
from gpuctl.ingest.formats import slurm_tacc
from gpuctl.ingest.slurm.tacc_fields import COLUMNS, fields
from tests.slurm_loading import SHARED, load, rows

if TYPE_CHECKING:
    from gpuctl.store.database import Store
    from tests.slurm_loading import OneSource

REAL = SHARED / "ls6-a100.log"
FORMAT = slurm_tacc.FORMAT
HEADER = (
    "24779\n       JobID    JobName    UID               Start              Submit                 End   Priority "
    "TimelimitR ExitCode   NNodes \n------------ ---------- ------ -------------------\n"
)
ROW = "478729\tdimer.10\t00000\t2022-11-01T15:34:14\t2022-10-05T11:52:48\t2022-11-03T15:34:15\t1234\t2880\t0:0\t2"


def read(text: str | bytes, store: Store) -> OneSource:
    return load(FORMAT, text, store, cluster="ls6", timezone="America/Chicago")


def test_every_field_of_a_line() -> None:
    assert fields(ROW) == {
        "JobIDRaw": "478729",
        "JobID": "478729",
        "JobName": "dimer.10",
        "User": "00000",
        "Start": "2022-11-01T15:34:14",
        "Submit": "2022-10-05T11:52:48",
        "End": "2022-11-03T15:34:15",
        "Priority": "1234",
        "Timelimit": "2-00:00:00",
        "ExitCode": "0:0",
        "NNodes": "2",
    }
    assert tuple(fields(ROW)) == COLUMNS


def test_a_name_may_hold_blanks_and_tabs() -> None:
    assert fields(ROW.replace("dimer.10", "my job 3"))["JobName"] == "my job 3"
    split = fields(ROW.replace("dimer.10\t00000", "xaa\t00326\t810653"))
    assert (split["JobName"], split["User"], split["NNodes"]) == ("xaa 00326", "810653", "2")


@pytest.mark.parametrize(
    "bad",
    ["", "x", ROW[:-2], ROW.replace("478729", "x"), ROW.replace("2022-11-01", "yesterday"), ROW + "\t3", "\t" * 10],
)
def test_an_invalid_line_is_rejected(bad: str) -> None:
    with pytest.raises(RowError, match="not the ten columns"):
        fields(bad)


def test_every_line_is_accounted_for(store: Store) -> None:
    sink = read(f"{HEADER}{ROW}\n\nbad\n{ROW.replace('478729', '478730')}\n", store)
    assert (sink.rows_in, sink.rows_loaded) == (3, 2)
    assert [(line, raw) for line, _, raw in sink.rejects] == [(6, "bad")]
    assert [job["job"] for job in rows(store, "jobs", "ls6")] == ["478729", "478730"]


def test_what_the_log_does_not_say_stays_unknown(store: Store) -> None:
    read(HEADER + ROW, store)
    (job,) = rows(store, "jobs", "ls6")
    (attempt,) = rows(store, "attempts", "ls6")
    assert (job["submit_ts"], job["start_ts"], job["end_ts"]) == (
        "2022-10-05 16:52:48", "2022-11-01 20:34:14", "2022-11-03 20:34:15"
    )  # fmt: skip
    assert (job["state"], job["gpus"], job["queue"], job["eligible_ts"]) == ("unknown", None, None, None)
    assert (job["nodes"], job["user"], job["time_limit_s"], job["exit_code"]) == (2, "00000", 172_800, 0)
    assert attempt["run_s"] == 172_801
    assert attempt["wait_s"] == job["wait_s"] == 27 * 86_400 + 3 * 3600 + 41 * 60 + 26


@pytest.mark.parametrize("text", ["", "\n" * 20, ROW, "JobID JobName\n" + ROW])
def test_a_file_without_the_header_is_an_input_error(text: str, store: Store) -> None:
    with pytest.raises(InputError, match="no header"):
        read(text, store)


@pytest.mark.parametrize(
    ("head", "known"),
    [(HEADER.encode(), True), (b"JobID|JobName|UID\n", False), (b"", False), (b"\x00\xff" * 9000, False)],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert (FORMAT.sniff("x", head) is not None) == known


@pytest.mark.skipif(not REAL.is_file(), reason="no shared data beside this checkout")
def test_the_real_log_is_read_to_the_last_job(store: Store) -> None:
    sink = read(REAL.read_bytes(), store)
    # 24 776 lines of ten columns, and one whose name holds the blank that the columns were parted at
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (24_777, 24_777, [])
    assert store.value("SELECT count(*) FROM jobs WHERE name = 'xaa 00326' AND \"user\" = '810653'") == 1
    assert store.value("SELECT count(*) FROM jobs WHERE nodes = 1") / 24_777 == pytest.approx(0.80, abs=0.01)
    assert store.value("SELECT max(nodes) FROM jobs") == 64
    # worked out from the same file by other means: waits mean 4.1 h, 90th 11.9 h
    waits = "SELECT round(avg(wait_s) / 3600, 1), round(quantile_cont(wait_s, 0.9) / 3600, 1) FROM attempts"
    assert store.execute(waits).fetchall() == [(4.1, 11.9)]
    assert store.value("SELECT median(run_s) FROM attempts") == 459
    assert store.value("SELECT count(*) FROM attempts WHERE run_s < 0 OR wait_s < 0") == 0
