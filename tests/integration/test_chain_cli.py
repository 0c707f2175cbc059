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


def test_what_cannot_be_simulated_is_said(gpuctl: Callable[..., Any], tmp_path: Path) -> None:
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
