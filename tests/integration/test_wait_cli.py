"""``gpuctl train wait`` and ``gpuctl predict wait`` on the sample: a model, its answers, and what cannot be known."""

from __future__ import annotations

import datetime as dt
import gzip
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


def test_a_training_states_how_forecasts_fare(trained: tuple[Path, dict[str, Any]]) -> None:
    place, document = trained
    scored = document["tables"]["wait_scores"]["rows"]
    rows = {(row["predictor"], row["load"]): row for row in scored if row["forecast"] == "all"}
    assert {name for name, _ in rows} == {"blend", "boosted", "simulated", "bound", "job-only", "mean", "last", "plan"}
    method = document["settings"]["answers where the queue is known"]
    best, own = min(rows[rule, "all"]["pinball_s"] for rule in ("mean", "last")), rows[method, "all"]
    assert rows["boosted", "all"]["pinball_s"] < 0.75 * best
    assert own["pinball_s"] < best
    assert own["coverage_pct"] + own["below_pct"] + own["above_pct"] == pytest.approx(100)
    assert own["jobs"] == sum(rows[method, load]["jobs"] for load in ("light", "medium", "heavy"))
    classes = [row for row in scored if row["predictor"] == method and row["forecast"] != "all"]
    assert [row["forecast"] for row in classes] == ["below 1 min", "1 min to 1 h", "1 h or more"]
    assert own["jobs"] == sum(row["jobs"] for row in classes)
    inside = sum(row["jobs"] * (row["coverage_pct"] or 0) for row in classes)
    assert inside / own["jobs"] == pytest.approx(own["coverage_pct"])
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
    assert [row["method"] for row in (seen, blind, past, far)] == ["boosted", "job-only", "boosted", "job-only"]
    assert [seen[name] for name in QUANTILES] != [past[name] for name in QUANTILES]
    assert "no log or store" in blind["reason"]
    assert "not within the log" in far["reason"]


def test_no_number_comes_out_of_nothing(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    table.write_text("job_id,nodes,time_limit_s\nfine,1,3600\nno size,,3600\nlarge,64,3600\nno limit,1,\n")
    rows = {row["job"]: row for row in predicted(gpuctl, SAMPLE, "--model", str(trained[0]), "--jobs", str(table))}
    assert rows.pop("fine")["method"] == "boosted"
    assert {name: row["method"] for name, row in rows.items()} == dict.fromkeys(
        ("no size", "large", "no limit"), "none"
    )
    assert all(row[name] is None for row in rows.values() for name in QUANTILES)
    assert "how many nodes" in rows["no size"]["reason"]
    assert "more than 8" in rows["large"]["reason"]
    assert "time limit" in rows["no limit"]["reason"]


def changed(model: Path, place: Path, old: str, new: str) -> Path:
    """A copy of a model whose settings differ, and whose card agrees with them."""
    import hashlib

    shutil.copytree(model, place)
    text = (place / "settings.json").read_text()
    assert old in text
    (place / "settings.json").write_text(text.replace(old, new))
    card = json.loads((place / "card.json").read_text())
    data = (place / "settings.json").read_bytes()
    card["files"]["settings.json"] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (place / "card.json").write_text(json.dumps(card))
    return place


@pytest.mark.parametrize(
    ("old", "new"),
    [('"method": "boosted"', '"method": "magic"'), ('"largest": 8.0', '"largest": "8"'), ('"nodes"', "3")],
)
def test_a_changed_model_is_refused(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path, old: str, new: str
) -> None:
    place = changed(trained[0], tmp_path / "model", old, new)
    done = gpuctl("predict", "wait", "--model", place, "--nodes", "1", "--limit", "1h", check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "settings.json" in done.stderr


def test_doctor_knows_models_of_waits(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]]) -> None:
    done = gpuctl("doctor", "--model", trained[0], "--json")
    found = {row["check"]: row["status"] for row in json.loads(done.stdout)["tables"]["checks"]["rows"]}
    assert found["model_folder"] == found["model_features"] == "ok"


