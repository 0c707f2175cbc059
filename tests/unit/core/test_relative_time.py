"""Times that count from a start of a trace's own are shown without dates, and come back from JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import polars as pl
import pytest

from gpuctl.core.relative_time import day_and_time, without_date
from gpuctl.reports.export import document, values
from gpuctl.reports.screens.words import day
from gpuctl.reports.terminal.text_graphics import moment, time_ticks


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "day 0 00:00:00"), (86_399, "day 0 23:59:59"), (149 * 86_400 + 3725.25, "day 149 01:02:05.25")],
)
def test_days_and_times(seconds: float, text: str) -> None:
    assert day_and_time(seconds) == text
    time = datetime.fromtimestamp(seconds, UTC)
    assert without_date(time) == text
    assert values.json_value(time) == text
    assert moment(seconds, calendar=True) == text
    series = pl.Series("ts", [time, None, datetime(2017, 10, 2, tzinfo=UTC)])
    cells = [None if text is None else json.loads(text) for text in values._json_texts(series)]
    assert cells == [text, None, "2017-10-02T00:00:00Z"]
    assert document._times("ts", pl.Series(cells)).to_list() == series.to_list()


def test_times_with_a_date_are_as_ever() -> None:
    time = datetime(2017, 10, 2, 7, tzinfo=UTC)
    assert without_date(time) is None
    assert day(time) == "2017-10-02 07:00"
    assert values.json_value(time) == "2017-10-02T07:00:00Z"
    assert moment(time.timestamp(), calendar=True) == "2017-10-02 07:00 UTC"
    assert time_ticks(0, 10 * 86_400, 60, calendar=True)[1][1].endswith(" d")
    with pytest.raises(ValueError, match="day N"):
        document._times("ts", pl.Series(["day x"]))
