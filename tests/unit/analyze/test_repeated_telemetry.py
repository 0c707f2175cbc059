"""Telemetry rows that stand twice, in one file or in two, and those that lack are counted and reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import findings, ingested

if TYPE_CHECKING:
    from pathlib import Path

GPU = "time,machineId,gpu0_util,gpu1_util,\n2017-10-03 00:00:00 PDT,m1,5.0,60.0,\n2017-10-03 00:01:00 PDT,m1,5.0,6.0,\n"
CPU = "time,machine_id,cpu_util\n2017-10-03 00:00:00 PDT,m1,50.0\n2017-10-03 00:01:00 PDT,m1,50.0\n"


@pytest.mark.parametrize(("kind", "text", "name"), [("GPU", GPU, "gpu_util"), ("CPU and memory", CPU, "cpu_util")])
@pytest.mark.parametrize("files", [1, 2])
def test_rows_that_repeat_another_one_are_a_finding(
    kind: str, text: str, name: str, files: int, tmp_path: Path
) -> None:
    header, _, second = text.splitlines(keepends=True)
    once = {f"cluster_{name}": text}
    twice = {f"cluster_{name}": text + second} if files == 1 else {**once, f"cluster_{name}_2": header + second}
    found = findings(ingested(tmp_path, twice))
    [repeated] = [
        rows for finding, (rows, _) in found.items() if finding.startswith(f"{kind} telemetry rows that repeat")
    ]
    assert repeated == 1
    (tmp_path / "once").mkdir()
    assert not [f for f in findings(ingested(tmp_path / "once", once)) if "repeat" in f]


def test_one_value_that_is_na_and_one_minute_without_a_row_are_findings(tmp_path: Path) -> None:
    gaps = GPU + "2017-10-03 00:03:00 PDT,m1,NA,6.0,\n"
    found = findings(ingested(tmp_path, {"cluster_gpu_util": gaps}))
    assert found["GPU telemetry values that are NA"] == (1, "left out")
    assert found["minutes without any GPU telemetry, between the first and the last row"] == (1, "left out")
    (tmp_path / "whole").mkdir()
    whole = findings(ingested(tmp_path / "whole", {"cluster_gpu_util": GPU}))
    assert not [finding for finding in whole if "NA" in finding or "minutes without" in finding]
