from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.results import Analysis
from gpuctl.reports.html import PAGE_CELLS, render_html, render_report, write_html
from gpuctl.reports.report import labelled, summarize
from gpuctl.reports.summary import headlines
from tests.result_tables import table_of
from tests.unit.reports.fakes import HOSTILE, make_analysis, table

if TYPE_CHECKING:
    from pathlib import Path


class Page(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str, str]] = []
        self.styles: list[str] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type") or "", ""))

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._open == "style":
            self.styles.append(data)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    return make_analysis(points=400)


@pytest.fixture(scope="module")
def text(analysis: Analysis) -> str:
    return render_html(analysis)


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_nothing_points_outside_the_page(page: Page) -> None:
    for tag, attributes in page.tags:
        assert tag not in {"link", "img", "iframe", "object", "embed", "form", "base"}
        for name in ("src", "href", "action", "srcset", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#"), (tag, attributes)
    assert not re.search(r"@import|url\((?!#)", "".join(page.styles))


def test_the_policy_allows_this_script_and_style_and_nothing_else(page: Page) -> None:
    policy = next(a["content"] or "" for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    run = [body for kind, body in page.scripts if kind == ""]
    assert len(run) == 2
    for body in (*run, *page.styles):
        assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not [a for _, a in page.tags if "style" in a or any(n.startswith("on") for n in a)]


def test_data_islands_are_json_and_cannot_end_early(page: Page) -> None:
    islands = [body for kind, body in page.scripts if kind == "application/json"]
    assert not [body for body in islands if set(body) & set("<>&")]
    found = [json.loads(body) for body in islands]
    curves = [data for data in found if isinstance(data, list)]
    assert len(curves) == 10
    assert all(panel["curves"] for panels in curves for panel in panels)
    bars = [data for data in found if isinstance(data, dict)]
    assert len(bars) == 12
    assert all(len(row) == len(data["columns"]) for data in bars for row in data["rows"])


def test_a_curve_with_a_hostile_name_stays_in_its_island() -> None:
    frame = pl.DataFrame({"size_bucket": [HOSTILE[2]], "minutes": [1.0], "cdf_pct": [100.0]})
    hostile = Page(
        render_html(replace(make_analysis(points=5, names=()), tables=(table("runtime_cdf", "runtime", frame),)))
    )
    (island,) = [body for kind, body in hostile.scripts if kind == "application/json"]
    assert json.loads(island)[0]["curves"][0]["name"] == f"{HOSTILE[2]} GPUs"
    assert len(hostile.scripts) == 3


def test_hostile_strings_make_no_elements(page: Page, text: str) -> None:
    assert {a.get("type") for t, a in page.tags if t == "script"} <= {None, "application/json"}
    assert "alert(" not in "".join(body for kind, body in page.scripts if kind == "")
    assert not set(text) & {"\x00", "\x1b", "\u202e", "\u200b"}
    assert "{{ 7*7 }}{% raw %}" in text


def test_ids_are_unique_and_labels_meet_them(page: Page) -> None:
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("aria-labelledby", "aria-controls"):
            assert set((attributes.get(name) or "").split()) <= set(ids)
        href = attributes.get("href")
        assert href is None or href[1:] in ids


def test_tables_and_figures_are_labelled(page: Page, analysis: Analysis) -> None:
    tags = [t for t, _ in page.tags]
    shown = [t for t in analysis.tables if not t.detail and t.name != "totals" and t.frame.height]
    # those of the sources and of the metrics are the page's own
    assert tags.count("table") == tags.count("caption") == len(shown) + 2
    heads = [a for t, a in page.tags if t == "th" and a.get("scope") == "col"]
    assert len(heads) == sum(len(t.columns) for t in shown) + 8 + 10
    figures = [a for t, a in page.tags if t == "svg" and a.get("class") == "chart"]
    assert len(figures) == tags.count("figure") == 22
    assert {"nav", "main", "header", "h1", "h2", "h3"} <= set(tags)
    assert next(a for t, a in page.tags if t == "html")["lang"] == "en"


def test_population_notes_and_definitions_stand_by_every_table(text: str, analysis: Analysis) -> None:
    for t in analysis.tables:
        if t.name == "job_waits" or not t.frame.height:
            continue
        card = text.split(f'<article class="card" id="{t.name}"')[1].split("</article>", maxsplit=1)[0]
        assert t.population in card
        assert all(c.description in card for c in t.columns)
    assert "Quotas are inferred." in text


def test_provenance_is_complete(text: str, analysis: Analysis) -> None:
    block = text.split('id="provenance"')[1]
    assert analysis.command in block
    assert "828 read, 812 loaded, 16 rejected" in block
    assert all(s.sha256 in block for s in analysis.sources)
    assert "inferred" in block


def test_the_same_analysis_gives_the_same_page(text: str) -> None:
    assert render_html(make_analysis(points=400)) == text


def test_a_big_trace_makes_a_small_page(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    write_html(make_analysis(points=10_000, rows=30_000, jobs=30_000), place)
    assert place.stat().st_size < 1_000_000
    content = place.read_text("utf-8")
    assert "application_" not in content
    assert "The first 500 of 30,000 rows" in content
    assert "<code>job_waits</code> Job waits, 30,000 rows" in content


def test_three_big_traces_make_a_small_page() -> None:
    big = make_analysis(points=10_000, rows=30_000, jobs=30_000)
    parts = labelled([replace(big, cluster=name) for name in ("a", "b", "c")])
    assert len(render_report(parts, summarize(parts)).encode()) < 1_000_000


def test_hostile_names_of_several_results_make_no_elements() -> None:
    full = make_analysis(points=5)
    kept = {"totals", "status", "wait_cdf", "delay_by_queue", "job_waits", "reasons", "failure_reasons", "empty"}
    some = replace(full, tables=tuple(t for t in full.tables if t.name in kept))
    parts = labelled([replace(some, cluster=name) for name in HOSTILE])
    text = render_report(parts, summarize(parts, command=HOSTILE[2]))
    page = Page(text)
    assert "img" not in [tag for tag, _ in page.tags]
    assert {a.get("type") for t, a in page.tags if t == "script"} <= {None, "application/json"}
    assert "alert(" not in "".join(body for kind, body in page.scripts if kind == "")
    assert not set(text) & {"\x00", "\x1b", "\u202e", "\u200b"}
    files = [name for tag, a in page.tags if tag in {"div", "figure"} and (name := a.get("data-name"))]
    assert len(files) == len(set(files))
    assert all(re.fullmatch("[A-Za-z0-9._-]+", name) for name in files)


def test_a_wide_table_shows_its_key_columns_first() -> None:
    frame = pl.DataFrame({f"c{i}": [i] * 3 for i in range(1, 13)})
    wide = table("wide", "overview", frame)
    named = replace(wide, name="named", key_columns=("c1", "c3", "c12"))
    text = render_html(replace(make_analysis(points=5), tables=(wide, named), sources=()))
    classes = dict(re.findall(r'<table id="(\w+)-table" class="([^"]*)"', text))
    hidden = {name: [c for c in found.split() if c[0] == "h"] for name, found in classes.items()}
    assert hidden["wide"] == ["h9", "h10", "h11", "h12"]
    assert hidden["named"] == [f"h{k}" for k in range(2, 12) if k != 3]
    assert text.count(">All 12 columns</button>") == 2


def test_many_wide_tables_get_fewer_rows_each() -> None:
    frame = pl.DataFrame({f"c{i}": list(range(600)) for i in range(10)})
    many = replace(
        make_analysis(points=5), tables=tuple(table(f"t{i}", "overview", frame) for i in range(9)), sources=()
    )
    cells = len([t for t, _ in Page(render_html(many)).tags if t == "td"])
    assert 0 < cells <= PAGE_CELLS


def test_exact_values_stand_behind_rounded_ones(page: Page) -> None:
    exact = {a.get("data-v") for t, a in page.tags if t == "td"}
    assert {"0.30000000000000004", "2017-10-03T00:44:36Z", "66696"} <= exact
    written_out = {json.loads(a["data-j"] or "") for t, a in page.tags if a.get("data-j")}
    assert HOSTILE[4] in written_out
    assert None in written_out
    assert "" in written_out


def test_charts_without_tables_leave_a_sentence() -> None:
    full = make_analysis(points=20)
    few = replace(full, tables=tuple(t for t in full.tables if t.name in {"status", "empty"}))
    text = render_html(few)
    assert "no table gpu_util_cdf" in text
    assert "Not shown, because they are empty: Empty." in text
    assert 'id="empty-table"' not in text
    assert "Figures not on this page" in text


def test_an_empty_analysis_is_still_a_page() -> None:
    bare = Analysis(cluster="c", tables=(), sections=(), sources=(), settings={}, command="gpuctl", version="0")
    assert "<h1" in render_html(bare)


def test_a_page_replaces_the_old_one_whole(tmp_path: Path) -> None:
    place = tmp_path / "report.html"
    place.write_text("old")
    write_html(make_analysis(points=20), place)
    assert place.read_text("utf-8").startswith("<!doctype html>")
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


def test_headlines_are_taken_from_the_tables() -> None:
    analysis = make_analysis(points=50)
    lost = {
        "gpu_hours": [30.0, 70.0, 100.0],
        "retried_h": [1.0, 2.0, 3.0],
        "killed_h": 3 * [0.0],
        "failed_h": [4.0, 5.0, 9.0],
    }
    more = (
        table("gpu_hours_lost", "failures", pl.DataFrame({"size_bucket": ["1", "2-4", "all"], **lost})),
        table("overview", "overview", pl.DataFrame({"cluster": ["all"], "gpus": [200], "occupancy_pct": [62.5]})),
    )
    found = {h.label: h for h in headlines(replace(analysis, tables=(*analysis.tables, *more)))}
    assert found["Jobs"].value == "96,260"
    assert found["Jobs"].detail == "69.3\u00a0% completed"
    assert (found["GPU-hours"].value, found["GPU-hours"].detail[:4]) == ("100", "12.0")
    assert (found["GPUs allocated"].value, found["GPUs allocated"].detail) == ("62.5", "125 of 200 on average")
    delays = table_of(make_analysis(points=5), "delay_by_size")
    rows = delays.frame.filter(pl.col("size_bucket") != "all")
    hours = sum(float(rows[c].sum()) for c in ("fair_share_h", "capacity_h", "fragmentation_h", "scheduler_h"))
    assert found["Time in queue"].value == f"{hours:,.0f}"
    assert found["GPU utilization"].value == "50.1"
    assert headlines(replace(make_analysis(points=5), tables=())) == ()
