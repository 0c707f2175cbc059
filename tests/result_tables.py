"""Tables of results."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis, ResultTable


def table_of(found: Analysis, name: str) -> ResultTable:
    """The table of that name, which the result must have."""
    table = found.table(name)
    assert table is not None, f"no {name} among {[table.name for table in found.tables]}"
    return table
