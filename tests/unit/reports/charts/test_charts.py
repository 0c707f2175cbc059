from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuctl.core.charts import Chart, declared
from gpuctl.replay.results.tables import result
from gpuctl.reports.charts import curves
from gpuctl.reports.charts.curves import mean_by_bin, thin_curve
from gpuctl.reports.charts.registry import KINDS, Drawing, draw, draw_all
from gpuctl.reports.charts.svg import drawing_settings, new_figure, to_svg
from gpuctl.reports.figures import ANALYSES, GROUPS, PREDICTIONS, REPLAYS, SCORES, on
from tests.unit.replay.outcomes import make_cluster, random_outcome, random_workload
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

CHARTS, REPLAY_CHARTS = on(ANALYSES, "page"), on(REPLAYS, "page")
[PREDICTION_CHART], [TRAINING_CHART] = on(PREDICTIONS, "page"), on(SCORES, "page")
CSS = Path(curves.__file__).parents[1].joinpath("assets").joinpath("report.css").read_text("utf-8")


def drawn(name: str, frame: pl.DataFrame) -> Drawing:
    chart = next(c for c in CHARTS if c.name == name)
    with drawing_settings():
        return draw(chart, table(chart.table, "s", frame))


@pytest.fixture(scope="module")
def drawings() -> tuple[Drawing, ...]:
    return draw_all(make_analysis(points=2000))


@pytest.fixture(scope="module")
def every_table() -> dict[str, pl.DataFrame]:
    workload = random_workload(40, seed=1)
    replayed = result([random_outcome(workload, seed=s, policy=str(s)) for s in (1, 2)], workload, make_cluster(4, 8))
    analyses = (make_analysis(points=60), replayed)
    found = {each.name: each.frame for analysis in analyses for each in analysis.tables}
    times = {c: [60.0, 90.0, 80.0] for c in PREDICTION_CHART.y}
    found["predictions"] = pl.DataFrame({"job": ["a", "b", "c"], **times})
    scores = {c: [1.0, 2.0, 3.0] for c in TRAINING_CHART.y}
    found["runtime_scores"] = pl.DataFrame({"predictor": ["a", "b", "c"], "measure": ["median_ape_pct"] * 3, **scores})
    return found


def test_every_chart_is_drawn(drawings: tuple[Drawing, ...]) -> None:
    assert [d.name for d in drawings] == [c.name for c in CHARTS]
    assert [d.missing for d in drawings] == [""] * len(CHARTS)


def test_chart_names_are_unique_and_kinds_known() -> None:
    every = on(itertools.chain.from_iterable(GROUPS), "page")
    assert len({c.name for c in every}) == len(every)
    assert {c.kind for c in every} == set(KINDS)


def test_figures_take_their_colours_from_the_page(drawings: tuple[Drawing, ...]) -> None:
    for d in drawings:
        assert not re.search(r"#[0-9a-f]{6}", d.svg), d.name
        assert "style=" not in d.svg
        assert "<use" not in d.svg
        assert not re.search("<text[^>]* fill=", d.svg), d.name
    assert ".chart text { fill: currentColor" in CSS


def test_ids_are_unique_over_all_figures_and_every_reference_is_met(drawings: tuple[Drawing, ...]) -> None:
    page = "".join(d.svg for d in drawings)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= set(ids)


def test_figures_are_well_formed_and_named_for_screen_readers(drawings: tuple[Drawing, ...]) -> None:
    for d in drawings:
        root = ET.fromstring(d.svg)
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-labelledby"] == f"{d.name}-title {d.name}-desc"
        assert root.findtext("title") == d.title
        assert re.search(r"\d", root.findtext("desc") or ""), d.name


def test_hostile_names_are_text_in_figures(drawings: tuple[Drawing, ...]) -> None:
    svg = next(d.svg for d in drawings if d.name == "chart-delay-by-queue")
    texts = [t.text for t in ET.fromstring(svg).iter("text")]
    for name in (*HOSTILE[:4], "$x^2$ | a\\b | =1+1"):
        assert name in texts
    assert "<script" not in svg
    assert "<img" not in svg


