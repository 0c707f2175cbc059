"""All numbers of a page as CSV, in headless Chromium: by figure, and all of them in one ZIP file."""

from __future__ import annotations

import csv
import io
import math
import re
import xml.etree.ElementTree as ET
import zipfile
from datetime import datetime
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.replay.results.tables import result
from gpuctl.reports.export.files import write_dir
from gpuctl.reports.figures import ANALYSES, REPLAYS, on
from tests.browser.conftest import replayed, several
from tests.result_tables import table_of
from tests.unit.reports.fakes import HOSTILE, make_analysis

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from gpuctl.core.results import Analysis
    from tests.browser.conftest import Opened

pytestmark = pytest.mark.browser
CHARTS, REPLAY_CHARTS = on(ANALYSES, "page"), on(REPLAYS, "page")

AROUND = {"contents", "standout", "headlines", "provenance", "definitions", "sources", "metrics", "checks"}


def saved(page: Page, button: Locator) -> tuple[str, bytes]:
    with page.expect_download() as download:
        button.click()
    return download.value.suggested_filename, download.value.path().read_bytes()


def rows(text: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.decode(), newline="")))


def of_figure(page: Page, name: str) -> list[list[str]]:
    figure = page.locator(f'figure[data-chart="{name}"]')
    file, text = saved(page, figure.locator(".csv"))
    assert file == f"{name}.csv"
    return rows(text)


def archive(page: Page) -> dict[str, list[list[str]]]:
    name, text = saved(page, page.locator(".everything"))
    assert name == "gpuctl-report.zip"
    with zipfile.ZipFile(io.BytesIO(text)) as opened:
        # reads every file and compares its checksum
        assert opened.testzip() is None
        assert all(info.compress_type == zipfile.ZIP_STORED for info in opened.infolist())
        return {info.filename.removesuffix(".csv"): rows(opened.read(info)) for info in opened.infolist()}


def test_a_curve_as_csv(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    head, *points = of_figure(page, "chart-runtime-cdf")
    assert head == ["size_bucket", "minutes", "cdf_pct"]
    assert {size for size, _, _ in points} == {"1", "2-4", "5-8", ">8"}
    drawn = next(t for t in make_analysis(points=2000, rows=60).tables if t.name == "runtime_cdf").frame
    exact = {(s, round(y, 2)): x for s, x, y in drawn.rows()}
    assert len(points) > 1000
    for size, x, y in points:
        assert float(x) == pytest.approx(exact[size, float(y)], rel=5e-4)


def test_levels_as_csv(opened: Callable[..., Opened]) -> None:
    head, *points = of_figure(opened(keep=True).page, "chart-occupancy")
    assert head == ["measure", "ts", "value"]
    assert {measure for measure, _, _ in points} == {"gpus_busy", "gpus_total", "gpus_waited_for"}
    assert {value for measure, _, value in points if measure == "gpus_total"} == {"2490"}
    assert all(datetime.fromisoformat(ts).utcoffset() is not None for _, ts, _ in points)


def test_bars_as_csv_are_the_rows_of_the_table(opened: Callable[..., Opened]) -> None:
    head, *bars = of_figure(opened(keep=True).page, "chart-delay-by-queue")
    table = next(t for t in make_analysis(points=5).tables if t.name == "delay_by_queue").frame
    assert head[0] == "queue"
    kept = [[name, *map(float, values)] for name, *values in bars]
    assert kept == [list(row) for row in table.select(head).rows() if row[0] != "all"]
    assert {name for name, *_ in bars} >= set(HOSTILE)


def test_figures_of_a_replay_as_csv(opened: Callable[..., Opened], replay_report: Path) -> None:
    page = opened(path=replay_report, keep=True).page
    names = {HOSTILE[0], HOSTILE[3], "fifo", "tiresias"}
    head, *levels = of_figure(page, "chart-replay-queue")
    assert head == ["measure", "policy", "ts", "value"]
    assert {(m, p) for m, p, _, _ in levels} == {(m, p) for m in ("waiting_jobs", "gpus_waiting") for p in names}
    head, *levels = of_figure(page, "chart-replay-busy")
    assert {m for m, *_ in levels} == {"gpus_busy", "gpus_available"}
    head, *cells = of_figure(page, "chart-replay-heatmap")
    assert head == ["policy", "nodes", "ts", "busy_pct", "down_pct"]
    assert {p for p, *_ in cells} == names
    # at most 64 rows of nodes, 100 periods, four policies
    assert len(cells) == len({s for _, s, *_ in cells}) * 100 * 4
    assert all(0 <= float(busy) <= 100 for *_, busy, _ in cells)
    assert any(float(down) == 100 for *_, down in cells)
    assert len({busy for *_, busy, _ in cells}) > 50
    head, *bars = of_figure(page, "chart-replay-gantt")
    assert head == [
        "policy", "node", "what", "job", "user", "queue", "gpus", "counted_gpus", "beside", "ts", "ts_end",
    ]  # fmt: skip
    frame = table_of(result(*replayed(), tables=("replay_gantt",)), "replay_gantt").frame
    jobs = frame.filter(pl.col("what") == "job")
    told = sorted((b[0], b[1], b[3], b[5], float(b[6]), datetime.fromisoformat(b[9]).timestamp()) for b in bars if b[3])
    exact = jobs.select("policy", "node", "job", "queue", pl.col("gpus").cast(float), pl.col("ts").dt.epoch("ms"))
    for ours, theirs in zip(told, sorted(exact.rows()), strict=True):
        # moments in the page are right to a tenth of a second
        assert (ours[:5], ours[5]) == (theirs[:5], pytest.approx(theirs[5] / 1000, rel=0, abs=0.06))


def number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def same(ours: str, theirs: str) -> bool:
    a, b = number(ours), number(theirs)
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-15))


