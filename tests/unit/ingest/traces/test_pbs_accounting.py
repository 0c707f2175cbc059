"""Accounting logs of PBS Pro and Torque: what each kind of record means, and records spread over files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.ingest.batch.pbs_attributes import attributes, memory_mb, size
from gpuctl.ingest.batch.pbs_clock import Clock
from gpuctl.ingest.formats import torque_accounting
from tests.unit.ingest.traces.test_trace_formats import loaded

if TYPE_CHECKING:
    from pathlib import Path

T0 = 1_800_000_000  # 2027-01-15 08:00:00 UTC
JOBS = (
    'SELECT job, "user", account, queue, state, gpus, cpus, nodes, mem_mb, attempts, wait_s, run_sum_s, exit_code, '
    "exit_signal, epoch(submit_ts) - 1800000000, epoch(eligible_ts) - 1800000000, array_job, array_task FROM jobs "
    "ORDER BY job"
)
ATTEMPTS = (
    "SELECT job, attempt, epoch(queued_ts) - 1800000000, epoch(start_ts) - 1800000000, epoch(end_ts) - 1800000000, "
    "epoch(released_ts) - 1800000000, state, gpus, servers, wait_s, run_s, reason, quirks FROM attempts "
    "ORDER BY job, attempt"
)
PLACEMENTS = "SELECT job, attempt, machine, gpus, estimated FROM placements ORDER BY ALL"


def record(at: int, kind: str, job: str, text: str, zone_s: int = 3600) -> str:
    """A record whose stamp is of a zone that the log does not name."""
    from datetime import UTC, datetime

    return f"{datetime.fromtimestamp(T0 + at + zone_s, UTC):%m/%d/%Y %H:%M:%S};{kind};{job};{text}\n"


def requested(start: int | None, *, nodes: str = "m1", more: str = "", submit: int = 0, etime: int = 0) -> str:
    """The attributes that PBS Pro writes at the start and the end of a job with two GPUs a node."""
    vnodes = "+".join(f"({node}:ncpus=3:ngpus=2:mem=1048576kb)" for node in nodes.split("+"))
    times = f"ctime={T0 + submit} qtime={T0 + submit} etime={T0 + etime}"
    times += f" start={T0 + start}" if start is not None else ""
    return (
        f'user=eve group=g account="team one" jobname=fit queue=q1 {times} exec_vnode={vnodes} '
        f"Resource_List.ncpus=3 Resource_List.ngpus=2 Resource_List.walltime=00:10:00 {more}"
    )


def ended(end: int, status: int) -> str:
    """What the record of an end adds."""
    return f"session=1 end={T0 + end} Exit_status={status} run_count=1"


DAYS = (
    record(0, "Q", "1.s", "queue=q1")
    + record(60, "S", "1.s", requested(60, etime=50))
    + record(200, "R", "1.s", requested(60, etime=50) + ended(200, -20))
    + record(260, "S", "1.s", requested(260, nodes="m2", etime=50))
    + record(5, "Q", "2.s", "queue=q1")
    + record(6, "Q", "3.s", "queue=q1")
    + record(70, "S", "3.s", requested(70, submit=6))
    + record(8, "Q", "4.s", "queue=q1")
    + record(9, "Q", "5[].s", "queue=q1")
    + record(80, "S", "5[7].s", requested(80))
    + record(90, "L", "license", "floating license hour:3"),
    record(300, "D", "2.s", "requestor=eve@login")
    + record(320, "D", "3.s", "requestor=eve@login")
    + record(330, "E", "3.s", requested(70, submit=6) + ended(330, 271))
    + record(400, "E", "1.s", requested(260, nodes="m2", etime=50) + ended(400, 0))
    + record(420, "z", "5[7].s", "resources_released=(m1:ncpus=3)")
    + record(430, "r", "5[7].s", "")
    + record(500, "E", "5[7].s", requested(80) + ended(500, 3))
    + record(500, "E", "5[].s", requested(80) + ended(500, 3))
    + record(600, "E", "6.s", requested(590, submit=580, etime=580, nodes="m1+m3") + ended(600, 267)),
)
WANT: list[tuple[Any, ...]] = [
    ("1", "eve", "team one", "q1", "completed", 2, 3, 1, 1024, 2, 60, 280, 0, None, 0, 50, None, None),
    ("2", None, None, "q1", "killed", None, None, None, None, 1, None, None, None, None, 5, None, None, None),
    ("3", "eve", "team one", "q1", "killed", 2, 3, 1, 1024, 1, 64, 260, None, 15, 6, 6, None, None),
    ("4", None, None, "q1", "pending", None, None, None, None, 1, None, None, None, None, 8, None, None, None),
    ("5[7]", "eve", "team one", "q1", "failed", 2, 3, 1, 1024, 1, 80, 420, 3, None, 0, 0, "5", "7"),
    ("6", "eve", "team one", "q1", "failed", 4, 6, 2, 2048, 1, 10, 10, None, 11, 580, 580, None, None),
]


@pytest.mark.parametrize("order", ["one file", "by day", "last day first"])
def test_records_of_one_job_in_several_files_make_the_same_jobs(tmp_path: Path, order: str) -> None:
    files = {"20270115": "".join(DAYS)} if order == "one file" else {"20270115": DAYS[0], "20270116": DAYS[1]}
    if order == "last day first":
        files = {"20270115": DAYS[1], "20270116": DAYS[0]}
    with loaded(tmp_path, files) as store:
        assert store.execute(JOBS).fetchall() == WANT
        runs = store.execute(ATTEMPTS).fetchall()
        assert [run for run in runs if run[0] in {"1", "2"}] == [
            ("1", 0, 0, 60, 200, 200, "node_fail", 2, 1, 60, 140, "requeued", []),
            ("1", 1, 200, 260, 400, 400, "completed", 2, 1, 60, 140, None, []),
            ("2", 0, 5, None, 300, 300, "killed", None, 0, None, None, "deleted", ["nodes_unknown"]),
        ]
        assert [run[-1] for run in runs if run[0] == "5[7]"] == [["suspended"]]
        assert store.execute(PLACEMENTS).fetchall() == [
            ("1", 0, "m1", 2, False), ("1", 1, "m2", 2, False), ("3", 0, "m1", 2, False), ("5[7]", 0, "m1", 2, False),
            ("6", 0, "m1", 2, False), ("6", 0, "m3", 2, False),
        ]  # fmt: skip
        rows = store.execute("SELECT sum(rows_in), sum(rows_loaded), sum(rows_rejected) FROM sources").fetchall()
        assert rows == [(20, 20, 0)]


def test_a_record_of_an_end_counts_once(tmp_path: Path) -> None:
    """In one file and in another; a job that another one of the same number follows stays as it was."""
    end = record(400, "E", "1.s", requested(60) + ended(400, 0))
    other = record(900, "E", "1.s", requested(800, submit=700) + ended(900, 1))
    with loaded(tmp_path, {"a": end + end, "b": end + record(500, "Q", "9.s", "queue=q1"), "c": other}) as store:
        assert store.execute("SELECT job, state, run_sum_s FROM jobs ORDER BY job").fetchall() == [
            ("1", "completed", 340), ("9", "pending", None)
        ]  # fmt: skip
        known = store.execute("SELECT path, rows_already_stored, rows_rejected FROM sources ORDER BY source").fetchall()
        assert [(path[-1], *counts) for path, *counts in known] == [("a", 1, 0), ("b", 1, 0), ("c", 0, 1)]


@pytest.mark.parametrize(
    ("server", "status", "state"),
    [
        ("run_count=1", -29, "timeout"), ("run_count=1", -28, "timeout"), ("run_count=1", -27, "out_of_memory"),
        ("run_count=1", -26, "out_of_memory"), ("run_count=1", -11, "killed"), ("run_count=1", -10, "failed"),
        ("owner=eve@login", -10, "out_of_memory"), ("owner=eve@login", -11, "timeout"),
        ("owner=eve@login", -12, "timeout"), ("owner=eve@login", -1, "failed"), ("run_count=1", 265, "killed"),
        ("owner=eve@login", 139, "failed"),
    ],
)  # fmt: skip
def test_exit_statuses_differ_between_pbs_pro_and_torque(tmp_path: Path, server: str, status: int, state: str) -> None:
    text = f"ctime={T0} start={T0} {server} Resource_List.walltime=1:00:00 end={T0 + 9} Exit_status={status}"
    with loaded(tmp_path, {"log": record(9, "E", "1.s", text)}) as store:
        assert store.execute("SELECT state FROM jobs").fetchall() == [(state,)]


@pytest.mark.parametrize(
    ("text", "gpus", "cpus", "placed"),
    [
        ("exec_host=a/0+a/1+b/0 Resource_List.nodes=1:ppn=2:gpus=1+1:ppn=1", 1, 3, {"a": 0.5, "b": 0.5}),
        ("exec_host=a/0-3,6 Resource_List.ncpus=1 Resource_List.nodes=1:ppn=5", 0, 5, {"a": 0}),
        ("exec_host=a/0-3 Resource_List.nodect=1:ppn=2:gpu=3", 3, 4, {"a": 3}),
        ("exec_host=a/0-3 Resource_List.nodect=1:gpu=3:mem=9:gpu", 3, 4, {"a": 3}),
        ("exec_host=a/0*4+b/0*4 Resource_List.select=2:ncpus=4:ngpus=3", 6, 8, {"a": 3, "b": 3}),
        ("exec_vnode=(a[0]:ncpus=2:ngpus=1+a[1]:ngpus=2:ncpus=2)+(b:ncpus=1)", 3, 5, {"a": 3, "b": 0}),
        ("exec_vnode=(a:ncpus=4:naccelerators=2) Resource_List.naccelerators=2", 2, 4, {"a": 2}),
        ("exec_host=a/0 exec_gpus=a-gpu/1+a-gpu/0 Resource_List.nodes=1", 2, 1, {"a": 2}),
        ("Resource_List.nodes=2:ppn=4:gpus=2 Resource_List.ngpus=0", 4, 8, {}),
        ("queue=gpu", None, None, {}),
    ],
)  # fmt: skip
def test_sizes_of_jobs_in_every_form(text: str, gpus: float | None, cpus: int | None, placed: dict[str, float]) -> None:
    found = size(attributes(text))
    assert (found.gpus, found.cpus, found.placed) == (gpus, cpus, placed)


def test_memory_and_quotes() -> None:
    texts = ("64gb", "1048576kb", "12.5M", "1048576", "128kw", "tb", "9" * 15 + "pb")
    assert [memory_mb(text) for text in texts] == [65536, 1024, 12, 1, 1, None, None]
    assert attributes('user=a account="two words" jobname=x=y depend=afterok:1') == {
        "user": "a", "account": "two words", "jobname": "x=y", "depend": "afterok:1",
    }  # fmt: skip


def test_the_zone_of_stamps_follows_from_records_of_ends() -> None:
    clock = Clock("Europe/Berlin")
    assert clock.utc(7200) == 3600
    clock.learn(10_000, 10_000 + 5 * 3600)
    clock.learn(20_000, 20_000 - 777)
    assert clock.utc(9_000) == 9_000 + 5 * 3600
    clock.learn(30_000, 30_000 + 4 * 3600 + 5)
    assert [clock.utc(at) - at for at in (29_999, 30_000)] == [18_000, 14_400]


def test_the_format_takes_logs_of_any_first_record() -> None:
    for line in (b"01/15/2027 08:00:00;A;7.s;Job aborted by PBS Server", b"01/15/2027 08:00:00;L;license;floating"):
        assert torque_accounting.sniff("20270115", line + b"\n")
    assert torque_accounting.sniff("x", b"gpu.q:n1:lab:ann:train:77:sge:0:1\n") is None
