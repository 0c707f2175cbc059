"""The JSON of rows that is made column by column holds the values that `json_value` gives of each."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime, timedelta

import polars as pl

from gpuctl.core.notes import literal
from gpuctl.core.results import Column, ResultTable
from gpuctl.reports.export import values

FRAME = pl.DataFrame(
    {
        "job": ['a"b\\c', "ü\u2028\x7f\n", None],
        "plain": ["x", "", "y z"],
        "wait_s": [1e-7, 1e16, math.nan],
        "mean_s": [math.inf, None, -0.0],
        "jobs": [2**62, None, -1],
        "failed": [True, None, False],
        "start_ts": [datetime(2020, 1, 1, 0, 0, 0, 5, tzinfo=UTC), None, datetime(1970, 1, 2, tzinfo=UTC)],
        "day": [date(2020, 1, 1), None, None],
        "length": [timedelta(seconds=1.5), None, None],
        "gpus": [[1, None], None, []],
        "share": pl.Series([0.1, None, 2.5], dtype=pl.Float32),
    }
)


def test_rows_hold_the_json_value_of_each_cell() -> None:
    table = ResultTable(
        "t", "overview", "", "", literal(""), (), tuple(Column(c, "-", "") for c in FRAME.columns), FRAME
    )
    [lines] = values.rows(table)
    expected = [{name: values.json_value(value) for name, value in row.items()} for row in FRAME.to_dicts()]
    assert [json.loads(line) for line in lines] == expected
    assert "".join(lines).isascii()
    assert list(values.rows(ResultTable("t", "", "", "", literal(""), (), table.columns, FRAME.clear()))) in ([], [[]])