def test_drawing_again_under_other_matplotlib_settings_gives_the_same_bytes(drawings: tuple[Drawing, ...]) -> None:
    import matplotlib as mpl

    with mpl.rc_context({"axes.facecolor": "red", "font.size": 40, "lines.linewidth": 9, "svg.fonttype": "path"}):
        assert draw_all(make_analysis(points=2000)) == drawings
        assert mpl.rcParams["font.size"] == 40


def test_curves_have_few_points(drawings: tuple[Drawing, ...]) -> None:
    for d in drawings:
        drawn_points = [len(c["x"]) for p in d.panels for c in p["curves"]]
        assert sum(drawn_points) <= curves.FIGURE_POINTS
        assert max(drawn_points, default=0) <= curves.CURVE_POINTS


def test_a_cdf_reads_the_values_of_its_table() -> None:
    frame = pl.DataFrame(
        {"size_bucket": ["1"] * 3 + [">8"], "minutes": [1.0, 10.0, 100.0, 5.0], "cdf_pct": [25.0, 50.0, 100.0, 100.0]}
    )
    d = drawn("chart-runtime-cdf", frame)
    assert [k.label for k in d.keys] == ["1 GPU", ">8 GPUs"]
    (panel,) = d.panels
    assert panel["curves"][0] == {"name": "1 GPU", "raw": "1", "s": 1, "x": [1, 10, 100], "y": [25.0, 50.0, 100.0]}
    assert d.columns == ("", "size_bucket", "minutes", "cdf_pct")
    assert panel["x"] == (1.0, 100.0)
    assert "1 GPU: half are at most 10 min, 90 % at most 100 min." in d.svg


def test_only_the_rows_of_all_queues_are_drawn() -> None:
    frame = pl.DataFrame(
        {"size_bucket": ["1", "1"], "queue": ["all", "vc1"], "minutes": [1.0, 9.0], "cdf_pct": [100.0, 100.0]}
    )
    assert drawn("chart-wait-cdf", frame).panels[0]["curves"][0]["x"] == [1]


def test_zero_waits_stand_at_the_left_edge_and_that_is_reported() -> None:
    frame = pl.DataFrame(
        {"size_bucket": ["1"] * 3, "queue": ["all"] * 3, "minutes": [0.0, 0.0, 30.0], "cdf_pct": [30.0, 60.0, 100.0]}
    )
    d = drawn("chart-wait-cdf", frame)
    assert "logarithmic axis has no zero" in d.remarks[0]
    # what is read out and exported is what the table has
    assert d.panels[0]["curves"][0]["x"] == [0, 0, 30]


@pytest.mark.parametrize("minutes", [[0.0], [5.0], [5.0, 5.0], [1e-9], [1e7]])
def test_odd_times_are_drawn(minutes: list[float]) -> None:
    count = len(minutes)
    frame = pl.DataFrame({"size_bucket": ["1"] * count, "minutes": minutes, "cdf_pct": [100.0] * count})
    assert drawn("chart-runtime-cdf", frame).svg


def test_one_moment_and_missing_levels_are_drawn() -> None:
    frame = make_analysis(points=5).tables[2].frame
    assert drawn("chart-occupancy", frame.head(1)).svg
    holes = frame.with_columns(
        pl.when(pl.col("gpus_busy") == frame["gpus_busy"][0]).then(None).otherwise(7).alias("gpus_busy")
    )
    assert drawn("chart-occupancy", holes).remarks == ("1 row without a value not drawn.",)


@pytest.mark.parametrize("chart", [*CHARTS, *REPLAY_CHARTS, PREDICTION_CHART, TRAINING_CHART], ids=lambda c: c.name)
def test_whatever_is_not_known_a_chart_is_drawn_or_states_why_not(
    chart: Chart, every_table: dict[str, pl.DataFrame]
) -> None:
    """Real logs lack any column: the machines' GPUs, every GPU count, every wait."""
    frame = every_table[chart.table]
    held = [
        c for c in dict.fromkeys((chart.x, *chart.y, chart.series, chart.limit, chart.weight)) if c in frame.columns
    ]
    if chart.kind != "heat":  # which has one cell a row, and needs them all
        frame = frame.head(60)
    with drawing_settings():
        # half of the values of two columns are missing like half of one or of all
        for count, odd in {(1, False), (1, True), (2, False), (len(held), False), (len(held), True)}:
            for lost in itertools.combinations(held, count):
                gone = pl.int_range(pl.len()) % 2 == 0 if odd else pl.lit(value=True)
                holes = frame.with_columns(pl.when(gone).then(None).otherwise(pl.col(c)).alias(c) for c in lost)
                found = draw(chart, table(chart.table, "s", holes))
                assert bool(found.svg) != bool(found.missing), lost
                assert "nan" not in found.svg.lower(), lost


