from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.line_reader import CUT_OFF, RowError
from gpuctl.ingest.formats import slurm_jobcomp
from gpuctl.ingest.slurm.jobcomp_fields import COLUMNS, FIRST_KEY, TWICE, fields
from gpuctl.slurm.scontrol import NO_RECORD, TOO_LONG, records
from tests.slurm_loading import load, rows

if TYPE_CHECKING:
    from gpuctl.store.database import Store

FIXTURE = Path(__file__).resolve().parents[3] / "fixtures" / "slurm" / "other" / "jobcomp.log"
NEW_LINE = "new\nline"
HOSTILE = "x Partition=y NodeList=z"
TWO_STATES = "x JobState=FAILED Partition=y NodeList=z"
NO_NODES = "NodeList=(null) NodeCnt=0 ProcCnt=0"
LINE = (
    "JobId=8 UserId=alice(1001) GroupId=alice(1001) Name=job.sh JobState=NODE_FAIL Partition=v100 TimeLimit=5 "
    "StartTime=2026-11-20T21:04:39 EndTime=2026-11-20T21:04:42 NodeList=gpu[005-006] NodeCnt=2 ProcCnt=4 "
    "WorkDir=/lab/my work ReservationName= Tres=cpu=2,mem=2000M,node=2,billing=2,gres/gpu=2 Account=vision "
    "QOS=normal WcKey= Cluster=lab SubmitTime=2026-11-20T21:04:38 EligibleTime=2026-11-20T21:04:38 "
    "DerivedExitCode=0:0 ExitCode=42:0 "
)


def test_every_field_of_a_record() -> None:
    assert fields(LINE) == {
        "JobIDRaw": "8",
        "JobID": "8",
        "JobName": "job.sh",
        "User": "alice",
        "Account": "vision",
        "Partition": "v100",
        "QOS": "normal",
        "State": "NODE_FAIL",
        "ExitCode": "42:0",
        "DerivedExitCode": "0:0",
        "Submit": "2026-11-20T21:04:38",
        "Eligible": "2026-11-20T21:04:38",
        "Start": "2026-11-20T21:04:39",
        "End": "2026-11-20T21:04:42",
        "Timelimit": "00:05:00",
        "NNodes": "2",
        "NCPUS": "4",
        "ReqTRES": "cpu=2,mem=2000M,node=2,billing=2,gres/gpu=2",
        "ReqGRES": "",
        "NodeList": "gpu[005-006]",
        "Cluster": "lab",
    }
    assert tuple(fields(LINE)) == COLUMNS


@pytest.mark.parametrize(
    ("old", "new", "column", "text"),
    [
        ("Name=job.sh", "Name=a b | c", "JobName", "a b | c"),
        ("Name=job.sh", "Name=new\nline", "JobName", "new\nline"),
        ("Name=job.sh", f"Name={HOSTILE}", "JobName", HOSTILE),
        ("Name=job.sh", f"Name={HOSTILE}", "State", "NODE_FAIL"),
        ("Name=job.sh", f"Name={HOSTILE}", "NodeList", "gpu[005-006]"),
        ("Name=job.sh", "Name=", "JobName", ""),
        (" Cluster=lab", " Cluster=lab ArrayJobId=7 ArrayTaskId=3", "JobID", "7_3"),
        (" Cluster=lab", " Cluster=lab HetJobId=8 HetJobOffset=0", "JobID", "8+0"),
        (" Cluster=lab", " Cluster=lab PackJobId=8 PackJobOffset=1", "JobID", "8+1"),
        ("ExitCode=42:0", "ExitCode=0:1", "ExitCode", "1:0"),
        ("ExitCode=42:0", "ExitCode=0:125", "ExitCode", "0:125"),
        ("JobState=NODE_FAIL", "JobState=PENDING", "State", "REQUEUED"),
        ("TimeLimit=5", "TimeLimit=UNLIMITED", "Timelimit", "UNLIMITED"),
        ("TimeLimit=5", "TimeLimit=Partition_Limit", "Timelimit", "Partition_Limit"),
        ("EligibleTime=2026-11-20T21:04:38", "EligibleTime=unknown", "Eligible", "Unknown"),
        ("NodeList=gpu[005-006] NodeCnt=2 ProcCnt=4", NO_NODES, "Start", "None"),
        ("NodeList=gpu[005-006] NodeCnt=2 ProcCnt=4", NO_NODES, "NodeList", "None assigned"),
        ("NodeCnt=2 ProcCnt=4", "NodeCnt=0 ProcCnt=0", "NNodes", "2"),
        ("NodeCnt=2 ProcCnt=4", "NodeCnt=0 ProcCnt=0", "NCPUS", "2"),
        ("alice(1001) GroupId", "(1001) GroupId", "User", "1001"),
        (" EligibleTime=2026-11-20T21:04:38", "", "Eligible", "Unknown"),
        (" Tres=cpu=2,mem=2000M,node=2,billing=2,gres/gpu=2", "", "ReqTRES", ""),
    ],
)  # fmt: skip
def test_what_states_names_and_releases_write_differently(old: str, new: str, column: str, text: str) -> None:
    assert old in LINE
    assert fields(LINE.replace(old, new))[column] == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("JobId=8 what", "no Name= … JobState= … Partition="),
        (LINE.replace("JobId=8", "JobId=x"), "JobId is not a number"),
        (LINE[: LINE.index(" DerivedExitCode")], CUT_OFF),
        (LINE.replace("EndTime=", "Ende="), "no EndTime"),
        (LINE.replace("job.sh", TWO_STATES), TWICE),
        (LINE.replace("NodeCnt=2", "NodeCnt=2 QOS=x"), "QOS= twice: records run together"),
    ],
)
def test_an_invalid_record_is_rejected_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(RowError) as caught:
        fields(text)
    assert str(caught.value) == reason


