"""The HTML report in headless Chromium, opened from disk with the network off."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import pytest

from gpuctl.reports.figures import ANALYSES, REPLAYS, on
from gpuctl.reports.html import write_html
from tests.unit.reports.fakes import HOSTILE, make_analysis

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Opened

pytestmark = pytest.mark.browser
CHARTS, REPLAY_CHARTS = on(ANALYSES, "page"), on(REPLAYS, "page")

WIDTHS = (1280, 390)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_opens_from_disk_without_a_complaint_or_a_request(
    opened: Callable[..., Opened], report: Path, width: int, scheme: str, record_property: Callable[[str, object], None]
) -> None:
    page = opened(width, scheme, keep=True)
    assert page.requests == [report.as_uri()]
    assert page.page.locator("figure svg.chart").count() == len(CHARTS)
    assert page.page.evaluate("document.documentElement.dataset.theme") == scheme
    paint = page.page.evaluate("performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]")
    # For people who read the test report; a shared machine's clock proves nothing.
    record_property("first_paint_ms", paint)
    record_property("bytes", report.stat().st_size)


def test_a_page_of_many_jobs_is_light(
    opened: Callable[..., Opened], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    write_html(make_analysis(points=10_000, rows=30_000, jobs=30_000), tmp_path / "big.html")
    page = opened(path=tmp_path / "big.html").page
    assert (tmp_path / "big.html").stat().st_size < 1_000_000
    assert page.evaluate("document.querySelectorAll('*').length") < 20_000
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint').map((e) => e.startTime)[0]")
    record_property("first_paint_ms", paint)


@pytest.mark.parametrize("name", ["report", "replay_report"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_key_figures_and_the_first_finding_are_on_the_first_screen(
    opened: Callable[..., Opened], request: pytest.FixtureRequest, name: str, width: int, height: int
) -> None:
    page = opened(width, path=request.getfixturevalue(name), keep=True).page
    page.set_viewport_size({"width": width, "height": height})
    below = page.evaluate(
        """() => ['.headlines', '.standouts', '#lead svg.chart', '.warnings']
        .map((s) => document.querySelector(s).getBoundingClientRect()).map((b) => [b.top, b.bottom])"""
    )
    assert below[0][1] <= height
    assert below[1][0] + 100 <= height
    assert below == sorted(below)
    assert page.locator(".warnings li").first.is_visible() == (width > 960)
    drawn = page.evaluate("[...document.querySelectorAll('#lead .figure')].map((f) => f.dataset.chart)")
    assert drawn == (["chart-occupancy"] if name == "report" else ["chart-replay-wait-mean", "chart-replay-wait-p95"])


def test_figures_are_as_wide_as_their_column(opened: Callable[..., Opened]) -> None:
    page = opened().page
    for width in (1280, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        shown = page.locator("svg.chart").evaluate_all(
            """async (all) => { await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return all.map((e) => [e.clientWidth, e.closest('.card').clientWidth, e.viewBox.baseVal.width]); }"""
        )
        assert len(shown) == len(CHARTS)
        for drawn, card, box in shown:
            assert drawn == card
            # letters are as large as elsewhere
            assert box == pytest.approx(drawn, abs=1)


def test_the_page_never_scrolls_sideways(opened: Callable[..., Opened]) -> None:
    # a narrow one neither: test_report_access.py
    page = opened().page
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    inner, scroll = page.evaluate("[innerWidth, document.documentElement.scrollWidth]")
    assert scroll <= inner == 1280
    outside = page.evaluate(
        """() => [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, caption, svg'))
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className)"""
    )
    assert outside == []


@pytest.mark.parametrize("width", WIDTHS)
def test_text_in_figures_is_legible_and_inside_the_screen(opened: Callable[..., Opened], width: int) -> None:
    page = opened(width, keep=True).page
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('svg.chart text')].map((t) => {
          const b = t.getBoundingClientRect(), s = t.ownerSVGElement;
          const scale = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
          return [t.textContent, b.left, b.right, parseFloat(getComputedStyle(t).fontSize) * scale]; })"""
    )
    assert len(boxes) > 100
    assert min(size for *_, size in boxes) >= 9.5
    for label, left, right, _ in boxes:
        assert left >= 0, label
        assert right <= width, label


def test_ids_are_unique(opened: Callable[..., Opened]) -> None:
    ids = opened(keep=True).page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


