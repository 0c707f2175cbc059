"""Intervals hold what they say on made-up jobs whose truth is known (tests/trainjobs.py); seeds nothing was chosen on.

Of n predictions that are each inside with a chance of 0.8, fewer than the least here are inside once in 1 000 times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import binom

from gpuctl.predictors.epoch_left import rest_by_bytes
from gpuctl.predictors.epochs import find_epochs
from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.runtime import predict
from gpuctl.predictors.series import series
from gpuctl.predictors.transfer import ProfiledJob, Shape, transfer
from tests import trainjobs

if TYPE_CHECKING:
    from collections.abc import Sequence

CHANCE = 0.001


def hold(inside: Sequence[bool] | np.ndarray, what: str, share: float = 0.8) -> None:
    """Fail where fewer are inside than chance explains."""
    n, k = len(inside), int(np.sum(inside))
    assert binom.cdf(k, n, share) > CHANCE, f"{what}: {k} of {n} inside, {share:.0%} should be"


def test_transfer_from_four_jobs() -> None:
    inside, widths, errors = [], [], []
    for seed in range(300):
        draw = np.random.default_rng([41, seed])
        model = trainjobs.model(draw, "m")
        jobs = [
            trainjobs.job(
                draw, model, str(k), batch=b, workers=g, epoch_s=float(draw.uniform(15, 200)), interval=1000.0
            )
            for k, (b, g) in enumerate(trainjobs.shapes(draw, 5))
        ]
        # what 2.5 epochs tell of four of them
        seen = [float(np.diff(j.ends)[:2] @ (2 / 3, 1 / 3)) for j in jobs]
        shapes = [Shape(j.samples, j.batch, j.workers, model.validation) for j in jobs]
        known = [ProfiledJob(j.name, s, e) for j, s, e in zip(jobs[:4], shapes, seen, strict=False)]
        found = transfer(shapes[4], known)
        assert found is not None
        off = abs(float(np.log(found.epoch_s / jobs[4].epoch_s)))
        inside.append(off <= found.error)
        widths.append(found.error)
        errors.append(off)
    wide = np.array(widths) > np.median(widths)
    hold(inside, "all")
    hold(np.array(inside)[wide], "far from the profiled jobs")
    hold(np.array(inside)[~wide], "near them")
    # wider where errors are larger, and no wider than such errors call for
    assert np.mean(np.array(errors)[wide]) > 1.5 * np.mean(np.array(errors)[~wide])
    assert np.median(widths) < 2.5 * np.quantile(errors, 0.8)


def one(draw: np.random.Generator, *, cached: float = 0.0, interval: float = 1.0, bound: float = 1.0) -> trainjobs.Job:
    model = trainjobs.model(draw, "m")
    return trainjobs.job(
        draw, model, "j", batch=float(draw.choice(trainjobs.BATCHES)), workers=float(draw.choice(trainjobs.WORKERS)),
        epoch_s=float(draw.uniform(30, 150)), interval=interval, cached=cached, bound=bound,
    )  # fmt: skip


def test_own_traffic() -> None:
    for seen in (0.5, 1.7, 2.6):
        inside = []
        for seed in range(100):
            job = one(np.random.default_rng([42, seed]))
            profile = series(job.t, job.bytes).until(job.ends[0] + (seen - 1) * job.epoch_s)
            [found] = predict([JobDescription("j", epochs=6.0, dataset_bytes=job.dataset_bytes)], {"j": profile})
            if np.isfinite(found.run_time_s):
                inside.append(found.lower_s <= job.ends[-1] <= found.upper_s)
        assert len(inside) >= 95
        hold(inside, f"{seen} epochs of its own traffic")


def test_a_cache_is_noticed_where_the_traffic_falls() -> None:
    for size in (True, False):
        for cached in (0.0, 0.3, 0.5, 1.0):
            noticed = []
            for seed in range(60):
                draw = np.random.default_rng([43, seed])
                # a first epoch that waits for the storage is longer than those that do not
                job = one(draw, cached=cached, bound=float(draw.uniform(1, 3)) if cached == 1 else 1.0)
                profile = series(job.t, job.bytes).until(job.ends[0] + 1.6 * job.epoch_s)
                noticed.append(find_epochs(profile, job.dataset_bytes if size else np.nan).cached)
            if cached:
                hold(noticed, f"{cached:.0%} cached", 0.97)
            else:
                hold(~np.array(noticed), "not cached", 0.95)


def test_the_rest_of_an_epoch() -> None:
    inside = []
    for seed in range(150):
        draw = np.random.default_rng([44, seed])
        job = one(draw)
        now = float(job.ends[2] + draw.uniform(0.1, 0.9) * (job.ends[3] - job.ends[2]))
        profile = series(job.t, job.bytes).until(now)
        found = rest_by_bytes(profile, find_epochs(profile, job.dataset_bytes))
        if found is not None:
            inside.append(found.lower_s <= job.ends[3] - profile.seconds <= found.upper_s)
    assert len(inside) > 120
    hold(inside, "the rest of an epoch")
