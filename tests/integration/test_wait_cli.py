"""``gpuctl train wait`` and ``gpuctl predict wait`` on the sample: a model, its answers, and what cannot be known."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.core.errors import ExitCode

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "sample_data" / "chain" / "sacct.txt.gz")
QUANTILES = ("p10_s", "p50_s", "p80_s", "p90_s")


@pytest.fixture(scope="module")
def trained(gpuctl: Gpuctl, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("waits") / "model"
    done = gpuctl("--quiet", "train", "wait", SAMPLE, "-o", place, "--json")
    return place, json.loads(done.stdout)


def predicted(gpuctl: Gpuctl, *words: str) -> list[dict[str, Any]]:
    done = gpuctl("--quiet", "predict", "wait", *words, "--json")
    rows: list[dict[str, Any]] = json.loads(done.stdout)["predictions"]
    return rows


def test_a_training_says_how_forecasts_fare(trained: tuple[Path, dict[str, Any]]) -> None:
    place, document = trained
    rows = {(row["predictor"], row["load"]): row for row in document["tables"]["wait_scores"]["rows"]}
    assert {name for name, _ in rows} == {"blend", "boosted", "simulated", "bound", "job-only", "mean", "last", "plan"}
    best, own = min(rows[rule, "all"]["pinball_s"] for rule in ("mean", "last")), rows["blend", "all"]
    assert rows["boosted", "all"]["pinball_s"] < 0.75 * best
    assert own["pinball_s"] < best
    assert own["coverage_pct"] + own["below_pct"] + own["above_pct"] == pytest.approx(100)
    assert own["jobs"] == sum(rows["blend", load]["jobs"] for load in ("light", "medium", "heavy"))
    # the sample's last weeks are busier than those before: where intervals do not hold, that is said
    assert any("held" in warning for warning in document["warnings"])
    card = json.loads((place / "card.json").read_text())
    assert card["kind"] == "wait"
    assert card["scores"] == document["tables"]["wait_scores"]["rows"]


def test_answers_are_quantiles_and_know_the_queue_where_it_is_named(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]]
) -> None:
    jobs = ["--model", str(trained[0]), "--nodes", "8", "--limit", "48h"]
    [seen] = predicted(gpuctl, SAMPLE, *jobs)
    [blind] = predicted(gpuctl, *jobs)
    [past] = predicted(gpuctl, SAMPLE, *jobs, "--at", "2026-03-04T12:00")
    [far] = predicted(gpuctl, SAMPLE, *jobs, "--at", "2026-07-04T12:00")
    for row in (seen, blind, past, far):
        values = [row[name] for name in QUANTILES]
        assert values == sorted(values)
    assert [row["method"] for row in (seen, blind, past, far)] == ["blend", "job-only", "blend", "job-only"]
    assert [seen[name] for name in QUANTILES] != [past[name] for name in QUANTILES]
    assert "no log or store" in blind["reason"]
    assert "not within the log" in far["reason"]


def test_no_number_comes_out_of_nothing(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("job_id,nodes,time_limit_s\nfine,1,3600\nno size,,3600\nlarge,64,3600\nno limit,1,\n")
    rows = {row["job"]: row for row in predicted(gpuctl, SAMPLE, "--model", str(trained[0]), "--jobs", str(table))}
    assert rows.pop("fine")["method"] == "blend"
    assert {name: row["method"] for name, row in rows.items()} == dict.fromkeys(
        ("no size", "large", "no limit"), "none"
    )
    assert all(row[name] is None for row in rows.values() for name in QUANTILES)
    assert "how many nodes" in rows["no size"]["reason"]
    assert "more than 8" in rows["large"]["reason"]
    assert "time limit" in rows["no limit"]["reason"]


@pytest.mark.parametrize(
    ("old", "new"),
    [('"method": "blend"', '"method": "magic"'), ('"largest": 8.0', '"largest": "8"'), ('"nodes"', "3")],
)
def test_a_changed_model_is_refused(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path, old: str, new: str
) -> None:
    import hashlib

    place = tmp_path / "model"
    shutil.copytree(trained[0], place)
    text = (place / "settings.json").read_text()
    assert old in text
    (place / "settings.json").write_text(text.replace(old, new))
    card = json.loads((place / "card.json").read_text())
    data = (place / "settings.json").read_bytes()
    card["files"]["settings.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (place / "card.json").write_text(json.dumps(card))
    done = gpuctl("predict", "wait", "--model", place, "--nodes", "1", "--limit", "1h", check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "settings.json" in done.stderr


def test_doctor_knows_models_of_waits(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]]) -> None:
    done = gpuctl("doctor", "--model", trained[0], "--json")
    found = {row["check"]: row["status"] for row in json.loads(done.stdout)["tables"]["checks"]["rows"]}
    assert found["model_folder"] == found["model_features"] == "ok"


def test_a_job_or_a_file_must_be_named(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]]) -> None:
    for words in ([], ["--nodes", "1", "--jobs", "x.csv"], ["--jobs", "x.csv", "--limit", "1h"]):
        done = gpuctl("predict", "wait", "--model", trained[0], *words, check=False)
        assert done.returncode == ExitCode.USAGE
