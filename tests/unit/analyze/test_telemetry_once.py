"""Telemetry rows that repeat another one are counted once; those that contradict another one are reported."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.options import Options
from gpuctl.store.database import Store
from tests.analyzed_logs import findings, ingested, rows
from tests.philly_log import attempt, job, log

if TYPE_CHECKING:
    from pathlib import Path

JOBS = log(
    job(
        "application_1_0001", "2017-10-03 10:00:00",
        attempt("2017-10-03 10:00:00", "2017-10-03 10:04:00", ("m1", [0, 1])),
    )
)  # fmt: skip
HEADER = "time,machineId," + ",".join(f"gpu{i}_util" for i in range(8)) + "\n"
HOST = "time,machine_id,cpu_util\n"


def _row(minute: int, util: int) -> str:
    return f"2017-10-03 10:0{minute}:00 PDT,m1,{util},{util}" + ",0" * 6 + "\n"


ONCE = HEADER + _row(0, 10) + _row(1, 30) + _row(2, 50)


@pytest.mark.parametrize(
    "telemetry",
    [
        {"a.csv": ONCE},
        {"a.csv": ONCE + _row(1, 30) + _row(1, 30)},
        {"a.csv": ONCE, "b.csv": HEADER + _row(0, 10) + _row(2, 50)},
    ],
)
def test_a_repeated_row_counts_once(tmp_path: Path, telemetry: dict[str, str]) -> None:
    path = ingested(tmp_path, {"cluster_job_log": JOBS, **telemetry})
    [used] = rows(path, "gpu_util_by_nodes")
    assert (used["gpu_minutes"], used["mean_pct"]) == (6, 30)
    with Store(path) as store:
        use = explain(store, "application_1_0001", Options()).attempts[0].use
    assert use is not None
    assert (use.samples, use.mean_pct) == (6, 30)
    extra = sum(text.count("\n") for text in telemetry.values()) - len(telemetry) - 3
    found = {name: number for name, (number, _) in findings(path).items() if name.startswith("GPU telemetry rows")}
    assert list(found.values()) == ([extra] if extra else [])


def test_rows_that_contradict_another_one_are_all_counted_and_reported(tmp_path: Path) -> None:
    path = ingested(tmp_path, {"cluster_job_log": JOBS, "a.csv": ONCE + _row(1, 90)})
    [used] = rows(path, "gpu_util_by_nodes")
    assert used["gpu_minutes"] == 8
    named = "GPU telemetry rows that contradict another row of the same node and time"
    assert findings(path)[named][0] == 1
