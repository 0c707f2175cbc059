"""What the results of all predictors share."""

from __future__ import annotations

import math
from typing import Any

from gpuctl import __version__
from gpuctl.core.results import Analysis, ResultTable, SourceInfo
from gpuctl.core.text import plural

RECONSTRUCTED = (
    "Reconstructed from the published abstract of PickyMan (IPCCC 2022); the estimators and constants are ours."
)


def finite(value: Any) -> Any:
    """A value as results have it: None in the place of a number that is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def analysis_of(
    cluster: str,
    tables: tuple[ResultTable, ...],
    settings: dict[str, str],
    command: str,
    sources: tuple[SourceInfo, ...],
    *,
    warnings: tuple[str, ...] = (RECONSTRUCTED,),
) -> Analysis:
    """Put tables together as one result, whose first table names its section."""
    rejected = tuple(
        f"{s.rows_rejected} of {plural(s.rows_in, 'row')} of {s.path} were rejected" for s in sources if s.rows_rejected
    )

    return Analysis(
        cluster=cluster,
        tables=tables,
        sections=((tables[0].section, tables[0].title),),
        sources=sources,
        settings=settings,
        command=command,
        version=__version__,
        warnings=(*warnings, *rejected),
    )
