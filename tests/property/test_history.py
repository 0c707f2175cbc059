"""Run times from history, whatever the log: no news from the future, and no folder that does harm."""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpuctl.core.errors import InputError
from gpuctl.predictors import features, history, history_folder, job_table
from gpuctl.predictors.baselines import baselines
from tests.example_counts import examples

if TYPE_CHECKING:
    from pathlib import Path

STATES = ("completed", "failed", "killed", "timeout", "running", "node_fail", "preempted", "pending", "unknown")
NAMES = st.sampled_from(["", "a", "b1", "b2", "ü\x00"])
TIMES = st.integers(0, 40)
"""Few, so that instants coincide."""


@st.composite
def jobs(draw: st.DrawFn) -> list[dict[str, object]]:
    rows = []
    for number in range(draw(st.integers(1, 25))):
        submit = draw(TIMES)
        end = draw(st.none() | st.integers(submit, 80))
        rows.append(
            {
                "job": f"{number:03}", "user": draw(NAMES), "queue": draw(NAMES), "name": draw(NAMES),
                "gpus": draw(st.sampled_from([None, 1.0, 8.0])), "time_limit_s": draw(st.none() | st.integers(0, 50)),
                "submit_s": float(submit), "end_s": end, "run_s": draw(st.none() | st.floats(0, 1e6)),
                "state": draw(st.sampled_from(STATES)),
            }
        )  # fmt: skip
    return rows


SCHEMA = {
    "job": pl.String, "user": pl.String, "queue": pl.String, "name": pl.String, "gpus": pl.Float64,
    "time_limit_s": pl.Float64, "submit_s": pl.Float64, "end_s": pl.Float64, "run_s": pl.Float64, "state": pl.String,
}  # fmt: skip


def known_at_submission(rows: list[dict[str, object]]) -> dict[str, tuple[bytes, ...]]:
    """All that is told of each job, and what the rules make of it."""
    anchor = {
        "job": "zzz",
        "submit_s": 1e6,
        "end_s": 1e6 + 1,
        "run_s": 1.0,
        "state": "completed",
        "user": "",
        "queue": "",
    }
    frame = pl.DataFrame([*rows, dict.fromkeys(SCHEMA) | anchor | {"name": ""}], schema=SCHEMA)
    # "nodes" would take the place of GPUs where no job has any
    table = job_table.table("log", frame.with_columns(pl.col("gpus").fill_null(4.0)))
    found, _ = features.of_log(table)
    rules = baselines(table.rows, found, 7.0)
    own = table.rows.drop("run_s", "end_s", "known").rows()
    return {
        job: (found.matrix[k].tobytes(), found.means[k].tobytes(), *(rule[k].tobytes() for rule in rules.values()),
              repr(own[k]).encode())
        for k, job in enumerate(table.rows["job"])
    }  # fmt: skip


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(jobs(), jobs(), st.integers(0, 24), st.data())
def test_nothing_is_known_of_the_future(
    rows: list[dict[str, object]], others: list[dict[str, object]], chosen: int, data: st.DataObject
) -> None:
    """What happens from a job's submission on may be anything: what it is told stays the same, byte for byte."""
    job = rows[chosen % len(rows)]
    at = job["submit_s"]
    assert isinstance(at, float)
    changed = []
    for row in rows:
        submit, end, run = row["submit_s"], row["end_s"], row["run_s"]
        assert isinstance(submit, float)
        if submit > at:
            continue
        # where no end is logged, it is taken to be that of a job that did not wait
        over = end if end is not None else submit + run if isinstance(run, float) else None
        ended = isinstance(over, int | float) and over < at
        fate = {
            "end_s": data.draw(st.none() | st.integers(int(at), 90)),
            "run_s": data.draw(st.none() | st.floats(90, 1e6)),
            "state": data.draw(st.sampled_from(STATES)),
        }
        changed.append(row if ended else row | fate)
    later = [
        row | {"job": f"new{k}", "submit_s": at + 1 + float(str(row["submit_s"])), "end_s": None}
        for k, row in enumerate(others)
    ]
    name = str(job["job"])
    assert known_at_submission([*changed, *later])[name] == known_at_submission(rows)[name]


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(jobs())
def test_history_is_that_of_a_slow_and_simple_program(rows: list[dict[str, object]]) -> None:
    table = None
    try:
        table = job_table.table("log", pl.DataFrame(rows, schema=SCHEMA))
    except InputError:
        return
    found, state = features.of_log(table)
    told = list(table.rows.iter_rows(named=True))
    for k, job in enumerate(told):
        past = [one for one in told if one["known"] and one["end_s"] < job["submit_s"]]
        past.sort(key=lambda one: one["end_s"])
        for group, fields in features.GROUPS.items():
            same = [one for one in past if all(_same(one[f], job[f]) for f in fields)]
            runs = [one["run_s"] for one in same]
            logs = np.log(np.maximum(runs, 1.0))
            assert found.figure(group, "count")[k] == pytest.approx(np.log(1 + min(len(runs), features.RECENT)))
            if runs:
                assert found.mean(group)[k] == pytest.approx(np.mean(runs))
                assert found.figure(group, "mean")[k] == pytest.approx(logs.mean(), rel=1e-5, abs=1e-6)
                since = job["submit_s"] - max(one["end_s"] for one in same)
                assert found.figure(group, "since")[k] == pytest.approx(np.log1p(since), rel=1e-5)
            else:
                assert np.isnan(found.figure(group, "last")[k])
    assert state.count[:-1].sum() == len(features.GROUPS) * sum(one["known"] for one in told)


