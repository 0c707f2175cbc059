"""No share of the cluster's GPUs is above 100 %: it is left out, and a finding says what contradicts what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.analyzed_logs import analyzed, findings, ingested, rows
from tests.sacct_records import text

if TYPE_CHECKING:
    from pathlib import Path

NODE = (
    "NodeName=gpu001 Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=0.01 Gres=gpu:{gpus} "
    "NodeAddr=gpu001 NodeHostName=gpu001 Version=23.02.7 RealMemory=1000 AllocMem=0 Sockets=2 Boards=1 State=IDLE "
    "ThreadsPerCore=1 Partitions=gpu CfgTRES=cpu=64,mem=1000M,billing=64,gres/gpu={gpus} AllocTRES="
)
WHOLE = "GPUs held at once in excess of the known nodes"
EACH = "nodes on which more GPUs were held at once than they have"


def job(number: int, gpus: int, node: str = "gpu001", start: str = "10:00:00") -> dict[str, str]:
    """A job that is submitted when it starts, and ends at 11:00."""
    times = {name: f"2026-11-20T{start}" for name in ("Submit", "Eligible", "Start")}
    more = {"End": "2026-11-20T11:00:00", "AllocTRES": f"cpu=8,gres/gpu={gpus}", "NodeList": node, "Elapsed": ""}
    return {"JobIDRaw": str(number), **times, **more}


@pytest.mark.parametrize(("node", "machines"), [("gpu001", 1), ("None assigned", 0)])
def test_more_gpus_held_than_there_are_is_a_finding_and_no_share(node: str, machines: int, tmp_path: Path) -> None:
    logs = text(job(1, 4), job(2, 6, node, "10:30:00"))
    path = ingested(tmp_path, {"nodes.txt": NODE.format(gpus=4), "sacct.txt": logs})
    [overview] = rows(path, "overview")
    # 4 GPU-hours and 3 in an hour of 4 GPUs: 175 %
    assert (overview["gpus"], overview["gpu_hours"], overview["occupancy_pct"]) == (4, 7.0, None)
    found = findings(path)
    assert found[WHOLE][0] == 6
    assert "10 of 4 GPUs at 2026-11-20 10:30:00 UTC" in found[WHOLE][1]
    assert found.get(EACH, (0, ""))[0] == machines
    warned = [str(warning) for warning in analyzed(path, "overview").warnings]
    assert any("10 GPUs were held at once, but the known nodes have 4" in warning for warning in warned)
    halves = {row["ts"].strftime("%H:%M"): row["busy_pct"] for row in rows(path, "occupancy")}
    assert (halves["10:29"], halves["10:30"]) == (100.0, None)
    assert [row["allocated_pct"] for row in rows(path, "activity")][:1] == [None]


def test_the_machine_with_the_most_gpus_too_many_is_named(tmp_path: Path) -> None:
    nodes = [NODE.replace("gpu001", name).format(gpus=gpus) for name, gpus in (("gpu001", 4), ("gpu002", 2))]
    logs = text(job(1, 6), job(2, 9, "gpu002"))
    path = ingested(tmp_path, {"nodes.txt": "\n".join(nodes) + "\n", "sacct.txt": logs})
    warned = [str(warning) for warning in analyzed(path, "overview").warnings]
    expected = "on 2 nodes jobs held more GPUs at once than they have; most on gpu002: 9 of 2"
    assert any(expected in warning for warning in warned)


def test_a_full_cluster_has_a_share_of_100(tmp_path: Path) -> None:
    # one job takes over at the second in which the other one ends
    logs = text(job(1, 3), job(2, 1) | {"End": "2026-11-20T10:20:00"}, job(3, 1, start="10:20:00"))
    path = ingested(tmp_path, {"nodes.txt": NODE.format(gpus=4), "sacct.txt": logs})
    assert rows(path, "overview")[0]["occupancy_pct"] == 100.0
    assert not {WHOLE, EACH} & set(findings(path))
