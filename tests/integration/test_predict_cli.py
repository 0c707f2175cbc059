"""``gpuctl predict`` and ``gpuctl train overhead`` as a user runs them, on the lab's recordings and broken files."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.traffic_profiles import traffic

Run = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
LAB = ROOT / "sample_data" / "pickyman"


@pytest.fixture(scope="module", name="gpuctl")
def _checked(gpuctl: Run) -> Run:
    """The same, held to an exit code and to no traceback."""

    def run(*words: str | Path, code: int = 0, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = gpuctl(*words, cwd=cwd or ROOT, check=False)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def predictions(gpuctl: Run) -> Run:
    def run(*words: str | Path, code: int = 0) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(gpuctl("predict", "runtime", *words, "--json", code=code).stdout)[
            "predictions"
        ]
        return found

    return run


@pytest.fixture(scope="module")
def model(gpuctl: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of run times, learnt from the list of jobs."""
    place = tmp_path_factory.mktemp("model") / "m"
    gpuctl("train", "runtime", ROOT / "sample_data" / "jobs.csv", "--model", place)
    return place


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.csv"
    rows = ["job_id,t,bytes"]
    for name, epoch_s in (("a", 60), ("b", 90)):
        t, received = traffic(epoch_s, 3.2, dataset=1e9, noise=0.05)
        rows += [f"{name},{when:.3f},{size:.0f}" for when, size in zip(t, received, strict=True)]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_names_that_stay(profile: Path, predictions: Run) -> None:
    found = predictions(profile, "--epochs", "10")
    assert [p["job"] for p in found] == ["a", "b"]
    assert {"job", "epoch_s", "run_time_s", "lower_s", "upper_s", "method"} <= set(found[0])
    for each, epoch_s in zip(found, (60, 90), strict=True):
        assert each["epoch_s"] == pytest.approx(epoch_s, rel=0.03)
        assert each["lower_s"] <= 10.05 * epoch_s <= each["upper_s"]


def test_predictions_are_results_that_a_report_reads(profile: Path, tmp_path: Path, gpuctl: Run) -> None:
    run, cost, page = tmp_path / "run.json", tmp_path / "cost.json", tmp_path / "r.html"
    gpuctl("predict", "runtime", profile, "--epochs", "10", "--json", "--output", run)
    gpuctl("predict", "overhead", "--epoch-s", "600", "--phase-s", "540", "--json", "--output", cost)
    for path, table in ((run, "predictions"), (cost, "overhead")):
        document = json.loads(path.read_text())
        promised = document["predictions"] if table == "predictions" else [{k: document[k] for k in ("suspend_s",)}]
        rows = document["tables"][table]["rows"]
        assert [{key: row[key] for key in promised[0]} for row in rows] == promised
    [source] = json.loads(run.read_text())["sources"]
    assert source["sha256"] == hashlib.sha256(profile.read_bytes()).hexdigest()
    assert source["rows_loaded"] == len(profile.read_text().splitlines()) - 1
    done = gpuctl("report", run, cost, "--html", page, "--fail-if", "predict.loss_s > 1", code=1)
    assert "suspension: predict.loss_s is " in done.stderr
    text = page.read_text()
    assert f"gpuctl predict runtime {profile} --epochs 10" in text
    assert all(told in text for told in ("Run times predicted", "Lost to one suspension", source["sha256"]))
    assert 'id="chart-predictions"' in text


def test_rows_of_a_list_of_jobs_that_are_not_used_are_counted(tmp_path: Path, model: Path, gpuctl: Run) -> None:
    (tmp_path / "queue.csv").write_text("job_id,user,num_gpus\na,u,1\n,u,2\na,u,4\nb,u,2\n")
    done = gpuctl("predict", "runtime", "--jobs", tmp_path / "queue.csv", "--model", model, "--json")
    document = json.loads(done.stdout)
    assert [row["job"] for row in document["predictions"]] == ["a", "b"]
    [source] = document["sources"]
    assert (source["rows_in"], source["rows_loaded"], source["rows_rejected"]) == (4, 2, 2)
    assert any("2 of 4 rows of" in warning for warning in document["warnings"])


