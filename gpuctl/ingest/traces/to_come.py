"""What inputs of simulators are: jobs to come, of which nobody knows more than when, how large and how long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.states import State

if TYPE_CHECKING:
    import polars as pl


def to_come(work: str | None) -> dict[str, pl.Expr]:
    """Columns of ``jobs`` for jobs that have not run.

    Args:
        work: the column with their run times in seconds; None where the source tells none.
    """
    import polars as pl

    run = pl.lit(None, pl.Float64) if work is None else pl.col(work)
    return {
        "state": pl.lit(State.PENDING.value),
        "attempts": pl.lit(0, pl.Int32),
        "run_sum_s": run,
        "run_last_s": run,
    }


def numbered(first: int) -> pl.Expr:
    """Names for jobs of a source that has none: 0, 1, 2 … by their lines, the first of which is `first`."""
    import polars as pl

    from gpuctl.ingest.traces.jobs import LINE

    return (pl.col(LINE) - first).cast(pl.String)
