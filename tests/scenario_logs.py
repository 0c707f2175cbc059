"""Six logs that state more and less: everything, next to nothing, accounting alone, whole nodes, no job, one job."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from gpuctl.analyze.site_files import read_quotas, read_racks
from tests.hand_worked_logs import write_worked_log

if TYPE_CHECKING:
    from pathlib import Path

_HEADER = "JobID|User|Partition|Submit|Start|End|State|NNodes|AllocTRES|NodeList\n"
_ONE_JOB = (
    "1|ann|gpu|2026-03-02T00:00:00|2026-03-02T00:10:00|2026-03-02T01:10:00|COMPLETED|1|cpu=8,gres/gpu=2,node=1|n1\n"
)


class Scenario(NamedTuple):
    """A log, and what the user says of its site.

    Attributes:
        logs: files or folders to read.
        options: of `gpuctl.analyze.options.Options`.
    """

    logs: tuple[Path, ...]
    options: dict[str, Any]


def write_scenarios(root: Path, folder: Path) -> dict[str, Scenario]:
    """Write the logs below a folder.

    Args:
        root: of the repository, for the sample of Philly.
        folder: an empty one.
    """
    philly = root / "sample_data" / "philly"
    everything = {
        "quotas": read_quotas(philly / "truth" / "quotas.csv"),
        "racks": read_racks(philly / "truth" / "racks.csv"),
        "borrow_below": 0.8,
    }
    worked = folder / "worked"
    worked.mkdir()
    made = {name: folder / name for name in ("nothing", "accounting", "whole-node", "empty-log", "one-job")}
    for place in made.values():
        place.mkdir()
    shutil.copy(philly / "cluster_job_log", made["nothing"])
    shutil.copy(write_worked_log(worked) / "sacct.txt", made["accounting"])
    (made["whole-node"] / "jobs.log").write_text(_whole_nodes(), "utf-8")
    (made["empty-log"] / "sacct.txt").write_text(_HEADER, "utf-8")
    conf = "ClusterName=c\nNodeName=n[1-2] Gres=gpu:a100:4 CPUs=64\nPartitionName=gpu Nodes=n[1-2]\n"
    (made["empty-log"] / "slurm.conf").write_text(conf, "utf-8")
    (made["one-job"] / "sacct.txt").write_text(_HEADER + _ONE_JOB, "utf-8")
    told = {"everything": Scenario((philly,), everything)}
    return told | {name: Scenario((place,), {}) for name, place in made.items()}


def _whole_nodes() -> str:
    """Sixty jobs of four users on 1 to 4 nodes, in the form of TACC's logs: no GPUs, no end states, no node lists."""
    names = "JobID    JobName    UID               Start              Submit                 End   Priority TimelimitR"
    lines = ["60", f"       {names} ExitCode   NNodes ", "------------ ---------- ------ -------------------"]
    for k in range(60):
        hour, wait, run = k, k * 7 % 90, 30 + k * 37 % 600
        submit, start, end = 60 * hour, 60 * hour + wait, 60 * hour + wait + run
        times = "\t".join(
            f"2026-03-{2 + t // 1440:02}T{t % 1440 // 60:02}:{t % 60:02}:00" for t in (start, submit, end)
        )
        lines.append(f"{1000 + k}\ttrain-{k % 5}\t{k % 4:05}\t{times}\t1000\t720\t0:0\t{1 << k % 3}")
    return "\n".join(lines) + "\n"
