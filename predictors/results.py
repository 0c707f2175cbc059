"""Helpers for the results of all predictors."""

from __future__ import annotations

import math
from typing import Any

from gpuctl.core.notes import NamedValue, Note, counted, note
from gpuctl.core.results import Analysis, ResultTable, SourceInfo

RECONSTRUCTED = note(
    "Reconstructed from the published abstract of PickyMan (IPCCC 2022); the estimators and constants are ours."
)


def finite(value: Any) -> Any:
    """Return a value for results: None for a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def analysis_of(
    cluster: Note,
    tables: tuple[ResultTable, ...],
    settings: dict[str, Note],
    command: str,
    sources: tuple[SourceInfo, ...],
    *,
    warnings: tuple[Note, ...] = (RECONSTRUCTED,),
) -> Analysis:
    """Combine tables into one result; its first table names its section."""
    rejected = tuple(
        note(
            "{rejected:,} of {rows} of {path} {rejected|was|were} rejected",
            rejected=s.rows_rejected,
            rows=counted(s.rows_in, "row"),
            path=NamedValue("path", s.path),
        )
        for s in sources
        if s.rows_rejected
    )

    return Analysis(
        cluster=cluster,
        tables=tables,
        sections=((tables[0].section, tables[0].title),),
        sources=sources,
        settings=settings,
        command=command,
        warnings=(*warnings, *rejected),
    )
