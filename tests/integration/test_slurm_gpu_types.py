"""Waits on a Slurm cluster of two GPU types: what was asked for, if that is stated, says for which machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpuctl.analyze.explain import explain
from gpuctl.analyze.run import Options, analyze
from gpuctl.ingest.pipeline.load import ingest
from gpuctl.store.database import Store

if TYPE_CHECKING:
    from pathlib import Path

BEGIN = 1_790_000_000
NODES = "".join(
    f"NodeName={name} Arch=x86_64 CPUTot=64 Gres=gpu:{kind}:4 NodeAddr={name} State=IDLE Partitions=gpu\n\n"
    for name, kind in (("a1", "a100"), ("v1", "v100"))
)
# submitted, started, ended, GPUs, node, its type. Job 4 waits from 70 to 100: until 80, two GPUs are free in all; then
# the four of v1 are
JOBS = {
    "1": (0, 0, 100, 4, "a1", "a100"),
    "2": (0, 0, 60, 4, "v1", "v100"),
    "3": (60, 60, 80, 2, "v1", "v100"),
    "4": (70, 100, 150, 4, "a1", "a100"),
}


def store_of(folder: Path, *, asked: str | None, feature: str | None, tracked: bool) -> Path:
    """Accounting in which job 4 asks for a type or none; None: the log has no such column."""
    header = "JobIDRaw|Partition|State|Submit|Start|End|Reason|AllocTRES|NNodes|NodeList"
    lines = [header + ("" if asked is None else "|ReqTRES") + ("" if feature is None else "|Constraints")]
    for job, (submit, start, end, gpus, node, kind) in JOBS.items():
        own = f"gres/gpu={gpus}" + (f",gres/gpu:{kind}={gpus}" if tracked else "")
        line = f"{job}|gpu|COMPLETED|{BEGIN + submit}|{BEGIN + start}|{BEGIN + end}|Resources|{own}|1|{node}"
        line += "" if asked is None else f"|{own if job != '4' else asked}"
        lines.append(line + ("" if feature is None else f"|{feature if job == '4' else ''}"))
    (folder / "log").mkdir()
    (folder / "log" / "sacct.txt").write_text("\n".join(lines) + "\n")
    (folder / "log" / "nodes.txt").write_text(NODES)
    assert not ingest([folder / "log"], folder / "x.duckdb").failed
    return folder / "x.duckdb"


ANY, TYPED = "gres/gpu=4", "gres/gpu=4,gres/gpu:a100=4"


@pytest.mark.parametrize(
    ("asked", "feature", "tracked", "capacity_s", "scheduler_s"),
    [
        (TYPED, "", True, (30, 30), (0, 0)),
        (TYPED, None, True, (30, 30), (0, 0)),
        (ANY, "", True, (10, 10), (20, 20)),
        # what is not stated: features of nodes, the request, types as a whole
        (ANY, "a100", True, (10, 30), (0, 20)),
        (ANY, None, True, (10, 30), (0, 20)),
        (None, None, True, (10, 30), (0, 20)),
        (ANY, "", False, (10, 30), (0, 20)),
    ],
)
def test_a_wait_is_for_the_type_requested_not_for_the_one_given(
    tmp_path: Path,
    asked: str | None,
    feature: str | None,
    tracked: bool,
    capacity_s: tuple[int, int],
    scheduler_s: tuple[int, int],
) -> None:
    with Store(store_of(tmp_path, asked=asked, feature=feature, tracked=tracked)) as store:
        found = analyze(store, Options(tables=("queue_delays", "delay_causes")))
        told = explain(store, "4", Options())
    [row] = [row for row in found.table("queue_delays").frame.to_dicts() if row["job"] == "4"]
    assert (row["capacity_low_s"], row["capacity_high_s"]) == capacity_s
    assert (row["scheduler_low_s"], row["scheduler_high_s"]) == scheduler_s
    wait = told.attempts[0].wait
    assert wait is not None
    parts = {part.cause: (part.low_s, part.high_s) for part in wait.parts}
    assert parts.get("capacity") == capacity_s
    is_open = capacity_s[0] < capacity_s[1]
    assert any("which GPU type 1 waiting attempt requested" in str(text) for text in found.warnings) == is_open