def test_doctor_reports_when_a_model_is_out_of_date(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    begin = dt.datetime(2026, 4, 2, tzinfo=dt.UTC)
    lines = gzip.decompress(Path(SAMPLE).read_bytes()).decode().splitlines()
    for k in range(260):
        # an idle cluster that lets each job wait for four days: nothing like what the model saw
        times = [begin + dt.timedelta(hours=k / 2 + h) for h in (0, 96, 96.1)]
        submit, start, end = (f"{time:%Y-%m-%dT%H:%M:%S}" for time in times)
        lines.append(f"{50_000 + k}|u6|COMPLETED|{submit}|{start}|{end}|1-00:00:00|1")
    for name, text in (("same", lines[:722]), ("later", lines)):
        (tmp_path / f"{name}.txt").write_text("\n".join(text) + "\n")
        gpuctl("--quiet", "ingest", tmp_path / f"{name}.txt", "--db", tmp_path / f"{name}.duckdb")
    found = {}
    for name in ("same", "later"):
        done = gpuctl("doctor", "--model", trained[0], "--db", tmp_path / f"{name}.duckdb", "--json", check=False)
        rows = {row["check"]: row for row in json.loads(done.stdout)["tables"]["checks"]["rows"]}
        found[name] = rows["model_drift"]
    assert found["same"]["status"] == "ok"
    assert "0 jobs" in found["same"]["evidence"]
    assert found["later"]["status"] == "warn"
    assert "out of date" in found["later"]["evidence"]
    assert "train wait" in found["later"]["fix"]


def test_a_job_or_a_file_must_be_named(gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]]) -> None:
    for words in ([], ["--nodes", "1", "--jobs", "x.csv"], ["--jobs", "x.csv", "--limit", "1h"]):
        done = gpuctl("predict", "wait", "--model", trained[0], *words, check=False)
        assert done.returncode == ExitCode.USAGE


LAST = "2026-05-30T06:00:00"
"""After the last instant of the sample."""


def queued(job: int, at: float, **more: Any) -> dict[str, Any]:
    """A job as ``squeue --json`` writes it."""
    return {
        "job_id": job, "user_name": "u1", "partition": "main", "job_state": ["PENDING"], "state_reason": "Priority",
        "node_count": {"set": True, "infinite": False, "number": 1}, "time_limit": {"set": True, "number": 1440},
        "submit_time": at, "eligible_time": at, "start_time": 0, "priority": 100,
        "tres_req_str": "cpu=8,node=1", **more,
    }  # fmt: skip


def snapshot(place: Path, taken: float, name: str = "queue.json") -> Path:
    """All nodes held by one job; jobs that wait for nodes or something else."""
    runs = queued(90_001, taken - 7200, job_state=["RUNNING"], start_time=taken - 3600, node_count=40)
    jobs = [
        runs,
        queued(90_002, taken - 600, start_time=taken + 90_000),
        queued(90_003, taken - 500, priority=900),
        queued(90_004, taken - 400, state_reason="Dependency"),
        queued(90_005, taken - 300, state_reason="JobHeldUser", eligible_time=0),
        queued(90_006, taken - 200, array_job_id=90_006, array_task_string="0-4%2"),
        queued(90_007, taken - 100, state_reason="QOSMaxGRESPerUser"),
        queued(90_008, taken - 50, het_job_id=90_008),
        queued(90_009, taken - 50, het_job_id=90_008),
    ]
    path = place / name
    path.write_text(json.dumps({"jobs": jobs, "last_update": {"set": True, "number": taken}}))
    return path


