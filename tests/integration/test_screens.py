"""The screens of the sample data: golden at 80 and 120 columns, no longer than promised, with the tables' numbers.

GPUCTL_UPDATE_GOLDEN=1 writes the golden files anew: read the diff.
"""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from rich.cells import cell_len

from gpuctl.analyze import bad_machines, delay_table, failure_table, registry
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.cli.main import app
from gpuctl.core.job_filter import JobFilter
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.reports.cell_text import between
from gpuctl.reports.report import labelled, summarize
from gpuctl.reports.screens import analysis, clusters, predict, replay, report
from gpuctl.reports.screens.draw import print_screen
from gpuctl.services.report_inputs import read_result
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.unit.reports.fakes import HOSTILE

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis, ResultTable
    from gpuctl.reports.screens.model import Screen

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "screens"
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
MOST = {"analyze": 45, "replay": 25, "predict": 25, "report": 45}
LOGS = {
    "philly": "sample_data/philly",
    "failures": "sample_data/failures",
    "yarn": "tests/fixtures/yarn/2.10.2/rest-30s.zip",
    "yarn-no-machines": "tests/fixtures/yarn/2.10.2/rest-timeline.zip",
    "slurm": "tests/fixtures/slurm/other/sacct.json",
    "no-jobs": "sample_data/site",
}
"""Several sources: with telemetry and without, with GPUs that no source tells, without a job."""
POLICIES = "fifo,srtf,easy,las,conservative"


def drawn(screen: Screen, width: int, *, notes: bool = False) -> str:
    out = io.StringIO()
    print_screen(screen, width=width, color=False, file=out, notes=notes)
    return out.getvalue()


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as end:
        app(["--quiet", *arguments], prog_name="gpuctl")
    assert end.value.code in {0, None}


@pytest.fixture(scope="module")
def stores(root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("stores")
    for name, path in LOGS.items():
        ingest([root / path], folder / f"{name}.duckdb", cluster=name)
    return {name: folder / f"{name}.duckdb" for name in LOGS}


@pytest.fixture(scope="module")
def whole(stores: dict[str, Path]) -> dict[str, Analysis]:
    found = {}
    for name, path in stores.items():
        with Store(path) as store:
            found[name] = analyze(store, Options(tables=() if name == "philly" else analysis.TABLES))
    return found


@pytest.fixture(scope="module")
def screens(whole: dict[str, Analysis], root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Screen]:
    folder = tmp_path_factory.mktemp("results")
    sample = root / "sample_data"
    asked = ("--cluster", "4x8", "--json", "--output")
    run("replay", str(sample / "jobs.csv"), "--policy", POLICIES, *asked, str(folder / "replay.json"))
    run("replay", str(sample / "jobs.csv"), "--policy", "fifo", *asked, str(folder / "fifo.json"))
    pickyman = (str(sample / "pickyman" / "traffic.csv"), "--jobs", str(sample / "pickyman" / "jobs.csv"))
    run("predict", "runtime", *pickyman, "--json", "--output", str(folder / "runtime.json"))
    run("predict", "overhead", "--epoch-s", "600", "--phase-s", "540", "--json", "--output", str(folder / "cost.json"))
    replayed = read_result(folder / "replay.json")
    parts = labelled([whole["philly"], replayed])
    summary = summarize(parts, (), None, "gpuctl report")
    return {
        **{f"analyze-{name}": analysis.screen(found) for name, found in whole.items()},
        "replay-jobs": replay.screen(replayed),
        "replay-fifo": replay.screen(read_result(folder / "fifo.json")),
        "predict-runtime": predict.runtime_screen(read_result(folder / "runtime.json")),
        "predict-overhead": predict.overhead_screen(read_result(folder / "cost.json")),
        "report-two": report.screen(parts, summary),
    }


@pytest.mark.parametrize("width", [80, 120])
def test_golden(screens: dict[str, Screen], width: int) -> None:
    for name, screen in screens.items():
        place = GOLDEN / f"{name}-{width}.txt"
        got = drawn(screen, width)
        if os.environ.get("GPUCTL_UPDATE_GOLDEN"):
            place.write_text(got, "utf-8", newline="")
        assert got == place.read_text("utf-8"), name
    if width == 80:
        assert {path.stem.rsplit("-", 1)[0] for path in GOLDEN.iterdir()} == set(screens)


def test_the_screen_in_the_docs_is_the_one_that_is_printed(root: Path) -> None:
    screen = (GOLDEN / "analyze-philly-80.txt").read_text("utf-8")
    assert f"```text\n{screen}```\n" in (root / "docs" / "tutorials" / "start.md").read_text("utf-8")


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_no_screen_is_longer_or_wider_than_promised(screens: dict[str, Screen], width: int) -> None:
    for name, screen in screens.items():
        lines = drawn(screen, width).splitlines()
        assert len(lines) <= MOST[name.partition("-")[0]], name
        assert max(map(cell_len, lines)) <= width, name


def rows(found: Analysis, name: str) -> list[dict[str, Any]]:
    return table_of(found, name).frame.to_dicts()


def line_of(text: str, start: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"{start} ")]
    return line.split()


