"""The policy ``osdec`` of a replay: where on-demand load changes with slots alone, it decides as the slots do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpuctl.replay.inputs.clusters import parse_cluster
from gpuctl.replay.inputs.job_csv import read_jobs
from gpuctl.replay.policies.osdec import slot_kernel as kernel
from gpuctl.replay.policies.osdec.osdec import RULES
from gpuctl.replay.run import replay
from gpuctl.research.deferrable.conversion import convert, trace_of
from gpuctl.research.deferrable.slots import EVICTED, Rule, simulate

if TYPE_CHECKING:
    from pathlib import Path

SLOT, GPUS, DAYS = 3600, 12, 4
KINDS = {**RULES, "net": kernel.NET}


def made(path: Path, seed: int) -> Path:
    """Jobs that begin and end with slots; on-demand ones never need more GPUs than there are."""
    draw = np.random.Generator(np.random.PCG64(seed))
    rows, held = [], np.zeros(30 * DAYS, int)
    for slot in range(24 * DAYS):
        for _ in range(draw.poisson(1 + np.sin(2 * np.pi * slot / 24))):
            length, gpus = int(draw.integers(1, 8)), int(draw.integers(1, 5))
            if (held[slot : slot + length] + gpus <= GPUS).all():
                held[slot : slot + length] += gpus
                rows.append((slot * SLOT, length * SLOT, gpus, "now"))
        if draw.random() < 0.5:
            rows.append((slot * SLOT + int(draw.integers(0, SLOT)), int(draw.integers(1, 8)) * SLOT,
                         int(draw.integers(1, 7)), "later"))  # fmt: skip
    rows.sort(key=lambda row: row[0])
    # the last one keeps the slots going until all windows have closed
    rows.append((24 * (DAYS + 3) * SLOT - 1, 60, 1, "now"))
    lines = [f"j{k},{','.join(map(str, row))},1" for k, row in enumerate(rows)]
    path.write_text("job_id,submit_time,duration,num_gpus,vc,epochs\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("evict", EVICTED)
def test_starts_are_those_of_the_slots(tmp_path: Path, evict: str) -> None:
    draw = np.random.Generator(np.random.PCG64(5))
    net = (draw.standard_normal((kernel.FEATURES, 4)), draw.standard_normal(4), draw.standard_normal(4), np.ones(1))
    weights = tmp_path / "net.json"
    weights.write_text(str({name: each.tolist() for name, each in zip(("w", "b", "v", "v0"), net, strict=True)})
                       .replace("'", '"'))  # fmt: skip
    evictions = 0
    for seed in range(2):
        workload = read_jobs(made(tmp_path / "jobs.csv", seed))
        case = convert(trace_of(workload, ("later",)), SLOT, gpus=GPUS)
        for rule, kind in KINDS.items():
            params: dict[str, Any] = {"slot": str(SLOT), "queue": "later", "evict": evict}
            params |= {"model": str(weights)} if rule == "net" else {"rule": rule}
            [outcome] = replay(workload, parse_cluster(f"pool:{GPUS}", workload), [("osdec", params)])
            found = simulate(case, Rule(kind, 50, net), evict)
            rows = {row["job"]: row for row in outcome.jobs.to_dicts()}
            last = {
                row["job"]: row["start_s"] for row in outcome.attempts.filter(end="finished").to_dicts()
            }  # fmt: skip
            for k, (job, start) in enumerate(zip(case.ids, found.start.tolist(), strict=True)):
                row = rows[job]
                assert (row["state"] == "finished") == (start >= 0), (seed, rule, job)
                assert row["preemptions"] == found.evictions[k], (seed, rule, job)
                number = workload.ids.index(job)
                assert start < 0 or last[number] == start * SLOT, (seed, rule, job)
            for job, row in rows.items():
                assert job in case.ids or row["wait_s"] == 0
            evictions += int(found.evictions.sum())
            lost = outcome.jobs["lost_gpu_s"].sum()
            assert lost == pytest.approx(found.lost * SLOT)
            [told] = outcome.notes
            assert told.startswith(f"{(found.start >= 0).sum()} of {len(case.ids)} deferrable jobs")
    assert evictions > 10