def test_all_that_waits_is_simulated_from_the_queue_of_now(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    taken = dt.datetime.fromisoformat(LAST).replace(tzinfo=dt.UTC).timestamp()
    place = snapshot(tmp_path, taken)
    words = (SAMPLE, "--model", str(trained[0]), "--all", "--squeue", str(place))
    rows = {row["job"]: row for row in predicted(gpuctl, *words)}
    assert list(rows) == [str(90_000 + k) for k in range(2, 10)]
    told = {job: row["method"] for job, row in rows.items()}
    assert [job for job, method in told.items() if method == "simulated"] == ["90002", "90003", "90006", "90008"]
    for job in ("90002", "90003", "90006", "90008"):
        row = rows[job]
        values = [row[name] for name in QUANTILES]
        # the running job has all nodes: none starts before it ends
        assert row["waited_s"] < values[0] <= values[-1]
        assert values == sorted(values)
    assert rows["90003"]["p50_s"] - rows["90003"]["waited_s"] <= rows["90002"]["p50_s"] - rows["90002"]["waited_s"]
    assert rows["90002"]["waited_s"] == 600
    assert rows["90002"]["slurm_s"] == 90_600
    assert "4 further tasks" in rows["90006"]["reason"]
    assert "further part" in rows["90008"]["reason"]
    said = {"90004": "depends", "90005": "held", "90007": "limit", "90009": "heterogeneous"}
    for job, word in said.items():
        assert word in rows[job]["reason"]
        assert rows[job]["p50_s"] is None
    shown = gpuctl("--quiet", "predict", "wait", *words, "--format", "table").stdout
    assert "Slurm says" in shown
    # one more behind hundreds is not simulated: that would take too long
    blend = changed(trained[0], tmp_path / "blend", '"method": "boosted"', '"method": "blend"')
    asked = (SAMPLE, "--model", str(blend), "--squeue", str(place), "--nodes", "1", "--limit", "1h")
    assert [row["method"] for row in predicted(gpuctl, *asked)] == ["blend"]
    place.write_text(place.read_text().replace('"0-4%2"', '"0-449%2"'))
    assert [row["method"] for row in predicted(gpuctl, *asked)] == ["boosted"]
    place = snapshot(tmp_path, taken)
    # without accounting there is no past: from the job alone, and no less than it has waited
    place.write_text(place.read_text().replace('"0-4%2"', '"0-4,...%2"'))
    document = json.loads(gpuctl("--quiet", "predict", "wait", *words[1:], "--json").stdout)
    assert any("Of 1 array the queue names only the first tasks" in text for text in document["warnings"])
    rows = {row["job"]: row for row in document["predictions"]}
    assert rows["90002"]["method"] == "job-only"
    assert "no accounting" in rows["90002"]["reason"]
    assert rows["90002"]["p10_s"] >= 600
    assert rows["90004"]["p50_s"] is None
    assert "depends" in rows["90004"]["reason"]


def test_clocks_that_differ_and_broken_queues_are_refused(
    gpuctl: Gpuctl, trained: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    before = snapshot(tmp_path, 1_770_000_000.0)
    words = ("predict", "wait", SAMPLE, "--model", trained[0], "--all", "--squeue")
    done = gpuctl(*words, before, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "clocks differ" in done.stderr
    assert "--timezone" in done.stderr
    broken = tmp_path / "broken.json"
    broken.write_text('{"jobs": [{"job_id": 1}]}')
    done = gpuctl(*words, broken, check=False)
    assert done.returncode == ExitCode.BAD_INPUT
    assert "broken.json" in done.stderr
    done = gpuctl("predict", "wait", "--model", trained[0], "--all", check=False)
    assert done.returncode == ExitCode.USAGE


def test_a_queue_in_which_nothing_has_started_has_no_forecast(gpuctl: Gpuctl, tmp_path: Path) -> None:
    begin = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    lines = ["JobID|User|Partition|State|Submit|Start|End|Timelimit|NNodes"]
    for k in range(420):
        submit = begin + dt.timedelta(hours=k / 2)
        times = (submit, submit + dt.timedelta(minutes=k % 7), submit + dt.timedelta(minutes=30 + k % 11))
        cells = [f"{time:%Y-%m-%dT%H:%M:%S}" for time in times]
        lines.append(f"{100 + k}|u{k % 3}|{('small', 'large')[k % 2]}|COMPLETED|{'|'.join(cells)}|01:00:00|1")
    log, place = tmp_path / "log.txt", tmp_path / "model"
    log.write_text("\n".join(lines) + "\n")
    gpuctl("--quiet", "train", "wait", log, "-o", place)
    table = tmp_path / "jobs.csv"
    rows = "".join(f"{name or 'none'},{name},1,3600\n" for name in ("small", "new", ""))
    table.write_text("job_id,queue,nodes,time_limit_s\n" + rows)
    for words in ([str(log)], []):
        found = {row["job"]: row for row in predicted(gpuctl, *words, "--model", str(place), "--jobs", str(table))}
        assert {job for job, row in found.items() if row["method"] == "none"} == {"new"}
        assert found["new"]["p50_s"] is None
        assert "no job of queue new has started before" in found["new"]["reason"]