def _same(a: object, b: object) -> bool:
    return a == b or (a != a and b != b)  # noqa: PLR0124 - NaN


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(3)
    count = 400
    rows = {"job": [f"{k:03}" for k in range(count)], "user": [f"u{k % 5}" for k in range(count)],
            "submit_s": np.arange(count) * 600.0, "run_s": np.exp(random.normal(5, 1, count)),
            "gpus": random.choice([1.0, 2.0], count)}  # fmt: skip
    trained = history.train(job_table.table("log", pl.DataFrame(rows)))
    path = tmp_path_factory.mktemp("history") / "model"
    history_folder.save(path, trained.model, {"title": "t", "what": "w"})
    return path


ASKED = pl.DataFrame({"job": ["a", "b"], "user": ["u1", "x"], "gpus": [1, None], "submit_s": [1e6, None]})


@settings(max_examples=examples(300), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_hostile_folder_gives_an_error_or_a_prediction(
    model: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Bytes of any file are changed, and the card is told of it, as someone would do who means harm."""
    folder = tmp_path_factory.mktemp("hostile") / "model"
    shutil.copytree(model, folder)
    card = json.loads((folder / "card.json").read_text())
    name = data.draw(st.sampled_from(sorted(card["files"])))
    content = bytearray((folder / name).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        kind = data.draw(st.sampled_from(["change", "cut", "put", "repeat", "drop"]))
        if kind == "change":
            content[at] = data.draw(st.integers(0, 255) | st.sampled_from(b"0123456789-=. \n"))
        elif kind == "cut":
            content = content[: max(at, 1)]
        elif kind == "put":
            content[at:at] = data.draw(st.binary(max_size=9) | st.sampled_from([b"-", b"9" * 30, b"\n", b" ", b"nan"]))
        elif kind == "repeat":
            content[at:at] = content[at : at + data.draw(st.integers(1, 500))]
        else:
            del content[at : at + data.draw(st.integers(1, min(500, max(1, len(content) - 1))))]
            content = content or bytearray(b"x")
    (folder / name).write_bytes(content)
    card["files"][name] = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    (folder / "card.json").write_text(json.dumps(card))
    try:
        loaded = history_folder.load(folder)
    except InputError as error:
        assert str(folder) in str(error)  # noqa: PT017
        assert error.hint  # noqa: PT017
        return
    finally:
        shutil.rmtree(folder)
    found = history.predict(loaded, ASKED)
    values = found.drop("job").to_numpy()
    assert np.isfinite(values).all()
    assert (values >= 1).all()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("quantiles", [0.1, 0.5]), ("quantiles", [0.9, 0.5, 0.1]), ("quantiles", "0.1"),
        ("quantiles", [0.1, None, 0.9]),
        ("features", []), ("features", ["user_last"] * 2), ("features", ["__class__"]), ("features", {"a": 1}),
        ("features", [["user"]]), ("fill", [0.0]), ("fill", None), ("fill", "x"),
        ("widen", [1e9, 0]), ("widen", [True, 0]), ("widen", [-0.5, 0]), ("widen", [0, -5]),
        ("zone", "../../etc/passwd"), ("zone", "Mars/Phobos"), ("zone", 3), ("clock", ""), ("size", "cores"),
        ("size", ["GPUs"]), ("typical_s", 0), ("typical_s", "1"), ("typical_s", None),
        ("typical_s", 0.9e-3), ("typical_s", 1.1e12),
    ],
)  # fmt: skip
def test_a_setting_that_is_wrong_is_named(model: Path, tmp_path: Path, key: str, value: object) -> None:
    folder = tmp_path / "model"
    shutil.copytree(model, folder)
    found = json.loads((folder / "settings.json").read_text())
    text = json.dumps(found | {key: value}).encode()
    (folder / "settings.json").write_bytes(text)
    card = json.loads((folder / "card.json").read_text())
    card["files"]["settings.json"] = {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()}
    (folder / "card.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match=f"settings.json: {key}: found") as error:
        history_folder.load(folder)
    assert "expected" in error.value.message
