"""All that waits by a site's own slurm.conf: against the replay that the queue was cut from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from gpuctl.compiled.jit import interpreted
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies.slurm.cluster import cluster_of
from gpuctl.replay.run import replay
from gpuctl.slurm.site import read_site
from gpuctl.waits import forward, site_forward
from gpuctl.waits.queue_log import WaitLog, log_of

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

CONF = """ClusterName=two
SchedulerType=sched/backfill
SelectType=select/cons_tres
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightFairshare=FAIR
PriorityWeightJobSize=1000
GresTypes=gpu
NodeName=a[1-2] CPUs=64 Gres=gpu:8
NodeName=b[1-2] CPUs=64 Gres=gpu:8
PartitionName=short Nodes=a[1-2] MaxTime=1-00:00:00 State=UP
PartitionName=long Nodes=b[1-2] Default=YES MaxTime=7-00:00:00 State=UP
"""
NOW = 20_000.0
COUNT = 60


def cut(folder: Path, seed: int, sizes: tuple[int, ...]) -> tuple[WaitLog, NDArray[np.float64]]:
    """A queue of two partitions whose jobs use up their limits, as it is at an instant; when each job started."""
    draw = np.random.default_rng(seed)
    submit, run = np.sort(draw.integers(0, int(NOW), COUNT)), draw.choice([1800, 3600, 7200, 14_400], COUNT)
    gpus, queue = draw.choice(sizes, COUNT), draw.choice(["short", "long"], COUNT)
    rows = zip(submit, run, gpus, queue, strict=True)
    lines = [f"{k},{a},{r},{g},u{k % 5},{q},{r}" for k, (a, r, g, q) in enumerate(rows)]
    path = folder / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus,user,vc,requested_time\n" + "\n".join(lines) + "\n")
    work = read_jobs(path)
    conf = folder / "slurm.conf"
    policy = [("slurm", {"conf": str(conf)})]
    outcome = replay(work, cluster_of(read_site([conf]), work), policy, processes=1)[0]
    start = np.array(outcome.jobs.sort(pl.col("job").cast(pl.Int64))["start_s"].to_list())
    end = start + run
    told = {
        "job": [str(k) for k in range(COUNT)], "user": [f"u{k % 5}" for k in range(COUNT)], "queue": queue.tolist(),
        "gpus": gpus.astype(float), "nodes": np.ones(COUNT), "time_limit_s": run.astype(float),
        "submit_s": submit.astype(float), "start_s": np.where(start <= NOW, start, np.nan),
        "end_s": np.where(end <= NOW, end, np.nan),
        "state": np.where(end <= NOW, "passed", np.where(start <= NOW, "running", "pending")).tolist(),
    }  # fmt: skip
    return log_of("made up", pl.DataFrame(told), taken_s=NOW), start


@pytest.mark.parametrize(("sizes", "exact"), [((8,), 1.0), ((1, 2, 4, 8), 0.8)])
def test_a_queue_continues_as_the_replay_that_it_was_cut_from(
    tmp_path: Path, sizes: tuple[int, ...], exact: float
) -> None:
    """All jobs use up their limits. Which nodes parts of a node are on is not told: then some jobs change places."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF.replace("FAIR", "0"))
    log, start = cut(tmp_path, 2, sizes)
    with interpreted():
        found = site_forward.of_waiting(log, [conf], "age", count=2)
        which, _, alike = forward.of_waiting(log, "age", count=1)
    left = start[log.rows["job"].cast(pl.Int64).to_numpy()] - NOW
    assert found.which.size == which.size > COUNT // 3
    # passes take place at other seconds
    assert np.mean(np.abs(found.plan - left[found.which]) < 90) >= exact
    # nodes all alike, as the model's own simulation has them, are another queue
    assert np.mean(np.abs(alike - left[which]) < 90) < 0.5


def test_past_usage_is_charged_first(tmp_path: Path) -> None:
    """The user of the only job that has ended has to wait behind the other, who came later."""
    conf = tmp_path / "slurm.conf"
    conf.write_text(CONF.replace("FAIR", "10000"))
    rows = [
        ("past", "glutton", 0.0, 0.0, 80_000.0, "passed"), ("one", "third", 80_000.0, 80_000.0, None, "running"),
        ("two", "third", 80_000.0, 80_000.0, None, "running"), ("first", "glutton", 81_000.0, None, None, "pending"),
        ("second", "frugal", 81_500.0, None, None, "pending"), ("third", "frugal", 81_600.0, None, None, "pending"),
    ]  # fmt: skip
    names = ("job", "user", "submit_s", "start_s", "end_s", "state")
    told = pl.DataFrame([dict(zip(names, row, strict=True)) for row in rows]).with_columns(
        queue=pl.lit("long"), gpus=pl.lit(8.0), nodes=pl.lit(1.0), time_limit_s=pl.lit(10_000.0)
    )
    log = log_of("made up", told, taken_s=82_000.0)
    with interpreted():
        found = site_forward.of_waiting(log, [conf], "age", count=1)
    waits = dict(zip(log.rows["job"][found.which.tolist()].to_list(), found.plan.tolist(), strict=True))
    assert 7900 < waits["second"] < 8200
    assert 7900 < waits["third"] < 8200
    assert waits["first"] > 17_000