def test_records_and_their_lines() -> None:
    text = f"garbage\n\n{LINE}\n{LINE.replace('job.sh', NEW_LINE)}\n\n{LINE}".encode() + b"\xff"
    found = [(r.line_no, r.fault) for r in records(io.BytesIO(text), FIRST_KEY)]
    assert found == [(1, NO_RECORD), (3, None), (4, None), (7, None)]


def test_a_record_that_never_ends_is_rejected_in_bounded_memory() -> None:
    text = f"{LINE}\n".encode() + b"x" * 1000 * 1500 + b"\n" + b"y\n" * 100_000 + LINE.encode()
    first, second = records(io.BytesIO(text), FIRST_KEY)
    assert (first.fault, second.fault) == ("line longer than 1 MiB", None)
    many, _ = records(
        io.BytesIO(f"{LINE}\n".encode() + b"y" * 999 * 2 + b"\n" + (b"y" * 49 + b"\n") * 50_000 + LINE.encode()),
        FIRST_KEY,
    )
    assert many.fault == TOO_LONG
    assert len(many.text) < 2**21


def test_truncation_at_every_byte_gives_no_record_that_is_not_there() -> None:
    for size in range(len(LINE) - 1):
        for record in records(io.BytesIO(LINE[:size].encode()), FIRST_KEY):
            try:
                read = fields(record.text)
            except RowError:
                continue
            assert size >= LINE.index("ExitCode=42:0")
            assert read["JobIDRaw"] == "8"


def test_the_fixture() -> None:
    found = [fields(record.text) for record in records(io.BytesIO(FIXTURE.read_bytes()), FIRST_KEY)]
    assert len(found) == 44
    assert {f["JobName"] for f in found} >= {"new\nline", "tab\tname", "a|b pipe"}


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (FIXTURE.read_bytes()[:65536], True),
        (LINE.encode(), True),
        (b"JobId=1 JobName=x\n   UserId=a(1) GroupId=a(1)", False),
        (b"JobId=1 JobName=x UserId=a(1) GroupId=a(1) JobState=RUNNING Reason=None", False),
        (b"", False),
        (b"JobId=" * 10_000, False),
        (b"\x00\xff" * 30_000, False),
    ],
)
def test_sniff(head: bytes, known: bool) -> None:
    assert (slurm_jobcomp.FORMAT.sniff("x", head) is not None) == known


def test_an_hour_that_the_clock_showed_twice_stays_ambiguous(store: Store) -> None:
    # the file states no run time
    at = "2026-10-25T{}:00".format
    line = LINE.replace("StartTime=2026-11-20T21:04:39", f"StartTime={at('02:10')}")
    line = line.replace("EndTime=2026-11-20T21:04:42", f"EndTime={at('03:10')}").replace(
        "2026-11-20T21:04:38", at("01:00")
    )
    load(slurm_jobcomp.FORMAT, line + "\n", store, timezone="Europe/Berlin")
    [row] = rows(store, "attempts")
    assert (row["start_ts"], row["quirks"]) == ("2026-10-25 00:10:00", ["ambiguous_hour"])
