"""Pages in headless Chromium for all who read them: with axe-core, on paper, on narrow screens."""

from __future__ import annotations

import itertools
import re
from importlib.resources import files
from typing import TYPE_CHECKING, Literal

import pytest

from gpuctl.reports.html import render_report, write_page
from gpuctl.reports.report import labelled, summarize
from tests.browser.conftest import NAMES, several

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.browser.conftest import Opened

pytestmark = pytest.mark.browser

WIDTHS = (1280, 390)
PAGES = ("report", "replay_report", "several_report", "sample_report", "explain_report")
NARROW = ("report", "several_report", "explain_report")
"""Pages of which something looks otherwise on a narrow screen than all that others show."""
UNFOLD = """() => {
  document.querySelectorAll("details").forEach((d) => { d.open = true; });
  const outline = (e) => [...e.attributes].map((a) => a.name === "class" ? a.value : a.name)
    .concat(e.tagName, [...e.children].map(outline)).join(" ");
  for (const body of document.querySelectorAll("tbody")) {
    const seen = new Map();
    for (const row of [...body.rows]) {
      const one = outline(row);
      seen.set(one, (seen.get(one) || 0) + 1);
      if (seen.get(one) > 3) row.remove();
    }
  }
  for (const drawn of document.querySelectorAll("svg, svg g")) {
    const seen = new Map();
    for (const mark of [...drawn.children].filter((e) => e.matches("path, rect, line, circle"))) {
      const one = outline(mark);
      seen.set(one, (seen.get(one) || 0) + 1);
      if (seen.get(one) > 3) mark.remove();
    }
  }
  for (const list of document.querySelectorAll("dl")) {
    const seen = new Map();
    for (const term of [...list.children].filter((e) => e.tagName === "DT" && e.nextElementSibling?.tagName === "DD")) {
      const one = outline(term) + outline(term.nextElementSibling);
      seen.set(one, (seen.get(one) || 0) + 1);
      if (seen.get(one) > 3) { term.nextElementSibling.remove(); term.remove(); }
    }
  }
}"""
"""Opens what is folded; leaves three of a table's rows, a list's terms and a drawing's marks that are alike."""
LOOKS = """() => {
  const behind = new Map([[null, ""]]), found = [];
  const back = (e) => {
    if (!behind.has(e)) {
      const s = getComputedStyle(e);
      behind.set(e, back(e.parentElement) + s.backgroundColor + s.backgroundImage + s.opacity);
    }
    return behind.get(e);
  };
  for (const e of document.querySelectorAll("body *")) {
    if (!e.matches("input, select")
      && ![...e.childNodes].some((n) => n.nodeType === Node.TEXT_NODE && n.data.trim())) continue;
    const s = getComputedStyle(e);
    const look = [e.tagName, e.getAttribute("class"), s.color, s.fill, s.fontSize, s.fontWeight, s.visibility,
      s.position, e.getBoundingClientRect().right > innerWidth, back(e)].join();
    looks.set(look, (looks.get(look) || 0) + 1);
    if (looks.get(look) <= 4) found.push(e);
  }
  return found;
}"""
"""Four elements with text of each colour, size and background, on whichever page and width they are met first: axe
takes minutes for thousands of the same look."""
SEVERE = f"""async (rules) => {{
  for (const e of document.querySelectorAll("[data-met]")) e.removeAttribute("data-met");
  const met = ({LOOKS})();
  for (const e of met) e.setAttribute("data-met", "");
  axe.configure({{rules: [{{id: "color-contrast", selector: "[data-met]"}}]}});
  const which = rules ? {{runOnly: ["color-contrast", ...rules]}} : {{}};
  return (await axe.run(document, {{resultTypes: ["violations"], ...which}})).violations
  .filter((v) => v.impact === "serious" || v.impact === "critical")
  .map((v) => v.id + " (" + v.impact + "): " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 160)).join(" | "));
}}"""
"""What axe finds in colours that were not met before, and by some other rules: all of them where that is null."""


def rules(width: int, scheme: str, *, first: bool) -> list[str] | None:
    """What is looked for beside contrast: all where a page is widest, and what else may depend on size and colours."""
    if scheme == "dark":
        return ["link-in-text-block"] if width == max(WIDTHS) else []
    # what only a narrow screen shows is the same on every page
    return None if first or width == max(WIDTHS) else ["scrollable-region-focusable"]


@pytest.fixture(scope="session")
def axe() -> str:
    return files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")


@pytest.fixture(scope="module")
def looks() -> list[tuple[str, int]]:
    """The looks that were met on the pages so far, and how often."""
    return []


