"""Every pending job of a recorded queue of a real Slurm, forecast with what was known then, against when it started."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from gpuctl.compiled.jit import interpreted
from gpuctl.predictors import limit_share
from gpuctl.waits import forward, pending, queue_snapshot, run_times, site_forward
from gpuctl.waits.queue_log import log_of

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "slurm" / "waits"
STATES = {"COMPLETED": "passed", "TIMEOUT": "timeout", "RUNNING": "running", "PENDING": "pending"}


def accounting(name: str) -> pl.DataFrame:
    """What sacct printed, in the columns of a log."""
    cells = pl.read_csv(RECORDED / name, separator="|", infer_schema=False)
    times = {"submit_s": "Submit", "eligible_s": "Eligible", "start_s": "Start", "end_s": "End"}
    return cells.select(
        pl.col("State").replace_strict(STATES).alias("state"),
        pl.col("ReqTRES").str.extract(r"gres/gpu=(\d+)").cast(pl.Float64).alias("gpus"),
        *(pl.col(old).str.to_datetime(strict=False).dt.epoch("us").cast(pl.Float64).truediv(1e6).alias(new)
          for new, old in times.items()),
        pl.col("NNodes").cast(pl.Float64).alias("nodes"), pl.lit(120.0).alias("time_limit_s"),
        job="JobIDRaw", user="User", queue="Partition",
    )  # fmt: skip


def test_a_recorded_queue_is_forecast_within_seconds() -> None:
    taken = float((RECORDED / "taken.txt").read_text())
    queue = queue_snapshot.read_snapshot(gzip.decompress((RECORDED / "squeue.json.gz").read_bytes()), "squeue", taken)
    gpus, nodes = queue_snapshot.read_nodes(gzip.decompress((RECORDED / "sinfo.json.gz").read_bytes()), "sinfo")
    queue = dataclasses.replace(queue, gpus=gpus, nodes=nodes)
    jobs, notes = queue_snapshot.merged(accounting("sacct.txt"), queue, "UTC", "lab")
    assert not notes
    log = log_of("lab", jobs, taken_s=taken)
    names, told = log.rows["job"].to_list(), {each.job: each for each in queue.waiting}
    began = dict(accounting("later.txt").select("job", "start_s").iter_rows())
    with interpreted():
        priority = pending._priorities(names, told)
        alike = forward.of_waiting(log, "age", priority, int(gpus) // log.width)[:2]
        ruled = site_forward.of_waiting(log, [RECORDED / "slurm.conf"], "age")
    assert any("preempt" in str(text) for text in ruled.notes)
    for which, samples in (alike, (ruled.which, ruled.samples)):
        assert which.size == len(told) == 26
        wait = np.array([began[names[k]] for k in which.tolist()]) - taken
        slurm = np.array([told[names[k]].starts_s for k in which.tolist()]) - taken
        low, middle, high = np.quantile(samples, [0.1, 0.5, 0.9], axis=1)
        off = np.abs(middle - wait)
        # waits are of 70 s at the median; freed GPUs lay idle for seconds, as the machine was busy
        assert np.mean((wait >= low - 5) & (wait <= high + 5)) >= 0.8
        assert np.median(off) < 15
        assert np.mean(off) < 0.1 * np.mean(np.abs(slurm - wait))


@pytest.mark.parametrize("name", ["sacct.txt", "later.txt"])
def test_the_record_is_whole(name: str) -> None:
    assert accounting(name).drop("eligible_s", "start_s", "end_s").null_count().sum_horizontal().item() == 0


def test_trees_of_another_cluster_are_not_requested_run_times() -> None:
    taken = float((RECORDED / "taken.txt").read_text())
    log = log_of("lab", accounting("later.txt"), taken_s=taken + 86_400.0)
    ended = np.isfinite(log.end_s) & log.started
    assert ended.sum() > run_times.FEWEST_LATEST
    shares = np.full((log.ready_s.size, len(limit_share.LEVELS)), np.nan)
    shares[ended] = np.log((log.end_s - log.leave_s)[ended, None] / 120.0)
    assert run_times.hold(log, shares)
    # by other jobs, all shares of the limit are as likely: here jobs use up a quarter of it at most
    assert not run_times.hold(log, np.tile(np.log(limit_share.LEVELS), (log.ready_s.size, 1)))
    assert run_times.hold(log, run_times.nothing(log.ready_s.size))


def test_jobs_that_have_not_ended_warn_of_no_infinite_time() -> None:
    log = log_of("lab", accounting("sacct.txt"), taken_s=float((RECORDED / "taken.txt").read_text()))
    with np.errstate(invalid="raise"):
        assert run_times.rows_of(log)["run_s"].is_nan().any()
        assert run_times.hold(log, np.tile(np.log(limit_share.LEVELS), (log.ready_s.size, 1))) in {True, False}
