from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.core.job_rows import DUPLICATE_JOB
from gpuctl.ingest.formats import philly_jobs_csv
from tests.philly_log import RecordingSink, load, load_into

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FORMAT = philly_jobs_csv.FORMAT
REAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "philly" / "sia_philly.csv"
HEADER = "timestamp,duration,num_gpus,gpu_time,cluster"
ROW = "2017-10-09 07:01:55,66.0,2,132.0,11cb48"


def loaded(text: str | bytes) -> RecordingSink:
    sink = RecordingSink()
    load_into(sink, FORMAT, text)
    return sink


def test_every_column_of_a_job(store: Store) -> None:
    sink = load(FORMAT, f"{HEADER}\n{ROW}\n", store)
    (row,) = sink.rows("jobs")
    assert {name: value for name, value in row.items() if value is not None} == {
        "cluster": "philly",
        "job": "row-2",
        "queue": "11cb48",
        "submit_ts": "2017-10-09 14:01:55",
        "state": "unknown",
        "gpus": 2.0,
        "attempts": 0,
        "run_sum_s": 66.0,
        "quirks": [],
        "source": 1,
    }
    assert [row["queue"] for row in sink.rows("queues")] == ["11cb48"]
    assert store.value("SELECT count(*) FROM attempts") == 0


def test_equal_rows_are_all_stored_and_named_after_their_lines() -> None:
    sink = loaded(f"\ufeff{HEADER}\r\n{ROW}\r\n\r\n{ROW}\r\n  \r\n{ROW}")
    assert (sink.rows_in, sink.rejects) == (3, [])
    assert sink.column("jobs", "job") == ["row-2", "row-4", "row-6"]


@pytest.mark.parametrize(
    "text",
    [
        'cluster,note,num_gpus,timestamp,duration\nq1,"a, b",2,2017-10-09 07:01:55,66\n',
        "duration, timestamp, cluster, num_gpus, gpu_time\n66, 2017-10-09 07:01:55, q1, 2, 132\n",
        '"timestamp","duration","num_gpus","cluster"\n"2017-10-09 07:01:55","6.6e1","2","q1"\n',
    ],
)
def test_columns_may_stand_in_any_order_with_others_between(text: str) -> None:
    (row,) = loaded(text).tables["jobs"]
    assert (row["queue"], row["gpus"], row["run_sum_s"]) == ("q1", 2.0, 66.0)


def test_a_submission_in_the_doubled_hour_is_marked() -> None:
    sink = loaded(f"{HEADER}\n2017-11-05 01:30:00,1,1,1,q\n2017-11-05 02:30:00,1,1,1,q\n")
    assert sink.column("jobs", "quirks") == [["ambiguous_hour"], []]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("2017-10-09 07:01:55,66.0,2,132.0", "not 5 columns as in the header"),
        (f"{ROW},", "not 5 columns as in the header"),
        ("0.0,66.0,2,132.0,q", "timestamp is not YYYY-MM-DD HH:MM:SS"),
        ("None,66.0,2,132.0,q", "timestamp is not YYYY-MM-DD HH:MM:SS"),
        ("2017-10-09 07:01:55,-1,2,-2,q", "duration is not a number"),
        ("2017-10-09 07:01:55,nan,2,nan,q", "duration is not a number"),
        ("2017-10-09 07:01:55,1_0,2,20,q", "duration is not a number"),
        ("2017-10-09 07:01:55,,2,20,q", "duration is not a number"),
        ("2017-10-09 07:01:55,9e12,1,9e12,q", "duration is over 10000000000"),
        ("2017-10-09 07:01:55,66,x,66,q", "num_gpus is not a number"),
        ("2017-10-09 07:01:55,66,0,0,q", "num_gpus is 0"),
        ("2017-10-09 07:01:55,66,2000000,0,q", "num_gpus is over 1000000"),
        ("2017-10-09 07:01:55,66,2,133,q", "gpu_time is not duration times num_gpus"),
        ("2017-10-09 07:01:55,66,2,,q", "gpu_time is not a number"),
        ("2017-10-09 07:01:55,66,2,132,q\x00q", "cluster contains unprintable characters"),
        ('2017-10-09 07:01:55,66,2,132,"q', "a quoted field does not end on its line, or is too long"),
        (
            '2017-10-09 07:01:55,66,2,132,"' + "q" * 200_000 + '"',
            "a quoted field does not end on its line, or is too long",
        ),
        ("\x00", "not 5 columns as in the header"),
        ("9" * 1_000_000, "not 5 columns as in the header"),
        (",".join("9" * 500_000), "not 5 columns as in the header"),
        (",".join(["99"] * 1_000_000), "line longer than 1 MiB"),
    ],
)
def test_bad_rows_are_rejected_with_their_line(bad: str, reason: str) -> None:
    sink = loaded(f"{HEADER}\n{ROW}\n{bad}\n{ROW}")
    assert sink.rejects == [(3, reason, bad.encode()[:500])]
    assert sink.column("jobs", "job") == ["row-2", "row-4"]


