"""Samples of real traces beside this checkout: counts and quantiles as counted by others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

SHARED = Path(__file__).resolve().parents[5] / "shared" / "data" / "traces"
pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="no samples of traces beside this checkout")

GPUS = "SELECT gpus::BIGINT::VARCHAR, count(*) FROM jobs GROUP BY ALL"
WAITS = (
    "SELECT count(wait_s), round(avg(wait_s), 1), quantile_cont(wait_s, 0.5), quantile_cont(wait_s, 0.9), "
    "max(wait_s), count(*) FILTER (wait_s = 0) FROM jobs"
)


def upper(column: str) -> str:
    """The upper of two medians."""
    return f"(list({column} ORDER BY {column}))[count({column}) // 2 + 1]"


SWF = (
    "SELECT count(*), "
    + upper("run_sum_s")
    + ", round(avg(run_sum_s), 1), count(*) FILTER (run_sum_s IS NULL), "
    + upper("wait_s")
    + ', round(avg(wait_s), 1), count(DISTINCT "user"), '
    "count(*) FILTER (list_contains(quirks, 'ran_past_limit')) FROM jobs"
)
SIMULATORS = {
    "gavel_max_min_fairness.trace": "gavel_max_min_fairness.trace",
    "gavel_msr_0e4a51_7fields.trace": "gavel_msr_0e4a51_7fields.trace",
    "gavel_small_test.trace": "gavel_small_test.trace",
    "shockwave_120_dynamic.trace": "shockwave_120_dynamic.trace",
    "tiresias_60_job.csv": "tiresias_60_job",
    "mltiply_480_job_trace.csv": "mltiply_480_job_trace",
    "chronus_philly_MIX1_head3000.csv": "chronus_philly_MIX1_head3000",
    "elasticflow_philly_103959.csv": "elasticflow_philly_103959",
    "elasticflow_elasticVpollux_e.csv": "elasticflow_elasticVpollux_e",
    "mltiply_philly_hyperdrive_workload.csv": "mltiply_philly_hyperdrive_workload",
    "sia_philly_workload-1.csv": "sia_philly_workload-1",
}


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SHARED / "expected.json").read_text("utf-8"))
    return dict(found[name])


def rows(path: Path, folder: Path, *sql: str) -> list[list[tuple[Any, ...]]]:
    """The answers of a store of a file or a folder, of which no row is lost."""
    db = folder / "s.duckdb"
    report = ingest([path], db, cluster="c")
    assert all(s.rows_in == s.rows_loaded + s.rows_already_stored + s.rows_rejected for s in report.sources)
    with Store(db) as store:
        return [store.execute(one).fetchall() for one in sql]


@pytest.mark.parametrize("file", SIMULATORS)
def test_inputs_of_simulators(file: str, tmp_path: Path) -> None:
    want = expected(f"simulators/{SIMULATORS[file]}")
    [sizes] = rows(SHARED / "simulators" / file, tmp_path, GPUS)
    # the six most frequent ones
    assert {size: n for size, n in sizes if size in want["gpus"]} == want["gpus"]
    assert sum(n for _, n in sizes) == want["jobs"]


@pytest.mark.parametrize("file", ["NASA-iPSC-1993-3.1-cln.swf.gz", "hpc2n.swf", "lublin_256.swf.gz"])
def test_swf(file: str, tmp_path: Path) -> None:
    want = expected(f"swf/{file}")
    by_state = "SELECT source_state, count(*) FROM jobs GROUP BY ALL"
    [[found], states] = rows(SHARED / "swf" / file, tmp_path, SWF, by_state)
    run, wait = want["run_s"], want["wait_s"] or {"p50": None, "mean": None}
    assert found == (
        want["rows"], run["p50"], run["mean"], run["unknown"], wait["p50"], wait["mean"], want["users"],
        want["run_over_limit"],
    )  # fmt: skip
    assert dict(states) == want["status"]


def test_metacentrum(tmp_path: Path) -> None:
    want = expected("swf/wagap-2013_head1500.swf")
    sql = f"SELECT count(*), min(epoch(submit_ts))::BIGINT, {upper('run_sum_s')} FROM jobs"
    places = "SELECT count(DISTINCT machine) FROM placements"
    [[found], [[machines]]] = rows(SHARED / "swf" / "wagap-2013_head1500.swf", tmp_path, sql, places)
    assert found == (want["rows"], want["first_submit_utc"], want["run_s_p50"])
    assert machines == want["machines"]


def test_openb_of_a_folder(tmp_path: Path) -> None:
    want = expected("openb/default")
    models = "SELECT gpu_type, sum(gpus)::BIGINT FROM machines WHERE gpus > 0 GROUP BY ALL"
    phases = "SELECT source_state, count(*) FROM jobs GROUP BY ALL"
    totals = (
        "SELECT count(*), count(*) FILTER (gpus > 0), count(*) FILTER (gpus > 0 AND gpus < 1), "
        "count(*) FILTER (attempts = 0), count(*) FILTER (attempts = 0 AND gpus > 0) FROM jobs"
    )
    nodes = "SELECT count(*), count(*) FILTER (gpus > 0), sum(gpus)::BIGINT FROM machines"
    found = rows(SHARED / "openb", tmp_path, models, phases, totals, nodes, WAITS)
    assert dict(found[0]) == want["gpus_by_model"]
    assert dict(found[1]) == want["phases"]
    keys = ("pods", "gpu_pods", "shared_gpu_pods", "never_scheduled", "never_scheduled_gpu")
    assert found[2] == [tuple(want[k] for k in keys)]
    assert found[3] == [(want["nodes"], want["gpu_nodes"], want["gpus"])]
    wait = want["wait_s"]
    assert found[4] == [tuple(wait[k] for k in ("n", "mean", "p50", "p90", "max", "zero"))]


def test_pai_of_a_folder(tmp_path: Path) -> None:
    want = expected("alibaba-gpu-2020/instance_5000rows")
    states = "SELECT source_state, count(*) FROM containers GROUP BY ALL"
    both = "SELECT source_state, running_ts IS NOT NULL, end_ts IS NOT NULL, count(*) FROM containers GROUP BY ALL"
    run = (
        "SELECT quantile_cont(epoch(end_ts - running_ts), 0.5), round(avg(epoch(end_ts - running_ts)), 1) "
        "FROM containers WHERE source_state = 'Terminated'"
    )
    totals = "SELECT count(*), count(DISTINCT job), count(*) FILTER (machine IS NULL) FROM containers"
    types = "SELECT gpu_type, sum(gpus)::BIGINT FROM machines GROUP BY ALL"
    found = rows(SHARED / "alibaba-gpu-2020", tmp_path, states, both, run, totals, types)
    assert dict(found[0]) == want["status"]
    assert {str(row[:3]): row[3] for row in found[1]} == want["start_and_end"]
    assert found[2] == [(want["terminated_run_s"]["p50"], want["terminated_run_s"]["mean"])]
    assert found[3] == [(want["rows"], want["jobs"], want["no_machine"])]
    assert dict(found[4]) == expected("alibaba-gpu-2020/machine_spec")["gpus_by_type"]


def test_other_samples(tmp_path: Path) -> None:
    want = expected("alibaba-dlrm-2025/4000rows")
    sql = (
        "SELECT count(*), count(*) FILTER (qos = 'HN'), count(*) FILTER (submit_ts IS NULL), "
        "count(*) FILTER (end_ts IS NULL) FROM jobs"
    )
    (tmp_path / "dlrm").mkdir()
    assert rows(SHARED / "alibaba-dlrm-2025", tmp_path / "dlrm", sql) == [
        [(want["rows"], want["roles"]["HN"], want["no_creation"], want["no_deletion"])]
    ]
    want = expected("alibaba-spot-2026/nodes")
    (tmp_path / "spot").mkdir()
    models = "SELECT gpu_type, sum(gpus)::BIGINT FROM machines GROUP BY ALL"
    assert dict(rows(SHARED / "alibaba-spot-2026", tmp_path / "spot", models)[0]) == want["by_model"]
    want = expected("azure-llm/code")
    (tmp_path / "azure").mkdir()
    sql = (
        "SELECT count(*), quantile_cont(prompt_tokens, 0.5), quantile_cont(output_tokens, 0.5), "
        "strftime(timezone('UTC', min(ts)), '%Y-%m-%d %H:%M:%S.%f') FROM service_load"
    )
    [[found]] = rows(SHARED / "azure-llm" / "AzureLLMInferenceTrace_code.csv", tmp_path / "azure", sql)
    assert found == (want["requests"], want["median_context"], want["median_generated"], want["first"][:-1])
    want = expected("mooncake/conversation_head1500")
    (tmp_path / "mooncake").mkdir()
    sql = "SELECT count(*), max(epoch_ms(ts)) FROM service_load"
    [[found]] = rows(SHARED / "mooncake" / "conversation_trace_head1500.jsonl", tmp_path / "mooncake", sql)
    assert found == (want["requests"], want["last_ms"])
    want = expected("helios/venus_gpu_number")
    (tmp_path / "helios").mkdir()
    days = "SELECT from_ts, sum(gpus) AS total FROM quota_history GROUP BY ALL"
    sql = f"SELECT count(*), min(total), max(total) FROM ({days})"
    [[found]] = rows(SHARED / "helios", tmp_path / "helios", sql)
    assert found == (want["days"], want["total_min"], want["total_max"])
