"""A limit that no file states, beside stated quotas: it may have held while GPUs were taken, too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from gpuctl.analyze.run import Options, analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

# user, submitted, started, ended (hour of the day), machine, GPUs. User u may hold 8 GPUs, so job 2 waits for job 1;
# until 2 o'clock m1 is free, from then on job 3 holds it
JOBS = (("u", 0, 0, 4, "m0", 8), ("u", 0, 4, 6, "m0", 4), ("v", 2, 2, 5, "m1", 8))


def test_a_wait_next_to_an_unexplained_one_may_have_been_for_the_limit_all_the_time(tmp_path: Path) -> None:
    jobs = [
        {
            "status": "Pass", "vc": "q", "user": user, "jobid": f"application_1506638472019_{k:05d}",
            "submitted_time": f"2017-10-02 {submit:02}:00:00",
            "attempts": [{
                "start_time": f"2017-10-02 {start:02}:00:00", "end_time": f"2017-10-02 {end:02}:00:00",
                "detail": [{"ip": machine, "gpus": [f"gpu{g}" for g in range(gpus)]}],
            }],
        }
        for k, (user, submit, start, end, machine, gpus) in enumerate(JOBS)
    ]  # fmt: skip
    (tmp_path / "cluster_job_log").write_text(json.dumps(jobs))
    (tmp_path / "cluster_machine_list").write_text("machineId,number of GPUs,single GPU mem\nm0,8,24GB\nm1,8,24GB\n")
    ingest([tmp_path], tmp_path / "x.duckdb")
    told = {"quotas": {"q": 32.0}, "racks": {"m0": "r", "m1": "r"}, "borrow_below": 0.0}
    with Store(tmp_path / "x.duckdb") as store:
        found = analyze(store, Options(tables=("queue_delays",), **told))
    row = found.table("queue_delays").frame.to_dicts()[1]
    assert row["wait_s"] == 4 * 3600
    assert (row["scheduler_s"], row["capacity_s"]) == (2 * 3600, 2 * 3600)
    assert (row["fair_share_low_s"], row["fair_share_high_s"]) == (0, 4 * 3600)
    assert row["capacity_low_s"] == 0
