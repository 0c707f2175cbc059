"""Time beside neighbours and waits for locality alone, in a replay small enough to count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.lessons.sharing import locality_wait_s, shared_s
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.run import replay

if TYPE_CHECKING:
    from pathlib import Path


def test_neighbours_and_waits_are_those_counted_by_hand(tmp_path: Path) -> None:
    rows = ("a,0,1000,3", "b,0,1000,3", "c,0,400,1", "gang,100,200,2", "big,150,10,8")
    (tmp_path / "jobs.csv").write_text("\n".join(["job_id,submit_time,duration,num_gpus", *rows]))
    workload = read_jobs(tmp_path / "jobs.csv")
    cluster = parse_cluster("2x4", workload)
    [outcome] = replay(workload, cluster, [("philly", {"relax": "never"})])
    assert outcome.jobs["start_s"].to_list() == [0, 0, 0, 1000, 1200]
    # c is beside a until 400; the gang starts when a and b end
    assert shared_s(outcome, workload.size).tolist() == [3 * 400, 0, 400, 0, 0]
    # two GPUs are free from 400 on, one on each node; eight never are before the last job starts
    assert locality_wait_s(outcome, workload, cluster).tolist() == [0, 0, 0, 600, 0]
