"""Rows of results come in the same order every time, whatever threads do."""

from __future__ import annotations

from gpuctl.queries.catalogue import built_in

ONE_ROW = {"overview", "workload"}


def test_every_table_of_several_rows_states_its_order() -> None:
    unordered = {name for name, query in built_in().items() if "ORDER BY" not in query.sql}
    assert unordered <= ONE_ROW
