"""What is had at the price of what: on a page and in a terminal."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.charts import declared
from gpuctl.reports.charts.registry import draw
from gpuctl.reports.charts.svg import drawing_settings
from gpuctl.reports.terminal.picture import draw as in_terminal
from gpuctl.reports.terminal.text_graphics import PLAIN
from tests.unit.reports.fakes import HOSTILE, table

if TYPE_CHECKING:
    from gpuctl.reports.charts.registry import Drawing

NAMES = ("policy", "level", "over_h", "down_h")
PAGE, TERMINAL = declared("f", "tradeoff x=over_h y=down_h series=policy facet=level", "Trade")
ROWS = [
    ("a", "all", 4.0, 1.0), ("a", "all", 0.0, 8.0), ("b", "all", 2.0, 0.0), ("c", "all", None, 1.0),
    ("b", "heavy", 2.0, 4.0), ("a", "heavy", 2.0, 4.0),
]  # fmt: skip


def drawn(rows: list[tuple[str, str, float | None, float]]) -> Drawing:
    with drawing_settings():
        return draw(PAGE, table("f", "overview", pl.DataFrame(rows, NAMES, orient="row")))


def test_a_panel_a_level_and_a_line_a_series_on_a_page() -> None:
    found = drawn(ROWS)
    assert [
        (panel["title"], [(c["name"], c["x"], c["y"]) for c in panel["curves"]]) for panel in found.panels
    ] == [
        ("all", [("a", [0, 4], [8, 1]), ("b", [2], [0])]), ("heavy", [("a", [2], [4]), ("b", [2], [4])]),
    ]  # fmt: skip
    assert found.remarks == ("1 row without a value not drawn.",)
    assert "a: 8 at 0 to 1 at 4." in (ET.fromstring(found.svg).findtext("desc") or "")
    assert "<use" not in found.svg
    for name in HOSTILE:
        assert ET.fromstring(drawn([(name, name, 1.0, 1.0)]).svg) is not None


def test_letters_stand_where_the_points_are_in_a_terminal() -> None:
    picture = in_terminal(TERMINAL, table("f", "overview", pl.DataFrame(ROWS, NAMES, orient="row")), 60, PLAIN)
    assert picture is not None
    lines = picture.lines
    assert lines[0].split() == ["all", "heavy"]
    assert lines[1].startswith("8 |A")
    assert lines[8][:3] + lines[9][:3] == "  |0 |"
    assert lines[8].rindex("A") == 26
    assert lines[9].index("B") == 15
    assert lines[1].endswith("*")
    assert "A a, B b" in picture.caption
    assert in_terminal(TERMINAL, table("f", "overview", pl.DataFrame(ROWS, NAMES, orient="row")), 20, PLAIN) is None


@pytest.mark.parametrize(
    "values", [[None, None], [float("nan"), 1.0], [float("inf"), 0.0], [0.0, 0.0], [1e300, 1e-300], ["x", "y"]]
)
@pytest.mark.parametrize("width", [1, 27, 40, 61, 200])
def test_any_numbers_make_lines_that_fit(values: list[object], width: int) -> None:
    frame = pl.DataFrame({"policy": ["a", HOSTILE[0]], "level": [HOSTILE[1], "b"], "over_h": values, "down_h": values})
    picture = in_terminal(TERMINAL, table("f", "overview", frame), width, PLAIN)
    assert picture is None or max(map(len, picture.lines)) <= width
    assert picture is None or (width >= 27 and values != ["x", "y"])