def test_counters_give_the_same(profile: Path, tmp_path: Path, predictions: Run) -> None:
    total: dict[str, int] = {}
    lines = ["job_id,t,bytes"]
    for row in csv.DictReader(profile.read_text().splitlines()):
        total[row["job_id"]] = total.get(row["job_id"], 0) + int(row["bytes"])
        lines.append(f"{row['job_id']},{row['t']},{total[row['job_id']]}")
    counters = tmp_path / "counters.csv"
    counters.write_text("\n".join(lines) + "\n")
    plain, counted = predictions(profile, "--epochs", "10"), predictions(counters, "--cumulative", "--epochs", "10")
    for a, b in zip(plain, counted, strict=True):
        assert a["epoch_s"] == pytest.approx(b["epoch_s"], rel=0.01)


def test_without_a_number_of_epochs_there_is_no_run_time(profile: Path, predictions: Run) -> None:
    [found] = predictions(profile, "--job", "a")
    assert found["run_time_s"] is None
    assert found["epoch_s"] == pytest.approx(60, rel=0.03)
    assert "--epochs" in found["reason"]


def test_four_jobs_of_the_lab_tell_another(tmp_path: Path, predictions: Run) -> None:
    jobs = [row for row in csv.DictReader((LAB / "jobs.csv").read_text().splitlines()) if row["cached"] == "0"]
    model = max({j["model"] for j in jobs}, key=lambda m: sum(j["model"] == m for j in jobs))
    some = [j for j in jobs if j["model"] == model]
    left_out = some[-1]
    rows = [
        r for r in csv.DictReader((LAB / "traffic.csv").read_text().splitlines()) if r["job_id"] != left_out["job_id"]
    ]
    others = {j["job_id"] for j in some} - {left_out["job_id"]}
    (tmp_path / "traffic.csv").write_text(
        "job_id,t,bytes\n" + "".join(f"{r['job_id']},{r['t']},{r['bytes']}\n" for r in rows if r["job_id"] in others)
    )
    columns = ["job_id", "model", "batch", "samples", "gpus", "epochs", "dataset_bytes"]
    (tmp_path / "jobs.csv").write_text(
        ",".join(columns) + "\n" + "".join(",".join(j[c] for c in columns) + "\n" for j in some)
    )
    [found] = predictions(tmp_path / "traffic.csv", "--jobs", tmp_path / "jobs.csv", "--job", left_out["job_id"])
    assert found["method"] == "transfer"
    assert found["run_time_s"] == pytest.approx(float(left_out["run_time_s"]), rel=0.35)
    assert len(others) >= 4


def test_the_store_is_the_database(profile: Path, tmp_path: Path, predictions: Run) -> None:
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,model,batch,samples,gpus,epochs\na,m,8,1000,1,10\nb,m,8,1500,1,10\nc,m,8,3000,1,10\n")
    db = tmp_path / "profiles.duckdb"
    first = predictions(profile, "--jobs", jobs, "--db", db)
    again = predictions("--db", db)
    assert first == again
    assert [p["method"] for p in again][-1] == "transfer"
    assert again[-1]["epoch_s"] == pytest.approx(180, rel=0.05)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--epoch-s", "600", "--phase-s", "540", "--checkpoint-bytes", "1e9"), (63, 21, 24)),
        (("--epoch-s", "600", "--phase-s", "540", "--checkpoint-bytes", "1e9", "--mode", "abort"), (2, 21, 561)),
        (("--gpus", "4", "--mode", "now"), (4, 22, 26)),
    ],
)
def test_overhead(words: tuple[str, ...], expected: tuple[float, float, float], gpuctl: Run) -> None:
    found = json.loads(gpuctl("predict", "overhead", *words, "--json").stdout)
    assert (found["suspend_s"], found["resume_s"], found["loss_s"]) == expected


