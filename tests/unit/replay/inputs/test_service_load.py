"""Idle nodes of an inference cluster, by the requests of a trace."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.replay.inputs.service_load import idle_nodes, read_service_load
from gpuctl.replay.models.inference import aligned, diurnal, parse_inference
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Inference

TEN = np.full(10, 8)
DAY = 288


def idle_at(lent: Inference, second: float) -> int:
    """Idle nodes at a second of the replay."""
    return int(lent.free[np.searchsorted(lent.time_s, second % lent.period_s, side="right") - 1])


def test_need_goes_with_the_load_and_a_day_is_repeated() -> None:
    # from 22:00 on: 26 h, of which the first day counts; an hour of full load at 23:00
    load = np.full(DAY + 24, 5.0)
    load[12:24] = 100.0
    lent = idle_nodes(load, 22 * 3600.0, TEN, "x")
    assert lent.period_s == 86400
    # 1.02 x 10 x 0.05 = 0.51 of 10 nodes, so one; at its peak all
    assert [idle_at(lent, h * 3600.0) for h in (0, 22, 23, 23.99, 24)] == [9, 9, 0, 0, 9]


def test_weeks_begin_on_monday_and_dates_have_their_own_hours() -> None:
    load = np.full(2 * 7 * DAY, 10.0)
    load[:DAY] = 100.0  # the first day, a Thursday
    lent = idle_nodes(load, 3 * 86400.0, TEN, "x")
    assert lent.period_s == 2 * 7 * 86400
    assert [idle_at(lent, d * 86400.0) for d in range(8)] == [8, 8, 8, 0, 8, 8, 8, 8]
    # second 0 of the replay is that Thursday's noon
    noon = aligned(lent, datetime(2026, 11, 26, 12, tzinfo=UTC))
    assert [idle_at(noon, h * 3600.0) for h in (0, 11.99, 12, 24 * 14 - 12.01, 24 * 14 - 12)] == [0, 0, 8, 8, 0]
    assert noon.time_s[0] == 0
    assert (np.diff(noon.time_s) > 0).all()
    assert aligned(lent, None) is lent
    # a saturday afternoon of the assumed curve
    curve = diurnal(TEN)
    later = aligned(curve, datetime(2026, 11, 28, 14, 30, 20, tzinfo=UTC))
    begin = 5 * 86400 + 14.5 * 3600 + 20
    assert [idle_at(later, t) for t in range(0, 9 * 86400, 977)] == [
        idle_at(curve, begin + t) for t in range(0, 9 * 86400, 977)
    ]


@pytest.mark.parametrize(
    ("load", "told"), [(np.ones(DAY - 1), r"requests of 23\.9 hours"), (np.eye(1, DAY)[0], "hardly any requests")]
)
def test_too_little_is_refused(load: np.ndarray, told: str) -> None:
    with pytest.raises(InputError, match=told):
        idle_nodes(load, 0.0, TEN, "x")


def stored(path: Path, rows: list[str], *, clusters: tuple[str, ...] = ("llm",)) -> Path:
    """A store of such rows of `service_load`."""
    with Store(path, write=True) as store:
        for name in clusters:
            store.execute(
                "INSERT INTO clusters (cluster, source_format, timezone, clock) VALUES ($name, 'x', 'UTC', 'utc')",
                {"name": name},
            )
        for row in rows:
            store.execute(f"INSERT INTO service_load {row}")
    return path


def test_a_store_of_requests(tmp_path: Path) -> None:
    # a request of 10 + 30 tokens a minute on a Monday, of 10 + 190 from 12:00 to 18:00; and a rate of a second service
    minutes = (
        "SELECT 'llm', 'chat', TIMESTAMPTZ '2026-11-23 00:00:30+00' + INTERVAL 1 MINUTE * i, 0, 1, 10, "
        "if(i // 60 BETWEEN 12 AND 17, 190, 30), NULL, NULL, 1 FROM range(1440) t(i)"
    )
    rate = "SELECT 'llm', 'code', TIMESTAMPTZ '2026-11-23 00:00:00+00', 86400, 288, {}, {}, NULL, NULL, 1"
    lent = read_service_load(stored(tmp_path / "a.duckdb", [minutes, rate.format(0, 0)]), TEN)
    # 200 tokens in five minutes to 1,000 at the peak
    assert [idle_at(lent, h * 3600.0) for h in (0, 11.99, 12, 17.99, 18)] == [7, 7, 0, 0, 7]
    assert "2 services in 1 day of a trace" in str(lent.notes[0])
    assert "99th percentile of tokens" in str(lent.notes[0])
    # where one does not tell tokens all are counted by requests: 6 in each five minutes
    lent = read_service_load(stored(tmp_path / "b.duckdb", [minutes, rate.format("NULL", "NULL")]), TEN)
    assert set(lent.free.tolist()) == {0}
    assert "percentile of requests" in str(lent.notes[0])


def test_a_store_without_requests_or_of_several_traces(tmp_path: Path) -> None:
    one = "SELECT '{}', 's', TIMESTAMPTZ '2026-11-23 00:00:00+00', 0, 1, 1, 1, NULL, NULL, 1"
    with pytest.raises(InputError, match="has no requests to services"):
        read_service_load(stored(tmp_path / "none.duckdb", []), TEN)
    with pytest.raises(UsageError, match="requests of 2 traces: a, b"):
        read_service_load(stored(tmp_path / "two.duckdb", [one.format("a"), one.format("b")], clusters=("a", "b")), TEN)
    far = "SELECT 'llm', 's', TIMESTAMPTZ '1980-11-23 00:00:00+00', 0, 1, 1, 1, NULL, NULL, 1"
    with pytest.raises(InputError, match="has requests over 16,801 days"):
        read_service_load(stored(tmp_path / "far.duckdb", [one.format("llm"), far]), TEN)
    assert parse_inference("9x8", None).notes