def test_columns_without_values_are_left_out_and_reported() -> None:
    frame = make_analysis(points=5).tables[2].frame
    unknown = drawn("chart-occupancy", frame.with_columns(gpus_total=pl.lit(None, pl.Float64)))
    assert [c["name"] for p in unknown.panels for c in p["curves"]] == ["GPUs busy", "GPUs waited for"]
    assert unknown.remarks == ("GPUs total: not known.",)
    nothing = drawn("chart-occupancy", frame.with_columns(pl.lit(None, pl.Float64).alias(c) for c in frame.columns[1:]))
    assert nothing.missing == "No row of the table occupancy has gpus_busy, gpus_total or gpus_waited_for."


def test_levels_over_time_are_means_of_whole_hours() -> None:
    d = drawn("chart-occupancy", make_analysis(points=5000).tables[2].frame)
    assert d.remarks == ("Each point is the mean over 6 hours.",)
    assert all(t % (6 * 3600_000) == 0 for t in d.panels[0]["curves"][0]["x"])


def test_many_categories_are_the_longest_ones_and_that_is_reported() -> None:
    frame = pl.DataFrame({"queue": [f"q{i}" for i in range(40)], "capacity_low_h": [float(i) for i in range(40)]})
    d = drawn("chart-delay-by-queue", frame)
    assert "q39" in d.svg
    assert ">q0<" not in d.svg
    assert "Of 40 rows, the 14 with the longest bars are drawn." in d.remarks


def test_a_chart_without_its_data_states_why() -> None:
    chart = next(c for c in CHARTS if c.name == "chart-wait-cdf")
    schema = {"size_bucket": pl.String, "queue": pl.String, "minutes": pl.Float64, "cdf_pct": pl.Float64}
    one = pl.DataFrame([["1", "vc1", 1.0, 100.0]], schema=schema, orient="row")
    with drawing_settings():
        reasons = [
            draw(chart, None).missing,
            draw(chart, table("wait_cdf", "s", pl.DataFrame(schema=schema))).missing,
            draw(chart, table("wait_cdf", "s", one)).missing,
            draw(chart, table("wait_cdf", "s", one.drop("minutes"))).missing,
        ]
    assert "has no table wait_cdf" in reasons[0] or "no table wait_cdf" in reasons[0]
    assert reasons[1:] == [
        "The table wait_cdf has no rows with queue all.",
        "The table wait_cdf has no rows with queue all.",
        "The table wait_cdf has no column minutes.",
    ]


def test_totals_are_no_bars_and_curves_of_ink(drawings: tuple[Drawing, ...]) -> None:
    by_name = {d.name: d for d in drawings}
    for name in ("chart-status", "chart-delay-by-size", "chart-delay-by-queue"):
        assert not [t for t in ET.fromstring(by_name[name].svg).iter("text") if (t.text or "").startswith("all")]
    keys = by_name["chart-gpu-util-cdf"].keys
    assert [(k.label, k.s) for k in keys] == [("all", 0), ("completed", 1), ("killed", 2), ("failed", 3)]
    assert [p["title"] for p in by_name["chart-gpu-util-cdf"].panels] == ["1 GPU", "4 GPUs", "8 GPUs", "16 GPUs"]


def test_demand_has_a_scale_of_its_own(drawings: tuple[Drawing, ...]) -> None:
    level, demand = next(d.panels for d in drawings if d.name == "chart-occupancy")
    assert [c["name"] for c in level["curves"]] == ["GPUs busy", "GPUs total"]
    assert [c["name"] for c in demand["curves"]] == ["GPUs waited for"]
    assert level["x"] == demand["x"]


def test_nothing_waited_is_reported() -> None:
    frame = pl.DataFrame({"queue": ["a"], "capacity_h": [0.0]})
    assert "only zeros" in drawn("chart-delay-by-queue", frame).missing


def test_a_new_chart_of_a_known_kind_is_one_row() -> None:
    chart, _ = declared("users", 'bars x=user y=jobs_pct title="Jobs by user"')
    with drawing_settings():
        assert draw(chart, table("users", "s", pl.DataFrame({"user": ["ann"], "jobs_pct": [7.5]}))).svg


