"""GPU-hours against those of a real sreport, recorded with labs/slurm/sreport.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of

RECORDED = Path(__file__).parents[2] / "fixtures" / "slurm" / "sreport"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    ingest([RECORDED], tmp_path / "t.duckdb", cluster="lab", timezone="UTC")
    return tmp_path / "t.duckdb"


def test_every_user_has_the_gpu_seconds_of_sreport(store: Path) -> None:
    with Store(store) as opened:
        check = table_of(analyze(opened, Options(tables=("charges_check",))), "charges_check").frame
    found = {row["user"]: row for row in check.to_dicts()}
    assert {user: round(3600 * row["sreport_gpu_hours"]) for user, row in found.items()} == {
        **{"news": 23_100, "uucp": 22_200, "games": 29_700, "mail": 14_700}
    }
    for row in found.values():
        assert row["difference_gpu_hours"] == pytest.approx(0, abs=1e-9)
        # the log of a few hours is not two days, but what it has agrees
        assert row["verdict"] == "agrees"


def test_charges_are_the_same_hours_and_suspended_time_is_among_them(store: Path) -> None:
    with Store(store) as opened:
        charges = table_of(analyze(opened, Options(tables=("charges",))), "charges").frame
        [suspended] = opened.frame("SELECT suspended_s FROM attempts WHERE suspended_s > 0").to_series().to_list()
    assert suspended == 1800
    assert set(charges["account"]) == {"nlp", "vision"}
    assert 3600 * charges["gpu_hours"].sum() == pytest.approx(89_700)


def test_a_report_that_differs_is_a_finding(tmp_path: Path) -> None:
    report = (RECORDED / "sreport.txt").read_text().replace("|23100", "|25100")
    # the period that the log covers
    whole, covered = "2026-11-27T00:00:00 - 2026-11-28T23:59:59", "2026-11-27T09:50:00 - 2026-11-27T12:04:59"
    assert whole in report
    report = report.replace(whole, covered).replace("(172800", "(8100")
    (tmp_path / "sreport.txt").write_text(report)
    (tmp_path / "sacct.txt").write_text((RECORDED / "sacct.txt").read_text())
    ingest([tmp_path], tmp_path / "t.duckdb", cluster="lab", timezone="UTC")
    with Store(tmp_path / "t.duckdb") as opened:
        check = table_of(analyze(opened, Options(tables=("charges_check",))), "charges_check").frame
    verdicts = {row["user"]: row["verdict"] for row in check.to_dicts()}
    assert verdicts == {"news": "differs", "uucp": "agrees", "games": "agrees", "mail": "agrees"}
