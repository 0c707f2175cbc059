"""What jobs used of what they asked for, worked out by hand; where the known faults of seff would show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpuctl.analyze.options import Options
from gpuctl.analyze.run import analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store
from tests.result_tables import table_of
from tests.sacct_records import FIRST, PENDING, SECOND, text
from tests.unit.slurm.test_jobstats import node, packed

if TYPE_CHECKING:
    from pathlib import Path

STEP = {"User": "", "Partition": "", "QOS": "", "ReqTRES": "", "AllocTRES": "cpu=8", "JobName": "python"}
"""8 CPUs for 600 s: 4800 CPU seconds; 16 GiB of memory; a limit of 3600 s."""


def step(job: str, name: str, cpu: str, **more: str) -> dict[str, str]:
    return {**STEP, "JobIDRaw": f"{job}.{name}", "TotalCPU": cpu, "NTasks": "1", **more}


def table(
    folder: Path, *records: dict[str, str], name: str = "efficiency", **options: Any
) -> dict[str, dict[str, Any]]:
    """The rows of a table by their first column."""
    (folder / "logs").mkdir()
    (folder / "logs" / "sacct.txt").write_text(text(*records))
    report = ingest([folder / "logs"], folder / "t.duckdb", cluster="c")
    assert sum(source.rows_rejected for source in report.sources) == 0
    with Store(folder / "t.duckdb") as store:
        rows = table_of(analyze(store, Options(tables=(name,), **options)), name).frame.to_dicts()
    return {str(next(iter(row.values()))): row for row in rows}


def test_steps_are_added_for_cpu_time_and_the_largest_is_taken_for_memory(tmp_path: Path) -> None:
    [row] = table(
        tmp_path,
        {"TotalCPU": "00:40:00"},
        step("100", "batch", "00:00.500", MaxRSS="1024K"),
        step("100", "extern", "00:00:00", MaxRSS="900K"),
        step("100", "0", "00:20:00", MaxRSS="2G", NTasks="2", TRESUsageInTot="cpu=00:20:00,mem=3G"),
        step("100", "1", "00:20:00", MaxRSS="4G", NTasks="2", TRESUsageInTot="cpu=00:20:00,mem=8388608K"),
    ).values()
    assert row["cpu_eff_pct"] == pytest.approx(100 * 2400 / 4800)
    assert (row["mem_used_gb"], row["mem_given_gb"], row["mem_source"]) == (8, 16, "TRESUsageInTot")
    assert row["mem_eff_pct"] == 50
    assert row["time_limit_pct"] == pytest.approx(100 / 6)


def test_without_a_total_of_the_job_its_steps_count(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        {"JobIDRaw": "1", "TotalCPU": "00:00:00"},
        step("1", "batch", "00:05:00", MaxRSS="1G"),
        step("1", "0", "00:15:00", MaxRSS="3G", NTasks="4"),
        {"JobIDRaw": "2", "TotalCPU": "00:00:00"},
        {"JobIDRaw": "3", "TotalCPU": "00:00:00", "State": "NODE_FAIL"},
        step("3", "extern", "00:00:01", MaxRSS="900K"),
    )
    assert found["1"]["cpu_eff_pct"] == pytest.approx(25)
    assert (found["1"]["mem_eff_pct"], found["1"]["mem_source"]) == (75, "MaxRSS")
    assert found["2"]["cpu_eff_pct"] is None, "sacct -X: no step, so nobody knows"
    assert found["3"]["mem_eff_pct"] is None, "the node took its steps along; .extern holds no program"


def test_each_attempt_has_its_own_steps_and_the_last_one_counts(tmp_path: Path) -> None:
    again = {**SECOND, "TotalCPU": "00:20:00"}
    [row] = table(
        tmp_path,
        {**FIRST, "TotalCPU": "00:08:00", "Elapsed": "00:01:00"},
        step("100", "batch", "00:08:00", MaxRSS="15G"),
        again,
        step("100", "batch", "00:20:00", MaxRSS="2G", Start=SECOND["Start"], Submit=SECOND["Start"]),
    ).values()
    assert row["cpu_eff_pct"] == pytest.approx(25)
    assert row["mem_used_gb"] == 2


def test_jobstats_precedes_the_steps_and_a_running_job_has_nothing(tmp_path: Path) -> None:
    found = table(
        tmp_path,
        {"JobIDRaw": "1", "AdminComment": packed({"nodes": {"a": node(2, 8), "b": node(6, 8)}})},
        step("1", "batch", "00:00:01", MaxRSS="1G"),
        {"JobIDRaw": "2", "AdminComment": "JS1:H4sI!!"},
        {"JobIDRaw": "3", "State": "RUNNING", "End": "Unknown", "TotalCPU": "00:00:00"},
        step("3", "batch", "00:00:00", State="RUNNING"),
        {"JobIDRaw": "4", **PENDING},
    )
    assert (found["1"]["mem_eff_pct"], found["1"]["mem_node_pct"], found["1"]["mem_source"]) == (50, 75, "jobstats")
    assert found["2"]["mem_eff_pct"] is None
    assert (found["3"]["cpu_eff_pct"], found["3"]["mem_eff_pct"]) == (None, None)
    assert found["3"]["time_limit_pct"] == pytest.approx(100 / 6)
    assert "4" not in found


def test_the_elapsed_time_leaves_suspensions_out(tmp_path: Path) -> None:
    [row] = table(tmp_path, {"Elapsed": "00:05:00", "Suspended": "00:05:00", "TotalCPU": "00:20:00"}).values()
    assert row["cpu_eff_pct"] == pytest.approx(50)
    assert row["time_limit_pct"] == pytest.approx(100 / 12)


@pytest.mark.parametrize(
    ("line", "name", "step_name", "shown"),
    [
        ("sbatch -N1 a.sh", "train", "batch", "batch"),
        ("/usr/bin/salloc -t 60", "interactive", "interactive", "salloc"),
        ("srun --gres=gpu:1 --pty bash -i", "bash", "0", "srun --pty"),
        ("srun python a.py", "python", "0", "srun"),
        ("sbatch a.sh", "jupyterhub-spawner", "batch", "jupyter"),
        ("sbatch jupyter.sh", "nb", "batch", "jupyter"),
        ("", "train", "batch", "batch"),
        ("", "train", "interactive", "salloc"),
        ("", "train", "0", "salloc or srun"),
    ],
)
def test_how_a_job_was_started(tmp_path: Path, line: str, name: str, step_name: str, shown: str) -> None:
    [row] = table(tmp_path, {"SubmitLine": line, "JobName": name}, step("100", step_name, "00:00:01")).values()
    assert row["started_as"] == shown
