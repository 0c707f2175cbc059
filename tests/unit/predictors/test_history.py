"""Run times from history: what is known of earlier jobs, what is learnt from it, and what a folder gives back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.core.errors import InputError, UsageError
from gpuctl.predictors import features, history, history_folder, history_tables, time_split
from gpuctl.predictors.baselines import baselines
from gpuctl.predictors.job_table import JobTable, table

if TYPE_CHECKING:
    from pathlib import Path

JOBS = 1200


def log(jobs: int = JOBS, **changes: Any) -> JobTable:
    """Users whose jobs of one name take about as long each time."""
    random = np.random.default_rng(7)
    user, kind = random.integers(0, 8, jobs), random.integers(0, 3, jobs)
    run = np.exp(4 + 0.5 * user + kind + 0.2 * random.normal(size=jobs))
    submit = np.sort(random.uniform(0, 40 * 86400, jobs))
    rows = {
        "job": [f"{k:06}" for k in range(jobs)],
        "user": [f"u{k}" for k in user],
        "queue": [f"q{k % 3}" for k in user],
        "name": [f"{'abc'[k]}_{n}" for k, n in zip(kind, random.integers(99, size=jobs), strict=True)],
        "gpus": random.choice([1.0, 2.0, 8.0], jobs),
        "time_limit_s": random.choice([86400.0, 3600.0], jobs),
        "submit_s": submit,
        "run_s": run,
        "end_s": submit + random.exponential(600, jobs) + run,
    }
    return table("log", pl.DataFrame(rows | changes), zone="Europe/Berlin", clock="UTC")


@pytest.fixture(scope="module")
def trained() -> history.TrainedModel:
    return history.train(log())


def asked(found: JobTable) -> pl.DataFrame:
    """The jobs of a table as a user would describe them."""
    return found.rows.select("job", "user", "queue", "name", pl.col("size").alias("gpus"), "time_limit_s", "submit_s")


def small(**columns: list[Any]) -> JobTable:
    base = {
        "job": list("abcd"),
        "user": ["x", "x", "y", "x"],
        "submit_s": [0.0, 10, 60, 100],
        "run_s": [20.0, 30, 1, 9],
    }
    return table("small", pl.DataFrame(base | columns, strict=False))


def told(found: features.Features, group: str) -> list[dict[str, float]]:
    return [{f: float(found.figure(group, f)[job]) for f in features.FIGURES} for job in range(len(found.matrix))]


def test_history_by_hand() -> None:
    found, _ = features.of_log(small(end_s=[50, 90, 70, 200]))
    nothing = pytest.approx(dict.fromkeys(features.FIGURES, np.nan) | {"count": 0}, nan_ok=True)
    first, second, third, fourth = told(found, "user")
    # a ends at 50, after b came; y has no earlier job; d knows a and b
    assert (first, second, third) == (nothing, nothing, nothing)
    assert fourth == pytest.approx(
        {"last": np.log(30), "before_last": np.log(20), "mean": np.log(600) / 2, "median": np.log(600) / 2,
         "count": np.log(3), "since": np.log(11)}, rel=1e-6,
    )  # fmt: skip
    assert found.mean(features.ALL) == pytest.approx([np.nan, np.nan, 20, 17], nan_ok=True)


def test_a_job_that_ends_at_the_instant_of_a_submission_is_not_yet_known() -> None:
    found, _ = features.of_log(small(end_s=[10, 99.999, 100, 200]))
    assert [row["count"] for row in told(found, "user")] == pytest.approx([0, 0, 0, np.log(3)])
    assert found.mean(features.ALL) == pytest.approx([np.nan, np.nan, 20, 25], nan_ok=True)


def test_jobs_that_are_not_learnt_from_are_in_no_history() -> None:
    found, _ = features.of_log(
        small(end_s=[1, 50, 50, 200], state=["node_fail", "completed", "completed", "completed"])
    )
    assert told(found, "user")[3]["count"] == pytest.approx(np.log(2))


def test_medians_are_of_the_last_runs() -> None:
    count = 3 * features.RECENT + 5
    random = np.random.default_rng(8)
    run = np.exp(random.normal(5, 2, count))
    jobs = {"job": [f"{k:03}" for k in range(count)], "submit_s": 1e6 * np.arange(count), "run_s": run}
    found, _ = features.of_log(table("one", pl.DataFrame(jobs)))
    for job in range(1, count):
        recent = np.log(np.maximum(run[max(0, job - features.RECENT) : job], 1))
        assert found.figure("user", "median")[job] == pytest.approx(np.median(recent), rel=1e-6)
        assert found.figure("user", "count")[job] == pytest.approx(np.log(1 + min(job, features.RECENT)), rel=1e-6)
        assert found.mean("user")[job] == pytest.approx(run[:job].mean())


def test_rules_by_hand() -> None:
    found = small(end_s=[5, 50, 70, 200], time_limit_s=[40, None, 7, 1000], name=["n1", "n2", "n", "n"])
    known, _ = features.of_log(found)
    rules = baselines(found.rows, known, 5.0)
    # a: no history, its limit; b: a; c: no history of y, its limit; d: a and b
    assert rules["last_two"] == pytest.approx([40, 20, 7, 25], rel=1e-6)
    assert rules["mean"] == pytest.approx([np.nan, 20, 25, 17], nan_ok=True)
    assert rules["median"].tolist() == [5] * 4
    assert rules["limit"] == pytest.approx([40, np.nan, 7, 1000], nan_ok=True)
    # n1 and n2 are one name, n is another; c: neither name nor user are known; d: its name is, of another user
    assert rules["qssf"] == pytest.approx([np.nan, 20, 25, 1], nan_ok=True)


def test_a_new_job_is_told_what_the_log_would_have_told_it() -> None:
    """The loop over a log and the look-up for one job are two pieces of code; they must agree."""
    whole = log(400)
    for job in (0, 1, 50, 399):
        before = whole.rows[:job].filter(pl.col("end_s") < whole.rows["submit_s"][job])
        if not before.height:
            continue
        cut = JobTable("cut", before, whole.zone, whole.clock, whole.size, whole.counts)
        _, state = features.of_log(cut)
        new = features.of_new(whole.rows[job : job + 1], state)
        old, _ = features.of_log(whole)
        theirs = [k for k, name in enumerate(features.described()) if name not in features.NUMBERED]
        np.testing.assert_array_equal(new.matrix[0, theirs], old.matrix[job, theirs])
        np.testing.assert_allclose(new.means[0], old.means[job], rtol=1e-12)


def test_it_learns_and_beats_the_rules(trained: history.TrainedModel) -> None:
    scores = history_tables.wide(trained)
    by_name = {row["predictor"]: row for row in scores.to_dicts()}
    assert list(by_name) == ["history", "last_two", "mean", "median", "limit", "qssf"]
    model = by_name.pop("history")
    for rule in by_name.values():
        # the log is made as the rule qssf thinks: no other can be much nearer with so few jobs
        slack = 1.2 if rule["predictor"] == "qssf" else 1
        for measure in ("median_ape_pct", "mae_s", "mean_abs_log_error"):
            assert model[measure] < slack * rule[measure], (rule["predictor"], measure)
        assert model["pinball_s"] < rule["pinball_s"]
        assert model["jobs"] == rule["jobs"] == trained.parts["test"]
    # noise of 0.2 in the logarithm alone costs 13.5 % of a median error
    assert 10 < model["median_ape_pct"] < 40
    assert 65 < model["coverage_pct"] < 95


def test_parts_do_not_overlap_and_learn_from_the_past_only() -> None:
    found = log()
    parts = time_split.split(found, 0.2)
    submit, end = (found.rows[name].to_numpy() for name in ("submit_s", "end_s"))
    assert not (parts.fit & parts.calibration | parts.calibration & parts.test).any()
    assert sum(parts.counts.values()) == found.counts["known"]
    assert end[parts.fit].max() < submit[parts.calibration].min()
    assert end[parts.calibration].max() < submit[parts.test].min()
    assert parts.counts["test"] == pytest.approx(0.2 * JOBS, abs=1)


def test_long_jobs_stand_for_those_that_had_not_ended() -> None:
    submit = np.arange(10.0)
    end = submit + np.array([1, 5, 1, 1, 1, 1, 1, 1, 1, 4.5])
    cut = 10.0
    weight = time_split.weights(submit, end, end < cut, np.ones(10, bool), cut)
    # of ten jobs nine were submitted before 9, and five before 5
    assert weight == pytest.approx([10 / 9, 10 / 5, *[10 / 9] * 7])
    long = time_split.weights(submit, submit + 9.9, np.ones(10, bool), np.ones(10, bool), cut)
    assert long.tolist() == [time_split.MOST_WEIGHT] * 10


def test_intervals_hold_their_share_where_jobs_stay_as_they_are() -> None:
    covered = history.train(log(6000)).scores.filter(predictor="history", measure="coverage_pct")["value"][0]
    assert covered == pytest.approx(80, abs=4)


def test_predictions_are_ordered_and_of_one_row_a_job(trained: history.TrainedModel) -> None:
    jobs = asked(trained.table)
    found = history.predict(trained.model, jobs)
    assert found.columns == ["job", "predicted_s", "lower_s", "upper_s"]
    assert found["job"].to_list() == jobs["job"].to_list()
    assert (found["lower_s"] <= found["predicted_s"]).all()
    assert (found["predicted_s"] <= found["upper_s"]).all()
    assert (found["lower_s"] >= 1).all()
    one = history.predict(trained.model, jobs[17:18])
    assert one.rows() == found[17:18].rows()


def test_predictions_for_a_log_are_those_that_were_scored(trained: history.TrainedModel) -> None:
    """LightGBM scored them while training; the loaded trees must say the same."""
    found = history._predicted(trained.table.rows, features.of_log(trained.table)[0], trained.model)
    submit, known = (trained.table.rows[name].to_numpy() for name in ("submit_s", "known"))
    test = known & (submit >= np.quantile(submit[known], 0.8))
    run = trained.table.rows["run_s"].to_numpy()[test]
    error = np.abs(found["predicted_s"].to_numpy()[test] - run)
    inside = (found["lower_s"].to_numpy()[test] <= run) & (run <= found["upper_s"].to_numpy()[test])
    scores = trained.scores.filter(predictor="history")
    assert error.mean() == pytest.approx(scores.filter(measure="mae_s")["value"][0], rel=1e-9)
    assert 100 * inside.mean() == pytest.approx(scores.filter(measure="coverage_pct")["value"][0])


def test_unknown_values_are_no_error(trained: history.TrainedModel) -> None:
    jobs = pl.DataFrame({"job": ["a", "b", "c"], "user": ["u7", "stranger", None]})
    found = history.predict(trained.model, jobs)
    assert np.isfinite(found.drop("job").to_numpy()).all()
    # the user with the longest jobs
    assert found["predicted_s"][0] > found["predicted_s"][1]
    assert history.predict(trained.model, pl.DataFrame({"cores": [1, 2]}))["job"].to_list() == ["0", "1"]
    assert history.predict(trained.model, jobs[:0]).height == 0


def test_times_of_submission_may_be_dates(trained: history.TrainedModel) -> None:
    at = datetime(1970, 2, 12, 15, 30, tzinfo=UTC)
    jobs = asked(trained.table)[:1].drop("submit_s")
    dated = history.predict(trained.model, jobs.with_columns(submit_ts=pl.lit(at).dt.convert_time_zone("Asia/Tokyo")))
    seconds = history.predict(trained.model, jobs.with_columns(submit_s=at.timestamp()))
    assert dated.rows() == seconds.rows()


def test_a_folder_gives_the_same_predictions(trained: history.TrainedModel, tmp_path: Path) -> None:
    history_folder.save(tmp_path / "m", trained.model, history_tables.about(trained, ()))
    loaded = history_folder.load(tmp_path / "m")
    jobs = asked(trained.table)
    assert history.predict(loaded, jobs).equals(history.predict(trained.model, jobs))
    assert loaded.features == trained.model.features
    assert not [f.name for f in (tmp_path / "m").iterdir() if f.suffix not in {".txt", ".json", ".npy", ".md"}]


def test_no_name_is_in_a_folder(tmp_path: Path) -> None:
    secret = history.train(log(user=[f"secret{k % 8}" for k in range(JOBS)], queue=["hidden"] * JOBS))
    history_folder.save(tmp_path / "m", secret.model, history_tables.about(secret, ()))
    for file in (tmp_path / "m").iterdir():
        assert b"secret" not in file.read_bytes()
        assert b"hidden" not in file.read_bytes()


_SAVE = """
import os, sys
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from test_history import history, history_folder, history_tables, log
trained = history.train(log())
history_folder.save(Path(sys.argv[1]), trained.model, history_tables.about(trained, ()))
"""


def test_the_same_jobs_give_the_same_bytes_with_any_number_of_threads(
    trained: history.TrainedModel, tmp_path: Path, root: Path
) -> None:
    history_folder.save(tmp_path / "all", trained.model, history_tables.about(trained, ()))
    command = [sys.executable, "-c", _SAVE, str(tmp_path / "one"), str(root / "tests" / "unit" / "predictors")]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(root)}, timeout=200)
    files = sorted(file.name for file in (tmp_path / "one").iterdir())
    assert len(files) == 14
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "all" / name).read_bytes(), name


def test_other_jobs_give_another_model(trained: history.TrainedModel) -> None:
    other = history.train(log(gpus=[4.0] * JOBS))
    assert other.model.texts != trained.model.texts
    assert other.digest != trained.digest


@pytest.mark.parametrize(
    "quantiles", [(0.5,), (0.1, 0.5), (0.5, 0.5, 0.9), (0.9, 0.5, 0.1), (0, 0.5, 0.9), (0.1, 1, 1)]
)
def test_quantiles_must_rise(quantiles: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="three numbers that rise"):
        history.train(log(), quantiles=quantiles)


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_a_share_must_be_one(share: float) -> None:
    with pytest.raises(UsageError, match="above 0 and below 1"):
        history.train(log(), test_share=share)


def test_too_few_jobs_are_reported() -> None:
    with pytest.raises(InputError, match="log: 64 jobs for the part 'fit', expected at least 100"):
        history.train(log(101))


def test_other_quantiles_are_wider(trained: history.TrainedModel) -> None:
    wide = history.train(log(), quantiles=(0.02, 0.5, 0.98))
    jobs = asked(trained.table)
    a, b = (history.predict(one.model, jobs) for one in (trained, wide))
    assert (b["upper_s"] / b["lower_s"]).log().mean() > 1.3 * (a["upper_s"] / a["lower_s"]).log().mean()


def test_a_log_without_users_names_queues_and_limits_is_learnt_from_too() -> None:
    nothing = [None] * JOBS
    found = history.train(log(user=nothing, queue=nothing, name=nothing, time_limit_s=nothing, gpus=nothing))
    assert set(found.model.features) == {"hour", "weekday", "last_two"}
    assert "limit" not in found.scores["predictor"]


def test_features_are_described(trained: history.TrainedModel) -> None:
    described = history.described()
    assert set(trained.model.features) == set(described)
    assert all(described.values())
    assert sum(trained.gain) == pytest.approx(100)


def test_tables_are_documented_and_add_up(trained: history.TrainedModel) -> None:
    result = history_tables.result(trained, (), "gpuctl train runtime")
    assert tuple(each.name for each in result.tables) == history_tables.TABLES
    for each in result.tables:
        assert [column.name for column in each.columns] == each.frame.columns
        assert all(column.description for column in each.columns)
        assert {each.section} <= {key for key, _ in result.sections}
        assert each.population
        assert each.question.endswith("?")
    jobs = dict(result.tables[2].frame.select("what", "jobs").iter_rows())
    parts = ("fit", "ended_after_first_cut", "calibration", "ended_after_second_cut", "test")
    assert sum(jobs[part] for part in parts) == jobs["known"]


def test_the_card_is_plain_json(trained: history.TrainedModel) -> None:
    about = history_tables.about(trained, ())
    assert json.loads(json.dumps(about, allow_nan=False)) == json.loads(json.dumps(about))
    assert about["population"]["jobs"] == JOBS
    assert about["scores"][0]["predictor"] == "history"


def test_an_interval_is_widened_and_holds_its_prediction() -> None:
    # the second job's quantiles lie so close that what is taken off an end would pass the prediction
    answers = np.log([[10.0, 50.0], [20.0, 50.0], [40.0, 50.0]])
    low, middle, high = history.interval(answers, (np.log(2), np.log(3)))
    assert np.stack([low, middle, high]) == pytest.approx(np.array([[5, 25], [20, 50], [120, 150]]))
    low, middle, high = history.interval(answers, (-np.log(4), -np.log(4)))
    assert np.stack([low, high]) == pytest.approx(np.array([[20, 50], [20, 50]]))
    low, _, high = history.interval(np.array([[-50.0], [0.0], [99.0]]), (0.0, 0.0))
    assert (low[0], high[0]) == pytest.approx((1, 1e12))


def test_the_median_of_a_feature_fills_it_only_where_it_is_always_known() -> None:
    rows = np.array([[1.0, 1.0, np.nan], [2.0, np.nan, np.nan], [6.0, 3.0, np.nan]], np.float32)
    assert history._fill(rows).tolist() == pytest.approx([2.0, np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize("quantiles", [(0.1, 0.5), (0.0, 0.5, 0.9), (0.1, 0.5, 1.0), (0.1, 0.5, 1.5), (0.5, 0.5, 0.9)])
def test_quantiles_rise_between_0_and_1(quantiles: tuple[float, ...]) -> None:
    with pytest.raises(UsageError, match="expected three numbers that rise, between 0 and 1"):
        history._checked(quantiles)
    assert history._checked((1e-6, 0.5, 1 - 1e-6)) == (1e-6, 0.5, 1 - 1e-6)