def show(page: Page, width: int, scheme: Literal["light", "dark"]) -> None:
    """Show the page as one of that width in that scheme, whichever it was opened in."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.evaluate("(scheme) => { document.documentElement.dataset.theme = scheme; }", scheme)
    behind = page.evaluate("[innerWidth, getComputedStyle(document.body).backgroundColor]")
    assert behind[0] == width
    assert (sum(map(int, re.findall(r"\d+", behind[1]))) < 3 * 128) == (scheme == "dark")


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(
    opened: Callable[..., Opened],
    request: pytest.FixtureRequest,
    axe: str,
    looks: list[tuple[str, int]],
    name: str,
) -> None:
    page = opened(path=request.getfixturevalue(name)).page
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    page.evaluate("(known) => { window.looks = new Map(known); }", looks)
    found = {}
    for width, scheme in itertools.product(WIDTHS if name in NARROW else WIDTHS[:1], ("light", "dark")):
        show(page, width, scheme)
        found[width, scheme] = page.evaluate(SEVERE, rules(width, scheme, first=name == PAGES[0]))
    looks[:] = page.evaluate("[...looks]")
    assert {where: faults for where, faults in found.items() if faults} == {}


def test_axe_would_find_something(opened: Callable[..., Opened], axe: str) -> None:
    page = opened().page
    page.evaluate(UNFOLD)
    page.evaluate(axe)
    page.evaluate("() => { window.looks = new Map(); }")
    page.evaluate("document.querySelector('.theme').removeAttribute('aria-label')")
    page.evaluate("document.querySelector('.theme').textContent = ''")
    page.evaluate("[...document.querySelectorAll('main dd')].at(-1).style.color = 'rgb(128, 128, 128, 0.2)'")
    found = {}
    for scheme in ("light", "dark"):
        show(page, 1280, scheme)
        found[scheme] = [each.split()[0] for each in page.evaluate(SEVERE, rules(1280, scheme, first=True))]
    assert found == {"light": ["button-name", "color-contrast"], "dark": ["color-contrast"]}


@pytest.mark.parametrize("name", PAGES)
def test_on_paper_and_on_a_narrow_screen(
    opened: Callable[..., Opened], request: pytest.FixtureRequest, name: str
) -> None:
    page = opened(390, "dark", path=request.getfixturevalue(name)).page
    # 180 mm of an A4 page
    page.set_viewport_size({"width": 680, "height": 900})
    page.emulate_media(media="print")
    _on_paper(page)
    if name == PAGES[0]:
        sheets = page.pdf(format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "15mm"))
        assert 1 <= len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 12
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    _black_on_white(page)
    page.emulate_media(media="screen")
    page.set_viewport_size({"width": 390, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    outside = page.evaluate(
        """() => [...document.querySelectorAll('body *')].filter((e) => !e.closest('.scroll, caption, svg, .skip'))
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.tagName + '.' + e.className)"""
    )
    assert outside == []


def _black_on_white(page: Page) -> None:
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    links = page.evaluate("[...document.querySelectorAll('main a')].map((e) => getComputedStyle(e).color)")
    assert set(links) <= {"rgb(0, 0, 0)"}


def _on_paper(page: Page) -> None:
    _black_on_white(page)
    for gone in (".csv", ".drawing", ".theme", ".contents", ".skip", ".filter", ".readout"):
        assert page.locator(f"{gone}:visible").count() == 0, gone
    assert page.evaluate("document.documentElement.scrollWidth") <= 680
    wide = page.evaluate(
        """() => [...document.querySelectorAll('table, svg.chart, .about, dl')]
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.tagName + ' ' + (e.closest('[id]') || e).id)"""
    )
    assert wide == []
    cut = page.evaluate(
        """() => [...document.querySelectorAll('tbody td, thead th')]
        .filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.textContent)"""
    )
    assert cut == []
    # two columns: what is beside a figure on the screen is under it or in the next column
    covered = page.evaluate(
        """() => [...document.querySelectorAll('.beside')].filter((beside) => {
          const notes = [...(beside.querySelector('.about')?.getClientRects() || [])];
          const figures = [...beside.querySelectorAll('.figure')].flatMap((e) => [...e.getClientRects()]);
          return figures.some((f) => notes.some((n) => f.left < n.right - 1 && n.left < f.right - 1
            && f.top < n.bottom - 1 && n.top < f.bottom - 1));
        }).length"""
    )
    assert covered == 0
    # ten rows of each table
    rows = page.evaluate(
        """() => [...document.querySelectorAll('tbody')]
        .map((e) => [...e.rows].filter((r) => r.getClientRects().length).length)"""
    )
    assert max(rows, default=0) <= 10
    whole = page.evaluate("[...document.querySelectorAll('.figure')].map((e) => getComputedStyle(e).breakInside)")
    assert set(whole) <= {"avoid"}


@pytest.mark.parametrize("width", WIDTHS)
def test_several_results_are_found_by_the_contents(
    opened: Callable[..., Opened], several_report: Path, width: int
) -> None:
    page = opened(width, path=several_report).page
    if width < 900:
        page.locator(".contents summary").click()
    targets = page.locator(".contents a").evaluate_all("(all) => all.map((a) => a.getAttribute('href'))")
    assert "#metrics" in targets
    assert "#checks" in targets
    assert all(page.locator(f"[id='{target[1:]}']").count() == 1 for target in targets)
    page.locator('.contents a[href="#reasons"]').click()
    other = page.locator('#reasons a[href="#reasons--2"]')
    assert other.text_content() == NAMES[1]
    # side by side they need no link
    assert other.is_visible() == (width < 900)
    if width < 900:
        other.click()
    top = page.locator("#reasons--2").bounding_box()
    assert top is not None
    assert -1 <= top["y"] < 900


def test_several_results_are_sorted_and_filtered_apart(opened: Callable[..., Opened], several_report: Path) -> None:
    page = opened(path=several_report).page
    page.locator("summary:has(#section-failures-title)").click()
    page.locator("#reasons--2 .filter").fill("script")
    assert page.locator("#reasons--2 .count").text_content() == "2 of 21 rows"
    assert page.locator("#reasons .count").text_content() == "20 rows"
    page.locator("#reasons--2-table th button").nth(3).click()
    assert page.locator("#reasons--2-table th").nth(3).get_attribute("aria-sort") == "ascending"
    assert page.locator("#reasons-table th").nth(3).get_attribute("aria-sort") == "none"
    heads = page.locator("#metrics-table thead th").all_text_contents()
    assert heads[:5] == ["figure", "metric", "unit", *NAMES[:2]]


def test_side_by_side_shows_what_differs_in_words(opened: Callable[..., Opened], several_report: Path) -> None:
    page = opened(path=several_report).page
    rows = page.locator("#metrics-table tbody tr")
    shown = rows.evaluate_all(
        "(all) => all.filter((r) => r.offsetHeight).map((r) => [...r.cells].map((c) => c.textContent))"
    )
    assert len(shown) == 5
    # 0.02 and 0.01 % are both below 0.1
    assert [row[3] != row[4] for row in shown].count(True) >= 4
    assert shown[0][0] == "Overview: jobs, state completed"
    assert page.locator("#metrics .count").text_content() == f"5 of {rows.count()} figures differ between results"
    page.locator("#metrics .columns").click()
    assert page.locator("#metrics-table tbody tr:visible").count() == rows.count() > 5
    assert page.locator("#metrics-table th:visible", has_text="definition").count() == 1


def test_names_of_several_results_are_text(opened: Callable[..., Opened], several_report: Path) -> None:
    page = opened(path=several_report).page
    assert page.locator("main img, main iframe, main script:not([type='application/json'])").count() == 0
    assert page.locator(".part").all_text_contents()[:2] == list(NAMES[:2])
    assert page.locator("#checks tbody tr").count() == 2
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@pytest.fixture(scope="module")
def four_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("four") / "report.html"
    parts = labelled(several(4))
    write_page(render_report(parts, summarize(parts)), place)
    return place


def test_four_results(opened: Callable[..., Opened], four_report: Path) -> None:
    page = opened(path=four_report).page
    assert page.locator("#reasons, #reasons--2, #reasons--3, #reasons--4").count() == 4
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("[innerWidth, document.documentElement.scrollWidth]") == [width, width]
        # folded they are a few screens
        assert page.evaluate("document.documentElement.scrollHeight / innerHeight") < (5 if width > 900 else 8)
        assert not page.locator("#reasons").is_visible()
        # the longest name does not make a column wider than a screen
        widths = page.locator("#metrics-table thead th").evaluate_all("(all) => all.map((e) => e.offsetWidth)")
        assert max(widths) < 400
    page.emulate_media(media="print")
    page.locator("#reasons").wait_for()
    page.emulate_media(media="screen")
    page.locator("#reasons").wait_for(state="hidden")
    assert "right\\u202eleft" in (page.locator("#reasons--3 .part").text_content() or "")
