"""A browser with the network off, pages opened in it from disk, and what went wrong while they were open."""

from __future__ import annotations

import fcntl
import os
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
    from collections.abc import Callable, Generator, Iterator
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


def once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A page that whichever worker needs it first has made: ``make`` writes it to the path that it gets."""
    folder = factory.getbasetemp()
    folder = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "made").exists():
            make(folder / "report.html")
            (folder / "made").touch()
    return folder / "report.html"


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "report", lambda place: write_html(make_analysis(points=2000, rows=60), place))


def replayed() -> tuple[list[Outcome], Workload, Cluster]:
    """What four policies did, two of them under hostile names, with jobs of eleven users."""
    workload, names = random_workload(2000, seed=1), ("fifo", HOSTILE[0], HOSTILE[3], "tiresias")
    outcomes = [random_outcome(workload, seed=i, policy=name, nodes=80) for i, name in enumerate(names)]
    users = pl.Series("user", [f"user{k % 11}" for k in range(workload.size)])
    outcomes = [replace(outcome, jobs=outcome.jobs.with_columns(users)) for outcome in outcomes]
    return outcomes, workload, make_cluster(80, 8, down=[(3, 1e5, 4e5)])


@pytest.fixture(scope="session")
def replay_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(place: Path) -> None:
        write_html(result(*replayed(), against_recorded=True, command="gpuctl replay", version="0"), place)

    return once(tmp_path_factory, "replay", make)


FOLDED = ("four", "several")
"""Directories of pages of several results, which tests unfold themselves."""
NAMES = ("philly", HOSTILE[3], HOSTILE[4], f"{'x' * 300} and more")
"""What the results of a page of several are called."""


def several(count: int) -> list[Analysis]:
    """Results that differ in size and in name, the later ones under hostile names."""
    return [replace(make_analysis(points=60 + k, rows=20 + k), cluster=name) for k, name in enumerate(NAMES[:count])]


@pytest.fixture(scope="session")
def several_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of two results, as `several` makes them but for the second's states, with a check that fails."""

    def make(place: Path) -> None:
        first, second = several(2)
        lower = [
            replace(t, frame=t.frame.with_columns(pl.col("jobs_pct") / 2)) if t.name == "status" else t
            for t in second.tables
        ]
        parts = labelled([first, replace(second, tables=tuple(lower))])
        failing = [parse("overview.jobs_pct{state=failed} > 5")]
        write_page(render_report(parts, summarize(parts, failing, command=f"gpuctl report {HOSTILE[2]}")), place)

    return once(tmp_path_factory, "several", make)


@pytest.fixture(scope="session")
def sample_report(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A page of logs, of a replay and of predictions, as users make it."""
    commands = {
        "logs": ("analyze", sample_data / "failures" / "sacct.txt"),
        "replay": ("replay", sample_data / "jobs.csv", "--policy", "fifo,srtf", "--cluster", "16x8"),
        "predictions": ("predict", "runtime", sample_data / "pickyman" / "traffic.csv", "--epochs", "5"),
    }

    def make(place: Path) -> None:
        for name, made in commands.items():
            place.with_name(f"{name}.json").write_text(gpuctl(*made, "--json", "-q").stdout)
        gpuctl("report", *(place.with_name(f"{name}.json") for name in commands), "-q", "--html", place)

    return once(tmp_path_factory, "sample", make)


@pytest.fixture(scope="session")
def explain_report(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], sample_data: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of one job."""
    words = ("explain", "application_1506638472019_00186", sample_data / "philly", "-q", "--html")
    return once(tmp_path_factory, "explain", lambda place: gpuctl(*words, place))


class Opened:
    """A page with what went wrong while it was open. The tests use one after the other: a new one costs a process."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.shows: tuple[object, ...] | None = None
        self.forget()

    def forget(self) -> None:
        """Leave nothing of what was done with it to the next test."""
        self.shows = None
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


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note that a test failed: it may have left the page in any state."""
    told = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or told.failed
    return told


@pytest.fixture(scope="session")
def _windows(browser: Browser) -> Iterator[Callable[..., Opened]]:
    """The first, second ... window of those with scripts and of those without, and those of pages that are kept."""
    contexts: dict[bool, BrowserContext] = {}
    made: dict[tuple[bool, object], Opened] = {}

    def window(scripts: bool, which: object) -> Opened:
        if scripts not in contexts:
            contexts[scripts] = browser.new_context(offline=True, java_script_enabled=scripts, accept_downloads=True)
        if (scripts, which) not in made:
            made[scripts, which] = Opened(contexts[scripts])
        return made[scripts, which]

    yield window
    for context in contexts.values():
        context.close()


@pytest.fixture
def opened(
    request: pytest.FixtureRequest, _windows: Callable[..., Opened], report: Path
) -> Iterator[Callable[..., Opened]]:
    """Open a page; with ``keep`` as another test left it, and for others: whoever keeps it leaves all as it was."""
    pages: list[Opened] = []

    def start(
        width: int = 1280,
        scheme: Literal["light", "dark"] = "light",
        *,
        scripts: bool = True,
        path: Path = report,
        unfold: bool | None = None,
        keep: bool = False,
    ) -> Opened:
        """Open a page; unless told otherwise with the sections of one result unfolded, as its reader has them."""
        wanted = (path, width, scheme)
        page = _windows(scripts, wanted if keep else len(pages))
        pages.append(page)
        if keep and page.shows == wanted:
            page.page.set_viewport_size({"width": width, "height": 900})
            return page
        page.forget()
        page.open(path, width, scheme)
        if scripts and (not path.parent.name.startswith(FOLDED) if unfold is None else unfold):
            page.page.evaluate("document.querySelectorAll('.group > details').forEach((d) => { d.open = true; })")
        page.shows = wanted if keep else None
        return page

    yield start
    seen = [(p.complaints, p.requests, p.address) for p in pages]
    for each in pages:
        if each.shows is None or request.node.stash[FAILED]:
            each.close()
            each.forget()
    for complaints, requests, address in seen:
        assert complaints == []
        assert [url for url in requests if url != address and not url.startswith("blob:")] == []
