"""Frames of the library are the command line's tables, to the bit and the type, for every sample and every command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import gpuctl
from gpuctl.cli.replay_tables import SHORT_FILES

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

TRACES = {
    "philly": "sample_data/philly",
    "failures": "sample_data/failures",
    "chain": "sample_data/chain/sacct.txt.gz",
    "pickyman": "sample_data/pickyman",
    "jobs": "sample_data/jobs.csv",
    "site": "sample_data/site/jobs.csv",
    "yarn": "tests/fixtures/yarn/3.5.0",
    "telemetry": "tests/fixtures/telemetry",
}
"""A log of each kind; the first six are all that sample_data has."""


@pytest.fixture(name="run_gpuctl", scope="session")
def _run_gpuctl(request: pytest.FixtureRequest) -> Gpuctl:
    """The fixture ``gpuctl``; here that is the module."""
    run: Gpuctl = request.getfixturevalue("gpuctl")
    return run


def written(folder: Path, short: Mapping[str, str] | None = None) -> dict[str, pl.DataFrame]:
    """The tables of a folder that ``--parquet`` made."""
    names = {file: table for table, file in (short or {}).items()}
    return {names.get(path.stem, path.stem): pl.read_parquet(path) for path in folder.glob("*.parquet")}


def assert_same(found: gpuctl.Result, printed: dict[str, pl.DataFrame]) -> None:
    assert set(found.tables) == set(printed)
    for name, frame in printed.items():
        assert_frame_equal(found.table(name), frame, check_exact=True)
    assert any(frame.height for frame in printed.values())


@pytest.mark.parametrize("name", TRACES)
def test_every_table_of_a_trace(name: str, root: Path, tmp_path: Path, run_gpuctl: Gpuctl) -> None:
    with gpuctl.open(root / TRACES[name]) as trace:
        found = gpuctl.analyze(trace, "all")
    run_gpuctl("--quiet", "analyze", root / TRACES[name], "--parquet", tmp_path, "--format", "json")
    assert_same(found, written(tmp_path))


SLURM = ["slurm.conf", "accounts.cfg", "qos.txt"]
REPLAYS: dict[str, tuple[Callable[[Path], gpuctl.Result], tuple[str, ...]]] = {
    "failures of nodes": (
        lambda data: gpuctl.replay(data / "jobs.csv", "4x8", ["fifo", "tiresias"], failures=0.05, checkpoint=600,
                                   params={"tiresias.limits": 7200}),
        ("jobs.csv", "--cluster", "4x8", "--policy", "fifo,tiresias", "--failures", "0.05", "--checkpoint", "600",
         "--param", "tiresias.limits=7200"),
    ),
    "a site's rules": (
        lambda data: gpuctl.replay(data / "site/jobs.csv", data / "site/cluster.toml", ["slurm"], resources="gpu,cpu",
                                   slurm_conf=[data / "site" / each for each in SLURM]),
        ("site/jobs.csv", "--cluster", "site/cluster.toml", "--policy", "slurm", "--resources", "gpu,cpu",
         *(word for each in SLURM for word in ("--slurm-conf", f"site/{each}"))),
    ),
    "a trace and its record": (
        lambda data: gpuctl.replay(data / "philly", None, ["fifo"], against_recorded=True, where={"gpus": "1..8"}),
        ("philly", "--policy", "fifo", "--against", "recorded", "--gpus", "1..8"),
    ),
    "a sweep": (
        lambda data: gpuctl.sweep(data / "jobs.csv", "4x8", ["fifo", "srtf"], scale_load=[1, 1.2], seeds=[1, 2]),
        ("jobs.csv", "--cluster", "4x8", "--policy", "fifo,srtf", "--scale-load", "1,1.2", "--seed", "1,2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REPLAYS)
def test_every_table_of_a_replay(
    name: str, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_gpuctl: Gpuctl
) -> None:
    of_library, words = REPLAYS[name]
    monkeypatch.chdir(sample_data)
    run_gpuctl("--quiet", "replay", *words, "--parquet", tmp_path, "--format", "json")
    assert_same(of_library(sample_data), written(tmp_path, SHORT_FILES))


def printed(text: str) -> dict[str, list[Any]]:
    return {name: table["rows"] for name, table in json.loads(text)["tables"].items()}


def rows(frame: pl.DataFrame) -> list[Any]:
    """Rows as JSON writes and reads them: numbers keep every bit."""
    return json.loads(json.dumps(frame.to_dicts()))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "source", "jobs"),
    [
        ("runtime", "sample_data/philly", {"job_id": ["a", "b"], "user": ["u", None], "gpus": [1, 8]}),
        ("overhead", "sample_data/pickyman/suspensions.csv", None),
    ],
)
def test_training_and_predictions(
    kind: Any, source: str, jobs: dict[str, list[Any]] | None, root: Path, tmp_path: Path, run_gpuctl: Gpuctl
) -> None:
    # the model's name is part of what a prediction says of its origin
    (tmp_path / "command").mkdir()
    trained = gpuctl.train(kind, root / source, tmp_path / "model")
    place = tmp_path / "command/model"
    done = run_gpuctl("--quiet", "train", kind, root / source, "--model", place, "--json")
    assert {name: rows(trained.table(name)) for name in trained.tables} == printed(done.stdout)
    model = gpuctl.load_model(tmp_path / "model")
    if jobs is None:
        found = model.predict(pl.DataFrame({"gpus": [2], "epoch_s": [60.0]}))
        words = ["--gpus", "2", "--epoch-s", "60"]
    else:
        pl.DataFrame(jobs).write_csv(tmp_path / "jobs.csv")
        found = model.predict(pl.DataFrame(jobs))
        words = ["--jobs", str(tmp_path / "jobs.csv")]
    done = run_gpuctl("--quiet", "predict", kind, "--model", place, *words, "--json")
    assert rows(found) in printed(done.stdout).values()
    if jobs is not None:
        other = pl.DataFrame({"job_id": ["10", "9", "b"], "gpus": [1, 8, 2]})
        assert model.predict(other)["job"].to_list() == ["10", "9", "b"]
        for wrong, text in ((["a", "b", "a"], "the job_id 'a'"), (["a", None, "b"], "row 1 has no job_id")):
            with pytest.raises(gpuctl.errors.InputError, match=text):
                model.predict(other.with_columns(job_id=pl.Series(wrong)))
        with pytest.raises(gpuctl.errors.InputError, match="1 of 3 cannot be predicted, the first is '9'"):
            model.predict(other.with_columns(gpus=pl.Series([1, -8, 2])))


def test_reports_explanations_and_verdicts(sample_data: Path, tmp_path: Path, run_gpuctl: Gpuctl) -> None:
    place = tmp_path / "failures.duckdb"
    gpuctl.ingest(sample_data / "failures", place)
    with gpuctl.open(place) as trace:
        result = gpuctl.analyze(trace, sections=["queueing", "failures"])
        [job] = trace.sql("SELECT max(job) AS job FROM jobs WHERE state = 'failed'")["job"]
        explained = gpuctl.explain(trace, job).data
        [line] = trace.sql("SELECT text FROM job_logs WHERE signature IS NOT NULL ORDER BY ALL LIMIT 1")["text"]
    done = run_gpuctl("explain", job, place, "--json")
    assert json.loads(json.dumps(explained)) == {**json.loads(done.stdout), "command": "gpuctl.explain"}
    result.to_json(tmp_path / "result.json")
    limits = ["queueing.p95_wait_h > 0", "failures.failed_jobs_pct > 99"]
    report = gpuctl.report([result], fail_if=limits)
    words = [word for each in limits for word in ("--fail-if", each)]
    done = run_gpuctl("--quiet", "report", tmp_path / "result.json", *words, "--json", check=False)
    assert {name: rows(report.table(name)) for name in report.tables} == printed(done.stdout)
    assert (len(report.failed), done.returncode) == (1, 1)
    (tmp_path / "log.txt").write_text(f"{line}\n")
    verdict = gpuctl.classify(tmp_path / "log.txt", exit_code=1)
    done = run_gpuctl("classify", tmp_path / "log.txt", "--exit-code", "1", "--json")
    [found] = json.loads(done.stdout)["files"]
    assert (verdict.reason, verdict.category, verdict.confidence) == (
        found["reason"], found["category"], found["confidence"],
    )  # fmt: skip