def test_overhead_learnt_from_the_lab(tmp_path: Path, gpuctl: Run) -> None:
    place = tmp_path / "model"
    document = (ROOT / "docs" / "explanation" / "accuracy.md").read_text()
    gpu = Path(__file__).parents[1] / "fixtures" / "suspensions" / "h200.csv"
    for file, count in ((gpu, 23), (LAB / "suspensions.csv", 48)):
        tables = json.loads(gpuctl("train", "overhead", file, "-o", place, "--json").stdout)["tables"]
        found = {
            table: {r["cost"]: r for r in tables[table]["rows"]} for table in ("overhead_errors", "overhead_new_jobs")
        }
        assert [rows["loss_s"]["suspensions"] for rows in found.values()] == [count, count]
        for cost, row in ((cost, row) for rows in found.values() for cost, row in rows.items()):
            cells = [f"{row[name]:.1f} %" for name in ("mean_pct", "median_pct")]
            cells += [f"{row['epochs_pct']:.1f} %" if row["epochs_pct"] is not None else ""]
            cells += [f"{row['inside_pct']:.0f} %" if row["inside_pct"] is not None else ""]
            line = f"| {cost} | {row['suspensions']} | {' | '.join(cells)} |".replace("  ", " ")
            assert line in document.replace("  ", " "), line
    card = json.loads((place / "card.json").read_text())
    assert card["kind"] == "overhead"
    measured = next(
        r for r in csv.DictReader((LAB / "suspensions.csv").read_text().splitlines()) if r["mode"] == "epoch"
    )
    phase = float(measured["epoch_done_s"])
    found = json.loads(
        gpuctl(
            "predict", "overhead", "--model", place, "--model-name", measured["model"],
            "--epoch-s", measured["epoch_s"], "--phase-s", str(phase), "--gpus", measured["gpus"],
            "--checkpoint-bytes", measured["checkpoint_bytes"],
            "--first-bytes", measured["dataset_bytes"], "--json",
        ).stdout
    )  # fmt: skip
    assert found["resume_s"] == pytest.approx(float(measured["resume_s"]), rel=0.5)
    assert math.isfinite(found["error_pct"])
    for cost in ("suspend", "resume", "loss"):
        assert 0 < found[f"{cost}_lower_s"] < found[f"{cost}_s"] < found[f"{cost}_upper_s"]