def test_everything_is_in_one_file(opened: Callable[..., Opened], tmp_path: Path) -> None:
    page = opened().page
    page.locator("#reasons .filter").fill("script")
    page.locator("#status-table th button").first.click()
    files = archive(page)
    analysis = make_analysis(points=2000, rows=60)
    write_dir(analysis, tmp_path, "csv")
    shown = {t.name for t in analysis.tables if not t.detail and t.frame.height}
    assert set(files) == shown | {c.name for c in CHARTS} | AROUND - {"checks"}
    for name in shown:
        # what the program itself writes, all rows, in its order, whatever is filtered or sorted in the page
        written = rows((tmp_path / f"{name}.csv").read_bytes())
        assert [len(row) for row in files[name]] == [len(row) for row in written], name
        for ours, theirs in zip(files[name], written, strict=True):
            assert all(map(same, ours, theirs)), (name, ours, theirs)


def test_the_archive_states_what_is_in_it(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    assert page.locator("figure.figure").count() == page.locator("figure.figure > .csv").count() == len(CHARTS)
    files = archive(page)
    assert {chart.name for chart in CHARTS} <= set(files)
    head, *contents = files["contents"]
    assert head == ["file", "title", "result", "rows", "rows_in_all"]
    assert {row[0].removesuffix(".csv") for row in contents} == set(files) - {"contents"}
    for file, _, _, count, _ in contents:
        assert len(files[file.removesuffix(".csv")]) == int(count) + 1, file
    meant = {(table, column) for table, column, *_ in files["definitions"]}
    assert {("status", "jobs_pct"), ("runtime_cdf", "minutes"), ("totals", "gpus")} <= meant
    assert ["", "Command", "gpuctl analyze /logs --html report.html"] in files["provenance"]
    assert any(row[1] == "Jobs" and row[2] == "96,260" for row in files["headlines"])


def test_no_number_of_a_figure_is_only_in_its_drawing(opened: Callable[..., Opened], replay_report: Path) -> None:
    page = opened(path=replay_report, keep=True).page
    # of several policies there are two more: rho and Jain's index
    assert page.locator("figure.figure").count() == len(REPLAY_CHARTS) + 2
    assert page.locator("figure.figure > .csv").count() == len(REPLAY_CHARTS) + 2
    assert {chart.name for chart in REPLAY_CHARTS} <= set(archive(page))


def test_cut_tables_report_it(opened: Callable[..., Opened], tmp_path: Path) -> None:
    from gpuctl.reports.html import write_html

    write_html(make_analysis(points=20, rows=1200), tmp_path / "big.html")
    page = opened(path=tmp_path / "big.html").page
    card = page.locator("#reasons")
    assert card.locator(".count").text_content() == "the first 500 of 1,200 rows"
    assert "are in this page and in its CSV" in (card.locator(".remark").last.text_content() or "")
    card.locator(".filter").fill("job-049")
    assert card.locator(".count").text_content() == "10 of the first 500 of 1,200 rows"
    files = archive(page)
    assert ["reasons.csv", "Reasons", "", "500", "1200"] in files["contents"]


def test_several_results_have_files_of_their_own(opened: Callable[..., Opened], several_report: Path) -> None:
    page = opened(path=several_report).page
    names = page.locator(".grid, .upright, .figure").evaluate_all("(all) => all.map((e) => e.dataset.name)")
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in names)
    ending = "--img-src-x-onerror-alert-3"
    page.locator("summary:has(#section-failures-title)").click()
    file, text = saved(page, page.locator("#reasons--2 .csv"))
    assert file == f"reasons{ending}.csv"
    assert len(rows(text)) == 22
    files = archive(page)
    assert {"reasons--philly", f"reasons{ending}", f"chart-runtime-cdf{ending}", "checks", "metrics"} <= set(files)
    assert files["metrics"][0][:5] == ["figure", "metric", "unit", "philly", HOSTILE[3]]
    of = {file: result for file, _, result, *_ in files["contents"]}
    assert of["reasons--philly.csv"] == "philly"
    assert of[f"chart-runtime-cdf{ending}.csv"] == HOSTILE[3]
    first, second = (by_reason(analysis) for analysis in several(2))
    assert len(first) != len(second)
    assert [row[0] for row in files["reasons--philly"][1:]] == first
    assert [row[0] for row in files[f"reasons{ending}"][1:]] == second


