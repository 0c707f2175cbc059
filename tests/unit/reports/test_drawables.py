"""Every chart of the page and of the terminal is a file: SVG, PDF, PNG, and its rows as CSV."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from matplotlib.text import Text
from PIL import Image

from gpuctl.core.charts import KINDS, Chart, declared
from gpuctl.core.job_explanation import Wait
from gpuctl.core.notes import note
from gpuctl.core.results import Analysis, Column, ResultTable
from gpuctl.queries.catalogue import built_in
from gpuctl.reports.charts import paper
from gpuctl.reports.charts.paper import Drawable
from gpuctl.reports.drawables import charts_of, of_analysis, of_chart, of_explanation, of_report, side_by_side
from gpuctl.reports.figures import GROUPS, on
from gpuctl.reports.report import labelled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.figure import Figure

START = datetime(2024, 5, 1, tzinfo=UTC)
OWN = (
    *declared("wait_calibration", "bands x=promised_pct y=held_pct,below_pct,up_to_pct series=load"),
    *declared("predictions", "ranges name=chart-waits x=job y=p50_s,p10_s,p90_s"),
)  # fmt: skip
"""Charts that tables of forecasts carry themselves."""
EVERY = tuple(chart for group in GROUPS for chart in group)
PAGE = (*on(EVERY, "page"), *on(OWN, "page"))
DRAWN = (*PAGE, *(chart for chart in (*on(EVERY, "terminal"), *on(OWN, "terminal"))
                  if chart.name not in {each.name for each in PAGE}))  # fmt: skip
"""Those of the page, and those that only a terminal shows."""


def table_of(chart: Chart) -> ResultTable:
    """A table that a chart can draw, with names as long as names get."""
    names = [f"{name} of a policy" for name in ("first", "a much longer name", "third", "another one", "fifth")]
    facets = ["first panel", "second panel"] if chart.facet else [""]
    series = names if chart.series and chart.kind != "gantt" else [""]
    rows: list[dict[str, Any]] = []
    for facet, (s, name), k in itertools.product(facets, enumerate(series), range(6)):
        numbers = {column: 3.0 + k + s + i for i, column in enumerate(chart.y)}
        if chart.kind == "cdf":
            numbers = {column: 20.0 * k for column in chart.y}
        row: dict[str, Any] = {chart.facet: facet, chart.series: name, chart.limit: 40.0, chart.weight: 1.0 + k,
                               chart.end: 3600.0 * (k + 1), **numbers, chart.x: x_of(chart, k, s)}  # fmt: skip
        row |= {chart.calendar: START + timedelta(hours=k)} if chart.calendar else {}
        row |= {column: values[0] for column, values in chart.where}
        rows.append({key: value for key, value in row.items() if key})
    if chart.kind == "gantt":
        rows = gantt_rows(chart)
    frame = pl.DataFrame(rows)
    columns = tuple(Column(name, unit_of(name), name) for name in frame.columns)
    return ResultTable(chart.table, "s", chart.title, "", note(""), (), columns, frame)


def unit_of(name: str) -> str:
    units = {"_pct": "%", "_s": "s", "_min": "min", "_h": "h"}
    return next((unit for end, unit in units.items() if name.endswith(end)), "-")


def x_of(chart: Chart, k: int, s: int) -> Any:
    if chart.kind == "time":
        return START + timedelta(hours=k)
    if chart.kind in {"stacked", "ranges"} or (chart.kind == "bars"):
        return f"row {k} with a name"
    if chart.kind == "grouped":
        return [1, 2, 4, 8, 16, 32][k]
    if chart.kind in {"lines", "heat"}:
        return 3600.0 * k
    return 18.0 * k + s if chart.scale == "share" else 0.5 * 4.0 ** (k + s / 4)


def gantt_rows(chart: Chart) -> list[dict[str, Any]]:
    what, job, user, queue, gpus, counted, beside = chart.y
    common = {chart.facet: "first panel", user: "u", queue: "q", beside: None}
    rows = []
    for node in range(4):
        here = {**common, chart.series: f"node{node}", chart.calendar: START}
        rows.append({**here, what: "node", job: None, gpus: 8, counted: 8.0, chart.x: 0.0, chart.end: 9000.0})
        rows += [
            {**here, what: "job", job: f"job{n}", gpus: 4, counted: 4.0, chart.x: 3e3 * n, chart.end: 3e3 * n + 2500}
            for n in range(3)
        ]
    return rows


def drawable_of(chart: Chart) -> Drawable:
    analysis = Analysis(note("c"), (table_of(chart),), (("s", "S"),), (), {}, "test")
    found = of_chart(analysis, chart)
    assert isinstance(found, Drawable), found
    return found


def test_no_chart_is_left_out() -> None:
    assert {chart.kind for chart in DRAWN} == set(KINDS)
    assert all(chart in EVERY for query in built_in().values() for chart in query.charts)
    tables = tuple(table_of(chart) for chart in DRAWN)
    analysis = Analysis(note("c"), tables, (("s", "S"),), (), {}, "test")
    assert {chart.name for chart in charts_of(analysis)} >= {chart.name for chart in DRAWN if chart not in OWN}


FIRST = {chart.kind: chart for chart in reversed(DRAWN)}
"""One chart of each kind is drawn in every format."""


@pytest.mark.parametrize("chart", DRAWN, ids=lambda chart: chart.name)
def test_every_chart_fits_a_papers_column(chart: Chart, tmp_path: Path) -> None:
    drawable = drawable_of(chart)
    assert drawable.rows.height > 0
    for ending in paper.ENDINGS if chart is FIRST[chart.kind] else ():
        path, data = paper.write_figure(drawable, tmp_path / f"chart{ending}")
        assert path.stat().st_size > 1000
        assert pl.read_csv(data).height == drawable.rows.height
        if ending == ".png":
            with Image.open(path) as image:
                assert abs(image.width - 1020) <= 1
    with paper.composed(drawable, "paper") as (figure, box):
        figure.draw_without_rendering()
        written = list(texts_of(figure))
        texts = [(text.get_text(), text.get_window_extent()) for text in written]
        shown = box.transformed(figure.dpi_scale_trans)
        sizes = {text.get_fontsize() for text in written}
    assert min(sizes) >= 6.5
    for text, place in texts:
        assert shown.x0 - 1 <= place.x0 <= place.x1 <= shown.x1 + 1, f"{text!r} is cut"
    for (one, here), (other, there) in itertools.combinations(texts, 2):
        across = min(here.x1, there.x1) - max(here.x0, there.x0)
        down = min(here.y1, there.y1) - max(here.y0, there.y0)
        assert min(across, down) < 2, f"{one!r} is written over {other!r}"


def texts_of(figure: Figure) -> Iterator[Text]:
    """Yield what is written; an axis also keeps labels of ticks that lie outside of it."""
    hidden = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            places = zip(axis.get_majorticklabels(), axis.get_majorticklocs(), strict=False)
            hidden |= {label for label, place in places if not (axes.axison and low <= place <= high)}
            hidden |= set(axis.get_minorticklabels())
    for text in figure.findobj(Text):
        if isinstance(text, Text) and text not in hidden and text.get_text().strip() and text.get_visible():
            yield text


def test_an_explanation_has_its_timeline(tmp_path: Path) -> None:
    explained = explanation(attempts=3)
    [drawable] = of_explanation(explained)
    paper.write_figure(drawable, tmp_path / "timeline.svg")
    assert pl.read_csv(tmp_path / "timeline.csv").select("attempt", "what").rows() == [
        (f"attempt {n}", what) for n in range(3) for what in ("waiting", "running")
    ]
    assert of_explanation(explanation(attempts=0)) == ()


def explanation(attempts: int) -> Any:
    def tried(number: int) -> SimpleNamespace:
        queued = START + timedelta(hours=2 * number)
        return SimpleNamespace(number=number, wait=Wait(queued, 1800.0), start_ts=queued + timedelta(hours=0.5),
                               end_ts=queued + timedelta(hours=1.5), state="failed")  # fmt: skip

    return SimpleNamespace(never_started=None, attempts=[tried(number) for number in range(attempts)])


def test_a_report_has_the_charts_of_each_result_and_of_all_together() -> None:
    def result(shift: float) -> Analysis:
        frame = pl.DataFrame({"wait_min": [shift + k for k in range(2000)], "size_bucket": ["1"] * 2000})
        waited = ResultTable("waits", "queueing", "Waits", "", note(""), (), (), frame, detail=True)
        curve = frame.select(pl.lit("srtf").alias("policy"), minutes="wait_min", cdf_pct=pl.int_range(pl.len()) / 20)
        columns = tuple(Column(name, "-", name) for name in curve.columns)
        jct = ResultTable("replay_jct_cdf", "replay", "JCT", "", note(""), (), columns, curve)
        return Analysis(note("c"), (waited, jct), (), (), {}, "test")

    parts = labelled([result(0.0), result(50.0)], ["before", "after"])
    assert {each.name for each in of_report(parts)} == {
        "replay-jct-cdf--before", "replay-jct-cdf--after", "waits-by-result", "jct-by-result",
    }  # fmt: skip
    assert {each.name for each in of_report(parts[:1])} == {"replay-jct-cdf"}
    rows = side_by_side(parts).tables[0].frame
    assert rows.group_by("result", maintain_order=True).agg(pl.max("minutes", "cdf_pct"), pl.len()).rows() == [
        ("before", 1999.0, 100.0, 500), ("after", 2049.0, 100.0, 500),
    ]  # fmt: skip
    assert of_analysis(parts[0].analysis)[0].table == "replay_jct_cdf"
