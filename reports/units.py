"""The units of durations in a result: one per quantity, in every table and sentence.

Exports keep the unit in a column's name; screens, tables for reading, Markdown and pages use these.
"""

from __future__ import annotations

import math
import re
from itertools import chain
from typing import TYPE_CHECKING

from gpuctl.core.numbers import SECOND, UNITS, unit_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuctl.core.numbers import Unit
    from gpuctl.core.results import Column, ResultTable

_SCALED = frozenset({"s", "min"})
"""Units of durations; sums over jobs, in hours, stay in hours."""
_STATISTICS = re.compile(
    r"(?:^|_)(?:mean|p\d+|km|low|lower|high|upper|sd|diff|change|baseline|recorded|replayed|s|min|max)(?=_|$)"
)
_WAIT = "wait"
_WAITS = frozenset({"wait", "jct", "delay", "queueing_delay", "waiting", "given_up"})
_WAITING = frozenset({"queueing", "delays", "locality", "replay", "replay_compared", "experiments"})
"""Sections whose tables have statistics of waits, or of times alongside them."""
_OWN = frozenset({"rtf"})
_SAMPLE = 1000
"""Rows of a table examined; they are sorted, so the middle one is a good estimate."""


class Units:
    """The units of the durations of one result.

    Args:
        tables: its result tables.
    """

    def __init__(self, tables: Sequence[ResultTable]) -> None:
        """Collect the durations; their unit is determined on request."""
        self._tables = {table.name: table for table in tables}
        self._found: dict[str, Unit] = {}

    def of(self, table: ResultTable | str, column: Column | str) -> Unit | None:
        """Return the unit that a column is shown in; None if it is not a duration, or keeps its own."""
        named = self._tables.get(table) if isinstance(table, str) else table
        if named is None:
            return None
        one = next((c for c in named.columns if c.name == column), None) if isinstance(column, str) else column
        if one is None or not _is_duration(one):
            return None
        return self._unit(_quantity(named, one), (*(t for t in self._tables.values() if t.name != named.name), named))

    def waits(self) -> Unit:
        """Return the unit of waits and JCT."""
        return self._unit(_WAIT, tuple(self._tables.values()))

    def timed(self, table: str, column: str) -> Unit:
        """Return the unit of a column of durations; seconds if there is no such column."""
        return self.of(table, column) or SECOND

    def _unit(self, quantity: str, tables: Sequence[ResultTable]) -> Unit:
        if quantity not in self._found:
            self._found[quantity] = unit_of(_values(quantity, tables))
        return self._found[quantity]


def _is_duration(column: Column) -> bool:
    return column.unit in _SCALED and column.name not in {"minutes", "seconds"}


def _quantity(table: ResultTable, column: Column) -> str:
    stem = _STATISTICS.sub("", column.name).strip("_")
    if stem in _WAITS or (not stem and table.section in _WAITING):
        return _WAIT
    return stem if stem in _OWN else f"table {table.name}"


def _values(key: str, tables: Sequence[ResultTable]) -> Iterator[float]:
    """Return the durations of a quantity, in seconds; those of single jobs count only if there are no others."""
    for detail in (False, True):
        found = chain.from_iterable(_of(key, table) for table in tables if table.detail is detail)
        first = next(found, None)
        if first is not None:
            yield first
            yield from found
            return


def _of(key: str, table: ResultTable) -> Iterator[float]:
    durations = [column for column in table.columns if _is_duration(column) and _quantity(table, column) == key]
    for column in durations:
        values = table.frame[column.name] if column.name in table.frame.columns else None
        if values is not None and values.dtype.is_numeric():
            step = max(1, len(values) // _SAMPLE)
            scale = UNITS[column.unit].seconds
            some = values if step == 1 else values.gather_every(step)
            yield from (v * scale for v in some.to_list() if v is not None and math.isfinite(v) and v)