def test_an_empty_cell_of_a_suspension_is_counted(tmp_path: Path, gpuctl: Run) -> None:
    rows = list(csv.DictReader((LAB / "suspensions.csv").read_text().splitlines()))
    damaged = ("checkpoint_bytes", "epoch_s", "epoch_done_s", "epoch_left_s", "gpus", "loss_s", "suspend_s")
    finished = [row for row in rows if row["mode"] == "epoch"]
    for value in ("", "nan", "0"):
        changed = [{**row, column: value} for row, column in zip(finished, damaged, strict=False)]
        with (tmp_path / "s.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows([*changed, *rows[len(damaged) :]])
        done = gpuctl("train", "overhead", tmp_path / "s.csv", "-o", tmp_path / "m", "--json")
        assert "NaN" not in done.stdout
        if value == "nan":
            assert json.loads(done.stdout)["sources"][0]["rows_rejected"] == len(damaged)
        # the loss need not be known; 0 is a number, but for an epoch's length
        for column in {"": damaged[:5], "nan": (), "0": ("epoch_s above 0",)}[value]:
            assert f"Left out: 1 suspension without {column}." in done.stderr


def test_the_rest_of_an_epoch_as_told(gpuctl: Run) -> None:
    ask = ("predict", "overhead", "--epoch-s", "600", "--phase-s", "540", "--checkpoint-bytes", "1e9", "--json")
    assert json.loads(gpuctl(*ask, "--epoch-left", "20,10,30").stdout)["suspend_s"] == 23
    for wrong in ("x", "1,2", "3,4,5", "5,1,inf", "-1"):
        assert "--epoch-left" in gpuctl(*ask, f"--epoch-left={wrong}", code=2).stderr
    assert "--mode epoch" in gpuctl(*ask, "--mode", "abort", "--epoch-left", "5", code=2).stderr


def test_broken_files_are_rejected(tmp_path: Path, gpuctl: Run) -> None:
    place = tmp_path / "model"
    gpuctl("train", "overhead", LAB / "suspensions.csv", "-o", place)
    whole = (place / "overhead.json").read_text()
    ask = ("predict", "overhead", "--model", place, "--epoch-s", "10")
    (place / "overhead.json").write_text(whole[:40])
    assert "overhead.json" in gpuctl(*ask, code=3).stderr
    (place / "overhead.json").unlink()
    assert "overhead.json" in gpuctl(*ask, code=3).stderr
    (place / "overhead.json").write_text(whole)
    gpuctl(*ask)
    (place / "card.json").write_text((place / "card.json").read_text().replace('"overhead"', '"runtime"', 1))
    gpuctl(*ask, code=3)
    gpuctl("predict", "overhead", "--model", tmp_path / "nowhere", code=3)
    gpuctl("predict", "overhead", "--epoch-s", "10", "--phase-s", "11", code=2)
    gpuctl("predict", "overhead", "--mode", "later", code=2)


def test_wrong_inputs(tmp_path: Path, profile: Path, gpuctl: Run) -> None:
    assert "nothing to predict" in gpuctl("predict", "runtime", code=2).stderr
    assert "--job x" in gpuctl("predict", "runtime", profile, "--job", "x", code=2).stderr
    gpuctl("predict", "runtime", tmp_path / "absent.csv", code=3)
    broken = tmp_path / "broken.csv"
    broken.write_text("job_id,t,bytes\na,1,5\na,x,5\na,2,-7\na,2,6\n")
    done = gpuctl("predict", "runtime", broken, "--epochs", "3", "--json")
    [found] = json.loads(done.stdout)["predictions"]
    assert found["method"] == "none"
    assert "reject" in done.stderr


def test_hostile_names_are_text(tmp_path: Path, predictions: Run) -> None:
    path = tmp_path / "p.csv"
    name = "[red]<script>alert(1)</script>'; DROP TABLE traffic"
    t, received = traffic(30, 4, dataset=1e9, noise=0.02)
    path.write_text("job_id,t,bytes\n" + "".join(f'"{name}",{a},{b:.0f}\n' for a, b in zip(t, received, strict=True)))
    [found] = predictions(path, "--epochs", "4")
    assert found["job"] == name
    assert np.isfinite(found["run_time_s"])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["overhead", "--checkpoint-bytes", "1e400"], 2, "'--checkpoint-bytes': '1e400' is not a finite number"),
        (["overhead", "--epoch-s", "nan"], 2, "'--epoch-s': 'nan' is not a finite number"),
        (["overhead", "--gpus", "1" + 400 * "0"], 2, "--gpus"),
    ],
)
def test_numbers_that_are_none_are_refused(words: list[str], code: int, told: str, gpuctl: Run) -> None:
    assert told in gpuctl("predict", *words, code=code).stderr


def test_two_columns_of_one_meaning_are_refused(tmp_path: Path, model: Path, gpuctl: Run) -> None:
    (tmp_path / "queue.csv").write_text("job_id,num_gpus,gpus\na,1,2\n")
    done = gpuctl("predict", "runtime", "--jobs", tmp_path / "queue.csv", "--model", model, code=3)
    assert "several columns of one meaning: num_gpus, gpus" in done.stderr


