"""Wrong use of the library is one of gpuctl's errors, with a hint, before any long work."""

from __future__ import annotations

import gc
import tempfile
import warnings
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gpuctl

if TYPE_CHECKING:
    from collections.abc import Callable

JOBS = pl.DataFrame({"job_id": ["a", "b", "c"], "submit_time": [0, 60, 120], "duration": [60, 60, 60], "num_gpus": 1})


def closed() -> gpuctl.Trace:
    with gpuctl.open(JOBS) as trace:
        return trace


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a closed trace": (lambda: closed().sql("SELECT 1"), "this trace is closed"),
    "a closed trace to replay": (lambda: gpuctl.replay(closed(), "4x8", ["fifo"]), "this trace is closed"),
    "a wrong column": (lambda: gpuctl.open(JOBS.rename({"duration": "d"})), "this one lacks duration"),
    "no rows": (lambda: gpuctl.open(JOBS.head(0)), "has no rows"),
    "a job twice": (lambda: gpuctl.replay(pl.concat([JOBS, JOBS]), "4x8", ["fifo"]), r"row 1 \(job 'a'\), row 2"),
    "a column of lists": (lambda: gpuctl.open(JOBS.with_columns(x=pl.lit([1, 2]))), "values of type List"),
    "a column of objects": (lambda: gpuctl.open(JOBS.with_columns(x=pl.Series([object()] * 3, dtype=pl.Object))),
                            "values of type Object"),
    "bytes": (lambda: gpuctl.open(b"jobs.csv"), "not bytes"),
    "nothing": (lambda: gpuctl.open(None), "not NoneType"),
    "an empty list": (lambda: gpuctl.ingest([], "x.duckdb"), "not an empty list"),
    "a path from home": (lambda: gpuctl.open("~/no-such-log"), str(Path.home() / "no-such-log")),
    "a table": (lambda: gpuctl.analyze(JOBS, ["statu"]), "no table 'statu'"),
    "a text for a list": (lambda: gpuctl.analyze(JOBS, "status"), "expected a list"),
    "a filter": (lambda: gpuctl.analyze(JOBS, where={"gpu": 8}), "no filter 'gpu'"),
    "filters that are no dict": (lambda: gpuctl.analyze(JOBS, where="gpus"), "expected a dict"),  # type: ignore[arg-type]
    "a filter without names": (lambda: gpuctl.analyze(JOBS, where={"queue": []}), "queue is an empty list"),
    "no processes": (lambda: gpuctl.replay(JOBS, "4x8", processes=0), "processes=0: expected a number ≥ 1"),
    "a number of seeds": (lambda: gpuctl.sweep(JOBS, "4x8", seeds=3), "seeds=3: expected a list"),  # type: ignore[arg-type]
    "a period": (lambda: gpuctl.analyze(JOBS, by="fortnight"), "by='fortnight'"),  # type: ignore[arg-type]
    "a job": (lambda: gpuctl.explain(JOBS, "z"), "no job 'z'"),
    "an option of logs": (lambda: gpuctl.open(JOBS, timezone="UTC"), "this is a data frame"),
    "a policy": (lambda: gpuctl.replay(JOBS, "4x8", ["fifoo"]), "no policy 'fifoo'"),
    "no policy": (lambda: gpuctl.replay(JOBS, "4x8", []), "no policy to replay"),
    "nodes": (lambda: gpuctl.replay(JOBS, 5, ["fifo"]), "cluster: expected a path"),  # type: ignore[arg-type]
    "parameters": (lambda: gpuctl.replay(JOBS, "4x8", ["fifo"], params=["x=1"]), "expected a dict"),  # type: ignore[arg-type]
    "a model": (lambda: gpuctl.load_model("no-such-model"), "no-such-model"),
    "a kind of model": (lambda: gpuctl.train("x", JOBS, "m"), "no kind 'x'"),  # type: ignore[arg-type]
    "no results": (lambda: gpuctl.report(5), "expected a list or a mapping"),  # type: ignore[arg-type]
    "a frame for a result": (lambda: gpuctl.report([JOBS]), "not DataFrame"),  # type: ignore[list-item]
    "a chart": (lambda: gpuctl.analyze(JOBS, ["status"]).figure("wait-cdf"), "chart wait-cdf"),
    "SQL": (lambda: gpuctl.open(JOBS).sql(5), "expected a text"),  # type: ignore[arg-type]
    "parameters of SQL": (lambda: gpuctl.open(JOBS).sql("SELECT ?", [8]), "expected a dict"),  # type: ignore[arg-type]
    "tables of a closed trace": (lambda: closed().tables, "this trace is closed"),
    "a closed trace again": (lambda: closed().__enter__(), "this trace is closed"),
    "an empty path": (lambda: gpuctl.open(""), "not an empty text"),
    "a share": (lambda: gpuctl.analyze(JOBS, idle_below="x"), "idle_below='x': expected a number"),  # type: ignore[arg-type]
    "a zone of charges": (lambda: gpuctl.analyze(JOBS, period_timezone="Mars/X"), "Mars/X"),
    "a quota": (lambda: gpuctl.analyze(JOBS, quotas={"q": "x"}), "expected a number"),  # type: ignore[dict-item]
    "a second": (lambda: gpuctl.Simulation(JOBS, "4x8", "fifo").advance(float("nan")), "until=nan"),
    "half an instant": (lambda: gpuctl.Simulation(JOBS, "4x8", "fifo").advance(instants=1.5), "a whole number"),  # type: ignore[arg-type]
    "an empty log": (lambda: gpuctl.classify(""), "not an empty text"),
    "an exit code": (lambda: gpuctl.classify("x\n", exit_code="1"), "expected an integer"),  # type: ignore[arg-type]
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_an_error_with_a_hint(name: str) -> None:
    call, text = WRONG[name]
    with pytest.raises(gpuctl.errors.GpuctlError, match=text) as caught:
        call()
    assert caught.value.hint


def test_unknown_arguments_are_errors_as_of_any_function() -> None:
    with pytest.raises(TypeError, match="did you mean timezone"):
        gpuctl.analyze(JOBS, timezon="UTC")  # type: ignore[call-arg]


def test_times_of_frames_are_those_of_their_zones() -> None:
    text = "SELECT job, submit_ts FROM jobs ORDER BY job"
    with gpuctl.open(JOBS) as trace:
        seconds = trace.sql(text)
    for zone in (None, "UTC", "Asia/Tokyo"):
        times = pl.from_epoch("submit_time")
        times = times if zone is None else times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        frame = JOBS.with_columns(submit_time=times, duration=pl.lit(timedelta(minutes=1)))
        with gpuctl.open(frame) as trace:
            assert trace.sql(text).equals(seconds)


def test_a_trace_that_nobody_closes_leaves_no_folder_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gpuctl.open(JOBS).sql("SELECT count(*) AS n FROM jobs")["n"].to_list() == [JOBS.height]
        gc.collect()
    assert list(tmp_path.glob("gpuctl-*")) == []
