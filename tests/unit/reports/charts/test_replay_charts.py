from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuctl.core.charts import declared
from gpuctl.replay.results.tables import result
from gpuctl.reports.charts import levels
from gpuctl.reports.charts.heatmap import PANELS, packed
from gpuctl.reports.charts.registry import Drawing, draw, draw_all
from gpuctl.reports.charts.svg import drawing_settings
from gpuctl.reports.figures import ANALYSES, REPLAYS, on
from tests.unit.replay.outcomes import make_cluster, random_outcome, random_workload
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

CHARTS, REPLAY_CHARTS = on(ANALYSES, "page"), on(REPLAYS, "page")
MANY = ("fifo", *HOSTILE, "las", "srtf")


def drawings(policies: tuple[str, ...], *, calendar: bool = True, jobs: int = 400) -> dict[str, Drawing]:
    workload = random_workload(jobs, seed=1, origin=calendar)
    outcomes = [random_outcome(workload, seed=i, policy=p, nodes=90) for i, p in enumerate(policies)]
    analysis = result(outcomes, workload, make_cluster(90, 8, down=[(0, 1e5, 3e5), (1, 1e5, 3e5)]))
    return {d.name: d for d in draw_all(analysis)}


@pytest.fixture(scope="module")
def three() -> dict[str, Drawing]:
    return drawings(("fifo", "srtf", "las"))


def drawn(name: str, frame: pl.DataFrame) -> Drawing:
    chart = next(c for c in REPLAY_CHARTS if c.name == name)
    with drawing_settings():
        return draw(chart, table(chart.table, "s", frame))


def test_every_chart_of_a_replay_is_drawn_and_no_other(three: dict[str, Drawing]) -> None:
    # those that the tables of several policies carry come last
    assert list(three) == [*(c.name for c in REPLAY_CHARTS), "chart-replay-jain", "chart-replay-rho"]
    assert {d.missing for d in three.values()} == {""}
    assert [d.name for d in draw_all(make_analysis(points=5))] == [c.name for c in CHARTS]


def test_both_kinds_of_tables_give_both_kinds_of_charts() -> None:
    logs = make_analysis(points=5)
    workload = random_workload(20, seed=1)
    replayed = result([random_outcome(workload)], workload, make_cluster(4, 8))
    both = draw_all(replace(logs, tables=(*logs.tables, *replayed.tables)))
    assert [d.name for d in both] == [c.name for c in (*CHARTS, *REPLAY_CHARTS)]


def test_figures_are_themed_named_and_without_third_party_elements(three: dict[str, Drawing]) -> None:
    for d in three.values():
        root = ET.fromstring(d.svg)
        assert not re.search(r"#[0-9a-f]{6}", d.svg), d.name
        assert "<use" not in d.svg
        assert "style=" not in d.svg
        assert re.search(r"\d", root.findtext("desc") or ""), d.name
    ids = re.findall(r' id="([^"]+)"', "".join(d.svg for d in three.values()))
    assert len(ids) == len(set(ids))


def test_counts_drawn_as_one_point_are_summed_and_means_are_not() -> None:
    rows = [("a", 10.0 * k, 1.0 + k % 2) for k in range(2 * levels.CURVE_POINTS)]
    frame = pl.DataFrame(rows, ["policy", "t_s", "loans"], orient="row")
    words = "lines on=page x=t_s y=loans series=policy title=Loans"
    with drawing_settings():
        means, counts = (draw(*declared("t", f"{words}{more}"), table("t", "s", frame)) for more in ("", " counts=yes"))
    for drawing, height, what in ((means, 1.5, "mean"), (counts, 3.0, "count")):
        assert {y for panel in drawing.panels for curve in panel["curves"] for y in curve["y"]} == {height}
        assert drawing.remarks[0] == f"Each point is the {what} over 20 s."
    assert "750 in all, at most 3." in (ET.fromstring(counts.svg).findtext("desc") or "")


def test_hostile_policies_are_text_and_too_many_are_reported() -> None:
    many = drawings(MANY, jobs=60)
    for d in many.values():
        assert "<script" not in d.svg
        assert "<img" not in d.svg
    assert "2 more curves not drawn; --csv DIR has all." in many["chart-replay-jct-cdf"].remarks
    assert "2 more lines not drawn; --csv DIR has all." in many["chart-replay-queue"].remarks
    assert f"{len(MANY) - PANELS} more panels not drawn; --csv DIR has all." in many["chart-replay-heatmap"].remarks
    points = sum(len(c["x"]) for p in many["chart-replay-queue"].panels for c in p["curves"])
    assert points <= levels.FIGURE_POINTS


def test_levels_have_a_line_a_policy_and_a_panel_a_level(three: dict[str, Drawing]) -> None:
    waiting, asked = three["chart-replay-queue"].panels
    assert (waiting["title"], asked["title"]) == ("waiting jobs", "GPUs waiting")
    assert [c["name"] for c in waiting["curves"]] == ["fifo", "srtf", "las"]
    assert [c["s"] for c in waiting["curves"]] == [1, 2, 3]
    assert waiting["scale"] == "time"
    assert len({k.dash for k in three["chart-replay-queue"].keys}) == 3
    assert [k.label for k in three["chart-replay-busy"].keys][-1] == "GPUs available"
    limit = three["chart-replay-busy"].panels[0]["curves"][-1]
    assert (limit["name"], limit["of"], limit["raw"]) == ("GPUs available", "gpus_available", "fifo")
    assert three["chart-replay-queue"].columns == ("measure", "policy", "ts", "value")


