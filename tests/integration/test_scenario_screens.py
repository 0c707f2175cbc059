"""The first screen of six logs that state more and less: golden at 80 and 120 columns, and no more than is known.

GPUCTL_UPDATE_GOLDEN=1 writes the golden files anew: read the diff.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.reports.html import render_html
from gpuctl.reports.screens import analysis
from gpuctl.reports.screens.draw import print_screen
from gpuctl.reports.summary import headlines
from gpuctl.store.database import Store
from tests.scenario_logs import write_scenarios

if TYPE_CHECKING:
    from collections.abc import Callable
    from subprocess import CompletedProcess

    from gpuctl.core.results import Analysis

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "scenarios"
NAMES = ("everything", "nothing", "accounting", "whole-node", "empty-log", "one-job")


@pytest.fixture(scope="module")
def found(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Analysis]:
    folder = tmp_path_factory.mktemp("scenarios")
    done = {}
    for name, (logs, options) in write_scenarios(root, folder).items():
        path = folder / f"{name}.duckdb"
        ingest(logs, path, cluster=name)
        with Store(path) as store:
            done[name] = analyze(store, Options(tables=analysis.TABLES, brief=True, **options))
    return done


def drawn(result: Analysis, width: int) -> str:
    out = io.StringIO()
    print_screen(analysis.screen(result), width=width, color=False, file=out, notes=False)
    return out.getvalue()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 120])
def test_golden(found: dict[str, Analysis], name: str, width: int) -> None:
    place = GOLDEN / f"{name}-{width}.txt"
    got = drawn(found[name], width)
    if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
        place.write_text(got, "utf-8", newline="")
    assert got == place.read_text("utf-8")


def test_all_scenarios_have_a_golden_screen() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {f"{name}-{width}.txt" for name in NAMES for width in (80, 120)}


def test_node_hours_stand_for_the_gpu_hours_of_a_whole_node_log(found: dict[str, Analysis]) -> None:
    text = drawn(found["whole-node"], 120)
    assert "Node-hours" in text
    assert "end states unknown" in text
    assert "Users by node-hours" in text
    assert "GPU-hours lost" not in text
    assert [one.label for one in headlines(found["whole-node"])][:2] == ["Jobs", "Node-hours"]
    assert 'id="why-gpus-of-jobs"' in render_html(found["whole-node"])


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("everything", None),
        ("nothing", "telemetry"),
        ("accounting", "telemetry"),
        ("whole-node", "GPUs of jobs, GPUs of the cluster, telemetry, end states"),
        ("one-job", "telemetry"),
        ("empty-log", None),
    ],
)
def test_the_screen_names_what_is_not_known(found: dict[str, Analysis], name: str, missing: str | None) -> None:
    lines = [line for line in drawn(found[name], 120).splitlines() if line.startswith("Not known:")]
    assert len(lines) == (missing is not None)
    assert all(line.startswith(f"Not known: {missing}") and "docs/how-to/why-empty.md" in line for line in lines)


def test_the_worst_caveats_are_first_and_are_three(found: dict[str, Analysis]) -> None:
    from gpuctl.analyze.caveats import Caveat, ranked
    from gpuctl.core.notes import note
    from gpuctl.reports.screens.words import worst

    notes = [note("one"), note("two"), note("three"), note("four")]
    order = ranked([Caveat(share, text) for share, text in zip((0.1, 0.9, 0.0, 0.5), notes, strict=True)])
    assert order == ("two", "four", "one", "three")
    line = worst(order)
    assert line is not None
    assert (line.label, line.text) == ("Caveats (4, --notes)", "two; four; one")
    assert "Caveats (" in drawn(found["whole-node"], 80)


def test_a_log_without_a_row_is_refused(tmp_path: Path, gpuctl: Callable[..., CompletedProcess[str]]) -> None:
    (tmp_path / "sacct.txt").write_text("JobID|User|Submit|Start|End|State\n", "utf-8")
    done = gpuctl("analyze", str(tmp_path / "sacct.txt"), check=False)
    assert done.returncode == 3
    assert "no rows" in done.stderr
