"""Parquet that is odd: what text cannot hold is named, and a few kB of it never take up gigabytes."""

from __future__ import annotations

import io
import tracemalloc
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.ingest.read import parquet
from gpuctl.ingest.read.parquet import UnreadableError, text
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path


def written(table: pa.Table, **how: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **how)
    return out.getvalue()


def lines(data: bytes) -> list[str]:
    return b"".join(text(io.BytesIO(data), 1 << 20)).decode().splitlines()


def of(kind: pa.DataType, *values: object) -> bytes:
    return written(pa.table({"x": pa.array(values, kind)}))


AT = datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (of(pa.decimal128(38, 4), Decimal("1.5"), None), ["1.5000", ""]),
        (of(pa.decimal256(76, 2), Decimal("123456789012345678901234567890123456789012.25")),
         ["123456789012345678901234567890123456789012.25"]),
        (of(pa.timestamp("ns"), AT.replace(tzinfo=None)), ["2026-01-02T03:04:05.600000"]),
        (of(pa.timestamp("ms", "Europe/Berlin"), AT), ["2026-01-02T04:04:05.600000+0100"]),
        (of(pa.timestamp("us", "+02:00"), AT), ["2026-01-02T03:04:05.600000+0000"]),
        (of(pa.date32(), AT.date()), ["2026-01-02"]),
        (of(pa.string(), "a\nb", "a\nb", None), ["a b", "a b", ""]),
    ],
)  # fmt: skip
def test_values_as_text(data: bytes, expected: list[str]) -> None:
    assert lines(data) == ["x", *expected]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (of(pa.timestamp("us", "Mars/Olympus"), 0), "column x has times of an unknown zone, 'Mars/Olympus'"),
        (of(pa.timestamp("us", "../../etc/passwd"), 0), "column x has times of an unknown zone"),
        (of(pa.timestamp("us"), 2**62), "column x has a time outside the years 1 to 9999"),
        (of(pa.timestamp("ms"), -(2**62)), "column x has a time outside the years 1 to 9999"),
        (of(pa.timestamp("us", "UTC"), 2**62), "column x has a time outside the years 1 to 9999"),
        (of(pa.date32(), 2**30), "column x has a time outside the years 1 to 9999"),
        (written(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])), "two columns are called 'x'"),
        (of(pa.list_(pa.int32()), [1]), "no column of plain values"),
    ],
)
def test_what_text_cannot_hold_is_named(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        lines(data)


@pytest.mark.parametrize("first", [b"PAR1" + b"x" * 500 + b"PAR1", b"PAR1"])
def test_damage_is_named(first: bytes) -> None:
    with pytest.raises(UnreadableError):
        lines(first)


def test_a_long_value_that_all_rows_share_is_written_out_in_small_parts() -> None:
    each = pa.DictionaryArray.from_arrays(pa.array([0] * 20_000, pa.int32()), pa.array(["y" * (1 << 20)]))
    data = written(pa.table({"x": each}), compression="zstd", write_statistics=False)
    assert len(data) < 20_000
    tracemalloc.start()
    before = pa.total_allocated_bytes()
    pieces = text(io.BytesIO(data), 1 << 20)
    for _ in range(100):
        next(pieces)
    assert pa.total_allocated_bytes() - before < 200 << 20
    assert tracemalloc.get_traced_memory()[0] < 200 << 20
    tracemalloc.stop()


def test_a_column_that_decompresses_to_far_more_than_it_takes_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "HELD", 1 << 20)
    data = written(
        pa.table({"x": pa.array(["y" * (4 << 20), "z"])}),
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
    )
    with pytest.raises(UnreadableError, match=r"column x decompresses from [\d,]+ to 4,194,\d+ bytes"):
        lines(data)


def test_an_odd_file_spoils_no_other_of_its_directory(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    row = "-1 10 3600 2 -1 -1 2 3600 -1 1 3 1 -1 1 -1 -1 -1"
    (logs / "log.swf").write_text(f"; UnixStartTime: 1700000000\n1 0 {row.removeprefix('-1 ')}\n")
    (logs / "dates.parquet").write_bytes(of(pa.timestamp("us"), 2**62))
    (logs / "twice.parquet").write_bytes(written(pa.Table.from_arrays([pa.array([1])] * 2, ["x", "x"])))
    report = ingest([logs], tmp_path / "s.duckdb")
    assert [source.status for source in report.sources] == ["loaded"]
    assert {one.shown.rsplit("/", 1)[-1] for one in report.not_read} == {"dates.parquet", "twice.parquet"}
    with Store(tmp_path / "s.duckdb") as store:
        assert store.value("SELECT count(*) FROM jobs") == 1
