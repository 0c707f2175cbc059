"""The first screen says how often infrastructure interrupts jobs where enough is known, and nothing elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from gpuctl.reports.screens.analysis import screen
from gpuctl.reports.screens.model import Line
from tests.unit.reports.fakes import make_analysis, table

# hours of a size, interruptions, and its exact interval by Garwood: 10 -> [4.7954, 18.3904], 40 -> [28.58, 54.47]
LARGE = {
    "gpus": 64.0, "run_h": 9000.0, "interruptions": 40, "interruptions_high": 40, "mttf_low_h": 9000 / 54.47,
    "mttf_high_h": 9000 / 28.58, "partial_node": False, "kind": "measured",
}  # fmt: skip
SMALL = {
    "gpus": 16.0, "run_h": 300.0, "interruptions": 10, "interruptions_high": 12, "mttf_low_h": 300 / 18.3904,
    "mttf_high_h": 300 / 4.7954, "partial_node": False, "kind": "measured",
}  # fmt: skip


def lines(*rows: dict[str, Any]) -> list[str]:
    plain = make_analysis(points=5)
    made = table("mttf_by_size", "reliability", pl.DataFrame(list(rows)))
    others = [each for each in plain.tables if each.name != made.name]
    shown = screen(replace(plain, tables=(*others, made)))
    return [str(block.text) for block in shown.blocks if isinstance(block, Line) and block.label == "Interruptions"]


def test_the_size_that_held_most_gpu_hours_is_told_in_days() -> None:
    assert lines(SMALL, LARGE) == [
        "hardware or other infrastructure interrupts a job of 64 GPUs every 6.88 to 13.1 days of running "
        "(40 interruptions)"
    ]


def test_short_times_are_hours_and_unknown_ends_are_told() -> None:
    assert lines(SMALL) == [
        "hardware or other infrastructure interrupts a job of 16 GPUs every 16.3 to 62.6 hours of running "
        "(10 interruptions); 2 ends of unknown cause not counted"
    ]


@pytest.mark.parametrize(
    "change", [{"interruptions": 9}, {"partial_node": True}, {"kind": "modelled"}, {"kind": "extrapolated"}]
)
def test_nothing_is_claimed_of_few_interruptions_parts_of_nodes_or_models(change: dict[str, Any]) -> None:
    assert lines({**LARGE, **change}) == []