def test_commands_and_one_row_tables_of_each_result(opened: Callable[..., Opened], sample_report: Path) -> None:
    files = archive(opened(path=sample_report, keep=True).page)
    head, *lines = files["provenance"]
    assert head == ["result", "name", "value"]
    commands = {result: value.split()[1] for result, name, value in lines if name == "Command"}
    assert commands == {"": "report", "failures": "analyze", "jobs.csv on 16x8": "replay", "pickyman": "predict"}
    assert ["pickyman", "epochs", "5"] in lines
    assert any(result == "pickyman" and name == "warning" for result, name, _ in lines)

    head, line = files["overview--failures"]
    found = dict(zip(head, line, strict=True))
    assert (found["cluster"], found["jobs"], found["queues"]) == ("failures", "480", "1")
    assert all(math.isfinite(float(found[name])) for name in ("attempts", "occupancy_pct", "gpu_samples", "gpu_hours"))


def by_reason(analysis: Analysis) -> list[str]:
    return next(t for t in analysis.tables if t.name == "reasons").frame["reason"].to_list()


def test_the_page_of_a_job_as_csv(opened: Callable[..., Opened], explain_report: Path) -> None:
    page = opened(path=explain_report, keep=True).page
    name, text = saved(page, page.locator(".story"))
    assert name == "job.csv"
    head, *lines = rows(text)
    assert head == ["block", "about", "label", "text"]
    facts = page.locator(".facts dt")
    assert {line[2] for line in lines} >= set(facts.all_text_contents())
    assert {line[0] for line in lines} == set(page.locator(".card h3").all_text_contents())
    assert len(lines) == facts.count() + page.locator(".card p, .card .evidence").count()


def test_islands_are_small(opened: Callable[..., Opened], replay_report: Path) -> None:
    page = opened(path=replay_report, keep=True).page
    sizes: Mapping[str, int] = page.evaluate(
        """Object.fromEntries([...document.querySelectorAll('.figure')].map((f) =>
        [f.dataset.chart, f.querySelector('.points, .values').textContent.length]))"""
    )
    assert max(sizes.values()) < 120_000


def test_a_figure_as_svg(opened: Callable[..., Opened]) -> None:
    page = opened().page
    figure = page.locator('figure[data-chart="chart-wait-cdf"]')
    file, text = saved(page, figure.locator(".drawing"))
    assert file == "chart-wait-cdf.svg"
    svg = ET.fromstring(text)
    assert svg.tag == "{http://www.w3.org/2000/svg}svg"
    assert b"var(" not in text, "colours of the page are in the file"
    labels = [label.text for label in svg.iter("{http://www.w3.org/2000/svg}text")]
    legend = figure.locator(".legend li").all_inner_texts()
    assert labels[-len(legend) :] == legend
    assert float(svg.attrib["height"]) > float(figure.locator("svg.chart").get_attribute("viewBox").split()[3])