def test_its_numbers_are_those_of_the_tables(whole: dict[str, Analysis], screens: dict[str, Screen]) -> None:
    found, text = whole["philly"], drawn(screens["analyze-philly"], 120)
    [about] = rows(found, "overview")
    [lost] = [row for row in rows(found, "gpu_hours_lost") if row["size_bucket"] == "all"]
    [used] = [row for row in rows(found, "gpu_util_by_state") if row["gpus"] == row["state"] == "all"]
    for expected in (
        f"{about['jobs']:,} jobs of {about['users']} users in {about['queues']} queues; {about['gpus']} GPUs",
        f"GPUs allocated {about['occupancy_pct']:.1f} %",
        f"GPU utilization {used['mean_pct']:.1f} %",
        f"GPU-hours lost {lost['lost_pct']:.1f} % of {lost['gpu_hours']:,.0f}",
        f"Wait p50, p95 {about['wait_p50_min']:.0f}, {about['wait_p95_min']:.0f} min",
    ):
        assert expected in text
    for row in rows(found, "users")[:5]:
        cells = line_of(text, row["user"])
        assert cells[1:4] == [f"{row['lost_gpu_hours']:,.0f}", f"{row['lost_pct']:.1f}", f"{row['own_lost_pct']:.1f}"]
    for row in rows(found, "queues")[:5]:
        cells = line_of(text, row["queue"])
        assert cells[1:4] == [str(row["jobs"]), f"{row['gpu_hours']:,.0f}", f"{row['gpu_hours_pct']:.1f}"]
    causes = {row["size_bucket"]: row for row in rows(found, "delay_by_size")}
    for row in rows(found, "wait_by_size"):
        if row["size_bucket"] in {"2-4", "5-8", ">8"}:
            cause = causes[row["size_bucket"]]
            share = between(cause["main_low_pct"], cause["main_high_pct"]).replace("\u00a0", " ")
            assert f"{cause['main_cause'].replace('_', ' ')}, {share}" in " ".join(line_of(text, row["size_bucket"]))


def test_lost_gpu_hours_by_user_add_up_to_those_by_size(whole: dict[str, Analysis]) -> None:
    for name in ("philly", "failures", "slurm"):
        users = rows(whole[name], "users")
        [lost] = [row for row in rows(whole[name], "gpu_hours_lost") if row["size_bucket"] == "all"]
        for kind in ("failed_h", "killed_h", "retried_h", "gpu_hours"):
            # by user, each attempt is rounded to a billionth of an hour, so that the order of rows has no effect
            assert sum(row[kind] or 0.0 for row in users) == pytest.approx(lost[kind], rel=0, abs=1e-6)
        by_kind = sum(lost[kind] for kind in ("failed_h", "killed_h", "retried_h"))
        assert sum(row["lost_gpu_hours"] or 0.0 for row in users) == pytest.approx(by_kind, rel=0, abs=1e-6)


def test_a_replay_of_three_days_states_that_it_is_too_short_to_tell(screens: dict[str, Screen]) -> None:
    text = " ".join(drawn(screens["replay-jobs"], 120).split())
    told = "- The trace is too short to judge how srtf, las, conservative, easy perform against fifo by mean wait"
    assert told in text
    assert "cuts the mean wait" not in text
    assert text.count("(too short to tell)") == 4
    assert "srtf*" in text


