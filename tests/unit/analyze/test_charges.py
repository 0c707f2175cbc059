"""GPU-hours by month, account and type, and what they cost, worked out by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.site_files import Price, read_prices
from gpuctl.core.errors import InputError
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.example_counts import examples
from tests.result_tables import table_of
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

Period = Literal["day", "week", "month", "quarter"]
BERLIN = "Europe/Berlin"


def record(job: int, start: str, end: str, **more: str) -> dict[str, str]:
    return {"JobIDRaw": str(job), "Submit": start, "Eligible": start, "Start": start, "End": end, **more}


def charged(
    folder: Path, *records: dict[str, str], name: str = "charges", zone: str = BERLIN, **options: Any
) -> pl.DataFrame:
    folder.mkdir(exist_ok=True)
    (folder / "sacct.txt").write_text(text(*records))
    ingest([folder / "sacct.txt"], folder / "t.duckdb", cluster="c", timezone=zone)
    with Store(folder / "t.duckdb") as store:
        return table_of(analyze(store, Options(tables=(name,), **options)), name).frame


def hours(frame: pl.DataFrame, key: str = "period") -> dict[str, float]:
    return dict(frame.group_by(key).agg(pl.col("gpu_hours").sum().round(6)).sort(key).iter_rows())


def test_months_begin_at_midnight_of_the_zone(tmp_path: Path) -> None:
    across = record(1, "2026-10-31T22:00:00", "2026-11-01T05:00:00")
    assert hours(charged(tmp_path / "a", across)) == {"2026-10": 4, "2026-11": 10}
    assert hours(charged(tmp_path / "b", across, period_zone="UTC")) == {"2026-10": 6, "2026-11": 8}
    assert hours(charged(tmp_path / "c", across, by="quarter")) == {"2026-Q4": 14}
    assert hours(charged(tmp_path / "d", across, by="week")) == {"2026-W44": 14}
    assert hours(charged(tmp_path / "e", across, by="day")) == {"2026-10-31": 4, "2026-11-01": 10}


@pytest.mark.parametrize(("month", "last", "length"), [("2026-03", "2026-04-01", 743), ("2026-10", "2026-11-01", 745)])
def test_a_month_in_which_clocks_change_has_an_hour_less_or_more(
    tmp_path: Path, month: str, last: str, length: int
) -> None:
    whole = record(1, f"{month}-01T00:00:00", f"{last}T00:00:00")
    assert hours(charged(tmp_path, whole)) == {month: 2 * length}


def test_all_attempts_and_suspended_time_count_and_states_may_be_forgiven(tmp_path: Path) -> None:
    failed = record(1, "2026-11-20T10:00:00", "2026-11-20T12:00:00", State="NODE_FAIL")
    again = record(1, "2026-11-20T12:00:00", "2026-11-20T15:00:00", Elapsed="02:00:00", Suspended="01:00:00")
    [row] = charged(tmp_path / "a", failed, again).to_dicts()
    assert (row["gpu_hours"], row["forgiven_gpu_hours"], row["jobs"], row["billing_hours"]) == (10, 0, 1, 40)
    [row] = charged(tmp_path / "b", failed, again, forgive=("node_fail",)).to_dicts()
    assert (row["gpu_hours"], row["forgiven_gpu_hours"], row["billing_hours"]) == (6, 4, 24)


def test_types_are_those_of_the_allocation_and_an_instance_counts_as_one(tmp_path: Path) -> None:
    hour = ("2026-11-20T10:00:00", "2026-11-20T11:00:00")
    tres = "billing=10,cpu=8,{}mem=16G,node=1"
    found = charged(
        tmp_path,
        record(1, *hour, AllocTRES=tres.format("gres/gpu:a100=1,gres/gpu:h100=3,gres/gpu=5,")),
        record(2, *hour, AllocTRES=tres.format("gres/gpu:3g.20gb=2,gres/gpu=2,")),
        record(3, *hour, AllocTRES=tres.format("gres/gpu=2,")),
        record(4, *hour, AllocTRES=tres.format("")),
    )
    assert hours(found, "gpu_type") == {"a100": 1, "h100": 3, "unknown": 3, "3g.20gb": 2, None: 0}
    assert found.filter(pl.col("gpu_type").is_null())["billing_hours"].to_list() == [10]
    assert found["billing_hours"].sum() == pytest.approx(40), "split by GPUs, and not lost"


def test_prices_by_type_account_and_day(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "gpu_type,price_per_gpu_hour,account,from,to\nA100,1,,,2026-11-21\na100,2.5,,2026-11-21,\na100,0.005,bio,,\n"
    )
    prices = read_prices(tmp_path / "p.csv")
    assert prices[1] == Price("a100", Decimal("2.5"), None, date(2026, 11, 21), None)
    span = ("2026-11-20T22:00:00", "2026-11-21T01:00:00")
    found = charged(
        tmp_path / "a",
        record(1, *span),
        record(2, *span, Account="bio"),
        record(3, *span, AllocTRES="cpu=8,gres/gpu:v100=1,gres/gpu=1"),
        prices=prices,
    )
    rows = {(row["account"], row["gpu_type"]): row for row in found.to_dicts()}
    assert rows["vision", "a100"]["cost"] == 4 * 1 + 2 * 2.5
    assert rows["bio", "a100"]["cost"] == 0.03, "6 hours at half a cent, half up"
    assert (rows["vision", "v100"]["cost"], rows["vision", "v100"]["unpriced_gpu_hours"]) == (None, 3)
    assert rows["vision", "a100"]["gpu_hours"] == 6, "a change of price cuts no row in two"


@pytest.mark.parametrize(
    ("rows", "line", "why"),
    [
        ("a100,free", 2, "price_per_gpu_hour is 'free'"),
        ("a100,-1", 2, "from 0 to"),
        ("a100,1\na100,2", 3, "a second price of 'a100'"),
        (",1", 2, "no gpu_type"),
    ],
)
def test_a_price_list_with_a_fault_is_refused(tmp_path: Path, rows: str, line: int, why: str) -> None:
    (tmp_path / "p.csv").write_text(f"gpu_type,price_per_gpu_hour\n{rows}\n")
    with pytest.raises(InputError, match=why) as caught:
        read_prices(tmp_path / "p.csv")
    assert caught.value.line == line


@given(
    spans=st.lists(
        st.tuples(st.integers(0, 5_000_000), st.integers(1, 9_000_000), st.integers(0, 8)), min_size=1, max_size=6
    ),
    by=st.sampled_from(["day", "week", "month", "quarter"]),
)
@settings(max_examples=examples(30), deadline=None)
def test_no_split_loses_or_makes_gpu_hours(
    tmp_path_factory: pytest.TempPathFactory,
    spans: list[tuple[int, int, int]],
    by: Period,
) -> None:
    """Whatever the periods and the owner: the sums are the GPU-hours that every other table has."""
    base = 1_772_000_000
    records = [
        record(
            k, str(base + start), str(base + start + length), Account=f"a{k % 2}",
            AllocTRES=f"billing=1,cpu=1,gres/gpu:t{k % 3}={gpus},gres/gpu={gpus}" if gpus else "billing=1,cpu=1",
        )
        for k, (start, length, gpus) in enumerate(spans, 1)
    ]  # fmt: skip
    folder = tmp_path_factory.mktemp("charges")
    tables = [charged(folder, *records, by=by)]
    with Store(folder / "t.duckdb") as store:
        names = ("charges", "charges_by_user", "charges_by_queue", "activity_by_user", "activity_by_queue", "overview")
        found = analyze(store, Options(tables=names, by=by, period_zone="Asia/Kathmandu"))
    tables += [table_of(found, name).frame for name in names[:3]]
    exact = sum(length * gpus for _, length, gpus in spans) / 3600
    for frame in tables:
        assert frame["gpu_hours"].sum() == pytest.approx(exact, abs=1e-6)
        assert frame["billing_hours"].sum() == pytest.approx(sum(length for _, length, _ in spans) / 3600, abs=1e-6)
    for name in names[3:5]:
        assert table_of(found, name).frame["gpu_hours"].sum() == pytest.approx(exact, abs=1e-6), "in the same periods"
    assert (table_of(found, "overview").frame["gpu_hours"].item() or 0) == pytest.approx(exact, abs=1e-6)