def test_markers_are_refused() -> None:
    with drawing_settings():
        figure = new_figure(100, 100)
        figure.add_axes((0, 0, 1, 1)).plot([1, 2], [1, 2], marker="o")
        with pytest.raises(ValueError, match="no markers"):
            to_svg(figure, "p", "t", "d")


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=400), st.integers(2, 60))
def test_thinning_keeps_the_ends_and_leaves_no_wide_gap(steps: list[tuple[float, float]], limit: int) -> None:
    x, y = (np.cumsum([s[k] for s in steps]) for k in (0, 1))
    keep = thin_curve(x, y, limit)
    assert len(keep) <= max(limit, 1)
    assert keep[0] == 0
    assert (np.diff(keep) > 0).all()
    if len(x) <= limit:
        return
    spans = [float(v[-1] - v[0]) or 1.0 for v in (x, y)]
    length = sum(np.abs(np.diff(v)) / s for v, s in zip((x, y), spans, strict=True))
    for a, b in itertools.pairwise(keep):
        # Between two neighbours lies at most one share of the length, and the one step that crosses it.
        assert float(np.sum(length[a : b - 1])) <= 2 / (limit - 1) * 1.01 + 1e-9


@given(st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1000)), min_size=2, max_size=60), st.integers(1, 20))
def test_means_over_bins_keep_the_area(steps: list[tuple[int, float]], bins: int) -> None:
    at = np.cumsum([float(s[0]) for s in steps])
    values = np.array([s[1] for s in steps])
    edges = np.linspace(at[0], at[-1], bins + 1)
    area = float(np.sum(values[:-1] * np.diff(at)))
    assert float(np.sum(mean_by_bin(at, values, edges) * np.diff(edges))) == pytest.approx(area, rel=1e-9, abs=1e-6)


# ---- colours: told from the page and from one another, by all eyes (Machado, Oliveira, Fernandes 2009)

EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def light(colour: str) -> np.ndarray:
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(linear: np.ndarray) -> np.ndarray:
    t = XYZ @ np.clip(linear, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(a: str, b: str) -> float:
    low, high = sorted(float(XYZ[1] @ light(c)) for c in (a, b))
    return (high + 0.05) / (low + 0.05)


def palettes() -> list[dict[str, str]]:
    blocks = CSS.split("}")[:2]
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in blocks]


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark"])
def test_colours_stand_out(palette: dict[str, str]) -> None:
    for name in ("ink", "soft", "accent", "warn"):
        assert contrast(palette[name], palette["paper"]) >= 4.5, name
        assert contrast(palette[name], palette["panel"]) >= 4.5, name
    for number in range(1, 9):
        assert contrast(palette[f"s{number}"], palette["paper"]) >= 3, number


@pytest.mark.parametrize("palette", palettes(), ids=["light", "dark"])
@pytest.mark.parametrize("eye", EYES)
def test_the_first_five_colours_differ_for_all_eyes(palette: dict[str, str], eye: str) -> None:
    seen = [lab(np.array(EYES[eye]) @ light(palette[f"s{n}"])) for n in range(1, 6)]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) >= 12


def test_absent_tables_leave_sentences_in_place_of_figures() -> None:
    analysis = replace(make_analysis(points=5), tables=())
    assert all(d.missing and not d.svg for d in draw_all(analysis))


def test_a_part_has_its_colour_whatever_other_parts_there_are() -> None:
    parts = [f"part{n}_h" for n in range(9)]
    [chart, _] = declared("parts", f"stacked x=size y={','.join(parts)} title=Parts")

    def of(frame: pl.DataFrame) -> Drawing:
        with drawing_settings():
            return draw(chart, table("parts", "s", frame))

    every = {
        k.label: k.s for k in of(pl.DataFrame({"size": ["1"], **{p: [n + 1.0] for n, p in enumerate(parts)}})).keys
    }
    assert list(every.values())[:8] == list(range(1, 9))
    for at, part in enumerate(parts):
        alone = of(pl.DataFrame({"size": ["1"], part: [2.0]}))
        [key] = alone.keys
        assert f"var(--s{key.s})" in alone.svg
        if at < 8:
            assert every[key.label] == key.s
