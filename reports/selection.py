"""The tables of an analysis that a reader requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpuctl.core.errors import UsageError
from gpuctl.core.suggestions import meant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuctl.core.results import Analysis, ResultTable


def choose_tables(
    analysis: Analysis, names: Sequence[str] | None = None
) -> tuple[tuple[ResultTable, ...], tuple[ResultTable, ...]]:
    """Return the tables to show and the tables left out, both in the order of the analysis.

    Args:
        analysis: the analysis.
        names: the requested tables; None: all except the detail tables.

    Raises:
        UsageError: this analysis has no table of that name.
    """
    if names is None:
        wanted = {t.name for t in analysis.tables if not t.detail}
    else:
        wanted = set(names)
        for name in names:
            if analysis.table(name) is None:
                raise _unknown(name, [t.name for t in analysis.tables])
    chosen = tuple(t for t in analysis.tables if t.name in wanted)
    return chosen, tuple(t for t in analysis.tables if t.name not in wanted)


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    return UsageError(f"this analysis has no table {name!r}", hint=meant(name, known))
