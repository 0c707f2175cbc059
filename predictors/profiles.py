"""Input of predictors from a trace store: described jobs, their traffic, measured suspensions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gpuctl.predictors.job_description import JobDescription
from gpuctl.predictors.overhead import MeasuredSuspension
from gpuctl.predictors.series import Series, series
from gpuctl.predictors.transfer import Shape, validated

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuctl.store.database import Store


def read_described(store: Store, cluster: str) -> list[JobDescription]:
    """Return the jobs of the profile database."""
    rows = store.frame(
        "SELECT job, model, batch, samples, gpus, epochs, dataset_bytes, coalesce(\"user\", '') AS owner, epoch_s, "
        "first_epoch_s, cached, validation_samples, validation_bytes FROM profiles "
        "WHERE cluster = $cluster ORDER BY job",
        {"cluster": cluster},
    )
    return [
        JobDescription(
            r["job"], r["model"], _shape(r), _real(r["epochs"]), _real(r["dataset_bytes"]), r["owner"],
            _real(r["epoch_s"]), _real(r["first_epoch_s"]), r["cached"],
        )
        for r in rows.iter_rows(named=True)
    ]  # fmt: skip


def _shape(row: Mapping[str, Any]) -> Shape:
    samples, batch, gpus = (_real(row[name]) for name in ("samples", "batch", "gpus"))
    stated = _real(row["validation_samples"])
    if math.isnan(stated):
        stated = validated(samples, _real(row["dataset_bytes"]), _real(row["validation_bytes"]))
    return Shape(samples, batch, gpus, stated)


def read_series(store: Store, cluster: str) -> dict[str, Series]:
    """Return the traffic of each job that has at least two samples."""
    rows = store.frame(
        "SELECT job, epoch_us(ts) / 1e6 AS t, sum(bytes_read) AS bytes, max(seconds) AS seconds FROM traffic "
        "WHERE cluster = $cluster GROUP BY job, ts ORDER BY job, ts",
        {"cluster": cluster},
    )
    found = {}
    for (job,), part in rows.group_by("job", maintain_order=True):
        if part.height >= 2:
            t, received, seconds = (part[c].fill_null(math.nan).to_numpy() for c in ("t", "bytes", "seconds"))
            found[str(job)] = series(t, received, seconds)
    return found


def read_suspensions(store: Store, cluster: str) -> list[MeasuredSuspension]:
    """Return the measured suspensions."""
    rows = store.frame(
        "SELECT job, coalesce(model, '') AS model, coalesce(mode, 'epoch') AS mode, checkpoint_bytes, dataset_bytes, "
        "gpus, epoch_s, epoch_done_s, epoch_left_s, suspend_s, resume_s, loss_s FROM suspensions "
        "WHERE cluster = $cluster ORDER BY ALL",
        {"cluster": cluster},
    )
    return [
        MeasuredSuspension(job, model, mode, *map(_real, numbers)) for job, model, mode, *numbers in rows.iter_rows()
    ]


def _real(value: float | None) -> float:
    return math.nan if value is None else float(value)