def test_a_name_that_is_no_utf8(tmp_path: Path, model: Path, gpuctl: Run) -> None:
    odd = tmp_path / os.fsdecode(b"ok-\xff.csv")
    odd.write_text("job_id,user,num_gpus\na,u,1\n")
    out, page = tmp_path / "r.json", tmp_path / "r.html"
    gpuctl("predict", "runtime", "--jobs", odd, "--model", model, "--json", "--output", out)
    gpuctl("report", out, "--html", page)
    assert "ok-\\udcff.csv" in page.read_text()
    jobs = tmp_path / os.fsdecode(b"jobs-\xff.csv")
    shutil.copy(ROOT / "sample_data" / "jobs.csv", jobs)
    gpuctl("replay", jobs, "--cluster", "4x8", "--policy", "fifo", "--html", page)
    assert "jobs-\\udcff.csv on 4x8" in page.read_text()


def _without(column: str, place: Path) -> Path:
    rows = list(csv.DictReader((LAB / "jobs.csv").read_text().splitlines()))
    path = place / f"no-{column}.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [c for c in rows[0] if c != column], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("column", ["job_id", "model", "batch", "samples", "gpus", "epochs"])
def test_jobs_without_a_column_are_refused_with_its_name(
    column: str, profile: Path, tmp_path: Path, gpuctl: Run
) -> None:
    jobs = _without(column, tmp_path)
    done = gpuctl("predict", "runtime", profile, "--jobs", jobs, code=3)
    assert re.search(rf"no-{column}\.csv:1: .*no column {column}; found '", done.stderr)
    assert "hint: " in done.stderr
    done = gpuctl("predict", "runtime", profile, "--jobs", jobs, "--epochs", "5", code=0 if column == "epochs" else 3)
    assert column == "epochs" or f"no column {column}" in done.stderr


HEAD = "job_id,model,batch,samples,gpus,epochs\n"
DAMAGED = {
    "junk": bytes(range(256)) * 8,
    "text": b"nothing of the kind\n" * 9,
    "empty": b"",
    "header": HEAD.encode(),
    "cells": (HEAD + "a,m,nan,1000,1,5\nb,,8,1000,1,5\n").encode(),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_named_file_that_is_none_is_refused(damage: str, profile: Path, tmp_path: Path, gpuctl: Run) -> None:
    path = tmp_path / "named.csv"
    path.write_bytes(DAMAGED[damage])
    model = tmp_path / "model"
    for words in (
        ("predict", "runtime", profile, "--jobs", path),
        ("predict", "runtime", profile, path),
        ("predict", "runtime", path),
        ("predict", "runtime", profile, "--model", path),
        ("predict", "overhead", "--model", path),
        ("train", "overhead", path, "-o", model),
        ("train", "overhead", LAB / "suspensions.csv", path, "-o", model),
        ("train", "runtime", path, "-o", model),
    ):
        assert "named.csv" in gpuctl(*words, code=3).stderr or damage in {"header", "cells"}, words


def test_a_list_of_jobs_is_read_or_refused(tmp_path: Path, model: Path, gpuctl: Run) -> None:
    ask = ("predict", "runtime", "--jobs", tmp_path / "queue.csv", "--model", model)
    for text, told in (
        ("job_id,num_gpus\na,many\n", "num_gpus is 'many'"),
        ("job_id,num_gpus\na,nan\n", "num_gpus is 'nan'"),
        ("job_id,num_gpus\n", "a header and no rows"),
        ("job_id,num_gpus\n,4\n", "job_id is empty"),
        ("user,num_gpus\nu,4\n", "no column job_id"),
    ):
        (tmp_path / "queue.csv").write_text(text)
        assert told in gpuctl(*ask, code=3).stderr
    (tmp_path / "queue.csv").write_text("job_id,num_gpus\na,many\nb,\nc,4\n")
    document = json.loads(gpuctl(*ask, "--json").stdout)
    assert [row["job"] for row in document["predictions"]] == ["b", "c"]
    assert document["sources"][0]["rows_rejected"] == 1
