"""``gpuctl replay --yarn-conf``: a site's capacity scheduler, as a user calls it, and what-ifs on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    Gpuctl = Callable[..., subprocess.CompletedProcess[str]]

NAMES = "asis=yarn-capacity,moved=yarn-capacity,taken=yarn-capacity"


def test_the_sample_site_under_its_capacity_scheduler(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    site = root / "sample_data" / "site"
    done = gpuctl(
        "replay", site / "jobs.csv", "--cluster", site / "cluster.toml", "--policy", NAMES,
        "--yarn-conf", site / "capacity-scheduler.xml", "--resources", "gpu,cpu,mem",
        "--param", "moved.guarantees=research:30", "--param", "moved.maximums=production:100",
        "--param", "taken.preemption=true", "--parquet", tmp_path,
    )  # fmt: skip
    size = pl.read_csv(site / "jobs.csv").height
    for label in ("asis", "moved", "taken"):
        assert f"{label}: {size} jobs replayed" in done.stderr
    jobs = pl.read_parquet(tmp_path / "jobs.parquet")
    assert jobs.group_by("policy").len().sort("policy").rows() == [("asis", size), ("moved", size), ("taken", size)]
    assert jobs["end_s"].null_count() == 0
    taken = dict(jobs.group_by("policy").agg(pl.col("preemptions").sum()).rows())
    assert taken["taken"] > taken["asis"] == taken["moved"] == 0
    queue = {str(j): q for j, q in pl.read_csv(site / "jobs.csv").select("job_id", "vc").rows()}
    waits = (
        jobs.with_columns(queue=pl.col("job").replace_strict(queue))
        .group_by("policy", "queue")
        .agg(pl.col("wait_s").mean())
    )
    mean = {(policy, name): wait for policy, name, wait in waits.rows()}
    # 70 % of the nodes in place of 40 % are what production's jobs wait less for, and research's more
    assert mean["moved", "production"] < mean["asis", "production"]
    assert mean["moved", "research"] > mean["asis", "research"]


def test_queues_that_the_site_does_not_have(gpuctl: Gpuctl, root: Path, tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text("job_id,submit_time,duration,num_gpus,vc\na,0,60,1,research\nb,0,60,1,lost\n")
    site = root / "sample_data" / "site"
    done = gpuctl(
        "replay",
        tmp_path / "jobs.csv",
        "--cluster",
        "4x8",
        "--policy",
        "yarn-capacity",
        "--yarn-conf",
        site,
        check=False,
    )
    assert done.returncode == 3
    assert "jobs of queues that the configuration does not have as leaves: lost" in done.stderr
    assert "its leaves are root.research, root.production" in done.stderr
