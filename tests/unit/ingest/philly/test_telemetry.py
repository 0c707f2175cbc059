"""Telemetry files: values, zones, and every kind of row that is refused."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.ingest.core.format import RAW_LIMIT
from gpuctl.ingest.core.sink import StoreSink
from gpuctl.ingest.formats import philly_cpu_util, philly_gpu_util, philly_mem_util
from gpuctl.ingest.philly import telemetry, telemetry_kernel
from gpuctl.ingest.read import csv_header
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.ingest.core.format import Format

HEADER = "time,machineId,gpu0_util,gpu1_util,gpu2_util,gpu3_util,gpu4_util,gpu5_util,gpu6_util,gpu7_util\n"


Rejects = list[tuple[int, str, str]]


def load(work: Path, form: Format, text: str | bytes) -> tuple[Rejects, pl.DataFrame]:
    data = text if isinstance(text, bytes) else text.encode()
    with Store(work / "t.duckdb", write=True) as store:
        sink = StoreSink(store, "c", 1, form.timezone)
        form.load(io.BytesIO(data), sink)
        sink.finish()
        rows = store.frame(f"SELECT * EXCLUDE (cluster, source) FROM {form.fills[0]} ORDER BY ts, machine")
        rejects = store.frame("SELECT line_no, reason, raw FROM rejects ORDER BY line_no").rows()
        sink.close()
    assert sink.rows_loaded == rows.height
    return rejects, rows


def util(work: Path, text: str | bytes) -> tuple[Rejects, pl.DataFrame]:
    return load(work, philly_gpu_util.FORMAT, text)


def utc(rows: pl.DataFrame) -> list[str]:
    return rows["ts"].dt.strftime("%m-%d %H:%M:%S").to_list()


def test_a_row_of_the_trace(tmp_path: Path) -> None:
    row = "2017-10-03 00:08:00 PDT,m29,60.8,99.366666667,100.0,63.333333333,NA,,0,100.0,\n"
    _, rows = util(tmp_path, HEADER + row)
    assert utc(rows) == ["10-03 07:08:00"]
    assert rows["machine"].to_list() == ["m29"]
    assert rows["util"].to_list()[0] == pytest.approx(
        [60.8, 99.366666667, 100.0, 63.333333333, None, None, 0.0, 100.0], abs=1e-5
    )


def test_fewer_fields_for_a_machine_with_fewer_gpus(tmp_path: Path) -> None:
    _, rows = util(tmp_path, HEADER + "2017-10-03 00:08:00 PDT,m1,1,2,\n2017-10-03 00:08:00 PDT,m2,3,4\n")
    assert rows["util"].to_list() == [[1.0, 2.0], [3.0, 4.0]]


def test_the_hour_that_occurs_twice(tmp_path: Path) -> None:
    lines = [
        f"2017-11-05 {clock},m1,1,\n" for clock in ("00:59:00 PDT", "01:59:00 PDT", "01:00:00 PST", "02:00:00 PST")
    ]
    _, rows = util(tmp_path, HEADER + "".join(lines))
    assert utc(rows) == ["11-05 07:59:00", "11-05 08:59:00", "11-05 09:00:00", "11-05 10:00:00"]


def test_times_without_a_zone_are_the_sites_own(tmp_path: Path) -> None:
    lines = ["2017-10-03 00:08:00,m1,1\n", "2017-11-05 01:30:00,m1,1\n", "2018-03-11 02:30:00,m1,1\n"]
    _, rows = util(tmp_path, HEADER + "".join(lines))
    # the earlier reading of the doubled hour; 02:30 of the skipped one is 03:30 summer time
    assert utc(rows) == ["10-03 07:08:00", "11-05 08:30:00", "03-11 10:30:00"]


REFUSED = [
    ("2017-10-03 00:08:00 XST,m1,1,", telemetry_kernel.BAD_ZONE),
    ("2017-10-03T00:08:00,m1,1,", telemetry_kernel.BAD_TIME),
    ("2017-02-29 00:08:00 PST,m1,1,", telemetry_kernel.BAD_TIME),
    ("2017-13-01 00:08:00 PST,m1,1,", telemetry_kernel.BAD_TIME),
    ("2017-10-03 24:00:00 PDT,m1,1,", telemetry_kernel.BAD_TIME),
    ("nonsense", telemetry_kernel.BAD_TIME),
    ("2017-10-03 00:08:00 PDT,,1,", telemetry_kernel.BAD_MACHINE),
    ("2017-10-03 00:08:00 PDT,m 1,1,", telemetry_kernel.BAD_MACHINE),
    ("2017-10-03 00:08:00 PDT,m\xe9,1,", telemetry_kernel.BAD_MACHINE),
    ("2017-10-03 00:08:00 PDT,m1", telemetry_kernel.TOO_FEW),
    ("2017-10-03 00:08:00 PDT", telemetry_kernel.BAD_MACHINE),
    ("2017-10-03 00:08:00 PDT,m1,1,2,3,4,5,6,7,8,9,", telemetry_kernel.TOO_MANY),
    ("2017-10-03 00:08:00 PDT,m1,1,2017-10-03 00:08:00 PDT,m2,1,2,3,4,5,6,7,8,", telemetry_kernel.TOO_MANY),
    ("2017-10-03 00:08:00 PDT,m1,1,12.3.4,", telemetry_kernel.BAD_VALUE),
    ("2017-10-03 00:08:00 PDT,m1,1,--1,", telemetry_kernel.BAD_VALUE),
    ("2017-10-03 00:08:00 PDT,m1,1e,", telemetry_kernel.BAD_VALUE),
    ("2017-10-03 00:08:00 PDT,m1,-0.5,", telemetry_kernel.OUT_OF_RANGE),
    ("2017-10-03 00:08:00 PDT,m1,100.01,", telemetry_kernel.OUT_OF_RANGE),
    ("2017-10-03 00:08:00 PDT,m1,4294967295,", telemetry_kernel.OUT_OF_RANGE),
    (HEADER.strip(), telemetry_kernel.HEADER),
]


def test_rejections_and_reasons(tmp_path: Path) -> None:
    good = "2017-10-03 00:08:00 PDT,m1,1,\n"
    lines = [HEADER, *(good + row + "\n" for row, _ in REFUSED), good]
    rejects, rows = util(tmp_path, "".join(lines).encode("latin-1"))
    assert [(line, reason) for line, reason, _ in rejects] == [
        (3 + 2 * k, telemetry_kernel.REASONS[code]) for k, (_, code) in enumerate(REFUSED)
    ]
    assert rows.height == len(REFUSED) + 1
    assert rejects[0][2].startswith("2017-10-03 00:08:00 XST")


def test_line_ends_blank_lines_byte_order_mark_and_no_header(tmp_path: Path) -> None:
    row = "2017-10-03 00:08:00 PDT,m1,1,\r\n"
    rejects, rows = util(tmp_path, ("\ufeff" + HEADER.replace("\n", "\r\n") + row + "\r\n\n" + row.strip()).encode())
    assert (rows.height, rejects) == (2, [])
    (tmp_path / "t.duckdb").unlink()
    rejects, rows = util(tmp_path, row)
    assert (rows.height, rejects) == (1, [])


def test_host_files(tmp_path: Path) -> None:
    _, rows = load(tmp_path, philly_cpu_util.FORMAT, "time,machine_id,cpu_util\n2017-11-27 00:04:00 PST,m29,31.845\n")
    assert rows.select("machine", "cpu_pct", "mem_total_kb").rows() == [("m29", pytest.approx(31.845, abs=1e-5), None)]
    (tmp_path / "t.duckdb").unlink()
    _, rows = load(
        tmp_path,
        philly_mem_util.FORMAT,
        "time,machine_id,mem_total,mem_free\n2017-10-03 00:06:00 PDT,m29,528272672.0,2030730.6667\n"
        "2017-10-03 00:07:00 PDT,m29,NA,NA\n",
    )
    assert rows.select("mem_total_kb", "mem_free_kb").rows() == [(528272672.0, 2030730.6667), (None, None)]


def test_line_numbers_and_counts_across_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_header, "HEAD", 400)
    monkeypatch.setattr(telemetry, "GROUP", 3)
    lines = [f"2017-10-03 00:{m:02}:00 PDT,m{m % 7},{m},\n" if m % 10 else "broken\n" for m in range(60)]
    rejects, rows = util(tmp_path, HEADER + "".join(lines))
    assert [line for line, _, _ in rejects] == [2 + m for m in range(0, 60, 10)]
    assert rows["util"].list.first().to_list() == [float(m) for m in range(60) if m % 10]


def test_a_line_without_end_is_one_reject_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_header, "HEAD", 400)
    monkeypatch.setattr(telemetry, "LONGEST_LINE", 1000)
    good = "2017-10-03 00:08:00 PDT,m1,1,\n"
    rejects, rows = util(tmp_path, HEADER + good + "1," * 50_000 + "\n" + good)
    assert [(line, len(raw) <= RAW_LIMIT) for line, _, raw in rejects] == [(3, True)]
    assert rows.height == 2


def test_more_machines_than_a_chunk_has_room_for(tmp_path: Path) -> None:
    count = telemetry_kernel._SLOTS // 2 + 10
    _, rows = util(tmp_path, HEADER + "".join(f"2017-10-03 00:08:00 PDT,m{k},1,\n" for k in range(count)))
    assert rows["machine"].n_unique() == count


@pytest.mark.parametrize(
    ("line", "form"),
    [
        (b"time,machineId,gpu0_util,gpu1_util,\n", philly_gpu_util.FORMAT),
        (b"time, machineId, gpu0_util\r\n", philly_gpu_util.FORMAT),
        (b"time,machine_id,cpu_util\n", philly_cpu_util.FORMAT),
        (b"time,machine_id,mem_total,mem_free\n", philly_mem_util.FORMAT),
    ],
)
def test_recognised_by_header(line: bytes, form: Format) -> None:
    others = {philly_gpu_util.FORMAT, philly_cpu_util.FORMAT, philly_mem_util.FORMAT} - {form}
    assert form.sniff("anything", line)
    assert not any(other.sniff("anything", line) for other in others)


def test_recognised_by_name_and_row_only() -> None:
    row = b"2017-10-03 00:08:00 PDT,m29,60.8,1,\n"
    assert philly_gpu_util.FORMAT.sniff("cluster_gpu_util", row)
    assert not philly_gpu_util.FORMAT.sniff("cluster_gpu_util", b"\x00\x01")
    assert not philly_gpu_util.FORMAT.sniff("other", row)
