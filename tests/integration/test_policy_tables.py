"""The tables "On the sample" of the pages on policies of elastic jobs say what their commands print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

Rows = dict[str, dict[str, Any]]

COLUMNS = {
    "mean completion, s": "jct_mean_s", "p95, s": "jct_p95_s", "mean time to the first start, s": "delay_mean_s",
    "preemptions": "preemptions", "utilization, %": "utilization_pct", "changes": "changes",
    "largest completion / work": "slowdown_max", "rho max": "slowdown_max", "rho mean": "slowdown_mean",
    "rho p95": "slowdown_p95",
}  # fmt: skip
THEMIS = ("payments=0", "rigid=1", "lease=600", "lease=3600")
ARYL = ("loan=0 elastic=0", "elastic=0", "loan=0")


def replayed(
    gpuctl: Run, root: Path, out: Path, policies: str, variants: dict[str, tuple[str, ...]], *more: str
) -> Rows:
    """Figures by policy as a page calls it: ``aryl, `loan=0` ``."""
    words: list[str] = []
    name = {}
    for policy, settings in variants.items():
        for k, setting in enumerate(settings):
            label = f"{policy}{k}"
            name[label] = f"{policy}, `{setting}`"
            words += ["--policy", f"{label}={policy}"]
            words += [w for part in setting.split() for w in ("--param", f"{label}.{part}")]
    command = ["replay", root / "sample_data/jobs.csv", "--cluster", "4x8", "--policy", policies, *words, *more]
    printed = json.loads(gpuctl(*command, "--json", "--parquet", out).stdout)
    jobs = pl.read_parquet(out / "jobs.parquet").group_by("policy")
    extra = jobs.agg(pl.col("slowdown").max().alias("slowdown_max"), pl.col("changes").sum())
    more_of = {row["policy"]: row for row in extra.to_dicts()}
    rows = printed["tables"]["replay_summary"]["rows"]
    return {name.get(row["policy"], row["policy"]): {**row, **more_of[row["policy"]]} for row in rows}


def wrong(page: Path, found: Rows, section: str = "") -> list[str]:
    """Cells of a page's table that say something else."""
    text = page.read_text().partition("## On the sample")[2].partition("\n## ")[0]
    table = [line for line in text.splitlines() if line.startswith("|")]
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    header, inside, bad, seen = lines[0], not section, [], 0
    for cells in lines[2:]:
        if cells[0].startswith("*"):
            inside = section in cells[0]
        elif inside and len(cells) == len(header) and cells[0].removesuffix(", given run times") in found:
            row = found[cells[0].removesuffix(", given run times")]
            seen += 1
            for title, cell in zip(header[1:], cells[1:], strict=True):
                digits = len(cell.partition(".")[2])
                if cell != (told := f"{row[COLUMNS[title]]:,.{digits}f}"):
                    bad.append(f"{page.name}: {cells[0]}: {title}: {cell}, now {told}")
    assert seen >= 4, f"{page.name}: {seen} rows of {sorted(found)}"
    return bad


def test_policies_side_by_side(gpuctl: Run, root: Path, tmp_path: Path) -> None:
    policies = "fifo,las,srtf,optimus,gandiva,themis"
    found = replayed(gpuctl, root, tmp_path, policies, {"themis": THEMIS}, "--param", "gandiva.migrate=5")
    pages = [root / f"docs/reference/policies/{name}.md" for name in ("gandiva", "optimus", "themis")]
    assert [cell for page in pages for cell in wrong(page, found)] == []


@pytest.mark.parametrize(("section", "policies"), [("by itself", "aryl"), ("in one table", "fifo,las,optimus,aryl")])
def test_loans_and_growth(section: str, policies: str, gpuctl: Run, root: Path, tmp_path: Path) -> None:
    found = replayed(gpuctl, root, tmp_path, policies, {"aryl": ARYL}, "--inference", "8x8")
    assert wrong(root / "docs/reference/policies/aryl.md", found, section) == []
