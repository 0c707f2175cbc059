"""The library as a notebook uses it: the same tables as the command line prints, and nothing else changed."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import re
import shutil
import threading
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import polars as pl
import pyarrow as pa
import pytest

import gpuctl
from gpuctl.plugins import RankPolicy
from gpuctl.reports.export import values

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

MODULES = ("analysis", "figures", "ingests", "models", "replays", "reports", "result", "traces")


@pytest.fixture(name="run_gpuctl", scope="session")
def _run_gpuctl(request: pytest.FixtureRequest) -> Gpuctl:
    """The fixture ``gpuctl``; here that is the module."""
    run: Gpuctl = request.getfixturevalue("gpuctl")
    return run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, sample_data: Path) -> Path:
    """The Philly sample as a trace store."""
    place = tmp_path_factory.mktemp("library") / "philly.duckdb"
    gpuctl.ingest(sample_data / "philly", place)
    return place


@pytest.fixture(scope="module")
def result(store: Path) -> gpuctl.Result:
    """Every table of the sample."""
    return gpuctl.analyze(store, "all")


def json_rows(frame: pl.DataFrame) -> list[list[Any]]:
    return [[values.json_value(value) for value in row] for row in frame.iter_rows()]


def assert_same_tables(found: gpuctl.Result, printed: str) -> None:
    tables = json.loads(printed)["tables"]
    assert set(tables) == set(found.tables)
    for name, table in tables.items():
        frame = found.table(name)
        rows = [[row[column] for column in frame.columns] for row in table["rows"]]
        assert json_rows(frame) == rows, name


def test_filters_are_those_of_the_command_line(store: Path, run_gpuctl: Gpuctl) -> None:
    found = gpuctl.analyze(store, ["status", "queue_delays"], where={"gpus": "8..", "queue": ["3fa1c2", "8b07de"]})
    printed = run_gpuctl(
        "analyze", store, "--json", "--table", "status", "--table", "queue_delays", "--gpus", "8..",
        "--queue", "3fa1c2,8b07de",
    ).stdout  # fmt: skip
    assert_same_tables(found, printed)
    with pytest.raises(gpuctl.errors.UsageError, match="no filter 'gpu'"):
        gpuctl.analyze(store, where={"gpu": "8"})


def test_replays_have_the_tables_of_the_command_line(sample_data: Path, run_gpuctl: Gpuctl) -> None:
    jobs = pl.read_csv(sample_data / "jobs.csv")
    found = gpuctl.replay(jobs, "4x8", ["fifo", "tiresias"], params={"tiresias.limits": 7200})
    printed = run_gpuctl(
        "replay", sample_data / "jobs.csv", "--cluster", "4x8", "--policy", "fifo,tiresias",
        "--param", "tiresias.limits=7200", "--json", "--all",
    ).stdout  # fmt: skip
    assert_same_tables(found, printed)
    assert found.table("replay_jobs").group_by("policy").len().sort("policy").rows() == [
        ("fifo", jobs.height), ("tiresias", jobs.height),
    ]  # fmt: skip


def test_explain_is_that_of_the_command_line(store: Path, run_gpuctl: Gpuctl) -> None:
    with gpuctl.open(store) as trace:
        [job] = trace.sql("SELECT max(job) AS job FROM jobs")["job"]
        found = gpuctl.explain(trace, job)
    printed = json.loads(run_gpuctl("explain", job, store, "--json").stdout)
    assert found.data == {**printed, "command": "gpuctl.explain"}
    assert str(found).startswith(f"Job {job} of philly")


class Narrowest(RankPolicy):
    """A policy of a notebook."""

    name = "narrowest"

    def rank(self, jobs: Any) -> Any:
        return jobs.gpus


def test_policies_may_be_classes(sample_data: Path) -> None:
    found = gpuctl.replay(sample_data / "jobs.csv", "4x8", [Narrowest, "fifo"])
    assert found.table("replay_summary")["policy"].to_list() == ["narrowest", "fifo"]
    with pytest.raises(gpuctl.errors.UsageError, match="a sweep takes policies by name"):
        gpuctl.sweep(sample_data / "jobs.csv", "4x8", [Narrowest], seeds=[1, 2])


def test_a_simulation_ends_as_the_replay_does(sample_data: Path) -> None:
    stepped = gpuctl.Simulation(sample_data / "jobs.csv", "4x8", "srtf")
    stepped.advance(until=40_000)
    half = stepped.fork()
    half.advance(instants=10)
    assert stepped.unfinished >= half.unfinished > 0
    stepped.advance()
    assert stepped.unfinished == 0
    whole = gpuctl.replay(sample_data / "jobs.csv", "4x8", ["srtf"]).table("replay_jobs")
    assert stepped.jobs()["end_s"].to_list() == whole["end_s"].to_list()


@pytest.mark.parametrize("kind", ["polars", "arrow", "lazy"])
def test_frames_of_jobs_are_traces(kind: str, sample_data: Path) -> None:
    frame = pl.read_csv(sample_data / "jobs.csv")
    given: Any = {"polars": frame, "arrow": frame.to_arrow(), "lazy": frame.lazy()}[kind]
    with gpuctl.open(given) as trace, gpuctl.open(sample_data / "jobs.csv") as same:
        text = "SELECT job, gpus, submit_ts FROM jobs ORDER BY job"
        assert trace.sql(text).equals(same.sql(text))
    with pytest.raises(gpuctl.errors.UsageError, match="this one lacks duration"):
        gpuctl.open(frame.drop("duration"))
    with pytest.raises(gpuctl.errors.UsageError, match="this trace is closed"):
        trace.sql("SELECT 1")


def test_sql_takes_parameters_and_reads_nothing_else(store: Path) -> None:
    with gpuctl.open(store) as trace:
        count = trace.sql("SELECT count(*) AS n FROM jobs WHERE gpus >= $gpus", {"gpus": 8})["n"][0]
        assert 0 < count < trace.sql("SELECT count(*) AS n FROM jobs")["n"][0]
        assert trace.sql("SELECT sum(gpu_hours) AS h FROM held")["h"][0] > 0
        with pytest.raises(gpuctl.errors.UsageError):
            trace.sql("SELECT * FROM read_csv('/etc/passwd')")
        assert trace.clusters == ("philly",)
        assert "held" in trace.tables


def test_two_stores_in_two_threads(store: Path, tmp_path: Path, result: gpuctl.Result) -> None:
    shutil.copy(store, tmp_path / "other.duckdb")
    found: dict[int, pl.DataFrame] = {}

    def work(number: int, place: Path) -> None:
        with gpuctl.open(place) as trace:
            trace.sql("SELECT count(*) FROM attempts")
            found[number] = gpuctl.analyze(trace, ["queue_delays"]).table("queue_delays")

    places = (store, tmp_path / "other.duckdb", store)
    threads = [threading.Thread(target=work, args=each) for each in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 3
    assert all(frame.equals(result.table("queue_delays")) for frame in found.values())


def test_nothing_prints_and_settings_stay(store: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    mpl.rcParams["font.size"] = 17.0
    before, shown = dict(mpl.rcParams), pl.Config.state()
    found = gpuctl.analyze(store)
    found.figure("wait-cdf").save(tmp_path / "wait.svg")
    assert dict(mpl.rcParams) == before
    assert pl.Config.state() == shown
    assert capfd.readouterr() == ("", "")
    page = found._repr_html_()
    assert page.count("\n") < 60
    assert "What stands out" in page
    assert "<script" not in page


def test_names_of_logs_are_escaped_in_notebooks(tmp_path: Path) -> None:
    frame = pl.DataFrame({"job_id": ["j<b>1", "j2"], "submit_time": [0, 5], "duration": [9, 9], "num_gpus": [1, 1],
                          "user": ["<script>alert(1)</script>", "u"]})  # fmt: skip
    found = gpuctl.analyze(frame, ["users"])
    assert "<script>" not in found._repr_html_()
    assert "<script>" in str(found)


def test_results_are_written_and_reported(result: gpuctl.Result, tmp_path: Path) -> None:
    result.to_json(tmp_path / "philly.json")
    result.to_html(tmp_path / "page.html")
    result.to_csv(tmp_path / "csv")
    result.to_parquet(tmp_path / "parquet")
    assert pl.read_parquet(tmp_path / "parquet/status.parquet").equals(result.table("status"))
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    report = gpuctl.report({"now": result, "then": tmp_path / "philly.json"}, fail_if=["queueing.p95_wait_h > 0"])
    assert len(report.failed) == 2
    report.to_html(tmp_path / "report.html")
    report.to_markdown(tmp_path / "report.md")
    assert "p95" in (tmp_path / "report.md").read_text()
    assert result.columns("status").row(0)[:2] == ("state", "-")
    assert "jobs" in result.describe("status")
    with pytest.raises(gpuctl.errors.UsageError, match="no table 'stats'") as caught:
        result.table("stats")
    assert "status" in str(caught.value.hint)


def test_verdicts_of_texts_and_files(tmp_path: Path) -> None:
    text = "epoch 1\nModuleNotFoundError: No module named 'torch'\n"
    (tmp_path / "log.txt").write_text(text)
    of_text, of_file = gpuctl.classify(text, exit_code=1), gpuctl.classify(tmp_path / "log.txt", exit_code=1)
    assert repr(of_text) == repr(of_file)
    assert (of_text.failed, of_text.line_no) == (True, 2)
    assert gpuctl.classify(b"done\n", exit_code=0).failed is False


def test_frames_keep_arrow_types(store: Path) -> None:
    frame = gpuctl.analyze(store, ["status"]).table("status")
    assert isinstance(frame.to_arrow(), pa.Table)


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_docstrings(module: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sample_data").symlink_to(root / "sample_data")
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(importlib.import_module(f"gpuctl.library.{module}"), optionflags=doctest.ELLIPSIS)
    assert found.failed == 0


@pytest.mark.parametrize("page", ["notebooks", "published-figure"])
def test_python_of_documents(
    page: str, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: Path
) -> None:
    (tmp_path / "sample_data").symlink_to(root / "sample_data")
    shutil.copy(store, tmp_path / "philly.duckdb")
    monkeypatch.chdir(tmp_path)
    text = (root / f"docs/how-to/{page}.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert blocks
    scope: dict[str, Any] = {}
    for block in blocks:
        exec(block, scope)


def test_every_public_name_has_an_example_that_is_run(root: Path) -> None:
    """`test_examples_of_docstrings` runs them; the reference shows all of them."""
    page = (root / "docs/reference/library.md").read_text()
    examples = "\n".join(re.findall(r"^```pycon\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    of_functions = {name: getattr(gpuctl, name) for name in gpuctl.__all__}
    returned = [importlib.import_module(f"gpuctl.library.{module}") for module in MODULES]
    classes = [each for module in returned for each in vars(module).values()
               if inspect.isclass(each) and each.__module__ == module.__name__ and each.__name__[0] != "_"]  # fmt: skip
    for name, found in of_functions.items():
        assert ">>> " in str(found.__doc__), name
        assert f"## gpuctl.{name}\n" in page
    for kind in classes:
        if kind.__name__.endswith(("Options", "Reading")):
            continue
        assert f"## {kind.__name__}\n" in page or f"## gpuctl.{kind.__name__}\n" in page
        for method, value in vars(kind).items():
            if not method.startswith("_") and (inspect.isfunction(value) or isinstance(value, property)):
                assert f".{method}" in examples, f"{kind.__name__}.{method}"
