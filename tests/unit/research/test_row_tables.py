"""Result tables that are declared as classes of rows."""

from __future__ import annotations

import math

import polars as pl

from gpuctl.core.notes import note
from gpuctl.core.results import Column
from gpuctl.research.row_tables import Row, column


class ExampleRow(Row, name="example", section="s", title="Examples", question="Which?", detail=True, first_columns=2):
    """An example; its column `name` is not the name of the table."""

    name: str = column("-", "Its name.")
    runs: int | None = column("runs", "How many.")
    wait_s: float = column("s", "Mean wait; empty: none.")


def test_fields_are_documented_columns_and_instances_are_rows() -> None:
    table = ExampleRow.table([ExampleRow("a", 3, 1.5), ExampleRow(name="b", runs=None, wait_s=math.nan)], note("all"))
    assert (table.name, table.section, table.title, table.question) == ("example", "s", "Examples", "Which?")
    assert (table.detail, table.first_columns, str(table.population)) == (True, 2, "all")
    assert table.columns[1] == Column("runs", "runs", "How many.")
    assert table.frame.rows() == [("a", 3, 1.5), ("b", None, None)]


def test_a_table_without_rows_has_the_types_of_its_fields() -> None:
    assert ExampleRow.table([], note("none")).frame.schema == {
        "name": pl.String,
        "runs": pl.Int64,
        "wait_s": pl.Float64,
    }


def test_of_a_frame_the_declared_columns_are_taken_in_their_order() -> None:
    frame = pl.DataFrame({"wait_s": [2.0], "other": [1], "runs": [4], "name": ["c"]})
    assert ExampleRow.table(frame, note("all")).frame.rows() == [("c", 4, 2.0)]