def test_invalid_utf8_is_rejected() -> None:
    assert loaded(HEADER.encode() + b"\n\xff\n").reasons == ["not valid UTF-8"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "submit_time,duration,num_gpus,vc\n1,2,3,q\n",
        "timestamp,duration,num_gpus\n",
        f"{HEADER},cluster\n",
        '"timestamp,duration,num_gpus,cluster\n',
        "\xff\xfe",
        "timestamp,duration,num_gpus,cluster," + "x" * 2_000_000,
    ],
)
def test_another_header_is_an_input_error(text: str) -> None:
    with pytest.raises(InputError, match="line 1 is not the header of a Philly job table"):
        loaded(text)


def test_a_second_table_in_one_cluster_takes_no_ids_twice(store: Store) -> None:
    assert load(FORMAT, f"{HEADER}\n{ROW}\n", store).rejects == []
    sink = load(FORMAT, f"{HEADER}\n{ROW}\n{ROW}\n", store)
    assert (sink.rows_already_stored, sink.reasons, sink.rows_loaded) == (1, [], 1)
    other = ROW.replace(",66.0,2,", ",66.0,4,").replace(",132.0,", ",264.0,")
    sink = load(FORMAT, f"{HEADER}\n{other}\n", store)
    assert (sink.reasons, [row["job"] for row in sink.rows("jobs")]) == ([DUPLICATE_JOB], ["row-2", "row-3"])


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"{HEADER}\n" + f"{ROW}\nbad\n" * 25
    whole = loaded(text)
    monkeypatch.setattr(philly_jobs_csv, "_BATCH", 7)
    small = loaded(text)
    assert small.tables == whole.tables
    assert small.rejects == whole.rejects
    assert len(small.rejects) == 25


def test_the_last_line_of_a_stream_that_was_cut_off_is_rejected() -> None:
    import io

    class CutOff(io.BytesIO):
        truncated = True

    sink = RecordingSink()
    FORMAT.load(CutOff(f"{HEADER}\n{ROW}\n{ROW}".encode()), sink)
    assert sink.reasons == ["cut off: the file ends inside this line"]
    assert sink.column("jobs", "job") == ["row-2"]


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (f"{HEADER}\n{ROW}".encode(), True),
        (b"\xef\xbb\xbfcluster, num_gpus, timestamp, duration, more\r\n", True),
        (b"submit_time,duration,num_gpus,vc\n", False),
        (b"timestamp,duration,num_gpus\n", False),
        (b"", False),
        (b"\x00\xff" * 30000, False),
        (b"," * 65536, False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert (FORMAT.sniff("anything", head) is not None) == known


@pytest.mark.skipif(not REAL.is_file(), reason="no shared data beside this checkout")
def test_the_real_table_gives_its_published_figures(store: Store) -> None:
    sink = load(FORMAT, REAL.read_bytes(), store)
    assert (sink.rows_in, sink.rows_loaded, sink.rejects) == (82_247, 82_247, [])
    sizes = store.execute("SELECT gpus::INTEGER, count(*) FROM jobs GROUP BY 1").fetchall()
    assert dict(sizes) == {
        1: 76627, 2: 1818, 4: 1870, 8: 1643, 12: 7, 16: 199, 24: 7, 32: 67, 64: 6, 128: 3,
    }  # fmt: skip
    queues = store.execute("SELECT queue, count(*) FROM jobs GROUP BY 1").fetchall()
    assert dict(queues) == {
        "6214e9": 41226, "11cb48": 16091, "6c71a0": 9953, "b436b2": 7423, "103959": 1934, "ee9e8c": 1511,
        "0e4a51": 1435, "ed69ec": 1137, "7f04ca": 723, "2869ce": 422, "e13805": 374, "23dbec": 8, "51b7ef": 4,
        "925e2b": 3, "795a4c": 3,
    }  # fmt: skip
    buckets = store.execute(
        """
        SELECT CASE WHEN gpus = 1 THEN '1' WHEN gpus <= 4 THEN '2-4' WHEN gpus <= 8 THEN '5-8' ELSE '>8' END,
               round(median(run_sum_s) / 60, 1), round(sum(run_sum_s * gpus) / 3600)
        FROM jobs GROUP BY 1
        """
    ).fetchall()
    assert {name: rest for name, *rest in buckets} == {
        "1": [18.6, 176_690], "2-4": [6.1, 194_901], "5-8": [394.7, 473_822], ">8": [352.3, 132_665],
    }  # fmt: skip
    copies = "SELECT sum(n - 1) FROM (SELECT count(*) AS n FROM jobs GROUP BY submit_ts, run_sum_s, gpus, queue)"
    assert store.value(copies) == 65
    assert store.value("SELECT count(*) FROM jobs WHERE len(quirks) > 0") == 7
