"""What squeue and sinfo said on our lab (Slurm 22.05.8), read as a queue; and a later Slurm's forms of the same."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.core.errors import InputError
from gpuctl.waits import pending, queue_snapshot

if TYPE_CHECKING:
    from pathlib import Path


def recorded(root: Path, name: str) -> bytes:
    return (root / "tests" / "fixtures" / "slurm" / "state" / name).read_bytes()


def test_a_recorded_queue(root: Path) -> None:
    found = queue_snapshot.read_snapshot(recorded(root, "squeue.json"), "squeue.json")
    # 22.05 does not say when: the newest instant of any job is taken, and that is told
    assert not found.dated
    assert found.taken_s == 1_795_417_080
    runs = {row["job"]: (row["gpus"], row["nodes"], row["time_limit_s"]) for row in found.running}
    assert set(runs) == {"1", "2", "8", "6", "7", "9"}
    assert runs["1"] == (6, 2, 300)
    why = {each.job: str(each.reason) for each in found.waiting}
    assert set(why) == {"3", "4", "5"}
    assert "array" in why["3"]
    assert "limit holds it up (AssocGrpGRES)" in why["4"]
    assert "held" in why["5"]
    # nobody of those competes for nodes
    assert set(found.jobs["job"]) == set(runs)
    gpus, up = queue_snapshot.read_nodes(recorded(root, "sinfo.json"), "sinfo.json")
    assert (gpus, up) == (24, 5)


def test_a_node_that_sleeps_is_up() -> None:
    states = {"a": ["IDLE", "POWERED_DOWN"], "b": ["IDLE+CLOUD+POWERING_DOWN"], "c": ["MIXED"],
              "d": ["IDLE", "DRAIN"], "e": ["DOWN*"], "f": ["IDLE", "FAILING"], "g": ["MAINTENANCE"]}  # fmt: skip
    nodes = [{"name": name, "state": state, "gres": "gpu:4"} for name, state in states.items()]
    assert queue_snapshot.read_nodes(json.dumps({"nodes": nodes}).encode(), "s") == (12, 3)


def test_clocks_of_queue_and_accounting() -> None:
    job = {"job_id": 7, "job_state": ["PENDING"], "priority": 40, "submit_time": {"set": True, "number": 1_700_000_000}}
    told = {"jobs": [{**job, "array_job_id": 7, "array_task_string": "0-8:2,11%2"}], "last_update": 1_700_000_100}
    found = queue_snapshot.read_snapshot(json.dumps(told).encode(), "q")
    assert (found.waiting[0].more, found.jobs.height) == (5, 6)
    ranks = pending._priorities(found.jobs["job"].to_list(), {each.job: each for each in found.waiting})
    assert ranks is not None
    assert ranks.tolist() == [40] * 6
    assert found.cut == 0
    later = {**job, "array_task_string": "1,3,...", "eligible_time": 1_700_000_161, "state_reason": "Priority"}
    other = {**later, "array_task_string": "", "eligible_time": 1_700_000_100}
    read = queue_snapshot.read_snapshot(
        json.dumps({"jobs": [later, other], "last_update": 1_700_000_100}).encode(), "q"
    )
    assert ([str(each.reason) for each in read.waiting], read.cut) == (["it is to begin later", ""], 1)
    book = pl.DataFrame({name: [None] for name in queue_snapshot.COLUMNS}, schema=queue_snapshot.COLUMNS).with_columns(
        job=pl.lit("7"), submit_s=pl.lit(1_700_000_000.0), state=pl.lit("pending")
    )
    jobs, notes = queue_snapshot.merged(book, found, "UTC", "lab")
    assert jobs.height == 6
    assert not notes
    with pytest.raises(InputError, match="clocks differ: the same jobs were submitted 3600 s apart"):
        queue_snapshot.merged(book.with_columns(pl.col("submit_s") - 3600), found, "UTC", "lab")
    # the same instant by the clock of Berlin
    local = book.with_columns(pl.col("submit_s") + 3600)
    assert queue_snapshot.merged(local, found, "Europe/Berlin", "lab")[0].height == 6
    other = book.with_columns(job=pl.lit("8"))
    assert "not in the queue" in str(queue_snapshot.merged(other, found, "UTC", "lab")[1][0])
    assert math.isclose(queue_snapshot.snapshot_time(found, "Europe/Berlin"), 1_700_003_700)


@pytest.mark.parametrize("text", ["", "[]", '{"jobs": 3}', '{"jobs": [{"job_id": 1, "submit_time": "x"}]}', "{"])
def test_an_unknown_queue_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="is not a queue"):
        queue_snapshot.read_snapshot(text.encode(), "q")
    with pytest.raises(InputError, match="is not a list of nodes"):
        queue_snapshot.read_nodes(text.encode(), "s")
