from __future__ import annotations

import polars as pl

from gpuctl.core.charts import declared
from gpuctl.reports.terminal.letter_plots import HEIGHT, error_bars, profile

RULE = next(
    chart
    for chart in declared("t", "bands name=chart-x x=load y=wait,low,high series=policy title=t", "t")
    if chart.medium == "terminal"
)


def frame(policies: int = 2) -> pl.DataFrame:
    """Means 0 and 11 at load 1, 5 and 6 at load 2; the interval of the second policy at load 2 alone, from 4 to 8."""
    return pl.DataFrame(
        [
            {"policy": f"p{k}", "load": load, "wait": wait, "low": low, "high": high}
            for k, figures in enumerate([[(0, None, None), (5, None, None)], [(11, None, None), (6, 4, 8)]] * policies)
            for load, (wait, low, high) in zip((1.0, 2.0), figures, strict=True)
            if k < policies
        ],
        schema={"policy": pl.String, "load": pl.Float64, "wait": pl.Float64, "low": pl.Float64, "high": pl.Float64},
    )


def test_means_and_intervals_stand_at_their_height() -> None:
    found = error_bars(RULE, frame(), 40)
    assert found is not None
    lines, caption = found
    assert [line.partition("|")[2].rstrip() for line in lines[:HEIGHT]] == [
        "  B", "", "", "     |", "     |", "     B", "    A|", "     |", "", "", "", " A",
    ]  # fmt: skip
    assert [line.split("|")[0].strip() for line in lines[:HEIGHT] if line.split("|")[0].strip()] == ["11", "5", "0"]
    assert lines[-1].split() == ["1", "2"]
    assert "A p0, B p1" in caption


def test_bars_without_room_are_counted_instead() -> None:
    found = error_bars(RULE, frame(14), 80)
    assert found is not None
    assert "4 more rows not drawn" in found[1]
    narrow = error_bars(RULE, frame(14), 16)
    assert narrow is not None
    assert max(map(len, narrow[0])) <= 16
    assert error_bars(RULE, frame(), 5) is None
    assert error_bars(RULE, frame().filter(load=1.0), 80) is None


def test_a_profile_has_a_mark_a_column() -> None:
    [_, rule] = declared("t", 'profile x=hour y="work:working days,rest:weekend,none:nothing" title=t', "t")
    empty = pl.Series([None, None], dtype=pl.Float64)
    rows = pl.DataFrame({"hour": [0, 1], "work": [0.0, 11.0], "rest": [11.0, None], "none": empty})
    found = profile(rule, rows, 40)
    assert found is not None
    lines, caption = found
    assert lines[0].partition("|")[2] == "  B A"
    assert [line.partition("|")[2] for line in lines[1:HEIGHT]] == [""] * (HEIGHT - 2) + [" A"]
    assert caption == "A working days, B weekend, by hour. From t."
    assert profile(rule, rows.select("hour", work=empty, rest=empty, none=empty), 40) is None
