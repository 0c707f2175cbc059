"""Gangs that a placement or a quota can never fit: named before the run, and why, for each policy that it holds for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.replay.engine.never import PLACED, QUOTA
from gpuctl.replay.engine.state import CONSOLIDATE, FEWEST, RACK
from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.results.tables import BEHIND, why_left
from gpuctl.replay.run import replay
from tests.unit.replay.engine.test_engine import jobs

if TYPE_CHECKING:
    from pathlib import Path

    from gpuctl.replay.models.records import Outcome

HEADER = "job_id,submit_time,duration,num_gpus,vc"
ROWS = ("mid,0,10,16,a", "ok,0,10,4,a", "ok2,5,10,4,b")
UNEVEN = "[[nodes]]\ncount = 1\ngpus = 8\n[[nodes]]\ncount = 2\ngpus = 4\n"
RACKS = '[[nodes]]\ncount = 2\ngpus = 8\nrack = "r1"\n[[nodes]]\ncount = 2\ngpus = 8\nrack = "r2"\n'


def run(folder: Path, nodes: str, policy: str, **more: object) -> tuple[Outcome, list[str]]:
    path = folder / "cluster.toml"
    path.write_text(nodes)
    workload = jobs(folder, *ROWS, header=HEADER)
    told: list[str] = []
    outcome = replay(workload, parse_cluster(str(path), workload), [(policy, {})], notify=told.append, **more)[0]
    return outcome, told


@pytest.mark.parametrize("policy", ["fifo", "fifo-skip", "las", "sjf", "pickyman"])
def test_a_gang_that_a_placement_never_fits_is_named_before_the_run(tmp_path: Path, policy: str) -> None:
    outcome, told = run(tmp_path, UNEVEN, policy, placement="consolidate")
    assert told[0] == f"{policy}: 1 job can never start: {PLACED[CONSOLIDATE]}; it is mid (16 GPUs)"
    assert dict(outcome.never) == {0: PLACED[CONSOLIDATE]}
    assert outcome.jobs["state"][0] == "waiting"
    assert any("can never start" in str(line) for line in outcome.notes)


@pytest.mark.parametrize(
    ("nodes", "placement", "fits"),
    [
        (UNEVEN, "any", True),
        (UNEVEN, "spread", True),
        ("[[nodes]]\ncount = 3\ngpus = 6\n", "consolidate", True),
        ("[[nodes]]\ncount = 2\ngpus = 8\n", "consolidate", True),
        (RACKS, "consolidate", True),
    ],
)
def test_a_gang_that_fits_is_not_named(tmp_path: Path, nodes: str, placement: str, fits: bool) -> None:
    outcome, told = run(tmp_path, nodes, "fifo-skip", placement=placement)
    assert (outcome.jobs["state"] == "finished").all() is fits
    assert not outcome.never
    assert not any("never" in line for line in told)


def test_a_gang_larger_than_a_hard_quota_is_named(tmp_path: Path) -> None:
    workload = jobs(tmp_path, *ROWS, header=HEADER)
    path = tmp_path / "quota.toml"
    path.write_text("[[nodes]]\ncount = 4\ngpus = 8\n[quotas]\na = 8\nb = 8\n")
    told: list[str] = []
    cluster = parse_cluster(str(path), workload)
    outcome = replay(workload, cluster, [("yarn-cs", {"borrow": "false"})], notify=told.append)[0]
    assert dict(outcome.never) == {0: QUOTA}
    assert told[0].startswith("yarn-cs: 1 job can never start")
    # its strict queue stops behind it
    assert outcome.jobs["state"].to_list() == ["waiting", "waiting", "finished"]


def test_a_job_that_waits_behind_it_is_reported() -> None:
    assert why_left({3: QUOTA}, [3, 4, 5], ["waiting", "waiting", "held"]) == [QUOTA, BEHIND, None]
    assert why_left({}, [4], ["waiting"]) == [None]


def test_racks_and_fewest_nodes_are_examined() -> None:
    import numpy as np

    from gpuctl.replay.engine.never import _holds

    caps, racks = np.array([8, 8, 4, 4]), np.array([0, 1, 1, 1])
    assert _holds(caps, racks, 16, RACK)
    assert not _holds(caps, racks, 17, RACK)
    assert _holds(caps, racks, 12, FEWEST)
    assert not _holds(caps, racks, 14, FEWEST)
