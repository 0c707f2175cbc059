"""Reasons of failed segments of a workload, from a table of failed attempts."""

from __future__ import annotations

import numpy as np
import polars as pl

from gpuctl.joblogs.retry_prospects import may_pass, where_it_shows
from gpuctl.joblogs.table import NO_SIGNATURE
from gpuctl.replay.inputs.trace_rows import codes
from gpuctl.replay.models.records import SHOWS, Failures


def why_failed(rows: pl.DataFrame, segments: pl.DataFrame, failed_attempts: pl.DataFrame) -> Failures:
    """Return the reason of each failed segment.

    Args:
        rows: jobs of a trace: ``number``, ``name``.
        segments: of these jobs: ``number``, ``start_c``, ``attempt``.
        failed_attempts: one row per failed attempt: ``job`` (name), ``attempt``, ``reason`` (null or `NO_SIGNATURE`:
            not known), ``category``, ``confidence``.
    """
    own = segments.join(rows.select("number", "name"), on="number").sort("number", "start_c", maintain_order=True)
    columns = {"attempt": pl.Int32, "reason": pl.String, "category": pl.String, "confidence": pl.Float64}
    known = failed_attempts.select(
        pl.col("job").alias("name"), *(pl.col(name).cast(kind) for name, kind in columns.items())
    )
    known = known.filter(pl.col("reason") != NO_SIGNATURE).unique(["name", "attempt"], keep="first")
    found = own.with_columns(pl.col("attempt").cast(pl.Int32)).join(
        known, on=["name", "attempt"], how="left", maintain_order="left"
    )
    code, reasons = codes(found["reason"], found["reason"])
    category, categories = codes(found["category"], found["category"])
    pairs = list(found.select("reason", "category").iter_rows())
    return Failures(
        reason=code,
        category=category,
        confidence=found["confidence"].fill_null(0.0).to_numpy().astype(np.float64),
        shows=np.array([SHOWS.index(where_it_shows(*pair)) for pair in pairs], np.int64),
        may_pass=np.array([may_pass(*pair) for pair in pairs], np.bool_),
        reasons=reasons,
        categories=categories,
    )
