"""``gpuctl fit`` and ``gpuctl synth`` on the sample: models, jobs in each format, and wrong wishes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six weeks of 24 users, with limits: 24 jobs each."""
    place = tmp_path_factory.mktemp("trace") / "jobs.csv"
    rows = [
        (f"{user}-{k}", 3600 * (40 * k + user % 8) + 60 * user, 600 + (user * 7919 + k * 104_729) % 40_000,
         1 << (user % 4), f"user{user}", 86_400)
        for user in range(24) for k in range(24)
    ]  # fmt: skip
    columns = ["job_id", "submit_time", "duration", "num_gpus", "user", "requested_time"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(place)
    return place


@pytest.fixture(scope="module")
def model(gpuctl: Gpuctl, trace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("workload") / "model"
    done = gpuctl("fit", trace, "-o", place, "--seeds", "2", "--json")
    document = json.loads(done.stdout)
    rows = document["tables"]["fit_quality"]["rows"]
    assert {row["kind"] for row in rows} == {"replay", "dependence", "marginal", "copy"}
    assert {row["feature"] for row in rows if row["kind"] == "replay"} == {"fifo", "easy"}
    counted = document["tables"]["fit_jobs"]["rows"][0]
    card = json.loads((place / "card.json").read_text())
    assert card["population"]["jobs"] == counted["jobs"]
    assert "Do not publish" in card["privacy"]
    return place


def test_jobs_come_out_as_csv_swf_and_store(gpuctl: Gpuctl, model: Path, tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv", "c.swf", "d.duckdb"):
        gpuctl("--quiet", "synth", model, "--jobs", "400", "--load", "0.9", "--seed", "3", "-o", tmp_path / name)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    jobs = pl.read_csv(tmp_path / "a.csv")
    assert jobs.height == 400
    assert jobs["submit_time"].is_sorted()
    swf = [line.split() for line in (tmp_path / "c.swf").read_text().splitlines() if not line.startswith(";")]
    assert {len(cells) for cells in swf} == {18}
    assert [[int(cells[k]) for k in (1, 3, 4)] for cells in swf] == [
        list(row) for row in jobs.select("submit_time", "duration", "num_gpus").rows()
    ]
    stored = json.loads(gpuctl("query", tmp_path / "d.duckdb", "SELECT sum(run_sum_s) AS s FROM jobs", "--json").stdout)
    assert stored[0]["s"] == jobs["duration"].sum()
    refused = gpuctl("fit", tmp_path / "c.swf", "--check", model, check=False)
    assert "the model counts gpus, the trace cpus" in refused.stderr
    refused = gpuctl("convert", tmp_path / "d.duckdb", "--map", "a=num_gpus", "-o", tmp_path / "e.csv", check=False)
    assert (refused.returncode, "--map applies when logs are read" in refused.stderr) == (ExitCode.USAGE, True)
    # a file that cannot be read is told by the exit code
    (tmp_path / "torn.json").write_text('{"jobs": [{"subtime": 1, "res": 2, "profile": "x"')
    paths = [tmp_path / "c.swf", tmp_path / "torn.json"]
    partly = gpuctl("convert", *paths, "--cluster", "x", "-o", tmp_path / "e.csv", check=False)
    assert (partly.returncode, pl.read_csv(tmp_path / "e.csv").height) == (ExitCode.BAD_INPUT, 400)
    # and so is a trace of which no job can be written
    (tmp_path / "none.swf").write_text("1 0 0 10 -1 -1 -1 -1 -1 -1 5 1 1 -1 -1 -1 -1 -1\n")
    none = gpuctl("convert", tmp_path / "none.swf", "--to", "philly", "-o", tmp_path / "none.json", check=False)
    assert (none.returncode, (tmp_path / "none.json").exists()) == (ExitCode.BAD_INPUT, False)
    assert "can be written as philly; 1 job is left out: no size" in none.stderr
    # one of whose files no row could be read
    (tmp_path / "lost.csv").write_text("timestamp,duration,num_gpus,gpu_time,cluster\n,,,,\n")
    paths = [tmp_path / "lost.csv", tmp_path / "c.swf"]
    lost = gpuctl("convert", *paths, "--cluster", "x", "-o", tmp_path / "e.csv", check=False)
    assert (lost.returncode, "rows rejected: 1 of 1; nothing was loaded from it" in lost.stderr) == (
        ExitCode.BAD_INPUT,
        True,
    )
    replayed = gpuctl("--quiet", "replay", tmp_path / "a.csv", "--cluster", "pool:64", "--policy", "fifo", "--json")
    assert json.loads(replayed.stdout)["tables"]["replay_summary"]["rows"][0]["jobs_finished"] == 400


def test_any_csv_goes_in_with_a_map(gpuctl: Gpuctl, trace: Path, tmp_path: Path) -> None:
    """The trace under other names, in minutes and hundredths of GPUs, is the same trace to fit and replay."""
    other, kept = tmp_path / "theirs.csv", tmp_path / "theirs.toml"
    pl.read_csv(trace).select(
        pl.col("job_id").alias("id"), pl.col("submit_time").alias("came"), (pl.col("duration") / 60).alias("minutes"),
        (pl.col("num_gpus") * 100).alias("share"), pl.col("user").alias("who"), pl.col("requested_time").alias("limit"),
    ).write_csv(other)  # fmt: skip
    names = "id=job_id,came=submit_time,minutes=duration,share=num_gpus,who=user,limit=requested_time"
    told = ["--map", names, "--unit", "duration=min", "--unit", "num_gpus=percent"]
    ours = ["--quiet", "replay", trace, "--cluster", "8x8", "--policy", "fifo", "--json", "--table"]
    theirs = [other if word is trace else word for word in ours]
    columns = ["job", "submit_s", "start_s", "end_s", "gpus"]

    def jobs_of(words: list[object]) -> pl.DataFrame:
        rows = json.loads(gpuctl(*words).stdout)["tables"]["replay_jobs"]["rows"]
        return pl.DataFrame(rows, infer_schema_length=None).select(columns).sort("job")

    expected = jobs_of([*ours, "replay_jobs"])
    found = jobs_of([*theirs, "replay_jobs", *told])
    since = expected["submit_s"].min()  # a CSV counts from its own second 0, a store from its first job
    shifted = expected.with_columns(pl.col("submit_s", "start_s", "end_s") - since)
    assert found.with_columns(pl.col("submit_s", "start_s", "end_s").round(3)).equals(shifted)
    gpuctl("--quiet", "ingest", other, *told, "--save-map", kept, "--db", tmp_path / "s.duckdb")
    for words in ([other, *told, "--unit", "gpu"], [other, "--map", kept]):
        gpuctl("--quiet", "fit", *words, "-o", tmp_path / "m", "--seeds", "1", "--no-replay")
        card = json.loads((tmp_path / "m" / "card.json").read_text())
        assert (card["population"]["jobs"], card["unit"]) == (576, "GPUs")
    refused = [
        (
            ["fit", other, *told, "--unit", "gpu", "--unit", "cpu", "-o", tmp_path / "x"],
            "expected one of gpu, cpu, node",
        ),
        (["fit", tmp_path / "s.duckdb", *told, "-o", tmp_path / "x"], "--map applies when logs are read"),
        (["replay", tmp_path / "s.duckdb", *told, "--policy", "fifo"], "--map applies when logs are read"),
        (["replay", trace, "--swf-unit", "gpu", "--cluster", "8x8", "--policy", "fifo"], "--swf-unit is for traces"),
        (["fit", trace, "--swf-unit", "gpu", "-o", tmp_path / "x"], "--swf-unit is for logs"),
    ]
    for words, why in refused:
        done = gpuctl(*words, check=False)
        assert (done.returncode, why in done.stderr) == (ExitCode.USAGE, True), done.stderr


def test_a_model_is_compared_with_another_trace(gpuctl: Gpuctl, model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    gpuctl("--quiet", "synth", model, "--jobs", "300", "--tail", "1.5", "-o", other)
    done = gpuctl("--quiet", "fit", other, "--check", model, "--seeds", "2", "--no-replay", "--json")
    document = json.loads(done.stdout)
    rows = document["tables"]["fit_quality"]["rows"]
    assert {row["kind"] for row in rows} == {"dependence", "marginal", "copy"}
    assert any("no calendar" in text for text in document["warnings"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fit", "TRACE"], "needs -o"),
        (["fit", "TRACE", "-o", "x", "--check", "y"], "not both"),
        (["fit", "TRACE", "-o", "x", "--anonymous", "--method", "users"], "is made of the trace's jobs"),
        (["fit", "TRACE", "-o", "x", "--arrivals", "nhpp"], "is for --method parametric"),
        (["fit", "TRACE", "--check", "MODEL", "--method", "resample"], "--method is for a new model"),
        (["fit", "TRACE", "-o", "x", "--capacity", "nan"], "'nan' is not a finite number"),
        (["synth", "MODEL", "--jobs", "10", "--load-by", "users", "-o", "x.csv"], "--load-by is for --load"),
        (["fit", "no such file", "-o", "x"], "no such file"),
        (["synth", "MODEL", "--jobs", "10", "--large", "2:x", "-o", "x.csv"], "not understood"),
        (["synth", "MODEL", "--jobs", "10", "--load", "-1", "-o", "x.csv"], "above 0"),
        (["synth", "MODEL", "--jobs", "10", "--start", "soon", "-o", "x.csv"], "expected a date"),
        (["synth", "no such model", "--jobs", "10", "-o", "x.csv"], "expected the folder of a model"),
    ],
)
def test_it_reports_what_cannot_be_done(
    gpuctl: Gpuctl, trace: Path, model: Path, tmp_path: Path, words: list[str], told: str
) -> None:
    place = {"TRACE": str(trace), "MODEL": str(model), "x": str(tmp_path / "x"), "x.csv": str(tmp_path / "x.csv")}
    done = gpuctl(*(place.get(word, word) for word in words), check=False)
    assert done.returncode in {ExitCode.USAGE, ExitCode.BAD_INPUT}
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_changed_model_is_refused(gpuctl: Gpuctl, model: Path, tmp_path: Path) -> None:
    import hashlib
    import shutil

    bad = tmp_path / "bad"
    shutil.copytree(model, bad)
    found = json.loads((bad / "model.json").read_text())
    found["near_weeks"] = "far"
    data = json.dumps(found).encode()
    (bad / "model.json").write_bytes(data)
    card = json.loads((bad / "card.json").read_text())
    card["files"]["model.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (bad / "card.json").write_text(json.dumps(card))
    done = gpuctl("synth", bad, "--jobs", "5", "-o", tmp_path / "x.csv", check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "near_weeks: found 'far'" in done.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_log_without_arrivals_is_refused_with_what_is_missing(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, jobs: int
) -> None:
    rows = (
        f"{k}|COMPLETED|2026-11-02T09:00:00|2026-11-02T09:01:00|2026-11-02T10:00:00|gres/gpu=1" for k in range(jobs)
    )
    (tmp_path / "one.txt").write_text("JobIDRaw|State|Submit|Start|End|AllocTRES\n" + "\n".join(rows) + "\n", "utf-8")
    done = gpuctl("fit", tmp_path / "one.txt", "-o", tmp_path / "m", check=False)
    assert done.returncode == 3
    assert f"{jobs} job{'s' * (jobs > 1)} to learn from, submitted at one moment" in done.stderr
    assert not (tmp_path / "m").exists()


SMALL_LOGS = {
    "two jobs": [(0, 60, 1), (1, 60, 1)],
    "two jobs, weeks apart": [(0, 60, 1), (1_209_600, 60, 1)],
    "three jobs": [(0, 60, 1), (1, 60, 2), (7200, 61, 2)],
    "two moments": [(86_400 * (k % 2), 60, 1) for k in range(6)],
    "an hour": [(60 * k, 60 + k, 1) for k in range(30)],
    "one size and one run time": [(5000 * k, 60, 4) for k in range(60)],
    "one job a year": [(31_536_000 * k, 60 + k, 2 ** (k % 3)) for k in range(50)],
    "no run times": [(5000 * k, "", 1) for k in range(9)],
    "run times of 0": [(5000 * k, 0, 1) for k in range(9)],
}


@pytest.mark.parametrize("method", ["resample", "users", "weeks", "jobs", "parametric", "lublin"])
def test_a_small_log_is_fitted_or_refused_with_a_reason(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, method: str
) -> None:
    for name, jobs in SMALL_LOGS.items():
        log, model, made = tmp_path / "jobs.csv", tmp_path / "m", tmp_path / "made.csv"
        rows = "\n".join(f"{k},{submit},{run},{size}" for k, (submit, run, size) in enumerate(jobs))
        log.write_text(f"job_id,submit_time,duration,num_gpus\n{rows}\n")
        done = gpuctl("fit", log, "-o", model, "--method", method, "--seeds", "2", check=False)
        assert done.returncode in {0, 3}, (name, done.stderr)
        assert "Warning" not in done.stderr, name
        fitted = method != "parametric" and not name.startswith(("no run", "run times of 0"))
        assert done.returncode == 0 or not fitted, (name, done.stderr)
        if done.returncode == 0:
            gpuctl("synth", model, "--jobs", "40", "--load", "0.7", "-o", made)
            assert len(made.read_text().splitlines()) == 41, name


def test_one_job_has_no_load(gpuctl: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_time,duration,num_gpus\na,0,60,1\nb,600,60,1\n")
    gpuctl("fit", tmp_path / "jobs.csv", "-o", tmp_path / "m", "--seeds", "2")
    done = gpuctl("synth", tmp_path / "m", "--jobs", "1", "--load", "0.7", "-o", tmp_path / "x.csv", check=False)
    assert done.returncode == ExitCode.USAGE
    assert "come at one moment, which has no load" in done.stderr