def test_hostile_names_are_text(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    names = page.locator("#reasons tbody th").all_text_contents()
    assert names[:4] == list(HOSTILE[:4])
    assert names[4] == "right\\u202eleft\\u200bzero\\x1b[31mred\\x00nul\\nline"
    assert page.locator("img, iframe").count() == 0
    drawn = page.locator("#chart-delay-by-queue text").all_text_contents()
    assert set(HOSTILE[:4]) <= set(drawn)


def column(page: Page, table: str, index: int) -> list[str]:
    return page.locator(f"#{table}-table tbody tr:not([hidden]) > :nth-child({index})").all_text_contents()


def test_sorting_by_mouse_and_by_keyboard(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    before = column(page, "status", 3)
    head = page.locator("#status-table th", has_text="jobs").first
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, "status", 3) == ["19", "9,345", "20,200", "66,696", "96,260"]
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "status", 3) == ["96,260", "66,696", "20,200", "9,345", "19"]
    head.locator("button").press("Space")
    assert head.get_attribute("aria-sort") == "none"
    assert column(page, "status", 3) == before


def test_missing_values_stay_last(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    button = page.locator("#reasons-table th", has_text="lost GPU hours").locator("button")
    assert column(page, "reasons", 5)[3] == "\u2013"
    for first in ("0.300", "59.3"):
        button.click()
        cells = column(page, "reasons", 5)
        assert (cells[0], cells[-1]) == (first, "\u2013")
    button.click()
    assert column(page, "reasons", 5)[3] == "\u2013"


def test_filter_and_csv_give_the_rows_that_are_shown(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    card = page.locator("#reasons")
    card.locator(".filter").fill("GPU[001")
    assert card.locator(".count").text_content() == "53 of 60 rows"
    card.locator(".filter").fill("script")
    assert card.locator(".count").text_content() == "2 of 60 rows"
    card.locator(".filter").fill("")
    assert card.locator(".count").text_content() == "60 rows"
    with page.expect_download() as download:
        card.locator(".csv").click()
    assert download.value.suggested_filename == "reasons.csv"
    text = download.value.path().read_bytes().decode()
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    assert head == ["reason", "queue", "first_ts", "jobs", "lost_gpu_hours", "share_pct"]
    assert [row[0] for row in rows[: len(HOSTILE)]] == list(HOSTILE)
    assert rows[0][2:] == ["2017-10-03T00:44:36Z", "5000", "0.30000000000000004", "100.0"]
    assert ',"",2017-' in text
    assert ",,2017-" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_a_table_shows_few_columns_and_points_at_those_beyond_its_edge(
    opened: Callable[..., Opened], replay_report: Path, width: int
) -> None:
    page = opened(width, path=replay_report).page
    shown = "(all) => all.map((t) => [...t.tHead.rows[0].cells].filter((c) => c.offsetWidth).length)"
    assert all(3 <= count <= 8 for count in page.locator("#main table").evaluate_all(shown))
    each = """(all) => all.map((f) => [f.firstElementChild.scrollWidth > f.firstElementChild.clientWidth + 1,
        getComputedStyle(f, '::after').content !== 'none'])"""
    # the page looks at its tables after they are drawn; its security policy forbids Playwright's wait_for_function
    for _ in range(100):
        cues = page.locator(".frame").evaluate_all(each)
        if all(clipped == cued for clipped, cued in cues):
            break
        page.wait_for_timeout(50)
    assert all(clipped == cued for clipped, cued in cues)
    # on a wide screen few columns have room
    assert sum(clipped for clipped, _ in cues) <= (1 if width > 900 else len(cues))
    button = page.locator("#replay_summary .columns")
    assert button.text_content() == f"All {page.locator('#replay_summary-table thead th').count()} columns"
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator("#replay_summary-table thead th:visible").count() > 50
    # the page looks at it after the columns are drawn
    page.locator("#replay_summary .frame.more").wait_for()
    page.locator("#replay_summary .scroll").evaluate("(one) => { one.scrollLeft = one.scrollWidth; }")
    page.locator("#replay_summary .frame:not(.more)").wait_for()


def test_a_single_row_is_a_list_and_gives_csv(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    assert page.locator("#totals dt").count() >= 7
    with page.expect_download() as download:
        page.locator("#totals .csv").click()
    text = download.value.path().read_bytes().decode()
    assert text.splitlines() == [
        "jobs,queues,users,gpus,gpu_hours,first_ts,completed_pct",
        "96260,15,319,2490,3595433.28,2017-08-07T08:00:00Z,69.2873",
    ]


def test_a_moment_is_read_in_all_panels_of_its_figure(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    figure = page.locator('figure[data-chart="chart-occupancy"]')
    figure.locator("svg.chart").focus()
    figure.locator("svg.chart").press("ArrowRight")
    shown = figure.locator(".readout").text_content() or ""
    assert all(name in shown for name in ("UTC: ", "GPUs busy ", "GPUs total 2,490", "GPUs waited for "))
    assert figure.locator(".marks line").count() == 2


def test_theme_is_changed_and_remembered(opened: Callable[..., Opened]) -> None:
    page = opened().page
    paper = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(paper)
    page.locator(".theme").click()
    assert page.evaluate(paper) != before
    assert page.locator(".theme").get_attribute("aria-pressed") == "true"
    # On a busy machine Chromium itself now and then loses what a page from disk stores (4 of 160 times, the page still
    # open), so the next page gets it from here, once.
    stored = page.evaluate("JSON.stringify(Object.entries(localStorage))")
    page.evaluate("window.name = 'again'")
    page.context.add_init_script(
        "if (window.name === 'again') { window.name = '';"
        f"for (const [name, value] of {stored}) localStorage.setItem(name, value); }}"
    )
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.locator(".theme").click()
    assert page.evaluate("Object.values(localStorage)") == ["light"]


def test_figures_take_the_colours_of_the_theme(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    marks = "[...document.querySelectorAll('#chart-status path, #chart-status text')]"
    colours = f"{marks}.map((e) => getComputedStyle(e).fill).join()"
    before = page.evaluate(colours)
    page.locator(".theme").click()
    assert page.evaluate(colours) != before
    page.locator(".theme").click()
    assert page.evaluate(colours) == before
    page.evaluate("localStorage.clear()")


def test_values_are_read_out_by_pointer_and_by_keyboard(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    figure = page.locator('figure[data-chart="chart-runtime-cdf"]')
    svg, readout = figure.locator("svg.chart"), figure.locator(".readout")
    points = json.loads(figure.locator("script.points").text_content() or "")[0]
    svg.scroll_into_view_if_needed()
    box = svg.bounding_box()
    assert box is not None
    left, top, width, height = points["box"]
    page.mouse.move(box["x"] + (left + width * 0.5) * box["width"] / 560, box["y"] + top + height * 0.5)
    middle = (points["x"][0] * points["x"][1]) ** 0.5
    curve = points["curves"][0]
    expected = max(y for x, y in zip(curve["x"], curve["y"], strict=True) if x <= middle * 1.01)
    shown = readout.text_content() or ""
    assert "1 GPU" in shown
    value = float(shown.split("1 GPU ")[1].split(" %")[0])
    assert abs(value - expected) < 1
    assert figure.locator("svg .marks circle").count() == 4
    svg.focus()
    svg.press("End")
    assert "1 GPU 100 %" in (readout.text_content() or "")
    svg.press("ArrowLeft")
    assert "1 GPU" in (readout.text_content() or "")
    page.locator(".theme").focus()
    page.mouse.move(5, 5)
    assert "Hover or use arrow keys" in (readout.text_content() or "")


PLACES = """(one) => [...one.querySelectorAll('[data-p="0"] [data-a] text, [data-p="0"] .zoomed text')]
.filter((t) => t.getBoundingClientRect().width).map((t) => t.textContent)"""


def test_a_figure_zooms_by_dragging_and_by_keyboard(opened: Callable[..., Opened]) -> None:
    page = opened().page
    figure = page.locator('figure[data-chart="chart-occupancy"]')
    svg, reset = figure.locator("svg.chart"), figure.locator(".reset")
    svg.scroll_into_view_if_needed()
    line = "(one) => one.querySelector('[data-p=\"0\"] [data-k=\"1\"] path:not([fill])').getAttribute('d')"
    ticks, path = svg.evaluate(PLACES), svg.evaluate(line)
    assert not reset.is_visible()
    box = svg.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 300, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 120, steps=2)
    page.mouse.up()
    zoomed = svg.evaluate(PLACES)
    assert 2 <= len(zoomed) <= 8
    assert zoomed != ticks
    assert svg.evaluate(line) != path
    # values are those of the part that is shown
    svg.focus()
    svg.press("Home")
    first = (figure.locator(".readout").text_content() or "").partition(" UTC")[0]
    svg.press("End")
    last = (figure.locator(".readout").text_content() or "").partition(" UTC")[0]
    assert "2017-10-03" < first < last < "2017-12-16"
    assert figure.locator(".marks circle").count() == 3
    reset.click()
    assert (svg.evaluate(PLACES), svg.evaluate(line)) == (ticks, path)
    svg.press("+")
    assert svg.evaluate(PLACES) != ticks
    svg.press("-")
    assert (svg.evaluate(PLACES), svg.evaluate(line)) == (ticks, path)
    for name in ("chart-runtime-cdf", "chart-gpu-util-cdf"):
        other = page.locator(f'figure[data-chart="{name}"] svg.chart')
        for _ in range(3):
            other.press("+")
        assert 1 <= len(other.evaluate(PLACES)) <= 8, name


def test_legends_switch_series(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    figure = page.locator('figure[data-chart="chart-runtime-cdf"]')
    key = figure.locator(".legend button", has_text="2-4 GPUs")
    lines = figure.locator('svg.chart [data-k="2"] path')
    assert (key.get_attribute("aria-pressed"), lines.first.is_visible()) == ("true", True)
    key.press("Enter")
    assert (key.get_attribute("aria-pressed"), lines.first.is_visible()) == ("false", False)
    figure.locator("svg.chart").press("End")
    shown = figure.locator(".readout").text_content() or ""
    assert "2-4 GPUs" not in shown
    assert "5-8 GPUs" in shown
    key.click()
    assert lines.first.is_visible()


def test_all_controls_are_reached_by_tab_and_show_where_they_are(opened: Callable[..., Opened]) -> None:
    page = opened().page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"A", "BUTTON", "SUMMARY"} <= seen


def test_contents_collapse_on_a_narrow_screen(opened: Callable[..., Opened]) -> None:
    page = opened(390).page
    assert not page.locator(".contents a").first.is_visible()
    page.locator(".contents summary").click()
    page.locator('.contents a[href="#delay_by_size"]').click()
    assert not page.locator(".contents a").first.is_visible()
    assert opened(1280).page.locator(".contents a").first.is_visible()


def test_without_scripts_all_is_there_but_the_controls(opened: Callable[..., Opened]) -> None:
    page = opened(scripts=False).page
    assert page.locator("figure svg.chart").count() == len(CHARTS)
    assert page.locator("#status-table tbody tr").count() == 5
    assert not page.locator(".csv").first.is_visible()
    assert not page.locator(".theme").is_visible()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_replay(opened: Callable[..., Opened], replay_report: Path, width: int) -> None:
    page = opened(width, path=replay_report, keep=True).page
    # two more are drawn of several policies: rho and Jain's index
    assert page.locator("figure svg.chart").count() == len(REPLAY_CHARTS) + 2
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
    assert page.locator("img, iframe").count() == 0
    boxes = page.evaluate(
        """() => [...document.querySelectorAll('svg.chart text')].map((t) => {
          const b = t.getBoundingClientRect(), s = t.ownerSVGElement;
          const scale = s.getBoundingClientRect().width / s.viewBox.baseVal.width;
          return [t.textContent, b.left, b.right, parseFloat(getComputedStyle(t).fontSize) * scale]; })"""
    )
    assert min(size for *_, size in boxes) >= 9.5
    assert [label for label, left, right, _ in boxes if left < 0 or right > width] == []
    cells = page.locator("#chart-replay-heatmap path[fill-opacity], #chart-replay-heatmap path[opacity]")
    assert cells.count() >= 4 * 4


def test_policies_are_read_out_together(opened: Callable[..., Opened], replay_report: Path) -> None:
    page = opened(path=replay_report, keep=True).page
    figure = page.locator('figure[data-chart="chart-replay-queue"]')
    figure.locator("svg.chart").focus()
    figure.locator("svg.chart").press("ArrowRight")
    shown = figure.locator(".readout").text_content() or ""
    assert all(name in shown for name in ("UTC: waiting jobs fifo ", "; GPUs waiting fifo ", "tiresias "))
    assert HOSTILE[0] in shown
    assert figure.locator(".marks line").count() == 2


def test_one_result_begins_with_its_sections_folded(opened: Callable[..., Opened], report: Path) -> None:
    page = opened(unfold=False).page
    for width, most in ((390, 5), (1280, 4)):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollHeight / innerHeight") < most
    heads = page.locator(".group > details > summary")
    assert heads.count() > 3
    assert page.locator(".group > details[open]").count() == 0
    assert all("table" in head or "figure" in head for head in heads.all_text_contents()[:-1])
    heads.first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".group > details[open]").count() == 1
    # a link of the first screen leads into what is folded
    page.locator(".standouts a").first.click()
    name = page.evaluate("location.hash")
    assert page.locator(name).is_visible()
    assert 0 <= page.locator(name).evaluate("(e) => e.getBoundingClientRect().top") < 900
    page.emulate_media(media="print")
    page.locator("#provenance .facts >> nth=0").wait_for()
    page.emulate_media(media="screen")
    page.goto("about:blank")
    # and so does an address
    page.goto(report.as_uri() + "#reasons")
    assert page.locator("#reasons").is_visible()
    assert 0 <= page.locator("#reasons").evaluate("(e) => e.getBoundingClientRect().top") < 900


def test_legends_of_bars_switch_their_bars(opened: Callable[..., Opened]) -> None:
    page = opened(keep=True).page
    figure = page.locator("[data-chart=chart-status]")
    first, second = figure.locator(".legend button").all()
    bars = [figure.locator(f"svg.chart [fill='var(--s{number})']") for number in (1, 2)]
    texts = figure.locator("svg.chart text:visible").count()
    assert bars[0].first.is_visible()
    first.press("Enter")
    assert first.get_attribute("aria-pressed") == "false"
    assert not bars[0].first.is_visible()
    assert bars[1].first.is_visible()
    # its values go with the bars, the names of the bars stay
    assert figure.locator("svg.chart text:visible").count() == texts - bars[0].count()
    second.click()
    assert figure.locator("svg.chart text:visible").count() == texts - 2 * bars[0].count()
    first.click()
    second.click()
    assert figure.locator("svg.chart text:visible").count() == texts


@pytest.mark.parametrize("width", [1280, 390])
def test_bars_of_a_gantt_chart_say_whose_they_are(
    opened: Callable[..., Opened], replay_report: Path, width: int
) -> None:
    page = opened(width, path=replay_report).page
    figure = page.locator('figure[data-chart="chart-replay-gantt"]')
    svg, readout = figure.locator("svg.chart"), figure.locator(".readout")
    assert "Hover over a bar" in (readout.text_content() or "")
    svg.press("ArrowRight")
    first = readout.text_content() or ""
    assert re.fullmatch(r".*, gpu\d{3}: j\d+ · \d+ GPUs? · user user\d+ · queue [ab] · .* to .* UTC, .*", first)
    # all places of the job are outlined, and the bar is found by pointing at it
    marks = figure.locator(".marks rect")
    assert marks.count() >= 1
    job = first.split(": ")[1].split(" ·")[0]
    svg.evaluate("(one) => one.scrollIntoView()")
    boxes = [marks.nth(k).bounding_box() for k in range(marks.count())]
    svg.press("End")
    assert (readout.text_content() or "").startswith(first.split(":")[0])
    svg.press("ArrowDown")
    assert not (readout.text_content() or "").startswith(first.split(":")[0])
    svg.press("Escape")
    assert (marks.count(), "Hover over a bar" in (readout.text_content() or "")) == (0, True)
    said = set()
    for box in filter(None, boxes):
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        said.add((readout.text_content() or "").split(": ")[1].split(" ·")[0])
    assert job in said


def test_bars_of_a_gantt_chart_are_coloured_by_job_or_user(opened: Callable[..., Opened], replay_report: Path) -> None:
    page = opened(path=replay_report, keep=True).page
    figure = page.locator('figure[data-chart="chart-replay-gantt"]')
    ways = figure.locator(".ways button")
    assert ways.all_text_contents() == ["job", "user", "queue"]
    fills = "(one) => [...one.querySelectorAll('[data-c] path')].map((p) => getComputedStyle(p).fill)"
    by_job = figure.evaluate(fills)
    ways.nth(1).focus()
    page.keyboard.press("Enter")
    by_user = figure.evaluate(fills)
    assert by_user != by_job
    assert ways.nth(1).get_attribute("aria-pressed") == "true"
    entries = figure.locator(".ways li").all_text_contents()
    # eleven users, seven colours of their own
    assert (len(entries), entries[-1]) == (8, "others")
    assert all(re.fullmatch(r"user\d+", entry) for entry in entries[:-1])
    ways.nth(0).click()
    assert (figure.evaluate(fills), figure.locator(".ways li").count()) == (by_job, 0)
