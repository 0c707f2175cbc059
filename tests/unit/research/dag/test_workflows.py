"""Workflows of archives as jobs of stages: one diamond (a, then b and c, then d) in GWF, WTF and WfFormat."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.research.dag.imported import read
from gpuctl.research.dag.jobs import Job, Stage

if TYPE_CHECKING:
    from pathlib import Path

GWF = """WorkflowID, JobID , SubmitTime, RunTime, NProcs, ReqNProcs, Dependencies
7, 1, 16, 11, 1, -1,
7, 2, 16, 20, 1, 2, 1
7, 3, 16, 0, 3, -1, 1
7, 4, 17, 5, 1, 1, 2 3
# a second workflow without a run time
8, 5, 20, -1, 1, 1, -1
"""
DIAMOND = (Stage(1, 11_000), Stage(2, 20_000, (0,)), Stage(3, 1, (0,)), Stage(1, 5000, (1, 2)))


def test_gwf(tmp_path: Path) -> None:
    path = tmp_path / "trace.gwf"
    path.write_text(GWF)
    found = read(path)
    assert found.jobs == [Job("7", 16_000, DIAMOND)]
    assert (found.rows, found.raised) == (5, 1)
    assert found.left_out == {"of jobs without a run time, a size or a submission": 1}


@pytest.mark.parametrize("stamps", [False, True])
def test_wtf(tmp_path: Path, *, stamps: bool) -> None:
    """As its archive has it: a folder of parts; -1 stands for no parent, and times may be typed."""
    frame = pl.DataFrame(
        {
            "id": [2**62 + 1, 12, 13, 14],
            "workflow_id": [9, 9, 9, 9],
            "ts_submit": [245_604, 245_604, 245_604, 251_325],
            "runtime": [8163, 20, 0, 8216],
            "parents": [[-1], [2**62 + 1], [2**62 + 1], [12, 13]],
            "resource_amount_requested": [1.0, 4.0, 1.0, 1.0],
        }
    )
    if stamps:
        frame = frame.with_columns(pl.col("ts_submit").cast(pl.Datetime("ms", "UTC")))
    parts = tmp_path / "askalon" / "tasks" / "schema-1.0"
    parts.mkdir(parents=True)
    frame[:2].write_parquet(parts / "part.0.parquet")
    frame[2:].write_parquet(parts / "part.1.parquet")
    # stages are numbered by id where nothing else orders them
    want = [Job("9", 245_604, (Stage(1, 8163), Stage(1, 20, (0,)), Stage(1, 1, (0,)), Stage(1, 8216, (1, 2))))]
    assert read(tmp_path / "askalon").jobs == want


def _spread(version: str) -> dict[str, Any]:
    """The diamond in WfFormat: ids and times apart since 1.5, together and with names as parents before."""
    parents: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    times = {"a": 11, "b": 20.0, "c": 0.0004, "d": 5}
    if version == "1.5":
        tasks = [{"id": f"{k}_1", "name": k, "parents": [f"{p}_1" for p in parents[k]], "children": []} for k in "dcba"]
        timed = [{"id": f"{k}_1", "runtimeInSeconds": times[k], "coreCount": 4} for k in "abcd"]
        execution = {"makespanInSeconds": 40, "executedAt": "2027-01-15T08:00:00Z", "tasks": timed}
        workflow: dict[str, Any] = {"specification": {"tasks": tasks}, "execution": execution}
    else:
        key = "tasks" if version == "1.4" else "jobs"
        time = "runtimeInSeconds" if version == "1.4" else "runtime"
        workflow = {key: [{"name": k, "parents": parents[k], time: times[k]} for k in "dcba"]}
    return {"name": "diamond", "schemaVersion": version, "workflow": workflow}


@pytest.mark.parametrize("version", ["1.5", "1.4", "1.2"])
def test_wfformat(tmp_path: Path, version: str) -> None:
    path = tmp_path / "diamond.json"
    path.write_text(json.dumps(_spread(version)))
    found = read(path)
    # the file lists c before b
    assert found.jobs == [
        Job("diamond", 0, (Stage(1, 11_000), Stage(1, 1, (0,)), Stage(1, 20_000, (0,)), Stage(1, 5000, (1, 2))))
    ]
    assert (found.rows, found.raised) == (4, 1)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.gwf", "1 16 -1 11 1 -1 -1\n", r"lacks the columns WorkflowID"),
        ("a.gwf", GWF.replace("2 3", "2;3"), r"a\.gwf:5: is not a valid job"),
        ("a.json", "{}", r"has no tasks"),
        (
            "a.json",
            json.dumps(_spread("1.4")).replace('["b", "c"]', '["b", "x"]'),
            r"names the parent x, which is no task",
        ),
        ("a.parquet", "PAR1", r"cannot be read"),
    ],
)
def test_files_that_are_none_of_these_are_errors(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=why):
        read(tmp_path / name)