def frame(t: list[float], policies: tuple[str, ...] = ("a",), *, ts: bool = False) -> pl.DataFrame:
    origin = datetime(2020, 1, 1, tzinfo=UTC)
    count = len(t)
    rows = {
        "policy": [p for p in policies for _ in t],
        "t_s": t * len(policies),
        "ts": [origin + timedelta(seconds=s) if ts else None for s in t] * len(policies),
        "waiting_jobs": [float(i % 7) for i in range(count)] * len(policies),
        "gpus_waiting": [0.0] * count * len(policies),
    }
    return pl.DataFrame(rows, schema_overrides={"ts": pl.Datetime("us", "UTC")})


def test_means_of_merged_periods_keep_the_area() -> None:
    d = drawn("chart-replay-queue", frame([60.0 * i for i in range(500)]))
    curve = d.panels[0]["curves"][0]
    assert len(curve["x"]) == 250
    assert sum(curve["y"]) / 250 == pytest.approx(sum(i % 7 for i in range(500)) / 500, abs=0.06)
    assert d.remarks == ("Each point is the mean over 2 min.",)
    assert d.panels[0]["scale"] == "elapsed"
    assert d.panels[0]["x"] == (0.0, 30000.0)


@pytest.mark.parametrize("ts", [True, False])
@pytest.mark.parametrize("t", [[0.0], [5.0, 6.0], [0.0, 1e7], [0.0, 0.001]])
def test_odd_spans_are_drawn(t: list[float], ts: bool) -> None:
    assert drawn("chart-replay-queue", frame(t, ts=ts)).svg


def heat(shares: list[list[float]], down: list[list[float]] | None = None) -> Drawing:
    rows = [
        {
            "policy": "p",
            "nodes": f"s{r}",
            "t_s": 10.0 * b,
            "ts": None,
            "busy_pct": v,
            "down_pct": (down or shares)[r][b],
        }
        for r, line in enumerate(shares)
        for b, v in enumerate(line)
    ]
    return drawn("chart-replay-heatmap", pl.DataFrame(rows, schema_overrides={"ts": pl.Datetime("us", "UTC")}))


def test_a_heat_map_draws_runs_of_one_step_as_one_rectangle() -> None:
    none = [[0.0] * 4] * 2
    d = heat([[0.0, 90.0, 95.0, 100.0], [10.0, 10.0, 50.0, 0.2]], none)
    paths = [p.attrib for p in ET.fromstring(d.svg).iter("path") if p.attrib.get("fill") == "var(--s1)"]
    # five of the scale; then up to 20 % (1 run), to 60 % (1), to 100 % (1)
    cells = [p["d"].count("M") for p in paths[5:]]
    assert cells == [1, 1, 1]
    assert "a line" not in d.svg
    assert "p: 44.4 % held on average, between 17.6 % (s1) and 71.2 % (s0)." in d.svg


def test_a_heat_map_has_its_values_for_a_csv() -> None:
    data = heat([[0.0, 99.96, 3.14159], [100.0, 12.5, 0.0]], [[0.0] * 3, [0.0, 50.0, 0.05]]).data
    assert data is not None
    assert data["columns"] == ["policy", "nodes", "t_s", "busy_pct", "down_pct"]
    assert "panels" in data
    ((policy, rows),) = data["panels"]
    assert (policy, data["x"], data["dated"]) == ("p", [0.0, 10.0, 20.0], False)
    assert [name for name, *_ in rows] == ["s0", "s1"]
    assert [[unpacked(text) for text in row[1:]] for row in rows] == [
        [[0, 1000, 31], []],
        [[1000, 125, 0], [0, 500, 0]],
    ]


@given(st.lists(st.floats(0, 100), max_size=20))
@settings(derandomize=True, max_examples=50)
def test_packed_values_are_right_to_half_a_tenth(values: list[float]) -> None:
    text = packed(np.array(values))
    assert len(text) in {0, 2 * len(values)}
    for digits, value in zip(unpacked(text) or [0] * len(values), values, strict=True):
        assert abs(digits / 10 - value) <= 0.05 + 1e-9


def unpacked(text: str) -> list[int]:
    return [int(text[i : i + 2], 32) for i in range(0, len(text), 2)]


def test_names_that_shorten_to_the_same_stay_apart() -> None:
    long = [f"{'a' * 40}{middle}{'z' * 40}" for middle in "xy"]
    rows = frame([0.0, 60.0], tuple(long))
    rows = rows.with_columns(waiting_jobs=pl.Series([1.0, 1.0, 2.0, 2.0]))
    first, second = drawn("chart-replay-queue", rows).panels[0]["curves"]
    assert first["name"] == second["name"]
    assert [first["raw"], second["raw"]] == long
    assert [first["y"], second["y"]] == [[1, 1], [2, 2]]


def test_nodes_that_are_down_are_crossed_out() -> None:
    assert "line: down" in heat([[50.0, 50.0]], [[49.0, 50.0]]).svg
    assert "line: down" not in heat([[50.0, 50.0]], [[49.0, 49.0]]).svg


def test_a_heat_map_names_which_node_is_where(three: dict[str, Drawing]) -> None:
    assert three["chart-replay-heatmap"].remarks == (
        "Rows are nodes in the cluster's order: gpu000 to gpu001 at the top, gpu089 at the bottom.",
    )
    assert heat([[1.0]]).remarks == ("Rows are nodes in the cluster's order: s0.",)


def test_a_heat_map_is_small() -> None:
    # at random, every cell differs from its neighbour: the worst case
    assert len(drawings(("fifo",), jobs=8000)["chart-replay-heatmap"].svg) < 120_000


def test_without_preemptions_there_is_nothing_to_draw() -> None:
    columns = ("of_1_gpu", "of_2_to_4_gpus", "of_5_to_8_gpus", "of_9_gpus_and_more")
    d = drawn("chart-replay-preemptions", pl.DataFrame({"policy": ["a"], **{c: [0] for c in columns}}))
    assert "only zeros" in d.missing
