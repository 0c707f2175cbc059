"""Faults of GPUs as events of nodes: counters, gauges, lost GPUs; reasons of failed jobs; the table of nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

from gpuctl.analyze.gpu_usage import lost
from gpuctl.analyze.gpu_usage.lanes import Lane
from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.telemetry import health
from gpuctl.ingest.telemetry.health import Last, Signal
from gpuctl.store.database import Store
from tests.unit.analyze.test_gpu_usage import FIELDS, NODE, answer, minutes, usage_of

if TYPE_CHECKING:
    from pathlib import Path

AT = 1793408400
"""2026-10-31 01:00 UTC."""
GPU = {"gpu": "1", "UUID": "GPU-1", "pci_bus_id": "00000000:07:00.0", "Hostname": "n1"}


def found(kind: str, values: list[float], before: Last | None = None) -> list[tuple[Any, ...]]:
    rows = pl.DataFrame({"ts": [60 * k for k in range(len(values))], "value": [float(v) for v in values]})
    return health.events(health.known(rows), Signal("pcie", kind), before).rows()


@pytest.mark.parametrize(
    ("kind", "values", "events"),
    [
        ("rise", [5, 5, 5], []),
        ("rise", [5, 7, 8, 8, 9], [(60, 0, 3.0), (240, 180, 1.0)]),
        ("rise", [5, 2, 2], [(60, 0, 2.0)]),
        ("rise", [5, 0, 1], [(120, 60, 1.0)]),
        ("window", [0, 2, 1, 0, 1], [(60, 0, 2.0), (240, 180, 1.0)]),
        ("flag", [1, 1, 0, 1], [(180, 120, 1.0)]),
        ("reasons", [0x4, 0x1, 0x44, 0x40, 0x4, 0x80], [(120, 60, 1.0), (300, 240, 1.0)]),
        ("rise", [0, 9223372036854775794, 1], [(120, 0, 1.0)]),
        ("rise", [0, 2147483632, float("nan"), 1], [(180, 0, 1.0)]),
    ],
)
def test_events_of_counters_and_gauges(kind: str, values: list[float], events: list[tuple[Any, ...]]) -> None:
    """A reset counts what came after it; the first value and blanks of DCGM are no event."""
    assert found(kind, values) == events


def test_the_sample_before_is_taken_over() -> None:
    assert found("rise", [4, 4], Last(-60, 3.0)) == [(0, -60, 1.0)]
    assert found("reasons", [0x40], Last(-60, 0x8)) == []


def test_a_gpu_is_lost_if_all_others_of_its_node_go_on() -> None:
    lanes = [Lane("dcgm", "n1", gpu, None, None, None) for gpu in range(3)]
    whole = np.arange(0.0, 7200, 60)
    short, holed = whole[:30], np.concatenate([whole[:40], whole[80:]])

    def of(*times: np.ndarray) -> list[lost.Lost]:
        lane = np.repeat(np.arange(len(times)), [len(some) for some in times])
        return lost.find(lane, np.concatenate(times), lanes)

    assert of(whole, short, whole) == [lost.Lost("n1", 1, 1740, 7140)]
    assert of(whole, holed, whole) == [lost.Lost("n1", 1, 2340, 4800)]
    assert of(holed, holed, holed) == [], "the node was down, or its monitoring"
    assert of(short, whole[:38], whole[:38]) == [], "less than 10 minutes"
    assert of(short) == []
    assert of(np.array([])) == [], "no samples at all"


def records(*ends: tuple[str, str, str, str]) -> str:
    lines = [
        f"{job}|{job}|{user}|lab|gpu|{state}|2026-10-31T01:00:00|2026-10-31T01:00:00|2026-10-31T{end}|1|4|gres/gpu=2|n1"
        for job, user, state, end in ends
    ]
    return "\n".join([FIELDS, *lines]) + "\n"


def xid(at: str, code: int, text: str = "text") -> str:
    return f"2026-10-31T{at}+0000 n1 kernel: NVRM: Xid (PCI:0000:07:00): {code}, pid=1, name=python, {text}\n"


@pytest.mark.parametrize(
    ("lines", "reason", "category"),
    [
        (xid("01:55:00", 79), "gpu_hardware_error", "infrastructure"),
        (xid("01:59:58", 31) + xid("01:59:59", 43), "invalid_memory_access", "user"),
        (xid("01:59:58", 45) + xid("01:59:58", 43), "no_signature", None),
        (xid("01:30:00", 79), "no_signature", None),
    ],
)
def test_an_xid_before_the_end_is_the_reason_of_a_failure(
    tmp_path: Path, lines: str, reason: str, category: str | None
) -> None:
    files = {"scontrol_node.txt": NODE, "sacct.txt": records(("7", "ann", "FAILED", "02:00:00")), "kernel.log": lines}
    usage_of(tmp_path / "logs", files)
    with Store(tmp_path / "made.duckdb") as store:
        [table] = analyze(store, Options(tables=("failures",))).tables
    [row] = table.frame.to_dicts()
    assert (row["reason"], row["category"]) == (reason, category)
    if category:
        assert "before the end; by its time]" in row["evidence"], "it says that the time alone connects the two"


def test_health_lists_every_signal_and_nodes_have_their_faults(tmp_path: Path) -> None:
    one, other = "2026-10-31T01:00:00|2026-10-31T02:00:00", "2026-10-31T03:00:00|2026-10-31T04:00:00"
    row = "{0}|{0}|{1}|lab|gpu|COMPLETED|2026-10-31T01:00:00|{2}|1|4|gres/gpu=2|n1"
    jobs = (
        "\n".join([FIELDS, row.format("7", "ann", one), row.format("8", "bob", other).replace("COMPLETED", "FAILED")])
        + "\n"
    )
    files = {
        "scontrol_node.txt": NODE,
        "sacct.txt": jobs,
        "n1.csv": minutes(60, 120, {0: ["50 %"], 1: ["50 %"]}),
        "pcie.json": answer("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", [(GPU, [[AT + 60, "0"], [AT + 120, "7"]])]),
        "heat.json": answer("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", [(GPU, [[AT + 60, "4"], [AT + 7260, "72"]])]),
        "ecc.json": answer("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", [(GPU, [[AT, "1"], [AT + 60, "1"]])]),
        "count.json": answer("DCGM_EXP_XID_ERRORS_COUNT", [({**GPU, "xid": "94"}, [[AT, "0"], [AT + 60, "2"]])]),
    }
    usage_of(tmp_path / "logs", files)
    with Store(tmp_path / "made.duckdb") as store:
        made = {
            t.name: t.frame.to_dicts() for t in analyze(store, Options(tables=("gpu_health", "failure_nodes"))).tables
        }
    events = {(r["gpu"], r["signal"], r["code"]): (r["events"], r["jobs"], r["cause"]) for r in made["gpu_health"]}
    assert events == {
        (1, "pcie", None): (1, "7", "hardware"),
        (1, "throttle", None): (1, "7,8", "hardware"),
        (1, "xid", 94): (1, "7", "hardware"),
    }
    [node] = made["failure_nodes"]
    assert (node["gpu_faults"], node["gpu_fault_users"], node["gpu_suspect"]) == (3, 2, "no")
    assert node["gpu_faults_p"] == pytest.approx(1 - np.exp(-3) * (1 + 3 + 4.5)), "3 or more of a mean of 3"
