"""A requeued Slurm job has a record for each attempt: it is one job, with all of its GPU-hours, and a wait for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SACCT = """\
JobID|JobIDRaw|JobName|User|Account|Partition|State|ExitCode|Submit|Eligible|Start|End|AllocTRES|ReqTRES|NodeList|Timelimit
100|100|train|ann|lab|gpu|REQUEUED|0:0|{d}T10:00:00|{d}T10:00:00|{d}T10:01:00|{d}T10:31:00|{eight}|{eight}|gpu001|02:00:00
100|100|train|ann|lab|gpu|NODE_FAIL|0:0|{d}T10:31:00|{d}T10:33:00|{d}T10:35:00|{d}T10:50:00|{eight}|{eight}|gpu002|02:00:00
100|100|train|ann|lab|gpu|COMPLETED|0:0|{d}T10:50:00|{d}T10:52:00|{d}T11:00:00|{d}T12:00:00|{eight}|{eight}|gpu001|02:00:00
101|101|eval|bob|lab|gpu|COMPLETED|0:0|{d}T10:05:00|{d}T10:05:00|{d}T12:05:00|{d}T13:05:00|{four}|{four}|gpu002|02:00:00
"""


def test_attempts_of_a_requeued_job(gpuctl: Run, tmp_path: Path) -> None:
    text = SACCT.format(d="2026-11-20", eight="cpu=8,gres/gpu=8", four="cpu=4,gres/gpu=4")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sacct.txt").write_text(text)
    tables = ("overview", "users", "wait_by_size", "gpu_hours_lost")
    asked = [word for table in tables for word in ("--table", table)]
    out = json.loads(gpuctl("analyze", tmp_path / "logs", *asked, "--json").stdout)["tables"]
    (overview,) = out["overview"]["rows"]
    # eight GPUs for 30, 15 and 60 min, four for 60: the waits between do not hold any
    assert {k: overview[k] for k in ("jobs", "attempts", "users", "gpu_hours")} == {
        "jobs": 2, "attempts": 4, "users": 2, "gpu_hours": 18.0,
    }  # fmt: skip
    users = {row["user"]: row for row in out["users"]["rows"]}
    assert {k: users["ann"][k] for k in ("jobs", "gpu_hours", "lost_gpu_hours", "retried_h", "failed_jobs")} == {
        "jobs": 1, "gpu_hours": 14.0, "lost_gpu_hours": 6.0, "retried_h": 6.0, "failed_jobs": 0,
    }  # fmt: skip
    assert (users["bob"]["gpu_hours"], users["bob"]["lost_gpu_hours"]) == (4.0, 0.0)
    waits = {row["size_bucket"]: row for row in out["wait_by_size"]["rows"]}
    # each from the attempt's own submission: 1, 4 and 10 min
    assert (waits["5-8"]["waits"], waits["5-8"]["mean_min"], waits["2-4"]["mean_min"]) == (3, 5.0, 120.0)
    screen = gpuctl("analyze", tmp_path / "logs", "--format", "table").stdout
    assert "2 jobs of 2 users" in screen
    assert "GPU-hours lost 33.3 % of 18 " in screen
