"""What sreport prints, beside the GPU-hours of the accounting of the same period; worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.core.errors import InputError
from gpuctl.ingest.formats.slurm_sreport import FORMAT, sniff
from tests.analyzed_logs import findings, ingested, rows, stored
from tests.sacct_records import text
from tests.slurm_loading import load

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.store.database import Store

RULE = "-" * 80
DAY = "2026-11-20T00:00:00 - 2026-11-20T23:59:59"
BY_USER = "Cluster/Account/User Utilization {} (86400 secs)"
COLUMNS = "Cluster|Account|Login|Proper Name|TRES Name|Used"


def _report(title: str, unit: str, *lines: str) -> str:
    return "\n".join([RULE, title, f"Usage reported in TRES {unit}", RULE, *lines]) + "\n"


def _log() -> str:
    # alice: 4 GPUs for 10 hours; bob: 2 GPUs from the day before until 06:00
    at = "2026-11-{}:00:00".format
    alice = {"Submit": at("20T00"), "Eligible": at("20T00"), "Start": at("20T10"), "End": at("20T20"),
             "Elapsed": "10:00:00", "AllocTRES": "gres/gpu=4"}  # fmt: skip
    bob = {"JobIDRaw": "101", "User": "bob", "Submit": at("19T18"), "Eligible": at("19T18"), "Start": at("19T20"),
           "End": at("20T06"), "Elapsed": "10:00:00", "AllocTRES": "gres/gpu=2"}  # fmt: skip
    last = {"JobIDRaw": "102", "User": "bob", "Submit": at("20T23"), "Eligible": at("20T23"), "Start": at("20T23"),
            "End": at("21T01"), "Elapsed": "02:00:00", "AllocTRES": "gres/gpu=1"}  # fmt: skip
    return text(alice, bob, last)


ALICE_H, BOB_H = 40, 12 + 1


@pytest.mark.parametrize(
    ("unit", "each"),
    [("Seconds", 3600), ("Minutes", 60), ("Hours", 1)],
)
def test_users_are_compared_over_the_period_of_the_report(tmp_path: Path, unit: str, each: int) -> None:
    report = _report(
        BY_USER.format(DAY), unit, COLUMNS,
        f"c|root|||gres/gpu|{each * (ALICE_H + BOB_H)}", f"c|vision|||gres/gpu|{each * (ALICE_H + BOB_H)}",
        f"c|vision|alice|A | B|gres/gpu|{each * ALICE_H}", f"c|vision|bob||gres/gpu|{each * (BOB_H + 5)}",
        "c|vision|bob||cpu|77",
    )  # fmt: skip
    path = ingested(tmp_path, {"sacct.txt": _log(), "sreport.txt": report})
    [row] = [row for row in rows(path, "source_totals") if row["total"].startswith("sreport")]
    assert row["total"] == "sreport: each user of an account, 2026-11-20 00:00 to 2026-11-21 00:00 UTC"
    assert (row["compared"], row["differing"], row["covered_pct"]) == (2, 1, 100)
    assert (row["stated_gpu_hours"], row["gpu_hours"], row["difference_gpu_hours"]) == (58, 53, -5)
    assert (row["largest_job"], row["largest_gpu_hours"]) == ("bob", -5)
    assert findings(path)["attempts or applications whose GPU-hours differ from the total that their source states"]


FIXED = """
  Cluster      TRES Name    Allocated       Down  PLND Down         Idle   Planned     Reported
--------- -------------- ------------ ---------- ---------- ------------ --------- ------------
        c       gres/gpu         3180          0          0         2580         0         5760
"""


@pytest.mark.parametrize(
    "table", [FIXED.strip("\n"), "Cluster|TRES Name|Allocated|Down|Idle|Reported\nc|gres/gpu|3180|0|2580|5760"]
)
def test_the_cluster_in_both_layouts(tmp_path: Path, table: str) -> None:
    report = _report(f"Cluster Utilization {DAY}", "Minutes", table)
    path = ingested(tmp_path, {"sacct.txt": _log(), "sreport.txt": report})
    [row] = [row for row in rows(path, "source_totals") if row["total"].startswith("sreport: the cluster")]
    assert (row["compared"], row["stated_gpu_hours"], row["gpu_hours"], row["differing"]) == (1, 53, 53, 0)


def test_a_period_that_the_log_does_not_cover_is_not_compared(tmp_path: Path) -> None:
    report = _report(
        "Cluster Utilization 2026-11-01T00:00:00 - 2026-11-30T23:59:59", "Hours",
        "Cluster|TRES Name|Allocated", "c|gres/gpu|900",
    )  # fmt: skip
    path = ingested(tmp_path, {"sacct.txt": _log(), "sreport.txt": report})
    [row] = [row for row in rows(path, "source_totals") if row["total"].startswith("sreport")]
    assert (row["compared"], row["stated_gpu_hours"], row["gpu_hours"], row["differing"]) == (0, 900, None, 0)
    assert row["covered_pct"] == pytest.approx(100 * 31 / 720)
    assert findings(path)["reports of sreport whose period the log covers by less than 95 %"][0] == 1


def test_hours_of_the_report_are_those_of_its_zone(tmp_path: Path) -> None:
    report = _report(f"Cluster Utilization {DAY}", "Hours", "Cluster|TRES Name|Allocated", "c|gres/gpu|1")
    path = ingested(tmp_path, {"sreport.txt": report})
    [row] = stored(path, "SELECT epoch(to_ts) - epoch(from_ts) AS s, gpu_s, rounding_s FROM stated_usage")
    assert row == {"s": 86400, "gpu_s": 3600, "rounding_s": 1800}


@pytest.mark.parametrize(
    ("usage", "lines", "reason"),
    [
        ("Percentage of Total", ("Cluster|TRES Name|Allocated",), "a share of a total"),
        ("TRES Hours/Percentage of Total", ("Cluster|TRES Name|Allocated",), "a share of a total"),
        ("CPU Hours", ("Cluster|Allocated", "c|3"), "not by TRES"),
        ("TRES Hours", ("Cluster|TRES Name|Allocated", "a|cpu|3", "b|cpu|3"), "2 clusters"),
    ],
)
def test_incomparable_results_are_rejected_with_the_right_command(
    store: Store, usage: str, lines: tuple[str, ...], reason: str
) -> None:
    report = "\n".join([RULE, f"Cluster Utilization {DAY}", f"Usage reported in {usage}", RULE, *lines])
    assert sniff("x", report.encode()) is not None
    with pytest.raises(InputError, match=reason) as refused:
        load(FORMAT, report, store)
    assert "sreport" in (refused.value.hint or "")


def test_rows_that_are_cut_or_odd_are_rejected(tmp_path: Path) -> None:
    report = _report(
        f"Cluster Utilization {DAY}", "Hours", "Cluster|TRES Name|Allocated", "c|gres/gpu", "c|gres/gpu|1h",
        "c|gres/gpu|7",
    )  # fmt: skip
    path = ingested(tmp_path, {"sreport.txt": report})
    assert stored(path, "SELECT rows_in, rows_loaded, rows_rejected FROM sources") == [
        {"rows_in": 3, "rows_loaded": 1, "rows_rejected": 2}
    ]
