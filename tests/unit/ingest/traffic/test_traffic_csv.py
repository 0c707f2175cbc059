"""CSV files: traffic, profiled jobs, suspensions, and the averages of the PAI trace."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats import profile_jobs, suspensions, traffic_csv, traffic_pai
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.pipeline.registry import all_formats, formats_for
from gpuctl.ingest.traffic.samples import LATE
from gpuctl.store.database import Store
from tests.traffic_loading import Loaded

if TYPE_CHECKING:
    from pathlib import Path

TRAFFIC = traffic_csv.FORMAT
COUNTERS = traffic_csv.with_counters()


def test_bytes_of_jobs_that_take_turns(store: Store) -> None:
    found = Loaded(TRAFFIC, "job_id,t,bytes\na,0,7\nb,10.5,1\na,1,100\nb,12,2.5\na,9,300\n", store)
    assert found.counts == (5, 5, 0)
    assert found.series() == {"a": [(0, 7, None), (1, 100, 1), (9, 300, 8)], "b": [(10.5, 1, None), (12, 2.5, 1.5)]}


def test_counters_restart_and_wrap(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    end = 2**32
    text = f"a,0,500\na,1,800\na,2,30\na,3,{end - 96}\na,4,100\na,5,{end + 50}\na,6,20\n"
    found = Loaded(COUNTERS, f"job_id,t,bytes\n{text}", store)
    sizes = [size for _, size, _ in found.series()["a"]]
    # the counter begins anew at t=2, wraps at t=4, and at t=6 has been past the end of 32 bits: no wrap any more
    assert sizes == [0, 300, 30, end - 126, 196, end - 50, 20]
    assert "counters fell 2 times" in caplog.text
    assert "passed the end of 32 bits 1 times" in caplog.text
    assert Loaded(TRAFFIC, f"job_id,t,bytes_total\n{text}", store, source=2).series() == found.series()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,1,5", LATE),
        ("a,0.5,5", LATE),
        ("a,x,5", "t is not a number"),
        ("a,nan,5", "t is not a number"),
        ("a,1795251000000,5", "t is past what seconds can be; are they milliseconds?"),
        ("a,2,-5", "bytes is not from 0 to 1e+24"),
        ("a,2,inf", "bytes is not a number"),
        ("a,2,", "bytes is not a number"),
        ("a,2", "not 3 columns as in the header"),
        ("a,2,3,4", "not 3 columns as in the header"),
        (",2,3", "no name of a job: 1 to 500 printable characters are expected"),
        ("a\x1b[31m,2,3", "no name of a job: 1 to 500 printable characters are expected"),
        ('"a,2,3', "a quoted field does not end on its line, or is too long"),
    ],
)
def test_rejected_rows(store: Store, row: str, reason: str) -> None:
    found = Loaded(TRAFFIC, f"job_id,t,bytes\na,0,1\na,1,2\n{row}\na,3,4\n", store)
    assert (found.counts, found.reasons) == ((4, 3, 1), {reason: 1})
    assert found.series() == {"a": [(0, 1, None), (1, 2, 1), (3, 4, 2)]}
    assert store.value("SELECT line_no FROM rejects") == 4


def test_a_header_in_any_order_with_other_columns_and_once_more(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    head = "\ufeffBytes, note,T,job"
    found = Loaded(TRAFFIC, f'{head}\r\n5,"x, y",0,a\r\n\r\n{head.removeprefix(chr(0xFEFF))}\r\n6,,1,a\r\n', store)
    assert found.counts == (2, 2, 0)
    assert found.series() == {"a": [(0, 5, None), (1, 6, 1)]}
    assert "columns that are not read: 'note'" in caplog.text


@pytest.mark.parametrize("head", ["job_id,t", "job_id,bytes", "job_id,t,bytes,bytes_total", "job_id,t,t,bytes", ""])
def test_other_headers_are_no_traffic(store: Store, head: str) -> None:
    with pytest.raises(InputError, match=r"header of a traffic CSV"):
        Loaded(TRAFFIC, f"{head}\na,0,1,2\n", store)


def test_missing_samples_are_one_row_and_reported(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    times = [*range(10), 60, 61, 62]
    found = Loaded(TRAFFIC, "job_id,t,bytes\n" + "".join(f"a,{t},{t}\n" for t in times), store)
    assert found.series()["a"][10] == (60, 60, 51)
    assert "samples are missing in 1 places of 1 series; the 51 s there are one row each" in caplog.text


def test_undeclared_counters_are_noticed(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    rows = "".join(f"a,{t},{1000 + 37 * t}\nb,{t},{t % 5}\n" for t in range(40))
    Loaded(TRAFFIC, f"job_id,t,bytes\n{rows}", store)
    assert "the bytes of 1 job never fall, e.g. a; if they are counters, read the file with --cumulative" in caplog.text
    caplog.clear()
    Loaded(COUNTERS, f"job_id,t,bytes\n{rows}", store, source=2)
    assert "--cumulative" not in caplog.text


def test_cumulative_takes_the_place_of_what_was_read_without(tmp_path: Path) -> None:
    path, db = tmp_path / "p.csv", tmp_path / "x.duckdb"
    path.write_text("job_id,t,bytes\na,0,10\na,1,30\n")
    ingest([path], db)
    again = ingest([path], db)
    counters = ingest([path], db, formats=formats_for(None, cumulative=True))
    assert [report.sources[0].status for report in (again, counters)] == ["unchanged", "replaced"]
    with Store(db) as store:
        assert store.execute("SELECT bytes_read FROM traffic ORDER BY ts").fetchall() == [(0,), (20,)]


JOBS = "job_id,model,batch,samples,gpus,epochs"


def test_profiled_jobs(store: Store) -> None:
    rows = "a,resnet,32,1281167,4,90,me,Yes,1.5e11,602.5\nb,resnet,,,0.5,,,,,\n"
    found = Loaded(profile_jobs.FORMAT, f"{JOBS},user,cached,dataset_bytes,epoch_s\n{rows}", store)
    assert found.counts == (2, 2, 0)
    first = {"job": "a", "model": "resnet", "batch": 32, "samples": 1281167, "gpus": 4.0, "epochs": 90}
    assert found.rows("profiles") == [
        {**first, "user": "me", "cached": True, "dataset_bytes": 1.5e11, "epoch_s": 602.5},
        {"job": "b", "model": "resnet", "gpus": 0.5},
    ]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("a,resnet,64,100,1,5", "duplicate job: there is a row of this job already, with other values"),
        ("c,,32,100,1,5", "model is empty"),
        ("c,m,0,100,1,5", "batch is not from 1 to 1e+15"),
        ("c,m,1.5,100,1,5", "batch is not a whole number"),
        ("c,m,1,100,-1,5", "gpus is not from 0 to 1e+06"),
        ("c,m,1,many,1,5", "samples is not a number"),
    ],
)
def test_profiled_jobs_that_are_rejected(store: Store, row: str, reason: str) -> None:
    found = Loaded(profile_jobs.FORMAT, f"{JOBS}\na,resnet,32,100,1,5\n{row}\n", store)
    assert (found.counts, found.reasons) == ((2, 1, 1), {reason: 1})
    again = Loaded(profile_jobs.FORMAT, f"{JOBS}\na,other,32,100,1,5\nd,m,1,1,1,1\n", store, source=2)
    assert again.counts == (2, 1, 1)


def test_suspensions(store: Store) -> None:
    rows = "a,63,24,87,Epoch,60,1e9\na,2,24,,abort,60,1e9\na,2,24,,pause,60,1e9\na,2,,,,,\n"
    found = Loaded(
        suspensions.FORMAT, f"job_id,suspend_s,resume_s,loss_s,mode,epoch_left_s,checkpoint_bytes\n{rows}", store
    )
    assert found.counts == (4, 2, 2)
    assert found.reasons == {"mode is none of epoch, now, abort": 1, "resume_s is empty": 1}
    common = {"job": "a", "resume_s": 24.0, "epoch_left_s": 60.0, "checkpoint_bytes": 1e9}
    assert found.rows("suspensions") == [
        {**common, "mode": "epoch", "suspend_s": 63.0, "loss_s": 87.0},
        {**common, "mode": "abort", "suspend_s": 2.0},
    ]


PAI = "j1,worker,w1,i1,m1,/dev/nvidia0,140.1,16.0,1.4,2.3,1.2,2.3,21271328.38,16376189.8,2922.4,3419.7"


def test_averages_of_pai(store: Store) -> None:
    gone = "j1,ps,w2,i1,m1,,140.1,,,,,,,,,"
    found = Loaded(traffic_pai.FORMAT, f"{PAI}\n{gone}\n{PAI},7\n{PAI.replace('2922.4', 'x')}\n", store)
    assert found.counts == (4, 2, 2)
    assert found.reasons == {"not 16 columns as pai_sensor_table has": 1, "read_count is not a number": 1}
    first, second = found.rows("traffic_averages")
    assert first == {
        **{"job": "j1", "task": "worker", "instance": "i1", "worker": "w1", "machine": "m1", "gpu": "/dev/nvidia0"},
        **{"read_bytes": 21271328.38, "write_bytes": 16376189.8, "read_count": 2922.4, "write_count": 3419.7},
    }
    assert second == {"job": "j1", "task": "ps", "instance": "i1", "worker": "w2", "machine": "m1"}
    header = ",".join(traffic_pai.COLUMNS)
    assert Loaded(traffic_pai.FORMAT, f"{header}\n{PAI}\n", store, source=2).counts == (1, 1, 0)


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        ("x.csv", "job_id,t,bytes\n", "traffic-csv"),
        ("x.csv", "job_id,t,bytes_total,host\n", "traffic-csv"),
        ("x.csv", f"{JOBS}\n", "profile-jobs"),
        ("x.csv", "job_id,model,suspend_s,resume_s\n", "suspensions"),
        ("x.csv", "start,end,job_id,bytes\n", "traffic-flows"),
        ("x.csv", "firstSeen,duration,proto,srcAddr,srcPort,dstAddr,dstPort,packets,bytes,flows\n", "traffic-flows"),
        ("pai_sensor_table.csv", f"{PAI}\n", "traffic-pai"),
        ("pai_sensor_table.csv", f"{PAI}\r{PAI}\r", None),
        ("pai_sensor_table.csv", f'"{PAI}\n', None),
        ("other.csv", ",".join(traffic_pai.COLUMNS) + "\n", "traffic-pai"),
    ],
)
def test_one_format_recognises_each(name: str, head: str, expected: str | None) -> None:
    claimed = [fmt.name for fmt in all_formats() if fmt.sniff(name, head.encode())]
    assert claimed == ([] if expected is None else [expected])


@pytest.mark.parametrize("head", ["job_id,submit_time,duration,num_gpus\n", "job_id,t\n", PAI, "bytes,t\n"])
def test_no_format_of_these_recognises_others(head: str) -> None:
    csv_formats = {"traffic-csv", "profile-jobs", "suspensions", "traffic-flows", "traffic-pai"}
    assert [fmt.name for fmt in all_formats() if fmt.name in csv_formats and fmt.sniff("x.csv", head.encode())] == []


@pytest.fixture(autouse=True)
def _all_messages(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="gpuctl")
