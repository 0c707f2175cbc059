"""What the YARN lab runs: the jobs of a plan, and what happens to its daemons meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

WILD = "bert, large=\\x \"lr\"='1e-4'\ttab;state=FAILED,user=mallory"
"""A name with all that could break a reader: commas, `=`, backslash, quotes, TAB, and keys of a summary line."""


@dataclass(frozen=True)
class Plan:
    """One workload.

    Attributes:
        jobs: of each what ``LabClient`` and ``LabMaster`` read; ``key`` is its name in the manifest.
        samples_at_s: when the REST interface is recorded, in seconds from the first submission.
        limit_s: when all this is given up.
        restart_rm_once: the job whose whole gang has to run before the ResourceManager is ended and started again.
        lose_node_once: the same for ending the last NodeManager with SIGKILL; the REST interface is recorded before.
    """

    jobs: tuple[dict[str, object], ...]
    samples_at_s: tuple[float, ...]
    limit_s: int
    restart_rm_once: str | None = None
    lose_node_once: str | None = None


def job(key: str, queue: str, user: str, **what: object) -> dict[str, object]:
    """Describe one job; `what` as in the README."""
    return {"key": key, "queue": queue, "user": user, **what}


# no two jobs that may wait for each other's containers: a gang holds what it has while it waits for the rest
SHORT = Plan(
    jobs=(
        job("single", "prod", "alice", containers=1, gpus=1, seconds=6, name="mnist"),
        job("gang", "prod", "bob", containers=3, gpus=4, seconds=8, name=WILD),
        job("batch-a", "batch", "carol", containers=4, gpus=2, seconds=10, tags="night,sweep"),
        job("fails", "vision", "erin", at=1, containers=2, gpus=1, seconds=2, exit=1),
        job("killed", "speech", "erin", at=1, containers=2, gpus=2, seconds=60, kill_after=14),
        job("retried", "vision", "alice", at=2, containers=2, gpus=1, seconds=3, crash="1"),
        job("batch-b", "batch", "dave", behind="batch-a", containers=2, gpus=4, seconds=4),
    ),
    samples_at_s=(12,),
    limit_s=85,
)
FULL = Plan(
    jobs=(
        *SHORT.jobs,
        job("cpu", "speech", "carol", containers=2, gpus=0, mem=512, vcores=2, seconds=4),
        job("crashes", "speech", "dave", containers=1, gpus=1, crash="1,2"),
        job("refused", "nosuch", "dave", containers=1, gpus=1),
        job("wide", "vision", "bob", behind="gang", containers=6, gpus=4, seconds=40, name="resnet-152"),
        job("urgent", "prod", "alice", behind="wide", after="gang", containers=3, gpus=4, seconds=12, priority=5),
        job("never", "batch", "carol", after="batch-b", containers=5, gpus=2, seconds=5, kill_after=20),
        job("am-gpu", "batch", "erin", behind="urgent", containers=1, gpus=8, seconds=3, am_gpus=1, kill_after=20),
        job("spread", "speech", "carol", after="*", containers=6, gpus=1, seconds=30, nodes="node03,node04"),
        job("left", "prod", "bob", behind="spread", containers=2, gpus=2, seconds=600, open=1, nodes="node01"),
    ),
    samples_at_s=(30,),
    limit_s=300,
    restart_rm_once="urgent",
    lose_node_once="left",
)
PLANS = {"short": SHORT, "full": FULL}


def lines(plan: Plan) -> str:
    """The plan as ``LabClient`` reads it."""
    return "".join(" ".join(f"{key}={quote(str(value))}" for key, value in j.items()) + "\n" for j in plan.jobs)
