"""Options as plain records: the command line and the library take the same ones."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from gpuctl.cli.options import offered
from gpuctl.core.errors import UsageError
from gpuctl.library import replays, traces
from gpuctl.services.options import (
    Comparison,
    Failing,
    Filters,
    Inputs,
    LogReading,
    Policies,
    Rules,
    Site,
    record_of,
)

OF_REPLAYS = (Policies, Inputs, Rules, Comparison, Failing)


def names(*records: type) -> set[str]:
    return {field.name for record in records for field in fields(record)}


def test_the_library_offers_the_options_of_replay() -> None:
    arguments = {
        "cluster",
        "policy",
        "param",
        "baseline",
        "scale_load",
        "add_nodes",
        "seed",
        "resample",
        "against",
        "jobs",
    }
    # gpuctl.open reads logs whose columns need explaining; a result has its sections and charts
    commands_alone = {
        "db", "columns", "delimiter", "columns_map", "unit", "swf_unit", "model", "experiment", "gantt", "engine",
        "section",
    }  # fmt: skip
    assert names(*OF_REPLAYS) == set(replays.ReplayOptions.__annotations__) | arguments | commands_alone


def test_the_library_offers_the_options_of_reading_logs() -> None:
    of_analyses = {"learned", "quotas", "racks", "borrow_below"}
    assert names(LogReading, Site) | {"cumulative"} == set(traces.LogReading.__annotations__) | of_analyses


def test_values_of_python_become_those_of_options() -> None:
    found = record_of(
        Rules, {"speeds": "speeds.csv", "placement": "spread", "per_gpu": 6, "limits": True, "user": "u1"}, seed="3"
    )
    assert found == Rules(speeds=Path("speeds.csv"), placement="spread", per_gpu="6", limits=True, seed="3")
    assert record_of(Filters, {"user": "u1", "queue": ("a", "b"), "gpus": 8}) == Filters(["u1"], ["a", "b"], gpus="8")
    assert record_of(Policies, {"slurm_conf": ["slurm.conf"], "model": None}) == Policies(
        slurm_conf=[Path("slurm.conf")]
    )


def test_a_choice_that_there_is_not_names_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="mode='later'") as caught:
        record_of(Rules, {"mode": "later"})
    assert caught.value.hint == "one of now, epoch, abort"


def test_a_field_that_the_command_line_does_not_describe_is_an_error() -> None:
    assert set(offered(Rules)) == names(Rules)
    with pytest.raises(LookupError, match=r"Undescribed\.width: not declared as an option"):
        offered(Undescribed)


class Undescribed:
    """A record of options without a declaration."""

    width: int = 3
