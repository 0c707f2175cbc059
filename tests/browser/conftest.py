"""A browser with the network off, pages opened in it from disk, and what went wrong while they were open."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest

from gpuctl.replay.results.tables import result
from gpuctl.reports.conditions import parse
from gpuctl.reports.html import render_report, write_html, write_page
from gpuctl.reports.report import labelled, summarize
from tests.unit.replay.outcomes import make_cluster, random_outcome, random_workload
from tests.unit.reports.fakes import HOSTILE, make_analysis

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

    from gpuctl.core.results import Analysis
    from gpuctl.replay.models.records import Cluster, Outcome, Workload

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def browser(chromium: str) -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
        yield running
        running.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report") / "report.html"
    write_html(make_analysis(points=2000, rows=60), place)
    return place


def replayed() -> tuple[list[Outcome], Workload, Cluster]:
    """What four policies did, two of them under hostile names, with jobs of eleven users."""
    workload, names = random_workload(2000, seed=1), ("fifo", HOSTILE[0], HOSTILE[3], "tiresias")
    outcomes = [random_outcome(workload, seed=i, policy=name, servers=80) for i, name in enumerate(names)]
    users = pl.Series("user", [f"user{k % 11}" for k in range(workload.size)])
    outcomes = [replace(outcome, jobs=outcome.jobs.with_columns(users)) for outcome in outcomes]
    return outcomes, workload, make_cluster(80, 8, down=[(3, 1e5, 4e5)])


@pytest.fixture(scope="session")
def replay_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("replay") / "replay.html"
    write_html(result(*replayed(), against_recorded=True, command="gpuctl replay", version="0"), place)
    return place


FOLDED = ("four", "several")
"""Directories of pages of several results, which tests unfold themselves."""
NAMES = ("philly", HOSTILE[3], HOSTILE[4], f"{'x' * 300} and more")
"""What the results of a page of several are called."""


def several(count: int) -> list[Analysis]:
    """Results that differ in size and in name, the later ones under hostile names."""
    return [replace(make_analysis(points=60 + k, rows=20 + k), cluster=name) for k, name in enumerate(NAMES[:count])]


@pytest.fixture(scope="session")
def several_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two results, as `several` makes them, with a check that fails."""
    parts = labelled(several(2))
    summary = summarize(parts, [parse("overview.jobs_pct{state=failed} > 5")], command=f"gpuctl report {HOSTILE[2]}")
    place = tmp_path_factory.mktemp("several") / "report.html"
    write_page(render_report(parts, summary), place)
    return place


@pytest.fixture(scope="session")
def sample_report(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A page of logs, of a replay and of predictions, as users make it."""
    folder = tmp_path_factory.mktemp("sample")
    commands = {
        "logs": ("analyze", sample_data / "failures" / "sacct.txt"),
        "replay": ("replay", sample_data / "jobs.csv", "--policy", "fifo,srtf", "--cluster", "16x8"),
        "predictions": ("predict", "runtime", sample_data / "pickyman" / "traffic.csv", "--epochs", "5"),
    }
    for name, made in commands.items():
        (folder / f"{name}.json").write_text(gpuctl(*made, "--json", "-q").stdout)
    gpuctl("report", *(folder / f"{name}.json" for name in commands), "-q", "--html", folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="session")
def explain_report(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of one job."""
    place = tmp_path_factory.mktemp("explain") / "job.html"
    gpuctl("explain", "application_1506638472019_00186", sample_data / "philly", "-q", "--html", place)
    return place


class Opened:
    """A page with what went wrong while it was open. The tests use one after the other: a new one costs a process."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.forget()

    def forget(self) -> None:
        """Leave nothing of what was done with it to the next test."""
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def open(self, path: Path, width: int, scheme: Literal["light", "dark"]) -> None:
        self.page.set_viewport_size({"width": width, "height": 900})
        # scrolling is smooth otherwise: where a thing lies would depend on when one looks
        self.page.emulate_media(media="screen", color_scheme=scheme, reduced_motion="reduce")
        self.page.mouse.move(0, 0)
        self.address = path.as_uri()
        self.page.goto(self.address)

    def close(self) -> None:
        """Have it show nothing, and remember nothing."""
        if self.page.url.startswith("file:"):
            self.page.evaluate("localStorage.clear()")
        self.page.goto("about:blank")


@pytest.fixture(scope="session")
def _windows(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """The first, second ... window of those with scripts and of those without."""
    contexts: dict[bool, BrowserContext] = {}
    made: dict[tuple[bool, int], Opened] = {}

    def window(scripts: bool, number: int) -> Opened:
        if scripts not in contexts:
            contexts[scripts] = browser.new_context(offline=True, java_script_enabled=scripts, accept_downloads=True)
        if (scripts, number) not in made:
            made[scripts, number] = Opened(contexts[scripts])
        return made[scripts, number]

    yield window
    for context in contexts.values():
        context.close()


@pytest.fixture
def opened(_windows: Callable[..., Opened], report: Path) -> Iterator[Callable[..., Opened]]:
    pages: list[Opened] = []

    def start(
        width: int = 1280,
        scheme: Literal["light", "dark"] = "light",
        *,
        scripts: bool = True,
        path: Path = report,
        unfold: bool | None = None,
    ) -> Opened:
        """Open a page; unless told otherwise with the sections of one result unfolded, as its reader has them."""
        pages.append(_windows(scripts, len(pages)))
        pages[-1].open(path, width, scheme)
        if scripts and (not path.parent.name.startswith(FOLDED) if unfold is None else unfold):
            pages[-1].page.evaluate("document.querySelectorAll('.group > details').forEach((d) => { d.open = true; })")
        return pages[-1]

    yield start
    seen = [(p.complaints, p.requests, p.address) for p in pages]
    for each in pages:
        each.close()
        each.forget()
    for complaints, requests, address in seen:
        assert complaints == []
        assert [url for url in requests if url != address and not url.startswith("blob:")] == []
