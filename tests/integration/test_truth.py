"""Queueing delays by cause against generators that wrote down why every attempt waited."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.analyze.site_files import read_quotas, read_racks
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.reports.screens.analysis import TABLES
from gpuctl.store.database import Store
from tests.philly_truth import CAUSES, compare, truth_of
from tests.result_tables import table_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpuctl.core.results import Analysis

SHAPES = {
    "one rack": ["--racks", "1", "--big", "8", "--small", "0"],
    "small nodes": ["--racks", "3", "--big", "4", "--small", "10"],
    "many racks": ["--racks", "7", "--big", "4", "--small", "2"],
}
RELAX = {"fast": ["--relax1", "300", "--relax2", "1200"], "never": ["--relax1", "1e9", "--relax2", "1e9"], "usual": []}
CASES = [
    ("one rack", "usual", 11, 0.6, ["--borrow", "0"]),
    ("small nodes", "fast", 12, 1.0, ["--borrow", "0.5"]),
    ("many racks", "never", 13, 1.2, ["--quota-factor", "1.1", "--tick", "600"]),
]


def analysis(directory: Path, work: Path, **given: object) -> Analysis:
    store = work / "store.duckdb"
    if not store.exists():
        ingest([directory], store, cluster="made-up")
    with Store(store) as opened:
        return analyze(opened, Options(**given))  # type: ignore[arg-type]


def delays(result: Analysis) -> pl.DataFrame:
    table = table_of(result, "queue_delays")
    return table.frame


def given(directory: Path, borrow: float) -> dict[str, object]:
    return {
        "quotas": read_quotas(directory / "truth" / "quotas.csv"),
        "racks": read_racks(directory / "truth" / "racks.csv"),
        "borrow_below": borrow,
    }


def check(directory: Path, work: Path) -> None:
    params = json.loads((directory / "truth" / "params.json").read_text())
    told = given(directory, float(params["borrow"]))
    found = delays(analysis(directory, work, tables=("queue_delays",), **told))
    truth = truth_of(directory)
    share, hours = compare(found, truth)
    assert found.join(truth, on=["job", "attempt"]).height > 0.95 * truth.height
    assert share >= 0.995
    for row in hours.iter_rows(named=True):
        for cause in CAUSES:
            # a minute of slack: stamps are whole seconds, and a bucket may hold next to nothing of a cause
            assert row[cause] == pytest.approx(row[f"{cause}_true"], rel=0.01, abs=1 / 60), (row["size_bucket"], cause)


def test_sample_data(sample_data: Path, tmp_path: Path) -> None:
    check(sample_data / "philly", tmp_path)


def test_sample_data_has_all_causes(sample_data: Path) -> None:
    truth = truth_of(sample_data / "philly")
    assert all(truth[cause].sum() > 3600 for cause in CAUSES)


def made_up_jobs(path: Path, seed: int, load: float) -> None:
    rng = random.Random(seed)
    with path.open("w") as file:
        file.write("submit_time,duration,num_gpus,vc\n")
        now = 0.0
        for _ in range(1500):
            now += rng.expovariate(load / 220)
            gpus = rng.choices([1, 2, 4, 8, 16, 24], [50, 15, 15, 12, 6, 2])[0]
            file.write(f"{now:.1f},{rng.lognormvariate(7.6, 1.4):.1f},{gpus},vc{rng.randrange(5)}\n")


@pytest.mark.parametrize(("shape", "relax", "seed", "load", "more"), CASES)
def test_against_the_shared_generator(
    root: Path, tmp_path: Path, shape: str, relax: str, seed: int, load: float, more: list[str]
) -> None:
    tool = root.parent / "shared" / "tools" / "philly_like.py"
    if not tool.is_file():
        pytest.skip("../shared is not here: its generator philly_like.py makes these logs")
    made_up_jobs(tmp_path / "jobs.csv", seed, load)
    logs = tmp_path / "logs"
    command = [sys.executable, str(tool), str(tmp_path / "jobs.csv"), str(logs), "--keep-single", "1"]
    subprocess.run(
        [*command, "--seed", str(seed), *SHAPES[shape], *RELAX[relax], *more], check=True, capture_output=True
    )
    check(logs, tmp_path)


@pytest.mark.parametrize("told", [{}, {"borrow_below": 0.8}], ids=["nothing told", "borrowing told"])
def test_unstated_values_are_inferred_and_labelled(sample_data: Path, tmp_path: Path, told: dict[str, float]) -> None:
    directory = sample_data / "philly"
    names = ("queues", "delay_causes", "delay_settings", "queue_delays")
    result = analysis(directory, tmp_path, tables=names, **told)
    queues = table_of(result, "queues")
    assert set(queues.frame["quota_source"]) == {"inferred"}
    assert any("inferred" in warning for warning in result.warnings)
    truth = truth_of(directory)
    share, _ = compare(delays(result), truth)
    assert share > 0.97
    causes = table_of(result, "delay_causes")
    whole = truth["wait_s"].sum()
    for cause, said, low, high in causes.frame.select("cause", "share_pct", "low_pct", "high_pct").iter_rows():
        assert low <= said <= high
        if f"{cause}_s" in CAUSES:
            true = 100 * truth[f"{cause}_s"].sum() / whole
            assert low - 0.5 <= true <= high + 0.5, cause
            assert abs(said - true) < 1, cause
    settings = table_of(result, "delay_settings")
    used = settings.frame.filter(pl.col("used")).row(0, named=True)
    assert used["borrow_below_pct"] == pytest.approx(80, abs=1)
    assert (used["one_rack_after_h"], used["any_rack_after_h"]) == (pytest.approx(1, 0.02), pytest.approx(10, 0.02))
    rows = delays(result)
    total = rows.select(pl.sum_horizontal(*CAUSES, "scheduler_s")).to_series()
    assert (total - rows["wait_s"]).abs().max() < 1e-3  # type: ignore[operator]


def test_names_that_stay(
    gpuctl: Callable[..., subprocess.CompletedProcess[str]], thin_data: Path, tmp_path: Path
) -> None:
    directory = thin_data / "philly"
    truth = directory / "truth"
    out = tmp_path / "out"
    gpuctl(
        "analyze", directory, "--quotas", truth / "quotas.csv", "--racks", truth / "racks.csv",
        "--borrow-below", "0.8", "--parquet", out,
    )  # fmt: skip
    rows = pl.read_parquet(out / "queue_delays.parquet")
    wanted = {"job", "attempt", "queue", "gpus", "nodes", "wait_s", "fair_share_s", "capacity_s", "fragmentation_s"}
    assert wanted <= set(rows.columns)
    for name in ("overview", "gpu_util_by_nodes", "status"):
        assert pl.read_parquet(out / f"{name}.parquet").height > 0, name
    long = {"job_times", "queue_delays", "waits", "failures", "idle_jobs", "activity_by_user"}
    shown = json.loads(gpuctl("analyze", directory, "--json").stdout)["tables"]
    assert not long & set(shown), "tables with a row for each job come with --all"
    assert {"overview", "occupancy", "fragmentation", "wait_cdf", *TABLES} <= set(shown), "the page and screen's"
    for arguments in (["--json", "analyze", directory, "--all"], ["analyze", directory, "--json", "--all"]):
        tables = json.loads(gpuctl(*arguments).stdout)["tables"]
        assert set(tables) >= {path.stem for path in out.glob("*.parquet")}
        assert len(tables["queue_delays"]["rows"]) == rows.height


def test_two_clusters_in_one_store_do_not_mix(thin_data: Path, tmp_path: Path) -> None:
    directory = thin_data / "philly"
    alone = analysis(directory, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    log = json.loads((directory / "cluster_job_log").read_text())
    (other / "cluster_job_log").write_text(json.dumps(log[: len(log) // 2]))
    ingest([other], tmp_path / "store.duckdb", cluster="another")
    together = analysis(directory, tmp_path, cluster="made-up")
    for first, second in zip(alone.tables, together.tables, strict=True):
        assert first.frame.equals(second.frame), first.name
