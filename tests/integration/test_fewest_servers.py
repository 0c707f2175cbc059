"""A gang that ran on fewer nodes than the listed sizes allow has no nodes in excess, rather than minus one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SACCT = """\
JobIDRaw|JobID|User|Partition|State|Submit|Eligible|Start|End|NNodes|ReqTRES|AllocTRES|NodeList
1|1|ann|gpu|COMPLETED|{d}T09:00:00|{d}T09:00:00|{d}T09:01:00|{d}T10:00:00|1|gres/gpu=8|gres/gpu=8|g1
2|2|ann|gpu|COMPLETED|{d}T11:00:00|{d}T11:00:00|{d}T11:01:00|{d}T12:00:00|2|gres/gpu=4|gres/gpu=4|g[1-2]
"""
CONF = """\
NodeName=g[1-2] CPUs=16 Gres=gpu:4
PartitionName=gpu Nodes=g[1-2] Default=YES
"""


def test_no_gang_has_fewer_than_no_nodes_in_excess(gpuctl: Run, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sacct.txt").write_text(SACCT.format(d="2026-11-02"))
    (tmp_path / "logs" / "slurm.conf").write_text(CONF)
    done = gpuctl("analyze", tmp_path / "logs", "--table", "locality_by_size", "--json")
    rows = {row["size_bucket"]: row for row in json.loads(done.stdout)["tables"]["locality_by_size"]["rows"]}
    # eight GPUs on one node that is listed with four; four GPUs on two nodes of which one would do
    assert (rows["5-8"]["excess_nodes"], rows["5-8"]["at_fewest_pct"]) == (0.0, 100.0)
    assert (rows["2-4"]["excess_nodes"], rows["2-4"]["at_fewest_pct"]) == (1.0, 0.0)
