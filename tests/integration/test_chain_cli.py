"""``gpuctl chain`` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "sample_data" / "chain" / "sacct.txt.gz"
CASES = ROOT / "docs" / "examples" / "chain_cases.csv"


def test_cases_are_written_as_named(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = gpuctl("chain", "evaluate", LOG, "--compat", "mirage", "--cases", CASES, "--parquet", out, "--json")
    cases = pl.read_parquet(out / "cases.parquet")
    assert cases.columns == [
        "case", "p_start_s", "p_end_s", "s_start_s", "interruption_s", "p_backfilled", "s_backfilled",
    ]  # fmt: skip
    assert json.loads(done.stdout)["tables"]["cases"]["rows"] == cases.to_dicts()
    assert cases["interruption_s"].to_list() == (cases["s_start_s"] - cases["p_end_s"]).to_list()
    assert pl.read_parquet(out / "starts.parquet").height == 2
    states = pl.read_parquet(out / "states.parquet").filter(what="decision_last")
    assert states["p_nodes"].to_list() == [1, 1, 1, 4]


def test_it_reports_what_cannot_be_simulated(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    small = tmp_path / "cases.csv"
    small.write_text(CASES.read_text().replace(",16,", ",7,"))
    for words, code, told in (
        ((LOG, "--compat", "mirage", "--cases", small), 3, "8 nodes"),
        ((LOG, "--cases", CASES), 2, "--compat mirage"),
        ((CASES, "--compat", "mirage", "--cases", CASES), 3, ""),
        ((tmp_path / "none", "--compat", "mirage", "--cases", CASES), 3, "no such file"),
    ):
        done = gpuctl("chain", "evaluate", *words, check=False)
        assert done.returncode == code, done.stderr
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def test_policies_stand_side_by_side(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
    words = ("--nodes", "16", "--limit", "24h", "--split", "2026-03-16", "--outage-cost", "3", "--json")
    done = gpuctl("chain", "evaluate", LOG, *words, "--policy", "reactive,avg,plan", "--parquet", tmp_path / "out")
    rows = json.loads(done.stdout)["tables"]["chain"]["rows"]
    assert [(row["policy"], row["level"]) for row in rows] == [
        (name, level) for name in ("reactive", "avg", "plan") for level in ("all", "light", "medium", "heavy")
    ]
    assert list(rows[0])[:9] == [
        "policy", "level", "starts", "interruption_h", "reduction_pct", "zero_pct", "overlap_h", "cost_h", "train_s",
    ]  # fmt: skip
    reactive, plan = rows[0], rows[8]
    assert reactive["interruption_h"] > 1
    assert plan["cost_h"] < reactive["cost_h"]
    assert pl.read_parquet(tmp_path / "out" / "chain_starts.parquet").height == 3 * reactive["starts"]


def test_wishes_that_make_no_sense_are_refused(gpuctl: Callable[..., Any]) -> None:
    for words, told in (
        (("--nodes", "16"), "--split"),
        (("--nodes", "16", "--split", "soon"), "expected a date"),
        (("--nodes", "16", "--split", "2026-03-16", "--policy", "oracle"), "no chain policy"),
        (("--nodes", "16", "--split", "2026-03-16", "--job-nodes", "17"), "the cluster has 16"),
        (("--nodes", "16", "--split", "2026-03-16", "--outage-cost", "nan"), "--outage-cost"),
        (("--nodes", "16", "--split", "2026-03-16", "--max-overlap", "0h"), "--max-overlap 0h"),
        (("--nodes", "16", "--split", "2026-03-16", "--policy", "avg", "--max-overlap", "2h"), "keeps a bound"),
        (("--nodes", "16", "--split", "2026-03-16", "--cases", CASES), "--cases goes with"),
    ):
        done = gpuctl("chain", "evaluate", LOG, *words, check=False)
        assert done.returncode == 2, done.stderr
        assert told in done.stderr
