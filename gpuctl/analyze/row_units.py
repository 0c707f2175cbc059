"""Names of rows that are not jobs: pods that may belong together are not gangs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.queries.catalogue import Query

_GANG = re.compile(r"(?<![_\w])([Gg])ang(s)?\b('s)?(?!_)")
PODS = "a row of jobs is a {unit}: the trace does not record which of them belong together, so sizes are of one {unit}"


def of_units(query: Query, unit: str) -> Query:
    """Return an analysis worded for a trace whose rows are pods or instances.

    Args:
        query: as written for jobs.
        unit: ``pod`` or ``instance``.
    """
    return replace(
        query,
        title=_in(query.title, unit),
        question=_in(query.question, unit),
        population=_in(query.population, unit),
        columns=tuple(replace(column, description=_in(column.description, unit)) for column in query.columns),
        drawings=tuple(_in(text, unit) for text in query.drawings),
    )


def _in(text: str, unit: str) -> str:
    def word(found: re.Match[str]) -> str:
        name = unit.capitalize() if found[1] == "G" else unit
        return name + (found[2] or "") + (found[3] or "")

    # column names do not change
    return _GANG.sub(word, text)
