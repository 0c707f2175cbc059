"""``gpuctl train runtime``, and predictions from what it saved, as a user calls them."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TABLES = ["runtime_predictors", "runtime_scores", "runtime_jobs", "runtime_features"]


@pytest.fixture(scope="module")
def store(gpuctl: Gpuctl, thin_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "sample.duckdb"
    gpuctl("ingest", thin_data / "philly", "--db", path)
    return path


@pytest.fixture(scope="module")
def model(gpuctl: Gpuctl, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("train") / "model"
    gpuctl("train", "runtime", sample_data / "jobs.csv", "-o", path)
    return path


def test_a_log_a_store_and_a_csv(
    gpuctl: Gpuctl, sample_data: Path, thin_data: Path, store: Path, tmp_path: Path
) -> None:
    """The same log gives the same folder, whether it was read into a store before or not, and wherever both are."""
    elsewhere = tmp_path / "copied" / "philly"
    shutil.copytree(thin_data / "philly", elsewhere)
    for number, source in enumerate((elsewhere, store, sample_data / "jobs.csv")):
        model = tmp_path / f"m{number}"
        done = gpuctl("train", "runtime", source, "-o", model)
        assert done.stdout.startswith("# runtime_predictors\npredictor\tjobs\t")
        assert "\nhistory\t" in done.stdout
        assert "\nlast_two\t" in done.stdout
        assert f"wrote {model}" in done.stderr
        card = json.loads((model / "card.json").read_text())
        assert card["kind"] == "runtime"
        assert card["scores"][0]["predictor"] == "history"
        assert (model / "card.md").read_text().startswith("# Run times of ")
    names = sorted(file.name for file in (tmp_path / "m0").iterdir())
    assert names == sorted(file.name for file in (tmp_path / "m1").iterdir())
    for name in names:
        assert (tmp_path / "m0" / name).read_bytes() == (tmp_path / "m1" / name).read_bytes(), name


def test_json_has_every_table_documented(gpuctl: Gpuctl, store: Path, tmp_path: Path) -> None:
    done = gpuctl("train", "runtime", "--db", store, "--model", tmp_path / "m", "--json", "--quiet")
    assert not done.stderr
    document = json.loads(done.stdout)
    assert list(document["tables"]) == TABLES
    assert document["sources"]
    scores = document["tables"]["runtime_scores"]["rows"]
    assert {row["measure"] for row in scores if row["predictor"] == "history"} >= {"coverage_pct", "rank_correlation"}
    for row in scores:
        assert row["low"] is None or row["low"] <= row["high"]
        assert row["jobs"] > 0
    jobs = {row["what"]: row["jobs"] for row in document["tables"]["runtime_jobs"]["rows"]}
    assert jobs["jobs"] == sum(
        jobs[key] for key in ("no_submission", "never_ran", "still_running", "ended_from_outside", "known")
    )


def test_names_in_a_csv_are_read(gpuctl: Gpuctl, tmp_path: Path) -> None:
    lines = ["job_id , submit_time,duration,num_gpus, name,user"]
    lines += [f"{k},{k * 100},{(5, 5000)[k % 2]},1,{('short', 'long')[k % 2]}_{k},u" for k in range(400)]
    (tmp_path / "jobs.csv").write_text("\n".join(lines))
    gpuctl("train", "runtime", tmp_path / "jobs.csv", "-o", tmp_path / "m")
    card = json.loads((tmp_path / "m" / "card.json").read_text())
    assert "user_name_last" in card["features"]
    assert card["population"]["end_estimated"] == 400
    rows = {row["predictor"]: row for row in card["scores"]}
    assert rows["history"]["within_10_pct"] > 90
    assert rows["last_two"]["within_10_pct"] < 60


def test_tables_and_formats(gpuctl: Gpuctl, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "features.parquet"
    gpuctl("train", "runtime", store, "-o", tmp_path / "m", "--table", "runtime_features", "--format", "parquet",
           "--output", out)  # fmt: skip
    frame = pl.read_parquet(out)
    assert frame.columns == ["feature", "gain_pct", "meaning"]
    assert frame["gain_pct"].sum() == pytest.approx(100)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["STORE"], 2, "--model"),
        (["-o", "OUT"], 2, "nothing to learn from"),
        (["absent", "-o", "OUT"], 3, "absent: no such file"),
        (["STORE", "-o", "STORE"], 2, "expected a folder for a model"),
        (["STORE", "-o", "FULL"], 2, "a folder with other files in it"),
        (["STORE", "-o", "OUT", "--quantiles", "0.1,x"], 2, "expected three numbers"),
        (["STORE", "-o", "OUT", "--quantiles", "0.9,0.5,0.1"], 2, "three numbers that rise"),
        (["STORE", "-o", "OUT", "--test-share", "1.5"], 2, "above 0 and below 1"),
        (["STORE", "-o", "OUT", "--test-share", "0.999"], 3, "expected at least"),
        (["STORE", "-o", "OUT", "--cluster", "nope"], 2, "no cluster 'nope'"),
        (["STORE", "-o", "OUT", "--table", "nope"], 2, "nope"),
        (["JOBS", "STORE", "-o", "OUT"], 2, "is a CSV of jobs; it must be the only input"),
    ],
)  # fmt: skip
def test_errors_are_reported_before_anything_is_written(
    gpuctl: Gpuctl, sample_data: Path, store: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("x")
    places = {"STORE": store, "OUT": tmp_path / "out", "FULL": full, "JOBS": sample_data / "jobs.csv"}
    done = gpuctl("train", "runtime", *(places.get(word, word) for word in arguments), cwd=tmp_path, check=False)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()
    assert store.is_file()


def test_predictions_have_an_interval_and_feed_a_replay(
    gpuctl: Gpuctl, sample_data: Path, model: Path, tmp_path: Path
) -> None:
    jobs, out = sample_data / "jobs.csv", tmp_path / "predicted.csv"
    gpuctl("predict", "runtime", "--jobs", jobs, "--model", model, "--format", "csv", "--output", out)
    rows = list(csv.DictReader(out.read_text().splitlines()))
    assert len(rows) == 300
    assert {row["method"] for row in rows} == {"history"}
    assert all(0 < float(r["lower_s"]) <= float(r["run_time_s"]) <= float(r["upper_s"]) for r in rows)
    done = gpuctl(
        "replay", jobs, "--cluster", "4x8", "--policy", "sjf", "--run-times", out, "--table", "replay_summary"
    )
    assert "predictions for 300 of 300 jobs" in done.stderr
    assert "true run times" not in done.stderr


@pytest.mark.parametrize("name", ["card.json", "settings.json", "middle.txt", "recent.npy"])
@pytest.mark.parametrize("damage", ["cut", "gone", "foreign"])
def test_a_damaged_model_is_refused(
    gpuctl: Gpuctl, sample_data: Path, model: Path, tmp_path: Path, name: str, damage: str
) -> None:
    place = tmp_path / "model"
    shutil.copytree(model, place)
    file = place / name
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:50])
    elif damage == "gone":
        file.unlink()
    else:
        file.write_bytes(b"import os; os.system('true')\n" * 20)
    done = gpuctl("predict", "runtime", "--jobs", sample_data / "jobs.csv", "--model", place, check=False)
    assert done.returncode == 3
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_help_imports_nothing_heavy(root: Path) -> None:
    probe = "import sys\nfrom gpuctl.cli.main import main\nsys.argv = ['gpuctl', 'train', 'runtime', '--help']\n"
    probe += "try:\n    main()\nexcept SystemExit:\n    pass\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", probe], env={**os.environ, "PYTHONPATH": str(root)}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert "--test-share" in done.stdout
    assert not {"numpy", "polars", "duckdb", "lightgbm", "numba", "scipy", "rich"} & set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the real logs are not here")
def test_real_logs(gpuctl: Gpuctl, tmp_path: Path) -> None:
    """Where the model does not beat the best rule, docs/how-to/history.md says so; it must not get worse."""
    scores = {}
    for name in ("philly/sia_philly.csv", "slurm/ls6-a100.log"):
        gpuctl("train", "runtime", DATA / name, "-o", tmp_path / "m")
        card = json.loads((tmp_path / "m" / "card.json").read_text())
        scores[name] = {row["predictor"]: row for row in card["scores"]}
    philly, ls6 = scores.values()
    assert philly["history"]["jobs"] == 16_450
    assert philly["history"]["median_ape_pct"] < 50 < philly["last_two"]["median_ape_pct"]
    assert philly["history"]["rank_correlation"] > 0.7
    assert ls6["history"]["mae_s"] < ls6["last_two"]["mae_s"]
    assert ls6["history"]["rank_correlation"] > 0.5 > ls6["last_two"]["rank_correlation"]
    for one in scores.values():
        assert 75 < one["history"]["coverage_pct"] < 85
        assert one["history"]["pinball_s"] < min(row["pinball_s"] for name, row in one.items() if name != "history")
