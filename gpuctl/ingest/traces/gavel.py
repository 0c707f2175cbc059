"""Gavel's jobs, whose work is in steps, and the steps per second that give it a length."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    from gpuctl.ingest.core.format import Sink

STEPS, SPEEDS = "gavel-steps", "gavel-speeds"
"""Kinds of rows of ``trace_parts``: the steps of a job (``instances``); steps per second (``instances``) of a job type
(``name``) on a number of GPUs (``gpus``) of a type."""
_TIMED = f"""
UPDATE job_rows AS j SET run_sum_s = t.run_s, run_last_s = t.run_s,
       quirks = list_append(list_filter(j.quirks, lambda q: q NOT IN ('work_in_steps', 'run_time_of_steps')),
                            'run_time_of_steps')
FROM (
    SELECT p.job, p.instances / first(s.instances ORDER BY lower(s.gpu_type) = 'v100' DESC, s.instances DESC) AS run_s
    FROM trace_parts AS p JOIN trace_parts AS s
        ON s.cluster = p.cluster AND s.kind = '{SPEEDS}' AND s.name = p.name AND s.gpus = p.gpus AND s.instances > 0
    WHERE p.cluster = $cluster AND p.kind = '{STEPS}'
    GROUP BY p.job, p.instances
) AS t
WHERE j.cluster = $cluster AND j.job = t.job AND j.attempts = 0
      AND (list_contains(j.quirks, 'work_in_steps') OR list_contains(j.quirks, 'run_time_of_steps'))
"""  # noqa: S608
_KNOWN = f"SELECT count(*) > 0 FROM trace_parts WHERE cluster = $cluster AND kind = '{SPEEDS}'"  # noqa: S608


def insert_steps(sink: Sink, jobs: pl.DataFrame) -> None:
    """Store the steps of jobs.

    Args:
        sink: takes the rows.
        jobs: columns ``job``, ``name``, ``gpus``, ``steps``.
    """
    import polars as pl

    if jobs.height:
        rows = jobs.select("job", "name", pl.col("gpus").cast(pl.Float64), pl.col("steps").alias("instances"))
        sink.insert("trace_parts", rows.with_columns(kind=pl.lit(STEPS)))


def insert_speeds(sink: Sink, speeds: list[tuple[str, float, str, float]]) -> None:
    """Store speeds.

    Args:
        sink: takes the rows.
        speeds: job type, number of GPUs, type of GPU, steps per second.
    """
    import polars as pl

    kinds: dict[str, Any] = {"name": pl.String, "gpus": pl.Float64, "gpu_type": pl.String, "instances": pl.Float64}
    frame = pl.DataFrame(speeds, schema=kinds, orient="row")
    sink.insert("trace_parts", frame.with_columns(kind=pl.lit(SPEEDS)))


def conclude(sink: Sink | None) -> list[str]:
    """Set the run times of jobs from their steps if the cluster has the speeds of their types."""
    here: dict[str, object] = {} if sink is None else {"cluster": sink.cluster}
    if sink is not None and sink.query(_KNOWN, here).item():
        sink.execute(_TIMED, here)
    return []