@pytest.mark.parametrize("left_out", analysis.TABLES)
def test_a_table_without_rows_leaves_its_part_out(whole: dict[str, Analysis], left_out: str) -> None:
    full = whole["philly"]
    tables = tuple(
        replace(table, frame=table.frame.clear()) if table.name == left_out else table for table in full.tables
    )
    lines = drawn(analysis.screen(replace(full, tables=tables)), 80).splitlines()
    assert len(lines) <= MOST["analyze"]
    if left_out == "delay_causes":
        return  # a result without this table is of an older gpuctl: then delay_by_size tells the main cause
    without = tuple(table for table in full.tables if table.name != left_out)
    assert drawn(analysis.screen(replace(full, tables=without)), 80).splitlines() == lines


@pytest.mark.parametrize("width", [40, 80, 120])
def test_names_from_logs_are_cut_and_made_harmless(whole: dict[str, Analysis], width: int) -> None:
    names = [*HOSTILE, "q" * 300, "\u7ebf" * 90, "a b " * 60, ""]
    full = whole["failures"]

    def renamed(found: ResultTable, column: str) -> ResultTable:
        count = found.frame.height
        values = pl.Series(column, (names * (count // len(names) + 1))[:count], dtype=pl.String)
        return replace(found, frame=found.frame.with_columns(values))

    for table, column in (("users", "user"), ("queues", "queue"), ("failure_nodes", "machine")):
        changed = tuple(renamed(one, column) if one.name == table else one for one in full.tables)
        found = replace(full, cluster="c" * 500, tables=changed, warnings=("w" * 900, "\x1b[31m red " * 40))
        text = drawn(analysis.screen(found), width)
        lines = text.splitlines()
        assert len(lines) <= MOST["analyze"]
        assert max(map(cell_len, lines)) <= width
        assert not {"\x1b", "\x00", "\u202e", "\u200b"} & set(text)


def test_a_store_of_several_clusters_is_listed(whole: dict[str, Analysis]) -> None:
    text = drawn(clusters.screen("site.duckdb", list(whole.values())), 80)
    assert text.startswith("site.duckdb: 6 clusters\n")
    assert line_of(text, "philly")[1:3] == ["1,962", "237"]
    assert "--cluster NAME" in text
    many = drawn(clusters.screen("site.duckdb", list(whole.values()) * 20), 80).splitlines()
    assert len(many) <= MOST["analyze"]
    assert "more clusters" in "\n".join(many)
    assert "gpuctl ingest LOGDIR --db" in drawn(clusters.screen("new.duckdb", []), 80)


def test_notes_state_what_the_screen_leaves_out(whole: dict[str, Analysis], screens: dict[str, Screen]) -> None:
    text = " ".join(drawn(screens["analyze-philly"], 80, notes=True).split())
    assert "cancelled after its start" in text
    for warning in whole["philly"].warnings:
        assert warning in text


def test_a_table_alone_is_as_among_all(whole: dict[str, Analysis], stores: dict[str, Path]) -> None:
    """Each of them with a filter, with which analyses read what is of all jobs, too; if that has rows of it."""
    with Store(stores["slurm"]) as store:
        [user] = store.execute("SELECT mode(user) FROM jobs").fetchall()[0]
        chosen = JobFilter(user=(user,))
        together = {table.name: table for table in analyze(store, Options(filter=chosen)).tables}
        assert together["overview"].frame["jobs"].item() > 1
        for name in registry.all_analyses():
            [alone] = analyze(store, Options(tables=(name,), filter=chosen)).tables
            if name in together:
                assert alone.frame.equals(together[name].frame), name
                assert replace(alone, frame=together[name].frame) == together[name]
    with Store(stores["philly"]) as store:
        for table in whole["philly"].tables:
            # of the telemetry's tables, one will do: they share all that they are made from
            telemetry = table.section == "utilization" and table.name != "gpu_util_by_nodes"
            if telemetry or not together[table.name].frame.is_empty():
                continue
            [alone] = analyze(store, Options(tables=(table.name,))).tables
            assert alone.frame.equals(table.frame), table.name
            assert replace(alone, frame=table.frame) == table


def test_only_what_requested_tables_need_is_computed(stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("not requested")

    for module in (delay_table, failure_table, bad_machines):
        monkeypatch.setattr(module, "build", never)
    with Store(stores["philly"]) as store:
        found = analyze(store, Options(tables=("overview", "occupancy", "wait_by_size", "users"), brief=True))
        made = store.frame("SELECT table_name FROM duckdb_tables() WHERE temporary")["table_name"].to_list()
    assert [table.name for table in found.tables] == ["overview", "users", "occupancy", "wait_by_size"]
    assert not {name for name in made if "util" in name or "delay" in name or "fail" in name or "training" in name}
