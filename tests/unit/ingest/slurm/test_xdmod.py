"""Open XDMoD's logs and other real accounting of third parties: read where it lies, every record accounted for."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.registry import all_formats
from gpuctl.slurm.tres import tres
from tests.slurm_loading import SHARED, load

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.format import Format
    from gpuctl.store.database import Store

PUBLIC = SHARED / "public"
pytestmark = pytest.mark.skipif(not PUBLIC.is_dir(), reason="no shared data beside this checkout")

ONE_ROW = (
    "7|7|ub|gpu|normal|grp|grp|1|ann|2|2026-11-20T21:04:37|2026-11-20T21:04:38|2026-11-20T21:04:40|2026-11-20T21:05:40|"
    "00:01:00|0:0|COMPLETED|2|4|4|3000Mc|cpu=4|billing=4,cpu=4,gres/gpu=3,mem=12000M,node=2|01:00:00|n[1-2]|a|b|c\n"
)


def head(path: Path) -> bytes:
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())[:65536]


def formats_of(name: str, data: bytes) -> list[Format]:
    return [fmt for fmt in all_formats() if fmt.sniff(name, data) is not None]


def figures(store: Store) -> dict[str, int]:
    rows = store.execute("SELECT state, count(*) FROM jobs GROUP BY 1").fetchall()
    return {state: count for state, count in rows}


def read(name: str, store: Store) -> tuple[int, int, list[str]]:
    path = PUBLIC / name
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    (fmt,) = formats_of(path.name, data[:65536])
    sink = load(fmt, data, store)
    return sink.rows_in, sink.rows_loaded, [reason for _, reason, _ in sink.rejects]


@pytest.mark.parametrize(
    ("name", "rows", "states"),
    [
        ("phillips", 4285, {"completed": 2324, "failed": 1717, "killed": 243, "timeout": 1}),
        ("pozidriv", 11_704, {"completed": 10_134, "failed": 1007, "killed": 468, "preempted": 86, "timeout": 9}),
        ("accounting-logs", 4, {"completed": 2, "killed": 1, "timeout": 1}),
        ("non-ended-job-state", 2, {"running": 1, "pending": 1}),
        ("robertson-filter-test", 1, {"completed": 1}),
        ("unknown-job-state", 2, {"unknown": 2}),
        ("utf8-multibyte-chars", 1, {"timeout": 1}),
    ],
)
def test_every_job_of_the_logs_of_open_xdmod(store: Store, name: str, rows: int, states: dict[str, int]) -> None:
    assert read(f"xdmod/{name}.log", store) == (rows, rows, [])
    assert figures(store) == states


@pytest.mark.parametrize(
    ("name", "never_started", "median_wait", "users", "gpus"),
    [("phillips", 239, 14_726, 4, {0: 4283, 2: 2}), ("pozidriv", 419, 127, 18, {0: 11_704})],
)
def test_waits_users_and_gpus_are_those_of_the_files(
    store: Store, name: str, never_started: int, median_wait: int, users: int, gpus: dict[int, int]
) -> None:
    read(f"xdmod/{name}.log", store)
    # cancelled before they started: no nodes, and a start that is their end
    assert store.value("SELECT count(*) FROM attempts WHERE start_ts IS NULL AND state = 'killed'") == never_started
    assert store.value("SELECT median(wait_s) FROM attempts") == median_wait
    assert store.value('SELECT count(DISTINCT "user") FROM jobs') == users
    assert dict(store.execute("SELECT gpus, count(*) FROM jobs GROUP BY 1").fetchall()) == gpus


def test_six_forms_of_one_job_id_are_one_job_and_five_repeats(store: Store) -> None:
    rows_in, loaded, reasons = read("xdmod/accounting-logs-with-job-arrays.log", store)
    assert (rows_in, loaded, reasons) == (6, 1, [])


def test_a_name_with_the_delimiter_in_it_stands_last(store: Store) -> None:
    (fmt,) = formats_of("x.log", ONE_ROW.encode())
    assert load(fmt, ONE_ROW, store).rejects == []
    job = 'SELECT name, "user", gpus, queue, nodes FROM jobs'
    assert store.execute(job).fetchall() == [("a|b|c", "ann", 3.0, "gpu", 2)]


def test_gpu_counts_of_open_xdmods_own_cases() -> None:
    cases = json.loads((PUBLIC / "xdmod" / "alloc-tres-gpu-count.json").read_bytes())
    assert len(cases) == 9
    assert [tres(text).gpus or 0 for text, _ in cases] == [count for _, count in cases]


@pytest.mark.parametrize(
    ("name", "rows", "jobs"),
    [
        ("sacct-allcols.txt", 3, 1),
        ("sacct-job13936577.csv.gz", 708, 236),
        ("sacct-manyfields.txt", 3, 1),
        ("sacct-multistep.txt", 226, 76),
        ("sacct-multiuser.txt", 572, 448),
        ("sacct-unrecognized-unit.txt", 983, 396),
        ("slurm-dcast-agg.txt", 20_830, 6944),
    ],
)
def test_records_of_two_universities_are_all_read(store: Store, name: str, rows: int, jobs: int) -> None:
    assert read(f"tdhock-slurm/{name}", store) == (rows, rows, [])
    assert store.value("SELECT count(*) FROM jobs") == jobs


@pytest.mark.parametrize("name", ["sacct_output.txt", "src-sacct-output.txt"])
def test_records_without_a_header_in_an_order_of_their_own_are_refused_with_advice(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="without a header") as caught:
        read(f"sonar/{name}", store)
    assert "--columns" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "name",
    [
        "xdmod/sacct.json",
        "xdmod/alloc-tres-gpu-count.json",
        "sonar/sonar_sacct_output.txt",
        "sonar/src-sacctd-output.txt",
    ],
)
def test_other_tables_are_not_mistaken_for_slurm_accounting(name: str) -> None:
    path = PUBLIC / name
    assert formats_of(path.name, head(path)) == []
