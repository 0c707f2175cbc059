"""Means over a number that varies, with bands between the ends of their intervals."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import polars as pl
import pytest

from gpuctl.core.charts import declared
from gpuctl.reports.charts.registry import Drawing, draw
from gpuctl.reports.charts.svg import drawing_settings
from tests.unit.reports.fakes import HOSTILE, table

NAMES = ("load", "variant", "wait_s", "low_s", "high_s")
[CHART, _] = declared("sweep", "bands x=load y=wait_s,low_s,high_s series=variant", "Waits")
Row = tuple[float | None, str, float | None, float | None, float | None]


def drawn(*rows: Row) -> Drawing:
    frame = pl.DataFrame(list(rows), schema=dict.fromkeys(NAMES, pl.Float64) | {"variant": pl.String}, orient="row")
    with drawing_settings():
        return draw(CHART, table("sweep", "overview", frame))


def test_a_line_and_a_band_a_series_in_the_order_of_x() -> None:
    found = drawn((2, "a", 9, 5, 13), (1, "a", 4, 3, 5), (1, "b", 1, 1, 1), (2, "b", 2, 1, 3))
    [panel] = found.panels
    assert [(curve["name"], curve["x"], curve["y"]) for curve in panel["curves"]] == [
        ("a", [1, 2], [4, 9]), ("b", [1, 2], [1, 2])
    ]  # fmt: skip
    assert (panel["scale"], panel["x"]) == ("number", (1, 2))
    assert panel["y"][1] >= 13
    assert found.remarks == ("Bands: 95 % interval.",)
    assert ET.fromstring(found.svg).findtext("desc") == "a: from 4 at 1 to 9. b: from 1 at 1 to 2."


def test_without_intervals_there_are_lines_alone() -> None:
    whole = drawn((1, "a", 4, 3, 5), (2, "a", 9, 5, 13))
    alone = drawn((1, "a", 4, None, None), (2, "a", 9, None, None))
    assert alone.remarks == ("One seed: there is no interval.",)
    assert " opacity=" in whole.svg
    assert " opacity=" not in alone.svg


def test_rows_without_a_place_are_reported() -> None:
    found = drawn((1, "a", 4, 3, 5), (None, "b", 4, 3, 5), (2, "a", None, None, None))
    assert found.remarks[0] == "2 rows without a value not drawn."


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_text(name: str) -> None:
    found = drawn((1, name, 1, 1, 1), (2, name, 1, 1, 1))
    assert found.svg
    ET.fromstring(found.svg)


def test_a_profile_has_a_line_a_column_and_no_interval() -> None:
    [chart, _] = declared("sweep", "profile x=load y=wait_s,low_s y_title=waits", "Waits")
    frame = pl.DataFrame({"load": [2, 1], "wait_s": [9.0, 4.0], "low_s": [5.0, None]})
    with drawing_settings():
        found = draw(chart, table("sweep", "overview", frame))
    [panel] = found.panels
    assert [(c["name"], c["x"], c["y"]) for c in panel["curves"]] == [("wait", [1, 2], [4, 9]), ("low", [2], [5])]
    assert found.remarks == ("1 row without a value not drawn.",)
    assert "waits" in found.svg
    empty = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in ("wait_s", "low_s"))
    assert draw(chart, table("sweep", "overview", empty)).missing
