"""One unit for one quantity, in every table and sentence of a result."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gpuctl.core.numbers import MINUTE, SECOND, UNITS, number
from gpuctl.core.results import Column, ResultTable
from gpuctl.reports.cell_text import shown_columns
from gpuctl.reports.standout import findings
from gpuctl.reports.summary import headlines
from gpuctl.reports.units import Units
from tests.unit.reports.fakes import make_analysis, table

if TYPE_CHECKING:
    from gpuctl.core.results import Analysis

_NUMBER = re.compile(r"^(?:\u2013|[<>]?-?\d{1,3}(?:,\d{3})*(?:\.\d{1,3})?|-?\d\.\d\de[+-]\d\d|-?\u221e)$")


def _replay() -> Analysis:
    """Two policies: waits of minutes, a makespan of days."""
    summary = pl.DataFrame(
        {
            "policy": ["fifo", "easy"],
            "oracle": [False, False],
            "jobs": [300, 300],
            "jobs_finished": [300, 300],
            "wait_mean_s": [4896.0, 1512.0],
            "wait_p95_s": [17_880.0, 8040.0],
            "jct_mean_s": [8400.0, 5028.0],
            "makespan_s": [259_200.0, 250_000.0],
            "preemptions": [0, 0],
        }
    )
    compared = pl.DataFrame(
        {
            "policy": ["easy"],
            "measure": ["wait"],
            "size_bucket": ["all"],
            "mean_s": [1512.0],
            "baseline_mean_s": [4896.0],
            "diff_mean_s": [-3384.0],
            "diff_low_s": [-5424.0],
            "diff_high_s": [-1692.0],
            "p": [0.001],
            "baseline": ["fifo"],
        }
    )
    tables = table("replay_summary", "replay", summary), table("replay_vs_baseline", "replay_compared", compared)
    return replace(make_analysis(points=5), tables=tables)


def test_waits_have_one_unit_in_all_tables_and_sentences() -> None:
    result = _replay()
    units = Units(result.tables)
    assert units.waits() == MINUTE
    seen = {
        (one.name, column.name): dict(zip((column.unit, "cells"), (column.unit, column.cells), strict=True))
        for one in result.tables
        for column in shown_columns(one, units=units)
    }
    waits = [found for (_, name), found in seen.items() if re.match(r"(wait|jct|mean|baseline_mean|diff)_", name)]
    assert {found["cells"] and next(iter(found)) for found in waits} == {"min"}
    assert next(iter(seen["replay_summary", "makespan_s"])) == "d"
    easy = seen["replay_summary", "wait_mean_s"]["cells"][1]
    assert easy == seen["replay_vs_baseline", "mean_s"]["cells"][0] == "25.2"
    told = " ".join(one.text for one in findings(result)).replace("\u00a0", " ")
    assert f"by 56.4 min (95 % interval 28.2 to 90.4 min), from 81.6 under fifo to {easy} min" in told
    [wait] = [one for one in headlines(result) if one.label == "Shortest mean wait"]
    assert (wait.value, wait.unit) == (easy, "min")


def test_every_cell_of_a_result_follows_the_rule() -> None:
    result = make_analysis(points=50)
    units = Units(result.tables)
    numbers = 0
    for one in result.tables:
        for column, shown in zip(one.columns, shown_columns(one, 100, units), strict=True):
            assert (units.of(one, column) is not None) == (
                column.unit in {"s", "min"} and shown.numeric and column.name not in {"minutes", "seconds"}
            )
            if not shown.numeric:
                continue
            wrong = [cell for cell in shown.cells if not _NUMBER.match(cell)]
            assert not wrong, (one.name, column.name, wrong[:5])
            unit = units.of(one, column)
            scale = UNITS[column.unit].seconds / unit.seconds if unit else 1
            for cell, value in zip(shown.cells, shown.values, strict=True):
                if unit and isinstance(value, float):
                    assert cell == number(value * scale, unit.name)
            numbers += len(shown.cells)
    assert numbers > 100


def test_single_jobs_do_not_choose_the_unit_where_there_are_statistics() -> None:
    jobs = pl.DataFrame({"wait_s": [9e6] * 500})
    detail = replace(table("queue_delays", "delays", jobs), detail=True)
    waits = table("wait_by_size", "queueing", pl.DataFrame({"p50_min": [0.5], "p95_min": [2.0]}))
    assert Units([detail, waits]).waits() == SECOND
    assert Units([detail]).waits().name == "d"


def test_sums_of_hours_and_points_of_curves_keep_their_unit() -> None:
    columns = (Column("wait_h", "h", "."), Column("minutes", "min", "."), Column("jobs", "jobs", "."))
    frame = pl.DataFrame({"wait_h": [90_000.0], "minutes": [90_000.0], "jobs": [1]})
    one = ResultTable("t", "queueing", "T", "?", make_analysis(points=5).tables[0].population, (), columns, frame)
    assert [Units([one]).of(one, column) for column in columns] == [None, None, None]
    assert [column.cells[0] for column in shown_columns(one)] == ["90,000", "90,000", "1"]
