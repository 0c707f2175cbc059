"""Rules of `philly` that other sites have: worked by hand, and those of the made-up cluster of the sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpuctl.analyze.site_files import read_quotas, read_racks
from gpuctl.library.progress import NOTEBOOK
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.inputs.trace import read_trace
from gpuctl.replay.results.comparison import recorded
from gpuctl.replay.run import replay
from gpuctl.services.inputs import opened
from gpuctl.services.options import LogReading
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome

OWN_RULES = {
    "relax": "time", "relax_after": "3600", "rack_after": "32400", "order": "queued", "lend": "0.8",
    "take_back": "false", "places": "racks", "interval": "120", "requeue": "7",
}  # fmt: skip
"""Those of the program that made the sample, which is not ours to read here: `sample_data/philly/truth/params.json`."""

NODES = """
[[nodes]]
count = {count}
gpus = {gpus}
per_rack = {per_rack}

[quotas]
a = {quota}
b = {quota}
"""


def replayed(
    folder: Path, jobs: tuple[str, ...], rules: dict[str, str], *, count: int = 1, gpus: int = 10, quota: int = 5,
    per_rack: int = 1,
) -> Outcome:  # fmt: skip
    (folder / "jobs.csv").write_text("\n".join(["job_id,submit_time,duration,num_gpus,vc", *jobs]))
    nodes = folder / "servers.toml"
    nodes.write_text(NODES.format(count=count, gpus=gpus, per_rack=per_rack, quota=quota))
    workload = read_jobs(folder / "jobs.csv")
    [outcome] = replay(workload, parse_cluster(str(nodes), workload), [("philly", {"acquire": "0", **rules})])
    return outcome


def starts(outcome: Outcome) -> list[float]:
    return [float(t) for t in outcome.jobs["start_s"].to_list()]


def test_a_queue_exceeds_its_quota_up_to_a_share_of_the_gpus_in_use(tmp_path: Path) -> None:
    # after x and y 7 GPUs of 10 are in use, and z would make them 8
    jobs = ("x,0,100,5,a", "y,1,100,2,a", "z,2,100,1,a")
    assert starts(replayed(tmp_path, jobs, {"lend": "0.7"})) == [0, 1, 100]
    assert starts(replayed(tmp_path, jobs, {"lend": "0.8"})) == [0, 1, 2]


def test_lent_gpus_are_kept_where_they_are_not_taken_back(tmp_path: Path) -> None:
    jobs = ("x,0,100,5,a", "y,1,100,5,a", "z,2,100,5,b")
    taken = replayed(tmp_path, jobs, {})
    assert (starts(taken)[2], taken.jobs["preemptions"].to_list()) == (2, [0, 1, 0])
    kept = replayed(tmp_path, jobs, {"take_back": "false", "backoff": "1"})
    assert (starts(kept)[2], kept.jobs["preemptions"].sum()) == (100, 0)


def test_jobs_start_in_the_order_in_which_they_were_queued(tmp_path: Path) -> None:
    # at 100 s five GPUs become free; queue b has used less of its quota, but job p of queue a has waited for longer
    jobs = ("all,0,100,5,b", "more,0,300,5,a", "p,10,50,3,a", "q,20,50,3,b")
    rules = {"take_back": "false", "relax": "never"}
    assert starts(replayed(tmp_path, jobs, rules)) == [0, 0, 150, 100]
    assert starts(replayed(tmp_path, jobs, {**rules, "order": "queued"})) == [0, 0, 100, 150]


def test_gangs_give_up_locality_at_a_look_and_for_one_rack_after_a_time_of_its_own(tmp_path: Path) -> None:
    # two racks of a node: a gang of 2 finds 1 GPU free in each
    jobs = ("x,0,1000,3,a", "y,0,1000,3,b", "gang,10,100,2,a")
    rules = {"relax": "time", "relax_after": "60", "take_back": "false"}
    how = {"count": 2, "gpus": 4, "quota": 8}
    assert starts(replayed(tmp_path, jobs, rules, **how))[2] == 130
    assert starts(replayed(tmp_path, jobs, {**rules, "rack_after": "200"}, **how))[2] == 270
    # looks at 10 s, 110 s, 210 s and 310 s
    assert starts(replayed(tmp_path, jobs, {**rules, "rack_after": "200", "interval": "100"}, **how))[2] == 310


@pytest.mark.parametrize(("places", "node"), [("tight", 1), ("racks", 0)])
def test_a_gang_goes_to_the_fullest_node_or_to_the_first_rack(tmp_path: Path, places: str, node: int) -> None:
    # at 60 s the node of the first rack is empty, that of the second one has 2 GPUs free
    jobs = ("x,0,50,3,a", "y,1,1000,2,b", "z,60,100,2,a")
    outcome = replayed(tmp_path, jobs, {"places": places}, count=2, gpus=4, quota=8)
    row = outcome.attempts.with_row_index("row").filter(outcome.attempts["job"] == 2)["row"][0]
    assert outcome.pieces.filter(outcome.pieces["row"] == row)["node"].to_list() == [node]


def test_the_sample_is_replayed_to_the_second_under_its_own_rules(sample_data: Path) -> None:
    truth = sample_data / "philly" / "truth"
    logs = [sample_data / "philly" / name for name in ("cluster_job_log", "cluster_machine_list")]
    with opened(logs, None, LogReading(), NOTEBOOK, doing="replay") as found, Store(found.path) as store:
        workload, cluster = read_trace(
            store, found.cluster, "sum", quotas=read_quotas(truth / "quotas.csv"), racks=read_racks(truth / "racks.csv")
        )
    [outcome] = replay(workload, cluster, [("philly", OWN_RULES)], processes=1)
    error = outcome.jobs["start_s"].to_numpy() - recorded(workload)["start_s"].to_numpy()
    # three jobs whose starts are missing in the log held GPUs that the replay gives to others
    assert (np.abs(error) <= 1).mean() > 0.995
    assert outcome.jobs["wait_s"].mean() == pytest.approx(32.6 * 60, abs=6)
