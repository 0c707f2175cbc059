"""Values with their intervals: predictions, and scores of predictors."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

from gpuctl.core.charts import declared
from gpuctl.reports.charts.bars import CATEGORIES
from gpuctl.reports.charts.registry import draw
from gpuctl.reports.charts.svg import drawing_settings
from gpuctl.reports.figures import PREDICTIONS, SCORES
from gpuctl.reports.units import Units
from tests.unit.reports.fakes import HOSTILE, table

if TYPE_CHECKING:
    from gpuctl.reports.charts.chart import Rows
    from gpuctl.reports.charts.registry import Drawing


def drawn(rows: list[tuple[str, float | None, float | None, float | None]]) -> Drawing:
    names = ("job", "run_time_s", "lower_s", "upper_s")
    frame = pl.DataFrame(rows, schema=dict(zip(names, (pl.String, *[pl.Float64] * 3), strict=True)), orient="row")
    with drawing_settings():
        return draw(PREDICTIONS[0], table("predictions", "predictions", frame))


def words(drawing: Drawing) -> list[str]:
    return [node.text or "" for node in ET.fromstring(drawing.svg).iter("text")]


def test_times_of_a_chart_are_in_one_unit() -> None:
    found = drawn([("a", 7200.0, 5400.0, 10800.0), ("b", 90.0, 90.0, 90.0)])
    assert ET.fromstring(found.svg).findtext("desc") == "a: 120 min (90 to 180). b: 1.5 min (1.5 to 1.5)."
    assert words(found) == ["a", "120 min (90 to 180)", "b", "1.5 min (1.5 to 1.5)"]


def test_a_chart_has_the_unit_that_the_quantity_has_in_the_result() -> None:
    """Two waits of over two hours are in hours, but those of the whole result are of minutes."""
    of = "wait_mean_s", "wait_mean_low_s", "wait_mean_high_s"
    names = ("policy", *of)
    one = table("replay_summary", "replay", pl.DataFrame([("fifo", 9000.0, 8000.0, 9900.0)], names, orient="row"))
    many = pl.DataFrame({"policy": ["fifo"] * 5, "wait_mean_s": [600.0] * 5})
    result = Units([one, table("replay_by_size", "replay", many)])
    [chart] = declared("replay_summary", f"ranges on=page x=policy y={','.join(of)} title=Waits")
    with drawing_settings():
        found = [ET.fromstring(draw(chart, one, units).svg).findtext("desc") for units in (None, result)]
    assert found == ["fifo: 2.5 h (2.22 to 2.75).", "fifo: 150 min (133 to 165)."]


def test_negative_values_are_drawn_next_to_a_line_at_0() -> None:
    found = drawn([("a", -30.0, -50.0, -10.0), ("b", 30.0, 10.0, 50.0)])
    paths = [path.attrib["d"] for path in ET.fromstring(found.svg).iter("path") if "stroke" in path.attrib]
    ends = [[float(x) for x in re.findall(r"[MHL ]?(-?[\d.]+)[ ,]", path)] for path in paths]
    across = [line for line in ends if line]
    # nothing lies outside of the figure
    assert min(min(line) for line in across) >= -0.01
    plain = drawn([("a", 30.0, 10.0, 50.0), ("b", 30.0, 10.0, 50.0)])
    assert len(paths) == 1 + len([p for p in ET.fromstring(plain.svg).iter("path") if "stroke" in p.attrib])


def test_lines_lie_where_the_numbers_say() -> None:
    found = drawn([("a", 60.0, 40.0, 100.0), ("b", 20.0, None, None)])
    lines = [
        [round(float(x) / 3.7) for x in re.findall(r"[MH]([\d.]+)", path.attrib["d"])]
        for path in ET.fromstring(found.svg).iter("path")
        if "stroke" in path.attrib
    ]
    assert lines == [[0, 100], [40, 100], [60], [0, 100], [20]]


def test_rows_without_a_value_and_more_than_there_is_room_for_are_reported() -> None:
    many = [(f"job {k}", float(k), float(k), float(k)) for k in range(1, CATEGORIES + 4)]
    found = drawn([*many, ("none", None, None, None)])
    assert found.remarks == (
        f"1 of {len(many) + 1} rows has no value.",
        f"Of {len(many)} rows, the {CATEGORIES} with the longest bars are drawn.",
    )
    rows = cast("Rows", found.data)["rows"]
    assert [row[0] for row in rows] == [name for name, *_ in many[3:]]


def test_only_rows_without_a_value() -> None:
    found = drawn([("a", None, None, None)])
    assert found.remarks == ("1 of 1 row has no value.",)
    assert words(found) == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str) -> None:
    found = drawn([(name, 1.0, 1.0, 1.0)])
    assert len(words(found)) == 2
    assert "<script>" not in found.svg


def test_a_score_of_one_measure_is_drawn_in_its_unit() -> None:
    frame = pl.DataFrame(
        {
            "predictor": ["history", "mean", "history"],
            "measure": ["median_ape_pct", "median_ape_pct", "mae_s"],
            "value": [20.0, 40.0, 9.0],
            "low": [18.0, None, 8.0],
            "high": [23.0, None, 10.0],
        }
    )
    with drawing_settings():
        found = draw(SCORES[0], table("runtime_scores", "run_times", frame))
    assert words(found) == ["history", "20.0 % (18.0 to 23.0)", "mean", "40.0 %"]
