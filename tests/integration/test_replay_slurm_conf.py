"""``gpuctl replay --slurm-conf``: the nodes of slurm.conf are the nodes where a replay knows no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

READER = """
from gpuctl.replay.contract.policy import Parameter
from gpuctl.replay.contract.python_policy import RankPolicy


class First(RankPolicy):
    name = "first"
    title = "first come, first served, where it fits"
    source = "made for a test"
    reads = "slurm"
    parameters = (Parameter("conf", "", "configuration"),)

    def rank(self, jobs):
        assert self.params["conf"]
        return jobs.submit
"""
CONF = """ClusterName=here
NodeName=n[1-2] CPUs=8 Gres=gpu:a100:4
NodeName=c1 CPUs=64
NodeName=down CPUs=8 Gres=gpu:a100:4 State=DOWN
PartitionName=all Nodes=ALL Default=YES
PartitionName=one Nodes=n1
"""
JOBS = """job_id,submit_time,duration,num_gpus,vc
a,0,60,4,one
b,1,60,4,one
c,2,60,8,all
"""


@pytest.fixture
def reader(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(READER)
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return f"{tmp_path / 'mine.py'}:First"


def test_the_nodes_of_slurm_conf_are_the_nodes(gpuctl: Gpuctl, reader: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = gpuctl("replay", tmp_path / "jobs.csv", "--slurm-conf", tmp_path, "--policy", reader, "--parquet", out)
    assert "note: replayed on the nodes of slurm.conf of here: 2 nodes, 8 GPUs" in done.stderr
    assert "note: 1 node whose State keeps jobs off is left out" in done.stderr
    # b waits for n1, the only node of its partition, and c for both
    starts = dict(pl.read_parquet(out / "jobs.parquet").select("job", "start_s").rows())
    assert starts == {"a": 0, "b": 60, "c": 120}


SACCT = """JobID|JobIDRaw|User|Account|QOS|Partition|Submit|Eligible|Start|End|State|AllocTRES|NNodes|NodeList|Timelimit
1|1|u|x|high|one|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T00:01:00|COMPLETED|\
cpu=4,gres/gpu=4,node=1|1|n1|01:00:00
2|2|v|y|high|all|2026-01-05T00:00:01|2026-01-05T00:00:01|2026-01-05T00:01:00|2026-01-05T00:02:00|COMPLETED|\
cpu=4,gres/gpu=4,node=1|1|n1|01:00:00
"""


def test_nodes_that_a_log_does_not_list_are_those_of_slurm_conf(gpuctl: Gpuctl, reader: str, tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT)
    out = tmp_path / "out"
    conf = ("--slurm-conf", tmp_path / "slurm.conf", "--policy", reader, "--parquet", out)
    done = gpuctl("replay", tmp_path / "sacct.txt", *conf)
    assert "note: replayed on the nodes of slurm.conf of here: 2 nodes, 8 GPUs" in done.stderr
    # 2 had to wait for n1, which was all that its jobs were seen on; n2 was free
    assert pl.read_parquet(out / "jobs.parquet")["start_s"].to_list() == [0, 1]
    done = gpuctl("replay", tmp_path / "sacct.txt", "--policy", "fifo", "--parquet", out)
    assert "inferred" in done.stderr
    assert pl.read_parquet(out / "jobs.parquet")["start_s"].to_list() == [0, 60]


def test_nodes_that_are_given_go_before_it(gpuctl: Gpuctl, reader: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    nodes, conf = ("--cluster", "4x4"), ("--slurm-conf", tmp_path / "slurm.conf")
    done = gpuctl("replay", tmp_path / "jobs.csv", *conf, "--policy", reader, *nodes, "--parquet", out)
    assert "nodes of slurm.conf" not in done.stderr
    assert pl.read_parquet(out / "jobs.parquet")["start_s"].to_list() == [0, 1, 2]


def test_errors_are_reported_before_anything_runs(gpuctl: Gpuctl, reader: str, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(CONF + "PartitionName=bad Nodes=n[1-\n")
    done = gpuctl("replay", tmp_path / "jobs.csv", "--slurm-conf", tmp_path, "--policy", reader, check=False)
    assert done.returncode == 3
    assert "slurm.conf: partition bad: host list cannot be read" in done.stderr
    (tmp_path / "slurm.conf").write_text("ClusterName=here\n")
    done = gpuctl("replay", tmp_path / "jobs.csv", "--slurm-conf", tmp_path, "--policy", reader, check=False)
    assert done.returncode == 2
    assert "names no nodes at all with GPUs that jobs can use" in done.stderr
    assert "--cluster 64x8" in done.stderr


def _most_at_once(runs: pl.DataFrame) -> int:
    """GPUs that jobs hold together at most; those that end at a second are gone before others start."""
    starts = runs.select(t="start_s", gpus="gpus")
    ends = runs.select(t="end_s", gpus=-pl.col("gpus"))
    return int(pl.concat([starts, ends]).sort("t", "gpus")["gpus"].cum_sum().max())  # type: ignore[arg-type]


def test_the_sample_site_under_its_slurm_and_under_another(gpuctl: Gpuctl, sample_data: Path, tmp_path: Path) -> None:
    site, out = sample_data / "site", tmp_path / "out"
    conf = ("--slurm-conf", site, "--policy", "slurm,narrow=slurm,fifo", "--param", "narrow.backfill=false")
    done = gpuctl("replay", site / "jobs.csv", *conf, "--parquet", out)
    assert "note: replayed on the nodes of slurm.conf of site: 4 nodes, 32 GPUs" in done.stderr
    # what a policy says of a site, once for all that say it
    assert done.stderr.count("note: slurm, narrow: ") >= 1
    assert "note: fifo" not in done.stderr
    summary = pl.read_parquet(out / "summary.parquet")
    assert summary["policy"].to_list() == ["slurm", "narrow", "fifo"]
    jobs = pl.read_csv(site / "jobs.csv", schema_overrides={"job_id": pl.String})
    assert summary["jobs_finished"].to_list() == [jobs.height] * 3
    # without backfill the same jobs wait longer; preempt/qos is in both
    wait = dict(summary.select("policy", "wait_mean_s").iter_rows())
    assert wait["slurm"] < wait["narrow"]
    preemptions = dict(summary.select("policy", "preemptions").iter_rows())
    assert min(preemptions["slurm"], preemptions["narrow"]) > 0
    assert preemptions["fifo"] == 0
    # GrpTRES=gres/gpu=16 of the QOS high, which nobody preempts
    high = jobs.filter(qos="high").select(job="job_id")
    runs = pl.read_parquet(out / "jobs.parquet").join(high, on="job")
    most = {str(key[0]): _most_at_once(part) for key, part in runs.partition_by("policy", as_dict=True).items()}
    assert max(most["slurm"], most["narrow"]) <= 16 < most["fifo"]
